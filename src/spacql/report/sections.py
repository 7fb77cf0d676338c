"""The sections of a page about trainings, in the order in which a reader asks."""

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from spacql.report import verdicts
from spacql.report.charts import (
    Mark,
    Row,
    Series,
    dot_plot,
    legend,
    line_chart,
    series_legend,
)
from spacql.report.markup import count, join, number, span, table, tag
from spacql.report.offline import without_simulator
from spacql.report.overview import standings_table, tally_table
from spacql.report.source import Trained
from spacql.report.subject import FEW, Subject
from spacql.report.teams import Team, compared


def learnt(subject: Subject) -> Markup | None:
    """What was learnt from what."""
    if not subject.shown:
        return None
    rows = []
    for dataset, found in subject.datasets.items():
        runs = [run for team in found for run in team.runs]
        sizes = sorted({run.transitions for run in runs if run.transitions})
        size = (f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")) if sizes else ""
        agents = {len(run.agents) for run in runs if run.agents}
        level = _level(found)
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
    # Stored results do not say how many agents there were, and logs without a simulator score none.
    for name in ("agents", "log's score"):
        place = head.index(name)
        if all(row[place][0] == "–" for row in rows):
            rows = [row[:place] + row[place + 1 :] for row in rows]
            head.remove(name)
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


def scores(subject: Subject) -> Markup | None:
    """How good it is. Of a fit's candidates a log speaks, and no score; nor has every run one."""
    datasets = {
        dataset: found
        for dataset, found in subject.datasets.items()
        if not all(team.candidate for team in found) and any(team.scored for team in found)
    }
    if not datasets:
        return None
    parts: list[Any] = []
    kinds = {"paper": False, "log": False, "seed": False}
    panels = []
    for dataset, found in datasets.items():
        rows = [_score_row(team, subject, _level(found)) for team in found]
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
    if kinds["seed"]:
        words = "its 95 % interval over three seeds or more (of one seed: over its episodes)"
        entries = [("centre", "mean"), ("interval", words)]
    else:
        entries = [("centre", "score"), ("interval", "its 95 % interval over episodes")]
    entries += [("seed", "one seed")] if kinds["seed"] else []
    entries += [("paper", "the paper's number, on its own data")] if kinds["paper"] else []
    entries += [("log", "the log itself")] if kinds["log"] else []
    scale = "A score of 0 is what uniform actions get, 100 what the expert gets."
    parts.append(tag("p", scale))
    if len(subject.datasets) > FEW:
        parts.append(standings_table(subject))
    parts.append(legend(entries))
    parts.append(tag("div", panels, class_="panels" if len(panels) > 1 else None))
    if subject.others:
        parts.append(_other_settings(subject.others))
    return join(parts)


def _level(found: Sequence[Team]) -> float | None:
    """The log's own score, one for all teams on a dataset: the mean over all seeds there are."""
    levels = {run.seed: run.level for team in found for run in team.runs if run.level is not None}
    return sum(levels.values()) / len(levels) if levels else None


def _score_row(team: Team, subject: Subject, level: float | None) -> Row:
    marks = []
    if team.paper is not None:
        mean, std = team.paper
        spread = "" if std is None else f" ± {std:g}"
        marks.append(Mark("paper", mean, f"{team.algorithm} in the paper: {mean:g}{spread}"))
    if level is not None:
        marks.append(Mark("log", level, f"the log itself: {number(level)}"))
    lost = sum(bool(run.note) and run.score is None for run in team.runs)
    running = sum(run.score is None and not run.note for run in team.runs)
    seeds = str(len(team.scored)) + (f", {lost} without a score" if lost else "")
    seeds += f", {running} unfinished" if running else ""
    interval = "–" if team.interval is None else span(*team.interval)
    centre = team.mean
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


def _other_settings(others: Sequence[Team]) -> Markup:
    rows = [
        [
            team.label,
            team.dataset,
            (number(team.mean), -1e9 if team.mean is None else team.mean),
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
            if first.label == subject.shown[0].label:
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
            head = [f"{first.label} minus", "mean", "95 % interval", "verdict"]
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
            parts.append(tally_table(subject, tally))
        parts.append(tag("div", panels, class_="panels" if panels[1:] else None))
    alone = [team for team in subject.shown if len(team.scored) == 1]
    if alone and len(subject.datasets) <= FEW:
        words = "One seed says little about the next: its interval is over the episodes of one "
        words += "training. More of them: --seeds 0 1 2 3 4."
        parts.append(tag("p", words))
    beside = without_simulator(subject)
    parts += [] if beside is None else [beside]
    if against:
        parts += [tag("h3", "Against the log"), tag("ul", against)]
    return join(parts) if parts else None


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
    names = list(subject.colours.items())
    return join([tag("p", words), series_legend(names) if names[1:] else None,
                 tag("div", charts, class_="charts")])  # fmt: skip
