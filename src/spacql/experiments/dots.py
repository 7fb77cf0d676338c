"""All scores in one picture, and the differences of three algorithms: tables to look at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spacql.errors import InputError
from spacql.experiments.plans import Plan
from spacql.experiments.store import Store
from spacql.experiments.tables import Cell, grid, rounds
from spacql.files import read_json

OURS, OTHERS, PAPER = "#0072B2", "#555555", "#D55E00"
PARTIAL = ("spacql", "icql-qs", "aspac", "plcql")  # replace some agents' actions in the target
HEIGHT = 0.17  # inches of a row


def scores(plan: Plan, store: Store) -> tuple[Figure, dict[str, Any]]:
    """A panel for every dataset, a row in it for every algorithm."""
    levels = _levels(store)
    figure, cells = _panels(plan, store, _score, levels)
    handles = [
        _handle("o", OURS, "mean over seeds, 95 % interval; blue: partial replacement"),
        _handle(
            "o",
            OTHERS,
            "hollow: another is significantly better, or fewer than three seeds",
            hollow=True,
        ),
        _handle("D", PAPER, "the paper's number, on its own data", hollow=True),
        Line2D([], [], color="#999999", linestyle=":", label="the log itself"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    caption = (
        "Scores of every algorithm on every dataset: 0 is random, 100 the expert. Mean over seeds "
        "and, of three or more, its 95 % t interval. Hollow: another is significantly better, "
        f"seed by seed, or it has fewer than three seeds. {rounds(plan)}"
    )
    return figure, {"caption": caption, "cells": cells}


def gaps(plan: Plan, store: Store) -> tuple[Figure, dict[str, Any]]:
    """A panel for every dataset, a row in it for every pair of algorithms."""
    figure, cells = _panels(plan, store, _gap, {})
    handles = [
        _handle("o", OURS, "mean over seeds, 95 % interval without 0"),
        _handle("o", OTHERS, "interval with 0 in it", hollow=True),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    caption = (
        "Differences of scores, seed by seed: both algorithms see the same dataset. Mean over "
        f"seeds and its 95 % t interval. {rounds(plan)}"
    )
    return figure, {"caption": caption, "cells": cells}


def _panels(
    plan: Plan, store: Store, row: Any, levels: dict[str, float]
) -> tuple[Figure, list[dict[str, Any]]]:
    """Tasks that have a number below each other, qualities side by side; one scale for a task."""
    every = [(block, grid(plan, block, store)) for block in plan.blocks]
    blocks = [
        (block, rows) for block, rows in every if any(cell.statistics for r in rows for cell in r)
    ]
    if not blocks:
        raise InputError(
            f"No run of {plan.name} is finished in {store.results}. Without --stored they are run; "
            "--dry-run says how long that takes."
        )
    heights = [len(rows) for _, rows in blocks]
    across = max(len(block.columns) for block, _ in blocks)
    size = (1.4 + 1.75 * across, 0.7 + sum(HEIGHT * h + 0.45 for h in heights))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(blocks), across, squeeze=False, sharey="row", sharex="row",
                           height_ratios=[h + 1.5 for h in heights])  # fmt: skip
    found = []
    for line, (block, rows) in zip(axes, blocks, strict=True):
        _names(line[0], rows)
        for axis, place in zip(line, range(across), strict=True):
            if place >= len(block.columns):
                axis.set_visible(False)
                continue
            column = block.columns[place]
            axis.set_title(column.dataset, loc="left")
            axis.tick_params(left=False, length=2)
            axis.grid(axis="x", color="#E5E5E5", linewidth=0.6)
            axis.set_axisbelow(True)
            axis.spines["left"].set_visible(False)
            if column.dataset in levels:
                axis.axvline(levels[column.dataset], color="#999999", linestyle=":", linewidth=1)
            for y, cells in enumerate(rows):
                row(axis, cells[place], y)
                found.append(_numbers(cells[place]))
    return figure, found


def _names(axis: Axes, rows: Sequence[Sequence[Cell]]) -> None:
    axis.set_yticks(range(len(rows)), [row[0].method.label for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)


def _score(axis: Axes, cell: Cell, y: int) -> None:
    if cell.paper is not None:
        axis.plot(cell.paper[0], y, "D", color=PAPER, markersize=3.2, fillstyle="none", zorder=2)
    if cell.statistics is None:
        return
    colour = OURS if cell.method.algorithm in PARTIAL else OTHERS
    _dot(axis, cell, y, colour, hollow=not cell.best)


def _gap(axis: Axes, cell: Cell, y: int) -> None:
    axis.axvline(0, color="#999999", linewidth=0.8, zorder=1)
    if cell.statistics is not None:
        _dot(axis, cell, y, OURS if cell.best else OTHERS, hollow=not cell.best)


def _dot(axis: Axes, cell: Cell, y: int, colour: str, *, hollow: bool) -> None:
    assert cell.statistics is not None
    axis.plot(cell.statistics.range, [y, y], color=colour, linewidth=1.4, alpha=0.6, zorder=3)
    face = "white" if hollow else colour
    axis.plot(cell.statistics.mean, y, "o", color=colour, markersize=4.2, markerfacecolor=face,
              zorder=4)  # fmt: skip


def _handle(marker: str, colour: str, label: str, *, hollow: bool = False) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label,
                  markerfacecolor="white" if hollow else colour, markersize=4)  # fmt: skip


def _numbers(cell: Cell) -> dict[str, Any]:
    entry: dict[str, Any] = {"dataset": cell.column.dataset, "method": cell.method.label}
    if cell.statistics is not None:
        low, high = cell.statistics.range
        entry |= {"seeds": cell.statistics.seeds, "mean": cell.statistics.mean, "low": low,
                  "high": high, "best": cell.best}  # fmt: skip
    return entry


def _levels(store: Store) -> dict[str, float]:
    """The score of the logs themselves, over dataset seeds, as far as it was measured."""
    path = store.results / "data.json"
    measured: dict[str, Any] = read_json(path) if path.is_file() else {}
    found: dict[str, list[float]] = {}
    for name, entry in measured.items():
        if isinstance(entry.get("score"), float):
            found.setdefault(name.partition("/")[0], []).append(entry["score"])
    return {name: float(np.mean(values)) for name, values in found.items()}
