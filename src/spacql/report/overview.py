"""Many datasets at a glance: who is where, and how often."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from spacql.experiments.pairs import highest as highest_of
from spacql.experiments.pairs import may_be_best
from spacql.report.charts import COLOURS
from spacql.report.markup import count, join, number, table, tag
from spacql.report.subject import Subject
from spacql.report.teams import paired


@dataclass(frozen=True)
class Standing:
    """An algorithm over many datasets."""

    label: str
    mean: float | None  # of the mean scores on the datasets that all algorithms have seen
    highest: int  # on how many datasets
    near: int  # on how many no other is significantly better seed by seed


def standings(subject: Subject) -> tuple[list[Standing], int]:
    """The algorithms, best first, and the number of datasets that all of them have seen."""
    names = list(dict.fromkeys(team.label for team in subject.shown))
    highest, near = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    means: dict[str, list[float]] = {name: [] for name in names}
    for found in subject.datasets.values():
        scored = [team for team in found if team.statistics is not None]
        scores = paired(scored)
        marked = may_be_best(scores)
        for team, is_near in zip(scored, marked, strict=True):
            near[team.label] += is_near
        if scored:
            best = highest_of(scores)
            first = max(scored, key=lambda team: team.mean or 0.0) if best is None else scored[best]
            highest[first.label] += 1
        if {team.label for team in scored} == set(names):
            for team in scored:
                means[team.label].append(team.statistics.mean if team.statistics else 0.0)
    complete = len(means[names[0]])
    order = [
        Standing(name, sum(means[name]) / complete if complete else None, highest[name], near[name])
        for name in names
    ]
    return sorted(order, key=lambda one: (-(one.mean or 0.0), -one.near)), complete


def overview(subject: Subject) -> str:
    """Many datasets in a sentence."""
    order, complete = standings(subject)
    if not complete or len(order) < 2:
        return ""
    first = order[0]
    text = (
        f"{first.label} has the highest mean score, {number(first.mean)}, over "
        f"{count(complete, 'dataset')}."
    )
    if not any(one.near for one in order):  # too few seeds to tell
        return text
    return (
        f"{text} None of those with three seeds or more is significantly better seed by seed on "
        f"{first.near} of {len(subject.datasets)}."
    )


def standings_table(subject: Subject) -> Markup:
    order, complete = standings(subject)
    rows: list[list[Any]] = [
        [tag("span", one.label, class_=f"name s{subject.colours[one.label] % COLOURS}"),
         (number(one.mean), -1e9 if one.mean is None else one.mean),
         (str(one.highest), one.highest), (str(one.near), one.near)]
        for one in order
    ]  # fmt: skip
    caption = f"Over {count(len(subject.datasets), 'dataset')}"
    note = (
        "Highest, and best or tied: of those with three seeds or more. Tied: none is significantly "
        "better by the 95 % t interval of the differences seed by seed. "
        f"Mean score: over the {complete} datasets that all have seen."
    )
    head = ["algorithm", "mean score", "highest on", "best or tied on"]
    return join([table(head, rows, caption=caption), tag("p", note, class_="note")])


def tally_table(subject: Subject, tally: dict[str, dict[str, int]]) -> Markup:
    """On how many datasets the first algorithm is ahead of each other one."""
    words = ("ahead", "behind", "unclear", "one seed")
    rows = [[tag("span", name, class_=f"name s{subject.colours[name] % COLOURS}"),
             *((str(counts.get(word, 0)), counts.get(word, 0)) for word in words)]
            for name, counts in tally.items()]  # fmt: skip
    first = subject.shown[0].label
    caption = f"On how many datasets {first} is ahead of the others"
    return table([f"{first} beside", *words], rows, caption=caption)
