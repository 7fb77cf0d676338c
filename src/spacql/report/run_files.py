"""What the files of a run must hold for a report; other fields are not looked at."""

from typing import Any

import msgspec


class Log(msgspec.Struct):
    """The dataset."""

    name: str
    seed: int | None = None
    identity: str = ""
    transitions: int | None = None
    reference: dict[str, Any] | None = None


class Spec(msgspec.Struct):
    task: str = ""
    agents: list[str] = []
    prey: str = ""


class Described(msgspec.Struct):
    """run.json, and the same part of a stored run."""

    algorithm: str
    seed: int
    config: dict[str, Any]
    dataset: Log
    versions: dict[str, str] = {}
    data: str = ""
    spec: Spec = msgspec.field(default_factory=Spec)


class Evaluated(msgspec.Struct):
    score: float | None = None
    score_interval: tuple[float, float] | None = None
    note: str = ""


class Result(msgspec.Struct):
    """result.json; or, of a training that diverged, its error as the note."""

    rounds: int = 0
    seconds: float = 0.0
    evaluation: Evaluated | None = None
    note: str = ""


class Diverged(msgspec.Struct):
    """diverged.json."""

    error: str


class Level(msgspec.Struct):
    """What a named dataset itself returns, as results/data.json has it."""

    score: float | None = None
    identity: str = ""
