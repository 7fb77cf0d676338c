"""`spacql evaluate RUN`."""

from pathlib import Path
from typing import Any

import tyro


def evaluate(
    run: tyro.conf.Positional[Path],
    /,
    episodes: int | None = None,
    gif: Path | None = None,
    offline: bool = False,
    data: str | None = None,
    estimators: tuple[str, ...] = ("model",),
    seed: int = 0,
    json: bool = False,
) -> int:
    """Score the policies of a run, one line per seed; with --offline, without a simulator.

    RUN is the folder of a run, or of one seed in it, or what `spacql fit` made. Offline, a log says
    what a policy would return, with a 90 % interval, and how far each agent leaves the log; what
    the log of the training says, which is optimistic, is kept in the run's folder, where the report
    finds it.

    Example: spacql evaluate runs/spacql-spread-random --gif spread.gif

    Args:
        run: Folder of a run, or of one seed.
        episodes: Episodes per policy; 500, or 100 in halfcheetah.
        gif: Write a picture of the first policy in action (particle worlds).
        offline: Ask a log instead of a simulator.
        data: The log to ask, a folder or a name; that of the training if not given.
        estimators: Of --offline: model, fqe, plain-fqe; several are shown side by side.
        seed: Seed of the episodes.
        json: Print JSON, with every episode's return.
    """
    import sys
    from json import dumps

    import jax

    from spacql import arguments, records
    from spacql.errors import InputError
    from spacql.evaluation.score import evaluate as measure
    from spacql.policies import Policy
    from spacql.reference import Reference
    from spacql.runs import world_of

    arguments.whole("--episodes", episodes)
    arguments.whole("--seed", seed, 0)
    alone = any((run / name).exists() for name in ("run.json", "policy.json"))
    folders = [run] if alone else sorted(run.glob("seed-*"))
    folders = [folder for folder in folders if (folder / "policy.json").exists()]
    if not folders:
        raise InputError(f"There is no trained policy in {run}.")
    if offline:
        return evaluate_offline(folders, data, estimators, seed, json)
    results: list[dict[str, Any]] = []
    world: Any = None
    for folder in folders:
        if not (folder / "run.json").exists():
            raise InputError(f"{folder} holds a policy, but no run that names its world. "
                             "Ask a log: --offline --data LOG.")  # fmt: skip
        described = records.run(folder)
        task, stored = described["spec"]["task"], described["dataset"]["reference"]
        prey = Policy.load(folder / "prey") if (folder / "prey.json").exists() else None
        world = world_of(described["spec"], prey)
        found = measure(
            Policy.load(folder),
            world,
            episodes=episodes or (100 if task == "halfcheetah" else 500),
            key=jax.random.key(seed),
            reference=Reference.from_json(stored) if stored else None,
        )
        results.append({"folder": str(folder), **found.to_json()})
        if not json:
            interval = found.score_interval
            span = f" (95 %: {interval[0]:z.1f} to {interval[1]:z.1f})" if interval else ""
            score = f"score {found.score:z.1f}{span}, " if found.score is not None else ""
            print(f"{folder}: {score}return {found.summary.mean:z.1f}. {found.note}".rstrip())
    if json:
        print(dumps(results, indent=1))
    if gif is not None:
        from spacql.worlds.render import save_gif

        save_gif(world, Policy.load(folders[0]), jax.random.key(seed), gif)
        print(f"Wrote {gif}", file=sys.stderr)
    return 0


def evaluate_offline(
    folders: list[Path], data: str | None, estimators: tuple[str, ...], seed: int, json: bool
) -> int:
    """What a log says of the policies in these folders."""
    from json import dumps

    from spacql import records
    from spacql.data.cache import resolve
    from spacql.errors import InputError
    from spacql.evaluation.intervals import written
    from spacql.evaluation.offline import UNTESTED, Evaluator, check_estimators
    from spacql.files import write_json
    from spacql.policies import Policy

    check_estimators(estimators)
    results: list[dict[str, Any]] = []
    evaluators: dict[str, Evaluator] = {}  # one for each log
    for folder in folders:
        place, number, own = data or "", 0, ""
        if (folder / "run.json").exists():
            described = records.run(folder)
            own = described["dataset"]["identity"]
            if not data:
                place, number = described["data"] or described["dataset"]["name"], described["seed"]
        elif not data:
            raise InputError(f"{folder} does not say which log it is of: give --data LOG.")
        dataset = resolve(place, number)
        if not data and dataset.identity != own:
            raise InputError(
                f"{folder} was trained on another log ({own[:8]}) than {place} is now "
                f"({dataset.identity[:8]}). Name the log to ask: --data LOG."
            )
        if dataset.identity not in evaluators:
            evaluators[dataset.identity] = Evaluator(dataset, seed=seed)
        found = evaluators[dataset.identity].evaluate(Policy.load(folder), estimators)
        if dataset.identity == own:
            write_json(folder / "offline.json", found.to_json())
        results.append({"folder": str(folder), **found.to_json()})
        if json:
            continue
        kind = "of its" if dataset.identity == own else "held-out"
        of_log = written(found.log.low, found.log.high)
        print(f"{folder}: the log returned {of_log(found.log.mean)} in {found.heldout:,} {kind} "
              "episodes.")  # fmt: skip
        if dataset.identity == own:
            print("  The policy was trained on these episodes, so the estimate is optimistic; "
                  "spacql fit holds some out.")  # fmt: skip
        for name, x in found.estimates.items():
            text = written(x.low, x.high)
            print(f"  {name:<10} return {text(x.mean)} (90 %: {text(x.low)} to {text(x.high)})")
        if found.trust and found.trust.correlation is None:
            print(f"  {UNTESTED}")
        elif found.trust:
            trust = found.trust
            print(f"  The model foretells held-out returns with a correlation of "
                  f"{trust.correlation:z.2f} and a bias of {of_log(trust.bias)}.")  # fmt: skip
        for agent, far in found.distance.items():
            print(f"  {agent}: {far:z.1f} deviations from the log, beyond 3 in "
                  f"{100 * found.outside[agent]:z.0f} % of the states")  # fmt: skip
    if json:
        print(dumps(results, indent=1))
    return 0
