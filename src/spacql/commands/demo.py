"""`spacql demo`."""

from pathlib import Path
from typing import Any

# Small networks and large batches: few rounds suffice. The benchmark's trainings are longer.
QUICK: dict[str, Any] = {
    "updates": 5, "batch_size": 1024, "hidden": (64, 64), "learning_rate": 0.01,
    "target_rate": 0.03, "tanh_cost": 0.0, "samples": 10, "policy_samples": 0,
}  # fmt: skip


def is_demo(folder: Path) -> bool:
    """Whether a folder holds a run of this command, and not one that somebody trained there."""
    from spacql import records
    from spacql.files import as_json

    if not (folder / "run.json").is_file():
        return False
    run = records.run(folder)
    named = run["algorithm"], run["dataset"]["name"], run["data"]
    return named == ("spacql", "spread-random", "") and (
        run["config"].items() >= as_json(QUICK, folder).items()
    )


def demo(out: Path = Path("runs/demo"), rounds: int = 500, seed: int = 0) -> None:
    """Make data, train SPaCQL on it, score it, write its report: the whole way in minutes.

    Example: spacql demo --out runs/demo

    Args:
        out: Folder of the run; an older demo there is replaced.
        rounds: Training rounds.
        seed: Seed of the data and of the training, 0 to 4.
    """
    import shutil
    import warnings

    from spacql import arguments
    from spacql.commands.train import ONE_SEED
    from spacql.data import cache
    from spacql.errors import InputError
    from spacql.progress import progress
    from spacql.report import report as write_report
    from spacql.runs import locked, train
    from spacql.training.loop import Progress

    arguments.whole("--rounds", rounds)
    arguments.whole("--seed", seed, 0)
    arguments.place(out)
    if out.exists() and any(out.iterdir()):
        if not is_demo(out):
            raise InputError(f"{out} holds something else. Choose another folder with --out.")
        with locked(out):
            shutil.rmtree(out)
    print("1. Data: 1,000,000 transitions of three agents that act at random.")
    dataset = cache.resolve("spread-random", seed)
    returns = dataset.team_returns
    print(f"   {cache.place('spread-random', seed)}: return {returns.mean():z.1f} (score 0)")
    print(f"2. SPaCQL, {rounds} quick rounds on this log alone.")
    with progress("training", rounds) as advance:
        done = 0

        def report(now: Progress) -> None:
            nonlocal done
            score = "" if now.score is None else f"score {now.score:z.1f}"
            advance(now.round - done, score)
            done = now.round

        with warnings.catch_warnings(action="ignore"):  # so short a training warns of its length
            run = train(
                "spacql", dataset, seed=seed, out=out, report=report, rounds=rounds, **QUICK
            )
    scored = run.result["evaluation"]
    low, high = scored["score_interval"]
    print(
        f"3. Score {scored['score']:z.1f} (95 % interval over {scored['episodes']} episodes "
        f"{low:z.1f} to {high:z.1f}): 0 is random, 100 the expert."
    )
    print(f"   {ONE_SEED}")
    page = write_report([out], out / "report.html")
    print(f"   policy   {out / 'policy.safetensors'}\n   metrics  {out / 'metrics.jsonl'}")
    print(f"   report   {page}: open it in a browser; it has an episode that plays.")
