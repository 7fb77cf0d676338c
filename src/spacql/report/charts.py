"""Charts as SVG and HTML, drawn here and now: no library in the page, no picture to scale down.

Places across a chart are percentages, so that it fills a phone or a desk and its text keeps its
size. A dot plot is a table whose rows hold the plot, so that readers who do not see it hear the
numbers. Colours are classes; the style sheet has them for light and for dark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from spacql.report.markup import data, number, short, table, tag

COLOURS = 10
SHAPES = {"paper": "M0-6 5 0 0 6-5 0Z", "truth": "M-4.5-4.5H4.5V4.5H-4.5Z"}  # of marks
APART = 10  # percent of a chart's height that a label takes


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Percent of the way, kept inside."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


def scale_of(values: Sequence[float | None], ticks: int = 5) -> Scale:
    """Round ends that hold all values."""
    known = [v for v in values if v is not None and np.isfinite(v)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    margin = 0.04 * (high - low) or max(abs(high), 1.0) * 0.05
    low, high = low - margin, high + margin
    marks = MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return Scale(low, high, tuple(float(m) for m in marks if low <= m <= high))


@dataclass(frozen=True)
class Mark:
    """A number beside the seeds: the paper's, the log's own, or what a simulator says."""

    kind: str  # paper, log, truth
    value: float
    text: str


@dataclass(frozen=True)
class Row:
    name: str
    colour: int
    seeds: Sequence[tuple[int, float]]  # seed and value
    centre: float | None
    interval: tuple[float, float] | None
    marks: Sequence[Mark] = ()
    cells: Sequence[object] = ()  # further columns, as `table` takes them
    confidence: int = 95  # of the interval, percent
    text: Callable[[float], str] = number


def dot_plot(head: Sequence[str], rows: Sequence[Row], *, caption: str, axis: str,
             zero: bool = False, include: Sequence[float] = (),
             spare: bool = False) -> Markup:  # fmt: skip
    """A table with a plot in its second column. `head` names the columns beside the plot; `spare`
    is whether a narrow screen does without the last one."""
    values = [v for row in rows for v in (row.centre, *(row.interval or ()))]
    values += [value for row in rows for _, value in row.seeds]
    values += [mark.value for row in rows for mark in row.marks]
    scale = scale_of([*values, *include, *([0.0] if zero else [])])
    lines = [[_name(row), _dots(row, scale, zero), *row.cells] for row in rows]
    axis_cell = tag("div", tag("span", axis, class_="axis-name"), _axis(scale), class_="axis")
    return table([head[0], axis_cell, *head[1:]], lines, caption=caption,
                 class_="dots spare" if spare else "dots")  # fmt: skip


def _name(row: Row) -> Markup:
    return tag("span", row.name, class_=f"name s{row.colour % COLOURS}")


def _axis(scale: Scale) -> Markup:
    labels = [tag("span", _round(tick), style=f"left:{scale.at(tick)}%") for tick in scale.ticks]
    return tag("div", labels, class_="ticks", aria_hidden="true")


def _dots(row: Row, scale: Scale, zero: bool) -> Markup:
    def upright(value: float, kind: str, tip: str | None = None) -> Markup:
        x = f"{scale.at(value)}%"
        return tag("line", x1=x, x2=x, y1="0", y2="100%", class_=kind, data_tip=tip)

    parts = [upright(tick, "grid zero" if zero and tick == 0 else "grid") for tick in scale.ticks]
    for mark in row.marks:
        if mark.kind == "log":
            parts.append(upright(mark.value, "log", mark.text))
    if row.interval is not None:
        low, high = row.interval
        ends = {"x1": f"{scale.at(low)}%", "x2": f"{scale.at(high)}%", "y1": "50%", "y2": "50%"}
        tip = f"{row.name}: {row.confidence} % interval {row.text(low)} to {row.text(high)}"
        parts.append(tag("line", **ends, class_="interval", data_tip=tip))
    if len(row.seeds) > 1 or row.centre is None:
        parts += [
            tag("circle", cx=f"{scale.at(value)}%", cy="50%", r="3.5", class_="seed",
                data_tip=f"{row.name}, seed {seed}: {row.text(value)}")
            for seed, value in row.seeds
        ]  # fmt: skip
    if row.centre is not None:
        tip = f"{row.name}: {row.text(row.centre)}"
        parts.append(tag("circle", cx=f"{scale.at(row.centre)}%", cy="50%", r="5.5",
                         class_="centre", data_tip=tip))  # fmt: skip
    for mark in row.marks:
        if mark.kind in SHAPES:
            shape = tag("path", d=SHAPES[mark.kind], class_=mark.kind, data_tip=mark.text)
            parts.append(tag("svg", shape, x=f"{scale.at(mark.value)}%", y="50%",
                             overflow="visible"))  # fmt: skip
    return tag("svg", parts, class_=f"strip s{row.colour % COLOURS}", aria_hidden="true")


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """What the marks of dot plots mean: (kind, words)."""
    shapes = {
        "centre": tag("circle", cx="12", cy="8", r="5.5", class_="centre"),
        "seed": tag("circle", cx="12", cy="8", r="3.5", class_="seed"),
        "interval": tag("line", x1="2", x2="22", y1="8", y2="8", class_="interval"),
        **{
            kind: tag("path", d=shape, class_=kind, transform="translate(12 8)")
            for kind, shape in SHAPES.items()
        },
        "log": tag("line", x1="12", x2="12", y1="0", y2="16", class_="log"),
    }
    items = [
        tag("li", tag("svg", shapes[kind], width="24", height="16", aria_hidden="true"), words)
        for kind, words in entries
    ]
    return tag("ul", items, class_="legend s-text")


@dataclass(frozen=True)
class Series:
    """A line of a chart: the mean of several seeds, which may be looked at one by one."""

    name: str
    colour: int
    seeds: Sequence[tuple[int, Sequence[tuple[float, float]]]]  # seed, and its points


def line_chart(title: str, series: Sequence[Series], *, note: str = "", x_name: str = "round",
               named: bool = False) -> Markup | None:  # fmt: skip
    """Means over seeds, with a band from the lowest to the highest; None without points. `named`
    lines have their names at their ends."""
    drawn = [(line, *_common(line)) for line in series]
    drawn = [(line, xs, ys) for line, xs, ys in drawn if len(xs)]
    if not drawn:
        return None
    every_x = np.concatenate([xs for _, xs, _ in drawn])
    values = [float(v) for _, _, ys in drawn for v in (np.nanmin(ys), np.nanmax(ys))]
    y = scale_of(values, ticks=4)
    left, right = float(every_x.min()), float(every_x.max())
    right = right if right > left else left + 1
    marks = MaxNLocator(4, integer=True).tick_values(left, right)
    x = Scale(left, right, tuple(float(m) for m in marks if left <= m <= right))
    grid = [tag("path", d=f"M0 {100 - y.at(t)}H100", class_="grid") for t in y.ticks]
    lines = [_line(line, xs, ys, x, y) for line, xs, ys in drawn]
    svg = tag("svg", grid, lines, viewBox="0 0 100 100", preserveAspectRatio="none",
              aria_hidden="true")  # fmt: skip
    points = {
        "x": [float(v) for v in sorted(set(every_x.tolist()))],
        "low": x.low,
        "high": x.high,
        "x_name": x_name,
        "series": [
            {"name": line.name, "x": xs.tolist(),
             "y": [[float(f"{v:.4g}") if np.isfinite(v) else None for v in row] for row in ys]}
            for line, xs, ys in drawn
        ],
    }  # fmt: skip
    ends = "; ".join(
        f"{line.name} ends at {short(float(np.nanmean(ys[:, -1])))}" for line, _, ys in drawn
    )
    return tag(
        "figure",
        tag("figcaption", tag("b", title), tag("span", note) if note else None),
        tag(
            "div",
            tag("div", [_tick(t, y, "bottom") for t in y.ticks], class_="y", aria_hidden="true"),
            tag("div", svg, _ends(drawn, y) if named else None, class_="plot"),
            tag("div", [_tick(t, x, "left") for t in x.ticks], class_="x", aria_hidden="true"),
            class_="frame named" if named else "frame",
            tabindex="0",
            role="img",
            aria_label=f"{title}, by {x_name}. {ends}. Arrow keys read the values.",
            data_chart=data(points),
        ),
        class_="chart",
    )


def _tick(value: float, scale: Scale, side: str) -> Markup:
    return tag("span", _round(value), style=f"{side}:{scale.at(value)}%")


def _round(tick: float) -> str:
    """Ticks are round numbers: 0.25, 50, 2,500."""
    return f"{tick:,.10g}".replace("-", "−")


def _ends(drawn: Sequence[tuple[Series, np.ndarray, np.ndarray]], y: Scale) -> Markup:
    """The names of lines at their ends, moved apart where they would overlap."""
    found = [(100 - y.at(float(np.nanmean(ys[:, -1]))), line) for line, _, ys in drawn]
    places = sorted(found, key=lambda pair: pair[0])
    below, labels = -np.inf, []
    for place, line in places:
        below = max(place, below + APART)
        labels.append(
            tag("span", line.name, class_=f"s{line.colour % COLOURS}", style=f"top:{below:.1f}%")
        )
    return tag("div", labels, class_="ends", aria_hidden="true")


def _common(line: Series) -> tuple[np.ndarray, np.ndarray]:
    """The places that any seed has, and their values (seeds, places): NaN where a seed lacks one,
    as one that diverged or is under way."""
    curves = [dict(points) for _, points in line.seeds if points]
    if not curves:
        return np.zeros(0), np.zeros((0, 0))
    xs = sorted(set().union(*curves))
    return np.array(xs, float), np.array([[curve.get(x, np.nan) for x in xs] for curve in curves])


def _line(line: Series, xs: np.ndarray, ys: np.ndarray, x: Scale, y: Scale) -> Markup:
    def path(values: np.ndarray) -> str:
        return "M" + "L".join(
            f"{x.at(a)} {round(100 - y.at(b), 2)}"
            for a, b in zip(xs, values, strict=True)
            if np.isfinite(b)
        )

    parts = []
    if len(ys) > 1:
        back = path(np.nanmin(ys, axis=0))[1:].split("L")[::-1]
        band = path(np.nanmax(ys, axis=0)) + "L" + "L".join(back) + "Z"
        parts.append(tag("path", d=band, class_="band"))
        parts += [tag("path", d=path(row), class_="one") for row in ys]
    parts.append(tag("path", d=path(np.nanmean(ys, axis=0)), class_="mean"))
    return tag("g", parts, class_=f"series s{line.colour % COLOURS}", data_name=line.name)


def series_legend(names: Sequence[tuple[str, int]]) -> Markup:
    """Buttons: one that is pressed leaves its line alone in the charts of its section, with its
    seeds."""
    items = [
        tag("button", tag("i"), name, type="button", class_=f"s{colour % COLOURS}",
            aria_pressed="false", data_name=name)
        for name, colour in names
    ]  # fmt: skip
    return tag("div", items, class_="series-legend", role="group", aria_label="Show one line alone")
