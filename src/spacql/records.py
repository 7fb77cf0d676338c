"""What the JSON files of runs hold, as records: run, result, stored run, sweep and fit.

Each function reads one kind of file and gives back what it holds, as plain JSON, once every field
that is relied on has the right type; else the error names the file and the field. Fields that are
not listed here are left as they are.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from spacql.errors import InputError
from spacql.files import as_record, of_format, read_json
from spacql.reference import Reference
from spacql.spec import Spec

FORMAT = 1  # of run.json and of stored runs
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class TrainedOn(msgspec.Struct, frozen=True):
    name: Name
    seed: int | None
    identity: str
    transitions: Count
    reference: Reference | None


class Evaluations(msgspec.Struct, frozen=True):
    """How often, and how long, a run is evaluated."""

    every: Positive
    episodes: Positive
    final_episodes: Positive


class RunRecord(msgspec.Struct, frozen=True):
    """run.json"""

    format: int
    algorithm: Name
    seed: Seed
    config: dict[str, Any]
    data: str
    dataset: TrainedOn
    spec: Spec
    evaluation: Evaluations
    checkpoint_every: Positive
    loggers: tuple[str, ...]
    versions: dict[str, str]

    def __post_init__(self) -> None:
        _rounds(self.config)


class Returned(msgspec.Struct, frozen=True):
    mean: float
    std: float


class Evaluated(msgspec.Struct, frozen=True):
    score: float | None
    episodes: Positive
    returned: Returned = msgspec.field(name="return")
    note: str = ""


class ResultRecord(msgspec.Struct, frozen=True):
    """result.json"""

    rounds: Positive
    seconds: float
    evaluation: Evaluated | None
    note: str = ""
    warnings: tuple[str, ...] = ()  # what calls for a second look, in words


class DivergedRecord(msgspec.Struct, frozen=True):
    """diverged.json"""

    error: str
    seconds: float = 0.0  # of versions that did not keep it


class SpentRecord(msgspec.Struct, frozen=True):
    """seconds.json, and what is asked of a result.json in its stead"""

    seconds: Annotated[float, msgspec.Meta(ge=0)]


class Point(msgspec.Struct, frozen=True):
    """One of a stored curve."""

    round: Count
    score: float
    u: tuple[float, ...] | None = None
    w: tuple[float, ...] | None = None
    k_eff: float | None = None
    q_data: float | None = None
    q_policy: float | None = None
    td_error: float | None = None
    penalty: float | None = None


class StoredRecord(msgspec.Struct, frozen=True):
    """RESULTS/runs/DATASET/*.json"""

    format: int
    algorithm: Name
    seed: Seed
    config: dict[str, Any]
    dataset: TrainedOn
    versions: dict[str, str]
    rounds: Count
    seconds: float
    evaluation: Evaluated | None
    curve: tuple[Point, ...]
    note: str = ""
    diverged: str = ""

    def __post_init__(self) -> None:
        _rounds(self.config)


class Tried(msgspec.Struct, frozen=True):
    value: Any
    scores: tuple[float, ...]
    mean: float | None
    failed: tuple[Seed, ...] = ()  # without a score
    crashed: tuple[Seed, ...] = ()  # those among them that did not diverge: nothing is known


class SweepRecord(msgspec.Struct, frozen=True):
    """tune.json"""

    algorithm: Name
    data: Name
    rounds: Positive
    seeds: tuple[Seed, ...]
    config: dict[str, Any]
    hyperparameter: Name
    values: tuple[Tried, ...]

    def __post_init__(self) -> None:
        _rounds(self.config)
        for name, kind in (("penalty", str), ("critics", int)):
            if not isinstance(self.config.get(name, kind()), kind):
                raise ValueError(f"config.{name} is of another type than {kind.__name__}")


class Estimated(msgspec.Struct, frozen=True):
    """An expected return, and its interval."""

    mean: float
    low: float
    high: float
    bound: float | None = None  # what is chosen by; files of earlier versions have none


class Trust(msgspec.Struct, frozen=True):
    """In the model that an estimate is from."""

    correlation: float | None  # None: held-out returns were all the same
    bias: float
    error: float
    episodes: Count


class InTruth(msgspec.Struct, frozen=True):
    """What a policy returned when it was tried."""

    mean: float = msgspec.field(name="return")


class OfflineRecord(msgspec.Struct, frozen=True):
    """What a log says of a policy: evaluations/*.json of a fit, offline.json of a run."""

    estimates: Annotated[dict[str, Estimated], msgspec.Meta(min_length=1)]
    log: Estimated
    distance: dict[str, float]  # per agent
    outside: dict[str, float]
    trust: Trust | None
    heldout: Count
    warnings: tuple[str, ...] = ()
    training: dict[str, Any] = {}
    truth: InTruth | None = None  # in a simulator, where there is one


class Candidate(Estimated, frozen=True, kw_only=True):
    """A policy of a fit."""

    label: Name
    distance: dict[str, float]  # per agent
    outside: dict[str, float]
    warnings: tuple[str, ...] = ()
    truth: InTruth | None = None  # in a simulator, where there is one


class FittedOn(msgspec.Struct, frozen=True):
    identity: str
    episodes: Count
    transitions: Count
    reference: Reference | None = None
    name: str = ""


class FitRecord(msgspec.Struct, frozen=True):
    """fit.json"""

    format: int
    task: Name
    data: FittedOn
    chosen: Name
    verdict: str
    words: str
    estimator: str
    log: Estimated
    trust: Trust | None
    heldout: Count
    table: Annotated[tuple[Candidate, ...], msgspec.Meta(min_length=1)]
    failed: dict[str, str]

    def __post_init__(self) -> None:
        labels = [row.label for row in self.table]
        if self.chosen not in labels:
            raise ValueError("chosen is not in the table")
        if len(set(labels)) < len(labels):
            raise ValueError("a label is twice in the table")


class TrainingsOwn(msgspec.Struct, frozen=True):
    """What is relied on of a training's last numbers."""

    q_policy: float | None = None
    td_error: float | None = None


class Pooled(msgspec.Struct, frozen=True):
    """A policy of a pool, its true score, and what was said of it without a simulator."""

    score: float
    estimates: dict[str, Estimated]
    training: TrainingsOwn
    distance: Annotated[dict[str, float], msgspec.Meta(min_length=1)]  # per agent


class PoolRecord(msgspec.Struct, frozen=True):
    """RESULTS/selection/*.json"""

    format: int
    reference: Reference
    policies: dict[str, Pooled]


class TriedPolicy(msgspec.Struct, frozen=True):
    label: str
    true: float
    error: float
    expected: tuple[float, float, float] | None  # mean, low, high


class TriedFit(msgspec.Struct, frozen=True):
    """RESULTS/fits/*.json"""

    command: str
    episodes: Count
    chosen: str
    verdict: str
    rows: tuple[TriedPolicy, ...]

    def __post_init__(self) -> None:
        expected = {row.label: row.expected for row in self.rows}
        if expected.get(self.chosen) is None or "the log" not in expected:
            raise ValueError("rows lack the log, or what was expected of the chosen policy")


def _rounds(config: dict[str, Any]) -> None:
    rounds = config.get("rounds")
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise ValueError("config.rounds must be a whole number, at least 1")


def run(folder: Path) -> dict[str, Any]:
    """run.json of a run folder."""
    return _checked(folder / "run.json", RunRecord)


def result(folder: Path) -> dict[str, Any]:
    """result.json of a run folder."""
    return _checked(folder / "result.json", ResultRecord, format=None)


def diverged(folder: Path) -> dict[str, Any]:
    """diverged.json of a run folder: why its training diverged, and after how long."""
    return _checked(folder / "diverged.json", DivergedRecord, format=None)


def seconds(path: Path) -> float:
    """How long a training took so far, by its seconds.json or result.json."""
    return float(_checked(path, SpentRecord, format=None)["seconds"])


def stored(path: Path) -> dict[str, Any]:
    """A stored run."""
    return _checked(path, StoredRecord)


def fit(folder: Path) -> dict[str, Any]:
    """fit.json of the folder of a fit."""
    return _checked(folder / "fit.json", FitRecord)


def offline(path: Path, estimator: str = "") -> dict[str, Any]:
    """What a log says of a policy; with a certain estimator, if one is named."""
    found = _checked(path, OfflineRecord, format=None)
    if estimator and estimator not in found["estimates"]:
        raise InputError(f"{path} has no estimate by {estimator}. Remove it: it is made anew.")
    return found


def pool(path: Path) -> dict[str, Any]:
    """A pool of the selection study."""
    return _checked(path, PoolRecord)


def tried_fit(path: Path) -> dict[str, Any]:
    """What a fit promised beside what its policies then did."""
    return _checked(path, TriedFit, format=None)


def sweep(path: Path | str) -> dict[str, Any]:
    """A tune.json."""
    return _checked(Path(path), SweepRecord, format=None)


def _checked(path: Path, kind: type, format: int | None = FORMAT) -> dict[str, Any]:
    value = read_json(path)
    if format is not None:
        of_format(value, format, path, InputError)
    as_record(value, kind, path)
    return value
