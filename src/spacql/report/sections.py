"""The sections of a page about trainings, in the order in which a reader asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from spacql.report import verdicts
from spacql.report.charts import (
    COLOURS,
    Mark,
    Row,
    Series,
    dot_plot,
    legend,
    line_chart,
    series_legend,
)
from spacql.report.markup import count, join, number, span, table, tag
from spacql.report.source import Trained
from spacql.report.teams import Team, by_dataset, compared

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

    @property
    def datasets(self) -> dict[str, list[Team]]:
        return by_dataset(self.shown)

    @property
    def colours(self) -> dict[str, int]:
        """One colour for a label on the whole page."""
        return {label: k for k, label in enumerate(dict.fromkeys(t.label for t in self.shown))}


def learnt(subject: Subject) -> Markup:
    """What was learnt from what."""
    rows = []
    for dataset, found in subject.datasets.items():
        runs = [run for team in found for run in team.runs]
        sizes = sorted({run.transitions for run in runs if run.transitions})
        size = (f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")) if sizes else ""
        agents = {len(run.agents) for run in runs if run.agents}
        level = next((team.level for team in found if team.level is not None), None)
        rows.append(
            [
                dataset,
                (size or "–", sizes[-1] if sizes else -1),
                (str(max(agents)) if agents else "–", max(agents, default=0)),
                (number(level), -1e9 if level is None else level),
                verdicts.listed(list(dict.fromkeys(team.label for team in found))),
                (str(len(runs)), len(runs)),
                (_duration(sum(run.seconds for run in runs)), sum(run.seconds for run in runs)),
            ]
        )
    head = ["dataset", "transitions", "agents", "log's score", "algorithms", "trainings", "time"]
    if len({row[2][0] for row in rows} | {"–"}) == 1:  # stored results do not say
        rows = [[*row[:2], *row[3:]] for row in rows]
        head.remove("agents")
    same = {row[head.index("algorithms")] for row in rows}
    words = None
    if len(same) == 1 and len(rows) > 1:
        words = tag("p", f"{same.pop()}, on each of {len(rows)} datasets.")
        rows = [[cell for k, cell in enumerate(row) if head[k] != "algorithms"] for row in rows]
        head.remove("algorithms")
    return join([words, table(head, rows, caption="What was learnt from what")])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def scores(subject: Subject) -> Markup:
    """How good it is."""
    parts: list[Any] = []
    kinds = {"paper": False, "log": False, "seed": False}
    panels = []
    for dataset, found in subject.datasets.items():
        rows = [_score_row(team, subject) for team in found]
        for row in rows:
            kinds["seed"] |= len(row.seeds) > 1
            for mark in row.marks:
                kinds[mark.kind] = True
        panels.append(
            tag("section",
                tag("h3", dataset) if len(subject.datasets) > 1 else None,
                tag("p", verdicts.headline(dataset, found, brief=True)) if found[1:] else None,
                dot_plot(["algorithm", "score", "95 % interval", "seeds"], rows,
                         caption=f"Scores on {dataset}", axis="score", include=(0.0, 100.0)),
                class_="panel")
        )  # fmt: skip
    entries = [
        ("centre", "interquartile mean over seeds"),
        ("interval", "its 95 % interval (of one seed: over its episodes)"),
    ]
    entries += [("seed", "one seed")] if kinds["seed"] else []
    entries += [("paper", "the paper's number, on its own data")] if kinds["paper"] else []
    entries += [("log", "the log itself")] if kinds["log"] else []
    scale = "A score of 0 is what uniform actions get, 100 what the expert gets."
    parts.append(tag("p", scale))
    if len(subject.datasets) > FEW:
        parts.append(_overview(subject))
    parts.append(legend(entries))
    parts.append(tag("div", panels, class_="panels" if len(panels) > 1 else None))
    if subject.others:
        parts.append(_other_settings(subject.others))
    return join(parts)


def _score_row(team: Team, subject: Subject) -> Row:
    marks = []
    if team.paper is not None:
        mean, std = team.paper
        spread = "" if std is None else f" ± {std:g}"
        marks.append(Mark("paper", mean, f"{team.algorithm} in the paper: {mean:g}{spread}"))
    if team.level is not None:
        marks.append(Mark("log", team.level, f"the log itself: {number(team.level)}"))
    lost = sum(bool(run.note) and run.score is None for run in team.runs)
    running = sum(run.score is None and not run.note for run in team.runs)
    seeds = str(len(team.scored)) + (f", {lost} without a score" if lost else "")
    seeds += f", {running} unfinished" if running else ""
    interval = "–" if team.interval is None else span(*team.interval)
    centre = team.centre
    return Row(
        name=team.label,
        colour=subject.colours[team.label],
        seeds=[(run.seed, float(run.score or 0)) for run in team.scored],
        centre=centre,
        interval=team.interval,
        marks=marks,
        cells=[
            (number(centre), -1e9 if centre is None else centre),
            (interval, -1e9 if team.interval is None else team.interval[0]),
            (seeds, len(team.scored)),
        ],
    )


@dataclass(frozen=True)
class Standing:
    """An algorithm over many datasets."""

    label: str
    mean: float | None  # of the mean scores on the datasets that all algorithms have seen
    highest: int  # on how many datasets
    near: int  # on how many it is the highest, or its interval overlaps with that of the highest


def standings(subject: Subject) -> tuple[list[Standing], int]:
    """The algorithms, best first, and the number of datasets that all of them have seen."""
    from spacql.experiments.tables import overlapping_with_best

    names = list(dict.fromkeys(team.label for team in subject.shown))
    highest, near = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    means: dict[str, list[float]] = {name: [] for name in names}
    for found in subject.datasets.values():
        scored = [team for team in found if team.statistics is not None]
        marked = overlapping_with_best([team.statistics for team in scored])
        for team, is_near in zip(scored, marked, strict=True):
            near[team.label] += is_near
        if scored:
            highest[max(scored, key=lambda team: team.centre or 0.0).label] += 1
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
    return (
        f"{first.label} has the highest mean score, {number(first.mean)}, over "
        f"{count(complete, 'dataset')}. It is the highest, or its interval overlaps with that of "
        f"the highest, on {first.near} of {len(subject.datasets)}."
    )


def _overview(subject: Subject) -> Markup:
    order, complete = standings(subject)
    rows: list[list[Any]] = [
        [tag("span", one.label, class_=f"name s{subject.colours[one.label] % COLOURS}"),
         (number(one.mean), -1e9 if one.mean is None else one.mean),
         (str(one.highest), one.highest), (str(one.near), one.near)]
        for one in order
    ]  # fmt: skip
    caption = f"Over {count(len(subject.datasets), 'dataset')}"
    note = "Highest or near it: three seeds or more, and an interval that overlaps with that of "
    note += f"the highest. Mean score: over the {complete} datasets that all have seen."
    head = ["algorithm", "mean score", "highest on", "highest or near it on"]
    return join([table(head, rows, caption=caption), tag("p", note, class_="note")])


def _other_settings(others: Sequence[Team]) -> Markup:
    rows = [
        [
            team.label,
            team.dataset,
            (number(team.centre), -1e9 if team.centre is None else team.centre),
            ("–" if team.interval is None else span(*team.interval),
             -1e9 if team.interval is None else team.interval[0]),
            (str(len(team.scored)), len(team.scored)),
        ]
        for team in others
    ]  # fmt: skip
    head = ["algorithm, and what is different", "dataset", "score", "95 % interval", "seeds"]
    summary = f"{count(len(others), 'further configuration')} of the same algorithms"
    caption = "Configurations that are not those of the charts"
    return tag("details", tag("summary", summary), table(head, rows, caption=caption))


def real(subject: Subject) -> Markup | None:
    """Whether the differences are real: seed by seed, and against the log."""
    panels = []
    tally: dict[str, dict[str, int]] = {}
    for dataset, found in subject.datasets.items():
        scored = [team for team in found if team.statistics is not None]
        if len(scored) < 2:
            continue
        first, rows = scored[0], []
        for other in scored[1:]:
            statistics, pairs = compared(first, other)
            if statistics is None:
                continue
            low, high = statistics.low, statistics.high
            word = verdicts.compare(statistics)
            counts = tally.setdefault(other.label, {})
            counts[word] = counts.get(word, 0) + 1
            interval = None if low is None or high is None else (low, high)
            rows.append(
                Row(
                    name=other.label,
                    colour=subject.colours[other.label],
                    seeds=pairs,
                    centre=statistics.mean,
                    interval=interval,
                    cells=[
                        (number(statistics.mean), statistics.mean),
                        ("–" if interval is None else span(*interval), low or 0.0),
                        word,
                    ],
                )
            )
        if rows:
            head = [f"{first.label} minus", "difference", "95 % interval", "verdict"]
            caption = f"{first.label} minus each other algorithm on {dataset}, seed by seed"
            panels.append(
                tag("section", tag("h3", dataset) if len(subject.datasets) > 1 else None,
                    dot_plot(head, rows, caption=caption, axis="score difference", zero=True),
                    class_="panel")
            )  # fmt: skip
    against = [
        tag("li", f"{team.label} on {team.dataset} is {verdicts.against_log(team)}.")
        for team in subject.shown
        if verdicts.against_log(team) and len(subject.datasets) <= FEW
    ]
    parts: list[Any] = []
    if panels:
        words = "Both algorithms of a difference saw the same dataset, which most of the spread "
        words += "between seeds comes from. The interval is Student's, over seeds. One without 0 "
        words += "speaks for a difference; of twenty, one is so by chance."
        words += " Where the interval has 0 in it, the verdict is unclear."
        parts.append(tag("p", words))
        if len(panels) > FEW:
            parts.append(_tally(subject, tally))
        parts.append(tag("div", panels, class_="panels" if panels[1:] else None))
    if against:
        parts += [tag("h3", "Against the log"), tag("ul", against)]
    return join(parts) if parts else None


def _tally(subject: Subject, tally: dict[str, dict[str, int]]) -> Markup:
    """On how many datasets the first algorithm is ahead of each other one."""
    words = ("ahead", "behind", "unclear", "one seed")
    rows = [[tag("span", name, class_=f"name s{subject.colours[name] % COLOURS}"),
             *((str(counts.get(word, 0)), counts.get(word, 0)) for word in words)]
            for name, counts in tally.items()]  # fmt: skip
    first = subject.shown[0].label
    caption = f"On how many datasets {first} is ahead of the others"
    return table([f"{first} beside", *words], rows, caption=caption)


def series_of(
    found: Sequence[Team], subject: Subject, value: Callable[[Any], float | None]
) -> list[Series]:
    return [
        Series(team.label, subject.colours[team.label],
               [(run.seed, points_of(run, value)) for run in team.runs])
        for team in found
    ]  # fmt: skip


def points_of(run: Trained, value: Callable[[Any], float | None]) -> list[tuple[float, float]]:
    found = [(float(point["round"]), value(point)) for point in run.curve]
    return [(x, float(y)) for x, y in found if isinstance(y, int | float)]


def training(subject: Subject) -> Markup | None:
    """How training went: scores by round."""
    charts = [
        line_chart(dataset, series_of(found, subject, lambda point: point.get("score")),
                   note="score by round")
        for dataset, found in subject.datasets.items()
    ]  # fmt: skip
    charts = [chart for chart in charts if chart is not None]
    if not charts:
        return None
    several = any(len(team.runs) > 1 for team in subject.shown)
    words = "Score of the policy during training. "
    if several:
        words += "Line: mean over seeds. Band: from the lowest to the highest seed. "
    words += "Point at a chart, or focus it and use the arrow keys, for the numbers of every seed."
    return join([tag("p", words), series_legend(list(subject.colours.items())),
                 tag("div", charts, class_="charts")])  # fmt: skip
