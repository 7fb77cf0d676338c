"""`spacql tune ALGORITHM`: which alpha fits a dataset."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacql.commands.where import HERE, Where

if TYPE_CHECKING:
    from spacql.algorithms.config import Training

USAGE = """usage: spacql tune ALGORITHM --data NAME_OR_FOLDER [OPTIONS]

Find the penalty weight alpha that fits a dataset: a short training for every alpha and seed.

Algorithms: {names}
`spacql tune ALGORITHM --help` lists every option and hyperparameter.

Example: spacql tune spacql --data spread-random --alphas 0.1 0.5 2.5
"""


@dataclass(frozen=True)
class Options:
    """What to try. Finished trainings are kept, so an interrupted sweep continues."""

    data: str  # a dataset folder, or a name such as spread-random
    alphas: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # the grid
    seeds: tuple[int, ...] = (100, 101)  # apart from the seeds that are reported
    out: Path | None = None  # folder of the sweep; runs/tune-<algorithm>-<data> if not given
    workers: int = 0  # processes at a time; 0: one per core
    share: float = 0.25  # of the rounds of a full training; --rounds is a full training's number
    plot: Path | None = None  # PNG of score against alpha; <out>/alpha.png if not given
    quiet: bool = False  # no progress; failures are still told
    json: bool = False  # print the result as JSON
    where: Where = HERE


def main(args: list[str]) -> int:
    """Find the penalty weight alpha that fits a dataset: a short training for every alpha.

    Example: spacql tune spacql --data spread-random --alphas 0.1 0.5 2.5
    """
    from spacql.commands.train import algorithm_name, parse

    algorithm, rest = algorithm_name(args, USAGE)
    if algorithm is None:
        return 0
    options, config = parse("tune", algorithm, rest, Options)
    result = sweep(algorithm, config, options)
    show(result, options)
    return 1 if any(entry["failed"] for entry in result["alphas"]) else 0


def sweep(algorithm: str, config: "Training", options: Options) -> dict[str, Any]:
    """Train every alpha and seed, all in one go; the result is also written to <out>/tune.json."""
    from dataclasses import asdict, replace

    import numpy as np

    from spacql.commands.train import check_options, data_name, data_place
    from spacql.errors import InputError
    from spacql.experiments.executors import PlannedRun
    from spacql.experiments.running import execute
    from spacql.files import write_json
    from spacql.runs import default_folder

    if not hasattr(config, "alpha"):
        raise InputError(f"{algorithm} has no alpha to tune.")
    if not 0 < options.share <= 1 or not options.alphas:
        raise InputError("share must be above 0 and at most 1, and alphas not empty.")
    if not all(0 <= alpha < np.inf for alpha in options.alphas):
        raise InputError("Every alpha must be a finite number, 0 or above.")
    name = data_name(options.data) or Path(options.data).name
    out = options.out or default_folder(algorithm, name, "tune-")
    check_options(options, out)
    rounds = max(10, round(config.rounds * options.share / 10) * 10)
    executor = options.where.make(out, options.workers)
    for seed in options.seeds:
        options.where.prepare(options.data, seed, config)
    trials: dict[PlannedRun, float] = {}
    for alpha in options.alphas:
        values: dict[str, Any] = {"alpha": alpha, "rounds": rounds}
        trial = replace(config, **values)
        for seed in options.seeds:
            place = f"alpha-{alpha:g}/seed-{seed}"
            trials[PlannedRun(algorithm, data_place(options.data), seed, trial, place)] = alpha
    outcomes = execute(
        list(trials),
        executor,
        label=lambda run: f"alpha {trials[run]:g}, seed {run.seed}",
        title=f"{algorithm} on {name}",
        quiet=options.quiet,
    )
    notes = [o.record["note"] for o in outcomes if o.record and o.record.get("note")]
    if notes:
        raise InputError(f"Without scores there is nothing to tune by. {notes[0]}")
    entries: list[dict[str, Any]] = []
    for alpha in dict.fromkeys(options.alphas):
        mine = [outcome for outcome in outcomes if trials[outcome.run] == alpha]
        scores = [outcome.score for outcome in mine if outcome.score is not None]
        entries.append(
            {
                "alpha": alpha,
                "scores": scores,
                "mean": float(np.mean(scores)) if scores else None,
                "failed": [outcome.run.seed for outcome in mine if outcome.score is None],
            }
        )
    scored = [entry for entry in entries if entry["mean"] is not None]
    result = {
        "algorithm": algorithm,
        "data": name,
        "rounds": rounds,
        "seeds": list(options.seeds),
        "config": asdict(config),
        "alphas": entries,
        "best": max(scored, key=lambda entry: entry["mean"])["alpha"] if scored else None,
    }
    write_json(out / "tune.json", result)
    plot(result, options.plot or out / "alpha.png")
    return result


def show(result: dict[str, Any], options: Any) -> None:
    from json import dumps

    if options.json:
        print(dumps(result, indent=1))
        return
    penalty = result["config"].get("penalty", "")
    print(f"{result['algorithm']} on {result['data']}, {penalty}, {result['rounds']} rounds")
    print("alpha   score   seeds")
    for entry in result["alphas"]:
        mean = "failed" if entry["mean"] is None else f"{entry['mean']:.1f}"
        scores = " ".join(f"{score:.1f}" for score in entry["scores"])
        best = "  best" if entry["alpha"] == result["best"] else ""
        print(f"{entry['alpha']:<7g} {mean:<7} {scores}{best}")


def plot(result: dict[str, Any], path: Path) -> None:
    """Score against alpha: every seed a dot, the means a line."""
    from matplotlib.figure import Figure

    from spacql.files import new_file

    figure = Figure(figsize=(4.5, 3.2), layout="constrained")
    axis = figure.subplots()
    scored = [entry for entry in result["alphas"] if entry["mean"] is not None]
    for entry in scored:
        count = len(entry["scores"])
        axis.plot([entry["alpha"]] * count, entry["scores"], "o", color="#0072B2", alpha=0.5)
    axis.plot([e["alpha"] for e in scored], [e["mean"] for e in scored], color="#0072B2")
    axis.set(xscale="log", xlabel="alpha", ylabel="score")
    axis.set_title(f"{result['algorithm']} on {result['data']}, {result['rounds']} rounds")
    axis.spines[["top", "right"]].set_visible(False)
    with new_file(path.with_suffix(".png")) as temporary:
        figure.savefig(temporary, dpi=150)
