"""`spacql train ALGORITHM`: seeds in worker processes, every hyperparameter a flag."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacql.commands.where import HERE, Where

if TYPE_CHECKING:
    from spacql.algorithms.config import Training
    from spacql.experiments.running import Outcome

USAGE = """usage: spacql train ALGORITHM --data NAME_OR_FOLDER [OPTIONS]

Train an algorithm on a dataset: several seeds, each in a process of its own.

Algorithms: {names}
`spacql train ALGORITHM --help` lists every option and hyperparameter. With --data, it shows the
values that they would have on that dataset.

Example: spacql train spacql --data spread-random --seeds 0 1 2 3 4
"""

ONE_SEED = (
    "One seed: its score moves by many points with the seed, and with the version of JAX. "
    "Compare over several."
)


@dataclass(frozen=True)
class Options:
    """How to run."""

    data: str  # a dataset folder, or a name such as spread-random
    seeds: tuple[int, ...] = (0,)  # with a named dataset, seed k trains on dataset k
    out: Path | None = None  # folder of the run; runs/<algorithm>-<data> if not given
    resume: bool = False  # continue an interrupted run
    workers: int = 0  # processes at a time; 0: one per core
    episodes: int | None = None  # of the final evaluation; 500, or 100 in halfcheetah
    loggers: tuple[str, ...] = ()  # tensorboard, wandb
    quiet: bool = False  # no progress; failures are still told
    json: bool = False  # print the result as JSON
    where: Where = HERE


def main(args: list[str]) -> int:
    """Train an algorithm on a dataset: several seeds, each in a process of its own.

    Example: spacql train spacql --data spread-random --seeds 0 1 2 3 4
    """
    algorithm, rest = algorithm_name(args, USAGE)
    if algorithm is None:
        return 0
    options, config = parse("train", algorithm, rest, Options)
    results = train_seeds(algorithm, config, options)
    show(algorithm, options, results)
    return 1 if any(result["error"] for result in results) else 0


def algorithm_name(args: list[str], usage: str) -> tuple[str | None, list[str]]:
    """The first argument, or None after help was asked for and given."""
    from spacql.algorithms.registry import find, names

    if not args or args[0] in ("-h", "--help"):
        print(usage.format(names=", ".join(names())))
        return None, []
    find(args[0])  # refuses an unknown one
    return args[0], args[1:]


def parse(
    command: str, algorithm: str, args: Sequence[str], options: type
) -> "tuple[Any, Training]":
    """Options and the algorithm's Config, whose defaults are the settings of the dataset (and of
    the penalty) that the arguments name."""
    from argparse import ArgumentParser

    import tyro

    from spacql.algorithms.settings import check, configure

    first = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--data", nargs="?", default="")
    first.add_argument("--penalty", nargs="?")
    named, _ = first.parse_known_args([word for word in args if word not in ("-h", "--help")])
    given = {} if named.penalty != "policy" else {"penalty": "policy"}
    defaults = configure(algorithm, data_name(named.data or ""), given)

    def both(run: Any, hyperparameters: Any = defaults) -> tuple[Any, Any]:
        return run, hyperparameters

    plain = tyro.conf.OmitArgPrefixes
    both.__annotations__ = {"run": plain[options], "hyperparameters": plain[type(defaults)]}
    program = f"spacql {command} {algorithm}"
    run, config = tyro.cli(both, prog=program, args=args, description=options.__doc__)
    return run, check(config)


def data_name(data: str) -> str:
    """The name that a dataset folder says it has, or the name itself."""
    from spacql.data import load_dataset

    if not data or not (Path(data) / "dataset.json").is_file():
        return data
    return str(load_dataset(data).info.get("name", ""))


def data_place(data: str) -> str:
    """A dataset as every worker finds it: a folder's whole path, or the name itself."""
    from spacql.data.cache import is_folder

    return str(Path(data).resolve()) if is_folder(data) else data


def check_options(options: Any, out: Path) -> None:
    """Refuse what cannot work before data is made or a folder begun."""
    from spacql import arguments
    from spacql.training.metrics import check_loggers

    arguments.seeds(options.seeds)
    arguments.whole("--workers", options.workers, 0)
    arguments.whole("--episodes", getattr(options, "episodes", None))
    arguments.place(out)
    check_loggers(getattr(options, "loggers", ()))


def train_seeds(algorithm: str, config: "Training", options: Options) -> list[dict[str, Any]]:
    """Train all seeds; one dictionary each: seed, folder, score, return, seconds, note, error."""
    from spacql.errors import InputError
    from spacql.experiments.executors import PlannedRun
    from spacql.experiments.running import execute
    from spacql.runs import default_folder, refuse_another

    name = data_name(options.data) or Path(options.data).name
    out = options.out or default_folder(algorithm, name)
    check_options(options, out)
    executor = options.where.make(out, options.workers)
    for seed in options.seeds:
        options.where.prepare(options.data, seed, config)
        place = out / f"seed-{seed}"
        if (place / "run.json").exists():
            if not options.resume:
                raise InputError(
                    f"{place} holds a run already. Continue it with --resume, or choose another "
                    "--out."
                )
            refuse_another(place, algorithm, asdict(config), seed)
    runs = [
        PlannedRun(algorithm, data_place(options.data), seed, config, f"seed-{seed}",
                   options.episodes, options.loggers)
        for seed in options.seeds
    ]  # fmt: skip
    outcomes = execute(
        runs,
        executor,
        label=lambda run: f"seed {run.seed}",
        title=f"{algorithm} on {name}",
        again="--resume",
        quiet=options.quiet,
    )
    return [result(outcome, out) for outcome in outcomes]


def result(outcome: "Outcome", out: Path) -> dict[str, Any]:
    """What the command says about one seed."""
    record = outcome.record or {}
    evaluation = record.get("evaluation")
    return {
        "seed": outcome.run.seed,
        "folder": str(out / outcome.run.place),
        "score": outcome.score,
        "return": evaluation["return"]["mean"] if evaluation else None,
        "seconds": record.get("seconds"),
        "note": record.get("note", ""),
        "warnings": _warnings(out / outcome.run.place),
        "error": outcome.error,
    }


def _warnings(folder: Path) -> list[str]:
    """What a run's own numbers call for, if its folder is on this machine."""
    from spacql import records

    if not (folder / "result.json").is_file():
        return []
    return list(records.result(folder).get("warnings", ()))


def show(algorithm: str, options: Any, results: list[dict[str, Any]]) -> None:
    """One line per seed, and the mean; or JSON."""
    from json import dumps

    import numpy as np

    from spacql.evaluation import deviation

    if options.json:
        print(dumps({"algorithm": algorithm, "data": options.data, "seeds": results}, indent=1))
        return
    for entry in results:
        if entry["error"]:
            print(f"seed {entry['seed']}: failed. {entry['error']}")
        elif entry["score"] is None:
            gained = "" if entry["return"] is None else f"return {entry['return']:z.1f}. "
            print(f"seed {entry['seed']}: {gained}{entry['note']}  ({entry['folder']})")
        else:
            print(
                f"seed {entry['seed']}: score {entry['score']:z.1f}, "
                f"return {entry['return']:z.1f}, {entry['seconds']:z.0f} s  ({entry['folder']})"
            )
        for warning in entry["warnings"]:
            print(f"  {warning}")
    scores = [entry["score"] for entry in results if entry["score"] is not None]
    if len(scores) == 1:
        print(ONE_SEED)
    if len(scores) > 1:
        print(f"score {np.mean(scores):z.1f} ± {deviation(scores):z.1f} over {len(scores)} seeds")
