"""`spacql train ALGORITHM`: seeds in worker processes, every hyperparameter a flag."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USAGE = """usage: spacql train ALGORITHM --data NAME_OR_FOLDER [OPTIONS]

Train an algorithm on a dataset: several seeds, each in a process of its own.

Algorithms: {names}
`spacql train ALGORITHM --help` lists every option and hyperparameter.

Example: spacql train spacql --data spread-random --seeds 0 1 2 3 4
"""


@dataclass(frozen=True)
class Options:
    """How to run."""

    data: str  # a dataset folder, or a name such as spread-random
    seeds: tuple[int, ...] = (0,)  # with a named dataset, seed k trains on dataset k
    out: Path | None = None  # folder of the run; runs/<algorithm>-<data> if not given
    resume: bool = False  # continue an interrupted run
    workers: int = 0  # processes at a time; 0: one a core
    episodes: int | None = None  # of the final evaluation; 500, or 100 in halfcheetah
    loggers: tuple[str, ...] = ()  # tensorboard, wandb
    json: bool = False  # print the result as JSON


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
    from spacql.algorithms.registry import MODULES, find

    if not args or args[0] in ("-h", "--help"):
        print(usage.format(names=", ".join(MODULES)))
        return None, []
    find(args[0])  # refuses an unknown one
    return args[0], args[1:]


def parse(command: str, algorithm: str, args: Sequence[str], options: type) -> tuple[Any, Any]:
    """Options and the algorithm's Config. A first reading finds the dataset and the penalty, whose
    settings are the defaults of the second."""
    from dataclasses import replace

    import tyro

    from spacql.algorithms.registry import find
    from spacql.algorithms.settings import settings

    def read(config: Any) -> tuple[Any, Any]:
        def both(run: Any, hyperparameters: Any = config) -> tuple[Any, Any]:
            return run, hyperparameters

        plain = tyro.conf.OmitArgPrefixes
        both.__annotations__ = {"run": plain[options], "hyperparameters": plain[type(config)]}
        return tyro.cli(
            both, prog=f"spacql {command} {algorithm}", args=args, description=options.__doc__
        )

    defaults = find(algorithm).Config()
    run, given = read(defaults)
    if hasattr(given, "penalty"):
        defaults = replace(defaults, penalty=given.penalty)
    return read(settings(algorithm, defaults, dataset_name(run.data)))


def dataset_name(data: str) -> str:
    """The name a dataset folder says it has, or the name itself."""
    from spacql.files import read_json

    described = Path(data) / "dataset.json"
    if not described.is_file():
        return data
    return str(read_json(described).get("info", {}).get("name", ""))


def train_seeds(algorithm: str, config: Any, options: Any) -> list[dict[str, Any]]:
    """Train all seeds; one dictionary each: seed, folder, score, return, seconds, note, error."""
    import os
    import sys

    from spacql.data.cache import resolve
    from spacql.progress import progress
    from spacql.runs import check, describe, open_folder
    from spacql.training.seeds import Job, run_jobs, this_python

    check(config)
    name = dataset_name(options.data) or Path(options.data).name
    out = options.out or Path("runs") / f"{algorithm}-{name}"
    jobs = []
    for seed in options.seeds:
        folder = out / f"seed-{seed}"
        dataset = resolve(options.data, seed)
        place = str(Path(options.data).resolve()) if Path(options.data).is_dir() else options.data
        described = describe(
            algorithm, config, dataset, seed,
            data=place, episodes=options.episodes, loggers=options.loggers,
        )  # fmt: skip
        open_folder(folder, described, options.resume)
        jobs.append(Job(f"seed {seed}", this_python("-m", "spacql.runs", str(folder))))
    workers = min(options.workers or len(os.sched_getaffinity(0)), len(jobs))
    latest: dict[str, Any] = {}
    reached = {job.name: 0 for job in jobs}

    with progress(f"{algorithm} on {name}", config.rounds * len(jobs)) as advance:

        def on_event(job: Job, event: Any) -> None:
            if "round" not in event:
                return
            latest[job.name] = event["score"]
            scores = ", ".join(f"{s}: {x:.1f}" for s, x in latest.items() if x is not None)
            text = f"{event['rounds_per_second'] * workers:.2f} rounds/s  score {scores or '-'}"
            advance(event["round"] - reached[job.name], text)
            reached[job.name] = event["round"]

        def on_failure(job: Job) -> None:
            print(f"{job.name} failed: {job.error}", file=sys.stderr)

        run_jobs(jobs, workers, on_event, on_failure)
    empty = {"score": None, "return": None, "seconds": None, "note": ""}
    results = []
    for seed, job in zip(options.seeds, jobs, strict=True):
        done = next((event for event in job.events if event.get("done")), {})
        found = {name: done.get(name, value) for name, value in empty.items()}
        folder = str(out / f"seed-{seed}")
        results.append({"seed": seed, "folder": folder, **found, "error": job.error})
    return results


def show(algorithm: str, options: Any, results: list[dict[str, Any]]) -> None:
    """A line a seed, and the mean; or JSON."""
    from json import dumps

    import numpy as np

    if options.json:
        print(dumps({"algorithm": algorithm, "data": options.data, "seeds": results}, indent=1))
        return
    for result in results:
        if result["error"]:
            print(f"seed {result['seed']}: failed. {result['error']}")
        elif result["score"] is None:
            print(f"seed {result['seed']}: {result['note'] or 'no score'}  ({result['folder']})")
        else:
            print(
                f"seed {result['seed']}: score {result['score']:.1f}, "
                f"return {result['return']:.1f}, {result['seconds']:.0f} s  ({result['folder']})"
            )
    scores = [result["score"] for result in results if result["score"] is not None]
    if len(scores) > 1:
        print(
            f"score {np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f} over {len(scores)} seeds"
        )
