"""What a `spacql fit` found: the candidates with what the log says of them, and the choice."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from spacql import records
from spacql.errors import SpacqlError
from spacql.files import as_record, read_record
from spacql.records import Candidate, Estimated, FitRecord
from spacql.report.charts import Mark, Row, dot_plot, legend
from spacql.report.markup import beside, count, join, number, prose, table, tag
from spacql.report.source import Trained
from spacql.report.verdicts import listed


@dataclass(frozen=True)
class Fitted:
    """The folder of a fit."""

    folder: Path
    record: FitRecord

    @property
    def bounded(self) -> bool:
        """Whether it says what candidates were chosen by."""
        return any(row.bound is not None for row in self.record.table)

    @cached_property
    def truth(self) -> dict[str, float]:
        """What candidates return in the simulator, if there is one; the fit chose without it."""
        return {row.label: row.truth.mean for row in self.record.table if row.truth is not None}

    @cached_property
    def name(self) -> str:
        return self.record.data.name or self.record.task

    @cached_property
    def order(self) -> dict[str, int]:
        """The candidates, the chosen one first."""
        labels = [row.label for row in self.record.table if row.label != self.record.chosen]
        return {label: k for k, label in enumerate([self.record.chosen, *labels])}


class PlannedRun(msgspec.Struct):
    folder: str


class Planned(msgspec.Struct):
    """plan.json"""

    task: str
    runs: list[PlannedRun]
    data: str = ""


@dataclass(frozen=True)
class Unfinished:
    """The folder of a fit that was interrupted, or is under way."""

    folder: Path
    plan: Planned

    @property
    def name(self) -> str:
        return self.plan.data or self.plan.task

    @property
    def ended(self) -> int:
        """Trainings that came to an end."""
        places = [self.folder / "runs" / run.folder for run in self.plan.runs]
        ends = ("result.json", "diverged.json")
        return sum(any((place / end).is_file() for end in ends) for place in places)


def read(folder: Path) -> Fitted:
    return Fitted(folder, as_record(records.fit(folder), FitRecord, folder / "fit.json"))


def below(places: Sequence[Path]) -> list[Fitted]:
    """All fits below some places."""
    return [read(path.parent) for place in places for path in sorted(place.rglob("fit.json"))]


def unfinished(places: Sequence[Path]) -> list[Unfinished]:
    """All fits below some places that have not chosen yet."""
    return [
        Unfinished(path.parent, read_record(path, Planned))
        for place in places
        for path in sorted(place.rglob("plan.json"))
        if not (path.parent / "fit.json").exists()
    ]


def as_candidates(
    runs: Sequence[Trained], fits: Sequence[Fitted], begun: Sequence[Unfinished] = ()
) -> list[Trained]:
    """Runs of a fit have its labels, and know the world that its log is of."""
    tasks = {fit.folder / "runs": fit.record.task for fit in fits}
    tasks |= {fit.folder / "runs": fit.plan.task for fit in begun}

    def known(run: Trained) -> Trained:
        if run.folder is None or run.folder.parent not in tasks:
            return run
        return replace(run, label=run.folder.name, task=tasks[run.folder.parent])

    return [known(run) for run in runs]


def good(fit: Fitted) -> Markup:
    """How good it is, as far as a log can say."""
    record, log = fit.record, fit.record.log
    ranked = sorted(record.table, key=lambda row: fit.order[row.label])
    columns = ["in truth"] * bool(fit.truth) + ["lower bound"] * fit.bounded
    plot = dot_plot(
        ["policy", "return", "90 % interval", *columns],
        [_row(row, fit) for row in ranked],
        caption=f"What the log says of each policy: {fit.name}",
        axis="expected return",
        spare=fit.bounded,
    )
    entries = [
        ("centre", "expected return, without a simulator"),
        ("interval", "its 90 % interval"),
        ("log", f"what the log's {count(record.heldout, 'held-out episode')} returned: "
                f"{_mean(log)} ({_span(log)})"),
    ]  # fmt: skip
    if fit.truth:
        entries.append(("truth", "what it returns in the simulator"))
    words = (
        f"{count(len(record.table), 'policy', 'policies')} were trained on most of "
        f"{count(record.data.episodes, 'episode')} ({record.data.transitions:,} transitions) and "
        "judged by the others, which no training saw. Chosen (★) is the one with the highest "
        "lower bound, of those that promise at least what cloning (bc) does."
    )
    if any(row.bound is not None and row.bound > row.low for row in record.table):
        words += " That is the bound as the episodes and the estimator have it. The intervals are "
        words += "wider: what held the truth nine times in ten on development data."
    lost = [f"{label}: {why}" for label, why in record.failed.items()]
    return join(
        [
            tag("p", words),
            legend(entries),
            plot,
            tag("p", "No policy came of ", "; ".join(lost), class_="note") if lost else None,
        ]
    )


def _row(row: Candidate, fit: Fitted) -> Row:
    text = beside(row.low, row.high)
    marks = [Mark("log", fit.record.log.mean, f"the log itself: {_mean(fit.record.log)}")]
    cells: list[Any] = [(text(row.mean), row.mean), (_span(row), row.low)]
    if fit.truth:
        true = fit.truth.get(row.label)
        cells.append((text(true), -1e300 if true is None else true))
        if true is not None:
            marks.append(Mark("truth", true, f"{row.label} in the simulator: {text(true)}"))
    if fit.bounded:
        cells.append((text(row.bound), -1e300 if row.bound is None else row.bound))
    chosen = row.label == fit.record.chosen
    return Row(
        name=f"{row.label} ★" if chosen else row.label,
        colour=fit.order[row.label],
        seeds=(),
        centre=row.mean,
        interval=(row.low, row.high),
        marks=marks,
        cells=cells,
        confidence=90,
        text=text,
    )


def real(fit: Fitted) -> Markup:
    """Whether the gain is real: the verdict, what speaks against it, and the truth if known."""
    record = fit.record
    parts: list[Any] = [tag("p", tag("strong", record.verdict.capitalize() + ". "),
                            prose(record.words))]  # fmt: skip
    if record.trust is not None and record.trust.correlation is not None:
        parts.append(
            tag("p", "The model of the world that the estimates are from was tested: with the "
                f"logged actions it foretells the returns of {record.trust.episodes:,} held-out "
                f"episodes with a correlation of {number(record.trust.correlation, 2)}, and is off "
                f"by {beside(record.log.low, record.log.high)(record.trust.bias)} on average.")
        )  # fmt: skip
    if fit.truth:
        parts.append(tag("p", _against_truth(fit)))
    return join([*parts, _warned(fit)])


def _warned(fit: Fitted) -> Markup | None:
    """What the trainings' own numbers warn of; of those that were not chosen only if asked."""

    def listing(rows: Sequence[Candidate]) -> Markup | None:
        said = [tag("li", f"{row.label}: ", prose(text)) for row in rows for text in row.warnings]
        return tag("ul", said) if said else None

    chosen = [row for row in fit.record.table if row.label == fit.record.chosen]
    first, rest = listing(chosen), listing([r for r in fit.record.table if r not in chosen])
    if first is None and rest is None:
        return None
    folded = tag("details", tag("summary", "Policies that were not chosen"), rest) if rest else None
    return join([tag("h4", "Calls for a second look"), first, folded])


def _against_truth(fit: Fitted) -> str:
    known = [row for row in fit.record.table if row.label in fit.truth]
    text_of = {row.label: beside(row.low, row.high) for row in known}
    held = sum(row.low <= fit.truth[row.label] <= row.high for row in known)
    best = max(known, key=lambda row: fit.truth[row.label]).label
    text = (
        "This log is of a world that spacql can simulate, so the estimates can be compared with "
        f"the truth: {held} of {len(known)} intervals hold it."
    )
    chosen = fit.record.chosen
    if chosen not in fit.truth:
        return text
    mine, log = fit.truth[chosen], fit.record.log.mean
    text += f" {chosen} returns {text_of[chosen](mine)} there, "
    text += f"{'more' if mine > log else 'no more'} than the log's {_mean(fit.record.log)}"
    if best == chosen:
        return text + ", and none of the others returns more."
    return text + f"; the best of all would have been {best} with {text_of[best](fit.truth[best])}."


def distances(fit: Fitted) -> Markup:
    """How far each policy leaves the log, agent by agent."""
    agents = list(dict.fromkeys(agent for row in fit.record.table for agent in row.distance))
    rows = []
    for row in sorted(fit.record.table, key=lambda row: fit.order[row.label]):
        cells: list[Any] = []
        for agent in agents:
            far, beyond = row.distance.get(agent), row.outside.get(agent)
            share = "" if beyond is None else f" ({number(100 * beyond, 0)} %)"
            cells.append((number(far) + share, -1.0 if far is None else far))
        rows.append([row.label, *cells])
    words = "How far each agent's policy leaves what the log does in the same states, in standard "
    words += "deviations of the log's actions there. In brackets: the share of states where it is "
    words += "beyond three, of which the log says little."
    caption = f"Distance from the log per agent, in deviations: {fit.name}"
    return join([tag("p", words), table(["policy", *agents], rows, caption=caption)])


def headline(fits: Sequence[Fitted]) -> str:
    if len(fits) == 1:
        (fit,) = fits
        record = fit.record
        chosen = next(row for row in record.table if row.label == record.chosen)
        text = (
            f"{record.verdict.capitalize()}. {chosen.label} is expected to return "
            f"{_mean(chosen)} (90 %: {_span(chosen)}); the log's held-out episodes returned "
            f"{_mean(record.log)}."
        )
        true = fit.truth.get(chosen.label)
        if true is None:
            return text
        more = "more" if true > record.log.mean else "no more"
        shown = beside(chosen.low, chosen.high)(true)
        return f"{text} In the simulator it returns {shown}, {more} than the log."
    said = [f"{fit.name}: {fit.record.verdict} ({fit.record.chosen})" for fit in fits]
    return f"Fits of {count(len(fits), 'log')}. {listed(said)}."


def waiting(fit: Unfinished) -> Markup:
    """How far a fit is that has not chosen yet, and what goes on with it."""
    trainings = f"{fit.ended} of {count(len(fit.plan.runs), 'training')}"
    text = f"The fit of {fit.name} is not finished ({trainings}). The same command goes on: "
    return join([text, tag("code", command(fit, str(fit.folder))), "."])


def command(fit: Fitted | Unfinished, out: str = "") -> str:
    """What fits again, to a log of this name."""
    plan: dict[str, Any] = {}
    with suppress(SpacqlError):
        plan = read_record(fit.folder / "plan.json", dict[str, Any])
    data = str(plan.get("data") or fit.name)
    words = ["spacql", "fit", "--data", data, "--out", out or fit.folder.name or "fit"]
    if plan.get("level") in ("quick", "thorough"):
        words.append(f"--{plan['level']}")
    options = {"seed": 0, "share": 0.2, "estimator": "model", "budget": None, "workers": None}
    for name, usual in options.items():
        value = plan.get(name, usual)
        if value != usual:
            words += [f"--{'heldout' if name == 'share' else name}", str(value)]
    return shlex.join(words)


def _span(x: Estimated) -> str:
    text = beside(x.low, x.high)
    return f"{text(x.low)} to {text(x.high)}"


def _mean(x: Estimated) -> str:
    return beside(x.low, x.high)(x.mean)
