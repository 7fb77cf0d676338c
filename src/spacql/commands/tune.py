"""`spacql tune ALGORITHM`: which alpha, or which value of any hyperparameter, fits a dataset."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacql.commands.where import HERE, Where

if TYPE_CHECKING:
    from spacql.algorithms.config import Training
    from spacql.experiments.executors import PlannedRun

USAGE = """usage: spacql tune ALGORITHM --data NAME_OR_FOLDER [OPTIONS]

Find the penalty weight alpha that fits a dataset: a short training for every alpha and seed.
--vary NAME --values A B C sweeps any other hyperparameter. Without a simulator, values are compared
by the lower bound of the return that the log itself gives.

Algorithms: {names}
`spacql tune ALGORITHM --help` lists every option and hyperparameter.

Example: spacql tune spacql --data spread-random --alphas 0.1 0.5 2.5
"""


FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # of an algorithm's own alpha


@dataclass(frozen=True)
class Options:
    """What to try. Finished trainings are kept, so an interrupted sweep continues."""

    data: str  # a dataset folder, or a name such as spread-random
    alphas: tuple[float, ...] = ()  # the grid; a tenth to ten times the algorithm's own if empty
    vary: str = "alpha"  # another hyperparameter to sweep instead
    values: tuple[str, ...] = ()  # of it
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
    return 1 if any(entry["failed"] for entry in result["values"]) else 0


def sweep(algorithm: str, config: "Training", options: Options) -> dict[str, Any]:
    """Train every value and seed, all in one go; the result is also written to <out>/tune.json.

    Without a simulator the seeds' scores are the lower bounds that the log itself gives.
    """
    from dataclasses import asdict, replace

    import numpy as np

    from spacql.algorithms.settings import check
    from spacql.commands.train import check_options, data_name, data_place
    from spacql.data.cache import is_folder
    from spacql.errors import InputError
    from spacql.experiments.executors import PlannedRun
    from spacql.experiments.running import execute
    from spacql.experiments.store import digest
    from spacql.experiments.sweeps import text_of, trial_rounds
    from spacql.files import write_json
    from spacql.runs import default_folder

    if not 0 < options.share <= 1:
        raise InputError("share must be above 0 and at most 1.")
    vary, values = grid(algorithm, config, options)
    name = data_name(options.data) or Path(options.data).name
    out = options.out or default_folder(algorithm, name, "tune-")
    check_options(options, out)
    rounds = trial_rounds(config.rounds, options.share)
    executor = options.where.make(out, options.workers)
    for seed in options.seeds:
        options.where.prepare(options.data, seed, config)
    trials: dict[PlannedRun, Any] = {}
    for value in values:
        changed: dict[str, Any] = {"rounds": rounds, vary: value}
        trial = check(replace(config, **changed))
        options.where.prepare(options.data, options.seeds[0], trial)
        for seed in options.seeds:
            place = f"{vary}-{text_of(value)}-{digest(asdict(trial))}/seed-{seed}"
            trials[PlannedRun(algorithm, data_place(options.data), seed, trial, place)] = value
    outcomes = execute(
        list(trials),
        executor,
        label=lambda run: f"{vary} {text_of(trials[run])}, seed {run.seed}",
        title=f"{algorithm} on {name}",
        quiet=options.quiet,
    )
    notes = [o.record["note"] for o in outcomes if o.record and o.record.get("note")]
    found = {o.run: o.score for o in outcomes}
    if notes:
        places = {o.run: out / o.run.place for o in outcomes if o.record and not o.error}
        found = dict.fromkeys(trials) | estimated(places, options)
    lost = {o.run for o in outcomes if o.record is None}  # neither finished nor diverged
    entries: list[dict[str, Any]] = []
    for value in values:
        mine = [run for run, of_run in trials.items() if of_run == value]
        scores = [score for run in mine if (score := found[run]) is not None]
        crashed = [run.seed for run in mine if run in lost]
        entries.append(
            {
                "value": value,
                "scores": scores,
                "mean": float(np.mean(scores)) if scores else None,
                "failed": [run.seed for run in mine if found[run] is None],
                **({"crashed": crashed} if crashed else {}),
            }
        )
    scored = [entry for entry in entries if entry["mean"] is not None]
    best = max(scored, key=lambda entry: entry["mean"]) if scored else None
    result = {
        "algorithm": algorithm,
        "data": name,
        "folder": is_folder(options.data),
        "rounds": rounds,
        "seeds": list(options.seeds),
        "config": asdict(config),
        "hyperparameter": vary,
        "by": "lower bound of the return, from the log" if notes else "score",
        "values": entries,
        "best": None if best is None else best["value"],
    }
    write_json(out / "tune.json", result)
    plot(result, options.plot or out / f"{vary}.png")
    return result


def grid(algorithm: str, config: "Training", options: Options) -> tuple[str, list[Any]]:
    """The hyperparameter and its values, each once."""
    from dataclasses import asdict

    import numpy as np

    from spacql.algorithms.registry import find
    from spacql.errors import InputError, suggestion
    from spacql.evaluation.verdict import STRENGTHS

    known = {name: value for name, value in asdict(config).items() if name != "rounds"}
    vary = options.vary
    if vary not in known:
        if vary == "alpha":
            own = next((name for name in STRENGTHS if name in known), None)
            hint = f"Its own strength is {own}" if own else "Choose another"
            raise InputError(f"{algorithm} has no alpha to tune. {hint}: --vary {own or 'NAME'}"
                             " --values A B C.")  # fmt: skip
        raise InputError(
            f"{algorithm} has no hyperparameter {vary!r} to tune.{suggestion(vary, known)} "
            f"It has: {', '.join(sorted(known))}."
        )
    if vary == "alpha" and not options.values:
        if not all(0 <= alpha < np.inf for alpha in options.alphas):
            raise InputError("alphas must be finite numbers, 0 or above.")
        usual = find(algorithm).Config().alpha
        alphas = options.alphas or [float(f"{usual * factor:.3g}") for factor in FACTORS]
        return vary, list(dict.fromkeys(alphas))
    if not options.values:
        raise InputError(f"Give the values of {vary} to try: --values A B C.")
    return vary, list(dict.fromkeys(_parsed(vary, text, known[vary]) for text in options.values))


def _parsed(vary: str, text: str, like: Any) -> Any:
    """A value of the type of the one that is there; layers as 64,64."""
    from spacql.errors import InputError

    try:
        if isinstance(like, tuple | list):
            return tuple(int(part) for part in text.split(",") if part)
        if isinstance(like, bool):
            return {"true": True, "false": False}[text.lower()]
        return text if isinstance(like, str) else type(like)(text)
    except (KeyError, ValueError) as error:
        raise InputError(f"{text!r} is no value of {vary}, which is {like!r} now.") from error


def estimated(places: "dict[PlannedRun, Path]", options: Options) -> "dict[PlannedRun, float]":
    """The lower bound of every policy's return, from the log alone."""
    from spacql.data.cache import resolve
    from spacql.evaluation.offline import DEFAULT, Evaluator, bound
    from spacql.policies import Policy

    evaluators: dict[str, Evaluator] = {}
    found = {}
    for run, place in places.items():
        dataset = resolve(options.data, run.seed)
        evaluator = evaluators.setdefault(dataset.identity, Evaluator(dataset))
        found[run] = bound(evaluator.evaluate(Policy.load(place)).estimate, DEFAULT)
    return found


def show(result: dict[str, Any], options: Any) -> None:
    from json import dumps

    from spacql.experiments.sweeps import text_of

    if options.json:
        print(dumps(result, indent=1))
        return
    penalty, vary = result["config"].get("penalty", ""), result["hyperparameter"]
    by = "score" if result["by"] == "score" else "bound"
    parts = [f"{result['algorithm']} on {result['data']}", penalty, f"{result['rounds']} rounds"]
    print(", ".join(part for part in parts if part))
    if by == "bound":
        print("Without a simulator: lower bounds of the return, estimated from the log.")
    width = max(len(vary) + 1, 8)
    print(f"{vary:<{width}}{by:<8}seeds")
    for entry in result["values"]:
        mean = "failed" if entry["mean"] is None else f"{entry['mean']:z.1f}"
        scores = " ".join(f"{score:z.1f}" for score in entry["scores"])
        best = "  best" if entry["value"] == result["best"] else ""
        print(f"{text_of(entry['value']):<{width}}{mean:<8}{scores}{best}")


def plot(result: dict[str, Any], path: Path) -> None:
    """Score against the value: every seed a dot, the means a line."""
    from matplotlib.figure import Figure

    from spacql.experiments.sweeps import text_of
    from spacql.files import new_file

    figure = Figure(figsize=(4.5, 3.2), layout="constrained")
    axis = figure.subplots()
    scored = [entry for entry in result["values"] if entry["mean"] is not None]
    values = [entry["value"] for entry in scored]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    at = values if numbers else list(range(len(values)))
    for x, entry in zip(at, scored, strict=True):
        count = len(entry["scores"])
        axis.plot([x] * count, entry["scores"], "o", color="#0072B2", alpha=0.5)
    axis.plot(at, [entry["mean"] for entry in scored], color="#0072B2")
    axis.set(xlabel=result["hyperparameter"], ylabel=result["by"])
    if numbers and all(v > 0 for v in values):
        axis.set_xscale("log")
    elif not numbers:
        axis.set_xticks(at, [text_of(v) for v in values])
    axis.set_title(f"{result['algorithm']} on {result['data']}, {result['rounds']} rounds")
    axis.spines[["top", "right"]].set_visible(False)
    if path.suffix != ".png":
        path = path.with_name(f"{path.name}.png")
    with new_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
