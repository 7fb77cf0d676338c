"""Reference returns and the score made of them: 0 is uniform actions, 100 the expert."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from spacql.errors import InputError
from spacql.files import as_record, read_json
from spacql.spec import Spec


@dataclass(frozen=True)
class Reference:
    """The returns that count as a score of 0 and of 100."""

    random: float
    expert: float
    source: str = ""  # where the values are from: "published", or what measured them
    prey: str = ""  # the frozen prey they were measured against, where there is one

    def __post_init__(self) -> None:
        if self.random == self.expert:
            raise InputError(
                f"The reference returns of random and expert are both {self.random:g}."
            )

    @property
    def span(self) -> float:
        """The return that 100 points of score are worth."""
        return self.expert - self.random

    def score(self, returned: float) -> float:
        return 100 * (returned - self.random) / self.span

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Reference":
        """What a dataset or a run has stored."""
        return as_record(stored, cls, "reference")


def reference(spec: Spec) -> Reference | None:
    """The stored reference returns of a task (and prey), if there are any."""
    return next((entry for entry in stored(spec.task) if entry.prey == spec.prey), None)


@cache
def stored(task: str) -> tuple[Reference, ...]:
    """The references of a task that ship with the package, the preferred one first.

    Measured ones come with the behaviours that made the data, and go before published ones.
    """
    assets = files("spacql") / "assets"
    entries = read_json(str(assets / "references.json")).get(task, [])
    measured = assets / "behaviours" / f"{task}.json"
    if entries and measured.is_file():
        record = read_json(str(measured))
        entry = {"random": record["random"]["return"], "expert": record["expert"],
                 "prey": record["prey"], "source": "measured"}  # fmt: skip
        entries = [entry, *entries]
    return tuple(Reference.from_json(entry) for entry in entries)
