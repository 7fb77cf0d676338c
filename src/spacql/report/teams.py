"""Runs that differ in their seed alone, together: what a report compares."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spacql.errors import SpacqlError
from spacql.experiments.paper import published as published_score
from spacql.experiments.plans import QUALITIES, registered, unlike_settings
from spacql.experiments.store import signature
from spacql.experiments.tables import Statistics, difference, statistics
from spacql.report.source import Trained
from spacql.worlds import TASKS


@dataclass(frozen=True)
class Team:
    """An algorithm with one configuration on one dataset, with some seeds."""

    label: str
    runs: tuple[Trained, ...]

    @property
    def first(self) -> Trained:
        return self.runs[0]

    @property
    def algorithm(self) -> str:
        return self.first.algorithm

    @property
    def dataset(self) -> str:
        return self.first.dataset

    @property
    def candidate(self) -> bool:
        """Whether it is one of a fit's."""
        return bool(self.first.label)

    @property
    def scored(self) -> list[Trained]:
        return [run for run in self.runs if run.score is not None]

    @cached_property
    def statistics(self) -> Statistics | None:
        """Over seeds."""
        return statistics([run.score for run in self.runs if run.score is not None])

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %: of the mean over seeds; of one seed, over its episodes."""
        found = self.statistics
        if found is None:
            return None
        if found.low is not None and found.high is not None:
            return found.low, found.high
        return self.scored[0].interval if len(self.scored) == 1 else None

    @property
    def over(self) -> str:
        """What the interval is over."""
        return "seeds" if len(self.scored) > 1 else "episodes"

    @property
    def mean(self) -> float | None:
        return None if self.statistics is None else self.statistics.mean

    @property
    def paper(self) -> tuple[float, float | None] | None:
        return published_score(self.dataset, self.algorithm)

    @property
    def level(self) -> float | None:
        """The log's own score, over the datasets of the seeds."""
        levels = [run.level for run in self.runs if run.level is not None]
        return sum(levels) / len(levels) if levels else None


def teams(runs: Sequence[Trained], *, choose: bool = False) -> tuple[list[Team], list[Team]]:
    """The teams to show, and the others.

    A store holds many configurations of an algorithm. With `choose` the shown one is what
    `spacql train` does today or, where it has not been run, the one with the most seeds.
    """
    groups: dict[tuple[str, str, str], list[Trained]] = {}
    for run in runs:
        groups.setdefault((run.dataset, run.algorithm, signature(run.config)), []).append(run)
    rivals: dict[tuple[str, str], list[list[Trained]]] = {}
    for (dataset, algorithm, _), members in groups.items():
        # A run that was repeated says nothing new; one that came to no end says less.
        said = sorted(reversed(members), key=lambda run: (run.score is not None, bool(run.note)))
        once = {(run.seed, run.identity, run.label): run for run in said}
        members = sorted(once.values(), key=lambda run: run.seed)
        rivals.setdefault((dataset, algorithm), []).append(members)
    shown: list[Team] = []
    others: list[Team] = []
    for found in rivals.values():
        if choose and len(found) > 1:
            best = max(found, key=lambda members: (not unusual(members[0]), len(members)))
            shown.append(Team(best[0].algorithm, tuple(best)))
            others += [
                Team(f"{m[0].algorithm}, {what(differences(m, best))}", tuple(m))
                for m in found if m is not best
            ]  # fmt: skip
        else:
            shown += [
                Team(_label(members, found), tuple(members)) for members in found
            ]  # fmt: skip
    return sorted(shown, key=_place), sorted(others, key=_place)


def unusual(run: Trained) -> dict[str, Any]:
    """Where a configuration is not what `spacql train` would choose today."""
    try:
        return unlike_settings(run.algorithm, run.dataset, run.config)
    except (SpacqlError, TypeError, ValueError):
        return {}


def differences(mine: Sequence[Trained], theirs: Sequence[Trained]) -> dict[str, Any]:
    a, b = (json.loads(signature(members[0].config)) for members in (mine, theirs))
    return {name: a.get(name) for name in a | b if a.get(name) != b.get(name)}


def what(changed: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, list | tuple):
            return " ".join(map(text, value)) or "none"
        return f"{value:g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name.replace('_', ' ')} {text(v)}" for name, v in changed.items())


def _label(members: list[Trained], rivals: list[list[Trained]]) -> str:
    """The algorithm, with the settings in which it differs from others of its name here."""
    if members[0].label:
        return members[0].label
    changed: dict[str, Any] = {}
    for other in rivals:
        if other is not members:
            changed |= differences(members, other)
    return ", ".join(filter(None, [members[0].algorithm, what(changed)]))


def _place(team: Team) -> tuple[Any, ...]:
    """The order of the tables: task, quality, algorithm."""
    task, _, quality = team.dataset.partition("-")
    known = (*registered(),)
    return (
        _index(TASKS, task), task, _index(QUALITIES, quality), quality,
        _index(known, team.algorithm), team.label,
    )  # fmt: skip


def _index(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def by_dataset(found: Sequence[Team]) -> dict[str, list[Team]]:
    grouped: dict[str, list[Team]] = {}
    for team in found:
        grouped.setdefault(team.dataset, []).append(team)
    return grouped


def paired(found: Sequence[Team]) -> list[dict[int, float]]:
    """The scores of each team, under numbers that two of them share where they have a seed in
    common and saw the same dataset with it."""
    seen = [{(run.seed, run.identity): float(run.score or 0) for run in team.scored}
            for team in found]  # fmt: skip
    numbers = {pair: k for k, pair in enumerate(sorted(set().union(*seen)))}
    return [{numbers[pair]: score for pair, score in scores.items()} for scores in seen]


def compared(first: Team, second: Team) -> tuple[Statistics | None, list[tuple[int, float]]]:
    """First minus second: statistics, and every seed on which both saw the same dataset."""
    identities = {run.seed: run.identity for run in second.scored}
    mine = [run for run in first.scored if identities.get(run.seed) == run.identity]
    scores = {run.seed: run.score for run in second.scored}
    pairs = [(run.seed, float(run.score or 0) - float(scores[run.seed] or 0)) for run in mine]
    theirs = [run for run in second.scored if run.seed in dict(pairs)]
    return difference(mine, theirs), pairs  # type: ignore[arg-type]
