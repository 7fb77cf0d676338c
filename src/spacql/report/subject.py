"""What a report is about, and what it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from spacql.report.fits import Fitted
from spacql.report.teams import Team, by_dataset

FEW = 4  # datasets: with more, charts of every metric would bury the reader


@dataclass(frozen=True)
class Section:
    """A part of a page. A page is a list of these, whatever made them."""

    id: str
    title: str
    body: Markup


@dataclass(frozen=True)
class Subject:
    """What a report is about."""

    shown: Sequence[Team]
    others: Sequence[Team] = ()  # further configurations, for a table alone
    fits: Sequence[Fitted] = ()

    @property
    def datasets(self) -> dict[str, list[Team]]:
        return by_dataset(self.shown)

    @property
    def colours(self) -> dict[str, int]:
        """One colour for a label on the whole page."""
        return {label: k for k, label in enumerate(dict.fromkeys(t.label for t in self.shown))}
