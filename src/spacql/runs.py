"""Runs: training, evaluation and the folder that holds what came out of them.

RUN/seed-0/run.json        algorithm, full configuration, dataset identity, versions
          metrics.jsonl    one object per round; evaluated rounds have "score" and "return"
          policy.json, policy.safetensors
          prey.json, prey.safetensors   in tag and world: the prey of the data
          result.json      the final evaluation with every episode's return; seconds
          diverged.json    instead of a result: when the numbers were no longer finite
          checkpoints/     the newest few training states
          seconds.json     how long it took to the newest of them, until there is a result
"""

import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from spacql import arguments, records
from spacql.errors import Diverged, InputError, MissingExtra
from spacql.files import safe_name, write_json

if TYPE_CHECKING:
    from spacql.algorithms.config import Training
    from spacql.data import Dataset
    from spacql.policies import Policy
    from spacql.spec import Spec
    from spacql.training.loop import Progress


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
    algorithm: str | ModuleType,
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

    `algorithm` is a name, or a module of your own that has what `spacql.algorithms.registry`
    asks for. `data` is a `Dataset`, a folder, or a name such as "spread-random".
    `hyperparameters` are those of the algorithm's `Config`; the others come from the settings of
    the dataset. `out` is the run's folder, by default `runs/<algorithm>-<data>/seed-<seed>`.
    What the training's own numbers warn of comes as Python warnings.

    Example: spacql.train("spacql", "spread-random", rounds=300).score
    """
    from spacql.algorithms.registry import name_of
    from spacql.algorithms.settings import check_fits, configure
    from spacql.data import Dataset
    from spacql.data.cache import resolve

    arguments.whole("seed", seed, 0)
    arguments.whole("episodes", episodes)
    arguments.place(None if out is None else Path(out))
    dataset = data if isinstance(data, Dataset) else resolve(data, seed)
    config = configure(algorithm, dataset_name(dataset), hyperparameters)
    check_fits(config, dataset.spec)
    label = name_of(algorithm)
    folder = Path(out) if out else default_folder(label, dataset_name(dataset)) / f"seed-{seed}"
    place = "" if isinstance(data, Dataset) else str(data)
    described = describe(label, config, dataset, seed, data=place, episodes=episodes)
    with locked(folder):
        open_folder(folder, described, resume, lengthens(config))
        run = run_folder(folder, dataset, report, algorithm)
    for text in run.result.get("warnings", ()):  # the command line prints them itself
        warnings.warn(text, stacklevel=2)
    return run


def dataset_name(dataset: "Dataset") -> str:
    return str(dataset.info.get("name", dataset.spec.task))


def default_folder(algorithm: str, dataset: str, prefix: str = "") -> Path:
    """Where a run goes if nobody says."""
    return Path("runs") / safe_name(f"{prefix}{algorithm}-{dataset}")


def describe(
    algorithm: str,
    config: "Training",
    dataset: "Dataset",
    seed: int,
    *,
    data: str = "",
    episodes: int | None = None,
    loggers: Sequence[str] = (),
) -> dict[str, Any]:
    """What run.json holds: enough to repeat the run and to make every table later."""
    from spacql.worlds import is_slow

    info = dataset.info
    packages = ("spacql", "jax", "jaxlib", "numpy", "optax", "equinox")
    slow = is_slow(dataset.spec.task)
    return {
        "format": records.FORMAT,
        "algorithm": algorithm,
        "seed": seed,
        "config": asdict(config),
        "data": data,
        "dataset": {
            "name": dataset_name(dataset),
            "seed": info.get("seed"),
            "identity": dataset.identity,
            "transitions": dataset.n_transitions,
            "reference": info.get("reference"),
        },
        "spec": dataset.spec.to_json(),
        "evaluation": {
            "every": every(config.rounds, 20),
            "episodes": 5 if slow else 500,
            "final_episodes": episodes or final_episodes(dataset.spec.task),
        },
        "checkpoint_every": every(config.rounds, 20),
        "loggers": list(loggers),
        "versions": {"python": platform.python_version()} | {p: version(p) for p in packages},
    }


def final_episodes(task: str) -> int:
    """Of which a score is the mean, unless a user says another number."""
    from spacql.worlds import is_slow

    return 100 if is_slow(task) else 500


def every(rounds: int, times: int) -> int:
    """About `times` times per run, in whole tens of rounds."""
    return min(rounds, max(10, rounds // times // 10 * 10))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else trains in this folder meanwhile."""
    from filelock import FileLock, Timeout

    lock = FileLock(lock_file(folder), timeout=0)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise InputError(f"Another process is training in {folder}.") from error
    except OSError as error:
        raise InputError(f"Cannot write in {folder.parent}: {error.strerror}.") from error
    try:
        yield
    finally:
        lock.release()


def lock_file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def open_folder(
    folder: Path, described: dict[str, Any], resume: bool, lengthen: bool = True
) -> None:
    """Begin a run folder, or see to it that the one that is there can be continued; with more
    rounds too, if `lengthen`. Loggers and the episodes of the final evaluation, which change
    nothing about the training, are those of the latest call until the run is finished."""
    path = folder / "run.json"
    if not path.exists():
        # What a kill left of run.json begins with a dot, and is cleared when that is written.
        if folder.exists() and any(not there.name.startswith(".") for there in folder.iterdir()):
            raise InputError(f"{folder} exists and holds no run. Choose another place with --out.")
        write_json(path, described)
        return
    if not resume:
        raise InputError(
            f"{folder} holds a run already. Continue it with --resume, or choose another --out."
        )
    there = records.run(folder)
    if there["dataset"]["identity"] != described["dataset"]["identity"]:
        raise InputError(
            f"The run in {folder} was trained on another dataset; it cannot continue. Begin anew "
            "in another folder, or remove this one."
        )
    refuse_another(folder, described["algorithm"], described["config"], described["seed"])
    mine, other = described["config"], there["config"]
    if mine["rounds"] != other["rounds"]:
        if not lengthen:
            raise InputError(
                f"The run in {folder} has {other['rounds']:,} rounds. {there['algorithm']} does "
                f"from the first round what its length says: continue it with --rounds "
                f"{other['rounds']}, or begin anew in another --out."
            )
        if (trained := newest_checkpoint(folder)) > mine["rounds"]:
            raise InputError(
                f"The run in {folder} is trained for {trained:,} rounds already; it cannot end "
                f"after {mine['rounds']:,}. Give more --rounds, or choose another --out."
            )
    elif finished(folder):
        return
    final = {"final_episodes": described["evaluation"]["final_episodes"]}
    continued = {
        **there,
        "config": other | {"rounds": mine["rounds"]},
        "evaluation": there["evaluation"] | final,
        "loggers": described["loggers"],
    }
    if continued != there:
        write_json(path, continued)


def refuse_another(folder: Path, algorithm: str, config: dict[str, Any], seed: int) -> None:
    """Refuse to continue a run as what it is not. Its length is another matter."""
    there = records.run(folder)
    if there["algorithm"] != algorithm:
        raise InputError(
            f"The run in {folder} is of {there['algorithm']}, not of {algorithm}. Choose another "
            "--out."
        )
    mine, other = json.loads(json.dumps(config)), there["config"]
    changed = [name for name in mine if name != "rounds" and mine[name] != other.get(name)]
    if changed:
        name = changed[0]
        flag = f"--{name.replace('_', '-')}"
        raise InputError(
            f"The run in {folder} has another {name} ({other.get(name)}, not {mine[name]}): give "
            f"the same {flag}, or choose another --out."
        )
    if there["seed"] != seed:
        raise InputError(
            f"The run in {folder} has the seed {there['seed']}; it cannot continue with another."
        )


def lengthens(config: "Training") -> bool:
    """Whether more rounds go on as if they had been planned from the start."""
    return bool(getattr(config, "may_be_lengthened", True))


def newest_checkpoint(folder: Path) -> int:
    """The round of a run's newest checkpoint; 0 if there is none."""
    from spacql.training.checkpoints import Checkpoints

    place = folder / "checkpoints"
    return next(iter(Checkpoints(place).rounds()), 0) if place.is_dir() else 0


def run_folder(
    folder: Path,
    dataset: "Dataset",
    report: "Callable[[Progress], None]" = lambda progress: None,
    algorithm: str | ModuleType | None = None,
    say: Callable[[str], None] | None = None,
) -> Run:
    """Train what run.json describes, to the end; a finished run is only read.

    `algorithm` is needed where the name in run.json is not that of a known one. `say` is told what
    the user should know although the run goes on; by default it is standard error.
    """
    import jax

    from spacql.algorithms.registry import find
    from spacql.algorithms.settings import config_from
    from spacql.evaluation.verdict import of_run
    from spacql.policies import Policy
    from spacql.training.checkpoints import say_on_stderr
    from spacql.training.loop import Schedule, fit

    described = records.run(folder)
    module = find(algorithm or described["algorithm"])
    config = config_from(module, described["config"])
    if finished(folder):
        return Run(folder, Policy.load(folder), records.result(folder))
    started = time.monotonic() - spent(folder)  # as if it had been trained in one go
    if dataset.prey is not None:
        dataset.prey.save(folder / "prey")
    plan, seed = described["evaluation"], described["seed"]
    score, note = scorer(described["spec"]["task"], dataset)
    key = jax.random.key(seed + 1_000_003)  # apart from the keys of training

    def now_and_then(policy: Policy) -> dict[str, float]:
        evaluation = score(policy, plan["episodes"], key)
        return {"return": evaluation["return"]["mean"], "score": evaluation["score"]}

    def reported(now: "Progress") -> None:
        if now.round % described["checkpoint_every"] == 0:  # from where it goes on
            write_json(folder / "seconds.json", {"seconds": time.monotonic() - started})
        report(now)

    try:
        policy = fit(
            module,
            config,
            dataset,
            seed,
            folder,
            schedule=Schedule(plan["every"], described["checkpoint_every"]),
            evaluate=None if note else now_and_then,
            report=reported,
            loggers=tuple(described["loggers"]),
            say=say or say_on_stderr,
        )
    except Diverged as error:
        took = {"seconds": time.monotonic() - started}
        write_json(folder / "diverged.json", {"error": str(error)} | took)
        raise
    final = None if note else score(policy, plan["final_episodes"], jax.random.fold_in(key, 1))
    seconds = time.monotonic() - started
    result = {"rounds": config.rounds, "seconds": seconds, "evaluation": final, "note": note,
              "warnings": of_run(folder, dataset)}  # fmt: skip
    write_json(folder / "result.json", result)
    for name in ("diverged.json", "error.txt", "seconds.json"):  # of earlier attempts
        (folder / name).unlink(missing_ok=True)
    return Run(folder, policy, result)


def spent(folder: Path) -> float:
    """Seconds that a run took before it was interrupted, or before it was lengthened."""
    found = [0.0]
    for name in ("seconds.json", "result.json"):
        with suppress(InputError):  # not there; or damaged, and a run is worth more than its time
            found.append(records.seconds(folder / name))
    return max(found)


def finished(folder: Path) -> bool:
    """Whether a run folder holds a result of all its rounds."""
    result = folder / "result.json"
    return result.is_file() and (
        records.result(folder)["rounds"] == records.run(folder)["config"]["rounds"]
    )


def scorer(
    task: str, dataset: "Dataset | None" = None
) -> tuple[Callable[..., dict[str, Any]], str]:
    """A function (policy, episodes, key) to an evaluation as JSON; or a note why there is none."""
    from spacql.evaluation.score import evaluate
    from spacql.reference import Reference
    from spacql.worlds import is_known, make

    if not is_known(task):
        return lambda *_: {}, no_simulator(task)
    try:
        world = make(task) if dataset is None else world_of(dataset.spec.to_json(), dataset.prey)
    except (InputError, MissingExtra) as error:
        return lambda *_: {}, f"Not evaluated: {error}"
    if dataset is not None and not alike(dataset.spec, world.spec):
        note = f"Not evaluated: the log is of other agents than the world {task!r} has."
        return lambda *_: {}, note
    stored = dataset.info.get("reference") if dataset is not None else None
    reference = Reference.from_json(stored) if stored else None

    def score(policy: "Policy", episodes: int, key: Any) -> dict[str, Any]:
        found = evaluate(policy, world, episodes=episodes, key=key, reference=reference)
        return found.to_json()

    return score, ""


def no_simulator(*tasks: str) -> str:
    """Logs need none: it is no mistake, and there is another way."""
    names = ", ".join(map(repr, tasks))
    return (
        f"No simulator is known for {names}, so there is no score; ask the log: "
        "spacql evaluate RUN --offline"
    )


def alike(spec: "Spec", other: "Spec") -> bool:
    """Whether agents see and do as much in one as in the other."""
    sizes = (spec.observation_sizes, spec.action_sizes)
    return sizes == (other.observation_sizes, other.action_sizes)


def world_of(spec: dict[str, Any], prey: "Policy | None") -> Any:
    """The world that data is from, with the prey that the data carries."""
    from spacql.worlds import is_known, make

    if not is_known(spec["task"]):
        raise InputError(no_simulator(spec["task"]))
    world = make(spec["task"], prey=prey or "default")
    if world.spec.prey != spec["prey"]:
        made = f"against the prey {spec['prey']!r}" if spec["prey"] else "against an unknown prey"
        raise InputError(
            f"the data was made {made}, which it does not carry. "
            "Data made or imported with --prey does."
        )
    return world
