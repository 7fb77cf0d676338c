"""Runs: training, evaluation and the folder that holds what came out of them.

RUN/seed-0/run.json        algorithm, full configuration, dataset identity, versions
          metrics.jsonl    one object a round; evaluated rounds have "score" and "return"
          policy.json, policy.safetensors
          result.json      the final evaluation with every episode's return; seconds
          checkpoints/     the newest few training states
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spacql.errors import InputError, MissingExtra, SpacqlError
from spacql.files import read_json, write_json

if TYPE_CHECKING:
    from spacql.data import Dataset
    from spacql.evaluation.score import Reference
    from spacql.policies import Policy
    from spacql.training.loop import Progress

FORMAT = 1


class Run(NamedTuple):
    """A finished run."""

    folder: Path
    policy: "Policy"
    result: dict[str, Any]  # what result.json holds

    @property
    def score(self) -> float | None:
        evaluation = self.result["evaluation"]
        return None if evaluation is None else evaluation["score"]


def train(
    algorithm: str,
    data: "Dataset | str | Path",
    *,
    seed: int = 0,
    out: Path | str | None = None,
    resume: bool = False,
    episodes: int | None = None,
    report: "Callable[[Progress], None]" = lambda progress: None,
    **hyperparameters: Any,
) -> Run:
    """Train one seed in this process and evaluate the policy, if its world is known.

    `data` is a `Dataset`, a folder, or a name such as "spread-random". `hyperparameters` are
    those of the algorithm's `Config`; the others come from the table of settings. `out` is the
    run's folder, by default `runs/<algorithm>-<data>/seed-<seed>`.

    Example: spacql.train("spacql", "spread-random", rounds=300).score
    """
    from spacql.data import Dataset
    from spacql.data.cache import resolve

    dataset = data if isinstance(data, Dataset) else resolve(data, seed)
    config = configure(algorithm, dataset, hyperparameters)
    name = dataset.info.get("name", dataset.spec.task)
    folder = Path(out) if out else Path("runs") / f"{algorithm}-{name}" / f"seed-{seed}"
    place = "" if isinstance(data, Dataset) else str(data)
    described = describe(algorithm, config, dataset, seed, data=place, episodes=episodes)
    open_folder(folder, described, resume)
    return run_folder(folder, dataset, report)


def configure(algorithm: str, dataset: "Dataset", hyperparameters: dict[str, Any]) -> Any:
    """The algorithm's Config: given values over the table of settings over its defaults."""
    from spacql.algorithms.registry import find
    from spacql.algorithms.settings import settings

    config = find(algorithm).Config()
    known = {field.name for field in fields(config)}
    for name in hyperparameters:
        if name not in known:
            raise InputError(
                f"{algorithm} has no hyperparameter {name!r}. It has: {', '.join(sorted(known))}."
            )
    config = replace(config, **hyperparameters)
    config = settings(algorithm, config, str(dataset.info.get("name", "")))
    return check(replace(config, **hyperparameters))


def check(config: Any) -> Any:
    """Refuse numbers that cannot work."""
    for name in ("rounds", "updates", "batch_size", "critics", "samples", "penalty_every"):
        if getattr(config, name, 1) < 1:
            raise InputError(f"{name} is {getattr(config, name)}; it must be at least 1.")
    every = getattr(config, "penalty_every", 1)
    if config.batch_size % every:
        raise InputError(
            f"The penalty cannot look at one in {every} transitions of a batch of "
            f"{config.batch_size}: choose a penalty_every that divides batch_size."
        )
    for name, high in (("discount", 1.0), ("target_rate", None), ("learning_rate", None)):
        value = getattr(config, name, 0.5)
        if not (value > 0 and (high is None or value < high)):
            raise InputError(
                f"{name} is {value}; it must be above 0{' and below 1' if high else ''}."
            )
    return config


def describe(
    algorithm: str,
    config: Any,
    dataset: "Dataset",
    seed: int,
    *,
    data: str = "",
    episodes: int | None = None,
    loggers: Sequence[str] = (),
) -> dict[str, Any]:
    """What run.json holds: enough to repeat the run and to make every table later."""
    info = dataset.info
    packages = ("spacql", "jax", "jaxlib", "numpy", "optax", "equinox")
    host = dataset.spec.task == "halfcheetah"
    return {
        "format": FORMAT,
        "algorithm": algorithm,
        "seed": seed,
        "config": asdict(config),
        "data": data,
        "dataset": {
            "name": info.get("name", dataset.spec.task),
            "seed": info.get("seed"),
            "identity": dataset.identity,
            "transitions": dataset.n_transitions,
            "reference": info.get("reference"),
        },
        "spec": dataset.spec.to_json(),
        "evaluation": {
            "every": every(config.rounds, 20),
            "episodes": 5 if host else 500,
            "final_episodes": episodes or (100 if host else 500),
        },
        "checkpoint_every": every(config.rounds, 20),
        "loggers": list(loggers),
        "versions": {"python": platform.python_version()} | {p: version(p) for p in packages},
    }


def every(rounds: int, times: int) -> int:
    """About `times` times a run, in whole tens of rounds."""
    return min(rounds, max(10, rounds // times // 10 * 10))


def open_folder(folder: Path, described: dict[str, Any], resume: bool) -> None:
    """Begin a run folder, or see to it that the one that is there can be continued."""
    path = folder / "run.json"
    if not path.exists():
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} exists and holds no run. Choose another place with --out.")
        write_json(path, described)
        return
    if not resume:
        raise InputError(
            f"{folder} holds a run already. Continue it with --resume, or choose another --out."
        )
    there = read_json(path)
    if there["dataset"]["identity"] != described["dataset"]["identity"]:
        raise InputError(f"The run in {folder} was trained on another dataset; it cannot continue.")
    mine, other = json.loads(json.dumps(described["config"])), there["config"]
    changed = [name for name in mine if name != "rounds" and mine[name] != other.get(name)]
    if there["algorithm"] != described["algorithm"] or changed:
        what = changed[0] if changed else "algorithm"
        raise InputError(
            f"The run in {folder} has another {what}; it cannot continue with this one."
        )
    if mine["rounds"] != other["rounds"]:
        write_json(path, {**there, "config": other | {"rounds": mine["rounds"]}})


def run_folder(
    folder: Path, dataset: "Dataset", report: "Callable[[Progress], None]" = lambda progress: None
) -> Run:
    """Train what run.json describes, to the end; a finished run is only read."""
    import jax

    from spacql.algorithms.registry import find
    from spacql.policies import Policy
    from spacql.training.loop import Schedule, fit

    described = read_json(folder / "run.json")
    algorithm, config = find(described["algorithm"]), config_of(described)
    result_path = folder / "result.json"
    if result_path.exists() and read_json(result_path)["rounds"] == config.rounds:
        return Run(folder, Policy.load(folder), read_json(result_path))
    started = time.monotonic()
    plan, seed = described["evaluation"], described["seed"]
    score, note = scorer(described["spec"]["task"], dataset)
    key = jax.random.key(seed + 1_000_003)  # apart from the keys of training

    def now_and_then(policy: Policy) -> dict[str, float]:
        evaluation = score(policy, plan["episodes"], key)
        return {"return": evaluation["return"]["mean"], "score": evaluation["score"]}

    policy = fit(
        algorithm,
        config,
        dataset,
        seed,
        folder,
        schedule=Schedule(plan["every"], described["checkpoint_every"]),
        evaluate=None if note else now_and_then,
        report=report,
        loggers=tuple(described["loggers"]),
    )
    final = None if note else score(policy, plan["final_episodes"], jax.random.fold_in(key, 1))
    seconds = time.monotonic() - started
    result = {"rounds": config.rounds, "seconds": seconds, "evaluation": final, "note": note}
    write_json(result_path, result)
    return Run(folder, policy, result)


def config_of(described: dict[str, Any]) -> Any:
    """The Config that run.json holds."""
    from spacql.algorithms.registry import find

    values = described["config"].items()
    tuples = {name: tuple(v) if isinstance(v, list) else v for name, v in values}
    return find(described["algorithm"]).Config(**tuples)


def scorer(
    task: str, dataset: "Dataset | None" = None
) -> tuple[Callable[..., dict[str, Any]], str]:
    """A function (policy, episodes, key) to an evaluation as JSON; or a note why there is none."""
    from spacql.evaluation.score import evaluate
    from spacql.worlds import make

    try:
        world = make(task)
    except (InputError, MissingExtra) as error:
        return lambda *_: {}, f"Not evaluated: {error}"
    if dataset is not None and dataset.spec.prey != world.spec.prey:
        return (
            lambda *_: {},
            f"Not evaluated: the data was made against the prey {dataset.spec.prey!r}.",
        )
    reference = reference_of(dataset.info.get("reference")) if dataset is not None else None

    def score(policy: "Policy", episodes: int, key: Any) -> dict[str, Any]:
        found = evaluate(policy, world, episodes=episodes, key=key, reference=reference)
        return found.to_json()

    return score, ""


def reference_of(stored: dict[str, Any] | None) -> "Reference | None":
    """The reference returns that a dataset or a run has stored."""
    from spacql.evaluation.score import Reference

    names = [field.name for field in fields(Reference)]
    return Reference(**{n: stored[n] for n in names if n in stored}) if stored else None


def main(folder: str) -> int:
    """What a worker process does: `python -m spacql.runs FOLDER`, events on standard output."""
    import jax

    from spacql.data.cache import folder as cache_folder
    from spacql.data.cache import resolve

    if core := os.environ.get("SPACQL_CORE"):
        os.sched_setaffinity(0, {int(core)})
    # The second seed, and a resumed run, need not compile again.
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    try:
        described = read_json(Path(folder) / "run.json")
        dataset = resolve(described["data"], described["dataset"]["seed"] or 0)
        run = run_folder(
            Path(folder), dataset, lambda p: print(json.dumps(p._asdict()), flush=True)
        )
    except SpacqlError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    print(json.dumps({"done": True, "score": run.score, **_outline(run)}), flush=True)
    return 0


def _outline(run: Run) -> dict[str, Any]:
    evaluation = run.result["evaluation"]
    returned = None if evaluation is None else evaluation["return"]["mean"]
    return {"return": returned, "seconds": run.result["seconds"], "note": run.result["note"]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
