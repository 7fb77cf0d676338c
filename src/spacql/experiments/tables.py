"""Tables of scores: in the terminal, as Markdown, as CSV and as JSON, from the same cells."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spacql.algorithms.config import Training
from spacql.algorithms.settings import usual_rounds
from spacql.data.behaviours import dataset_seed
from spacql.evaluation import deviation
from spacql.experiments.pairs import highest, may_be_best, mean_over
from spacql.experiments.paper import published
from spacql.experiments.plans import SEEDS, Block, Column, Method, Plan
from spacql.experiments.store import Store, StoredRun, mixed_data

SETTINGS = ("rounds", "critics", "penalty", "alpha")  # of interest beside a number
FIELDS = ("block", "dataset", "column", "method", "algorithm", *SETTINGS, "seeds", "diverged",
          "mean", "std", "low", "high", "best", "paper_mean", "paper_std")  # fmt: skip

OF_SCORES = (
    "Score: 0 is random, 100 the expert. Mean ± standard deviation over five seeds, or as many as "
    "a bracket says. Marked, of cells with three seeds or more: those that no other is "
    "significantly better than (by the 95 % t interval of the differences seed by seed). What is "
    "marked need not be equal: few seeds, or scores that vary much, leave even large differences "
    "open."
)
ONE_SEED = "One seed shows no significant difference, and nothing is marked."
TWICE = "Of several trainings on one dataset, such as those of seeds 0 and 5, the mean counts."
OF_DIFFERENCES = (
    "Differences of scores, seed by seed: both methods see the same dataset. Mean over seeds "
    "[its 95 % t interval]. Marked: intervals without 0, of three seeds or more."
)


@dataclass(frozen=True)
class Statistics:
    """Of the scores of several seeds, or of their differences."""

    seeds: int
    mean: float
    std: float  # of a sample: divided by n - 1
    # 95 % t interval of the mean, of enough seeds.
    low: float | None
    high: float | None

    @property
    def range(self) -> tuple[float, float]:
        if self.low is None or self.high is None:
            return self.mean, self.mean
        return self.low, self.high


@dataclass(frozen=True)
class Cell:
    method: Method
    column: Column
    config: Training
    statistics: Statistics | None  # None while no run is finished
    diverged: int  # trainings that broke down, and are not in the statistics
    best: bool  # no other of its column is significantly better; of differences: 0 is outside
    highest: bool  # of its column
    paper: tuple[float, float | None] | None
    difference: bool = False  # of two methods, seed by seed


def statistics(scores: Sequence[float]) -> Statistics | None:
    if not scores:
        return None
    found = mean_over({"": dict(enumerate(scores))})
    assert found is not None
    return Statistics(found.seeds, found.mean, float(deviation(scores)), found.low, found.high)


def difference(first: Sequence[StoredRun], second: Sequence[StoredRun]) -> Statistics | None:
    """Of first minus second, seed by seed: both have seen the same dataset."""
    scores = [by_seed(runs) for runs in (first, second)]
    seeds = scores[0].keys() & scores[1].keys()
    if not seeds:
        return None
    gaps = {seed: scores[0][seed] - scores[1][seed] for seed in seeds}
    found = mean_over({"": gaps})
    assert found is not None
    std = float(deviation(list(gaps.values())))
    return Statistics(found.seeds, found.mean, std, found.low, found.high)


def by_seed(runs: Sequence[StoredRun]) -> dict[int, float]:
    """Scores by seed, of those runs that have one."""
    return by_dataset_seed((run.seed, run.score) for run in runs if run.score is not None)


def by_dataset_seed(values: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Numbers by seed. Seeds that share a dataset, as 0 and 5 do, count as one, with their mean:
    they say little new about other datasets."""
    found: dict[int, list[float]] = {}
    for seed, value in values:
        found.setdefault(dataset_seed(seed), []).append(value)
    return {seed: float(np.mean(numbers)) for seed, numbers in found.items()}


def grid(plan: Plan, block: Block, store: Store) -> list[list[Cell]]:
    """A row for every method, or for every pair of methods."""
    if block.pairs:
        return [_pair(plan, block, store, pair) for pair in pairs(block)]
    runs = [[plan.stored(store, m, c) for c in block.columns] for m in block.methods]
    scores = [[by_seed(cell) for cell in row] for row in runs]
    found = [[statistics(list(cell.values())) for cell in row] for row in scores]
    columns = list(zip(*scores, strict=True))
    best = [may_be_best(column) for column in columns]
    first = [highest(column) for column in columns]
    return [
        [
            Cell(method, column, plan.cell(method, column)[0].config, found[i][k],
                 sum(run.score is None for run in runs[i][k]), best[k][i], first[k] == i,
                 published(column.dataset, method.algorithm, plan.name)
                 if block.published else None)
            for k, column in enumerate(block.columns)
        ]
        for i, method in enumerate(block.methods)
    ]  # fmt: skip


def pairs(block: Block) -> list[tuple[Method, Method]]:
    """Those of which both methods are there."""
    named = {method.label: method for method in block.methods}
    return [(named[a], named[b]) for a, b in block.pairs if a in named and b in named]


def _pair(plan: Plan, block: Block, store: Store, pair: tuple[Method, Method]) -> list[Cell]:
    row = []
    firsts = {first for first, _ in block.pairs}
    label = f"{pair[0].label} - {pair[1].label}" if len(firsts) > 1 else f"- {pair[1].label}"
    shown = replace(pair[0], label=label)
    for column in block.columns:
        runs = [plan.stored(store, method, column) for method in pair]
        found = difference(*runs)
        apart = found is not None and (found.low or 0) * (found.high or 0) > 0
        diverged = sum(run.score is None for both in runs for run in both)
        config = plan.cell(pair[0], column)[0].config
        row.append(
            Cell(shown, column, config, found, diverged, apart, False, None, difference=True)
        )
    return row


def texts(cell: Cell, narrow: bool = False) -> tuple[str, str, str]:
    """Mean ± deviation (seeds); the mean's interval; the paper's number. Narrow ones
    fit four columns into a terminal of 80 characters."""
    sign, digits = ("±", 0) if narrow else (" ± ", 1)
    paper = ""
    if cell.paper is not None:
        mean, std = cell.paper
        paper = f"paper {mean:g}" + ("" if std is None else f"{sign}{std:g}")
    found = cell.statistics
    lost = f"{cell.diverged} diverged" if cell.diverged else ""
    if found is None:
        return lost or "–", "", paper
    usual = found.seeds == len(SEEDS) and not lost  # which need not be said
    count = "" if usual else f" ({found.seeds}{lost and ', ' + lost})"
    centre, interval = plain_zero(found.mean, 1), ""
    if found.low is not None:
        low, high = (plain_zero(end, digits) for end in found.range)
        interval = f"[{low}, {high}]"
    if cell.difference or found.seeds == 1:
        return f"{centre} {interval}".rstrip() + count, "", paper
    return f"{centre}{sign}{found.std:.1f}{count}", interval, paper


def plain_zero(value: float, digits: int) -> str:
    """Rounded, without the "-0" that rounding makes of small negative numbers."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def notes(plan: Plan, store: Store) -> list[str]:
    """What a reader must know about the numbers."""
    lines = [OF_DIFFERENCES if all(block.pairs for block in plan.blocks) else OF_SCORES]
    critics: dict[str, set[int]] = {}
    runs = []
    for _, method, column in plan.cells():
        config = plan.cell(method, column)[0].config
        runs += plan.stored(store, method, column)
        if hasattr(config, "critics"):
            critics.setdefault(method.algorithm, set()).add(config.critics)
    if runs and len({run.seed for run in runs}) == 1:
        lines.append(ONE_SEED)
    if any(run.seed != dataset_seed(run.seed) for run in runs):
        lines.append(TWICE)
    lines.append(rounds(plan))
    lines += penalties(plan)
    if critics:
        text = "; ".join(f"{name} {_list(counts)}" for name, counts in critics.items())
        lines.append(f"Critics: {text}.")
    return lines + mixed_data(runs)


def penalties(plan: Plan) -> list[str]:
    """Which penalty the cells have whose column names none; few exceptions are listed."""
    cells: dict[str, list[str]] = {}
    for _, method, column in plan.cells():
        config = plan.cell(method, column)[0].config
        if hasattr(config, "penalty") and "penalty" not in column.overrides:
            cells.setdefault(config.penalty, []).append(f"{method.label} on {column.dataset}")
    usual = max(cells, key=lambda penalty: len(cells[penalty]), default=None)
    named = any("penalty" in column.overrides for _, _, column in plan.cells())
    if usual is None:
        return ["Penalty: as the columns say."] if named else []
    others = [f"{name} for {_list(where)}" for name, where in cells.items() if name != usual]
    text = "; ".join([usual, *others])
    return [f"Penalty: {text}{', or as the columns say' if named else ''}."]


def rounds(plan: Plan) -> str:
    """How long the trainings are: of every task, and of methods that differ."""
    tasks: dict[str, dict[str, set[str]]] = {}
    for _, method, column in plan.cells():
        config = plan.cell(method, column)[0].config
        length = f"{config.rounds:,} × {config.updates}"
        tasks.setdefault(column.task, {}).setdefault(length, set()).add(method.label)
    alike: dict[tuple[str, str], list[str]] = {}  # tasks by what is said before and after them
    for task, lengths in tasks.items():
        most = max(lengths, key=lambda length: len(lengths[length]))
        usual = usual_rounds(task)
        instead = plan.rounds is not None and plan.rounds != usual
        after = f" INSTEAD OF {usual:,} rounds" if instead else ""
        others = [f"{_list(names)} {n}" for n, names in lengths.items() if n != most]
        after += f" ({', '.join(others)})" if others else ""
        alike.setdefault((most, after), []).append(task)
    texts = [f"{most} in {_list(tasks)}{after}" for (most, after), tasks in alike.items()]
    return f"Rounds × updates in each: {'; '.join(texts)}."


def _list(items: Any) -> str:
    return ", ".join(str(item) for item in (sorted(items) if isinstance(items, set) else items))


def markdown(plan: Plan, store: Store) -> str:
    """Rows without a finished run are named below their table."""
    parts = [f"### {plan.title}"]
    for block in plan.blocks:
        head = [block.title, *(column.label for column in block.columns)]
        lines = [markdown_row(head), markdown_row(["---", *["---:"] * len(block.columns)])]
        empty = []
        for row in grid(plan, block, store):
            label = row[0].method.label
            if any(cell.statistics or cell.diverged for cell in row):
                lines.append(markdown_row([label, *(_markdown(cell) for cell in row)]))
            else:
                empty.append(label)
        parts += ["\n".join(lines)] if len(lines) > 2 else []
        parts += [f"Not run yet in {block.title}: {'; '.join(empty)}."] if empty else []
    return "\n\n".join([*parts, "  \n".join(notes(plan, store))]) + "\n"


def markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(cell: Cell) -> str:
    """What is compared with the paper, and its number below it."""
    main, _, paper = texts(cell)
    return (f"**{main}**" if cell.best else main) + (f"<br><sub>{paper}</sub>" if paper else "")


def records(plan: Plan, store: Store) -> list[dict[str, Any]]:
    """A flat dictionary for every cell."""
    return [
        dict(zip(FIELDS, _values(block, cell), strict=True))
        for block in plan.blocks
        for row in grid(plan, block, store)
        for cell in row
    ]


def _values(block: Block, cell: Cell) -> tuple[Any, ...]:
    column, method, found = cell.column, cell.method, cell.statistics
    numbers: tuple[Any, ...] = (None,) * 4
    if found is not None:
        numbers = (found.mean, found.std, found.low, found.high)
    return (
        *(block.title, column.dataset, column.label, method.label, method.algorithm),
        *(getattr(cell.config, name, None) for name in SETTINGS),
        *(0 if found is None else found.seeds, cell.diverged, *numbers, cell.best),
        *(cell.paper or (None, None)),
    )


def to_csv(plan: Plan, store: Store) -> str:
    """One line a cell; `best` is a star or nothing."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    for record in records(plan, store):
        short = {n: f"{v:.2f}" if isinstance(v, float) and n not in SETTINGS else v
                 for n, v in record.items()}  # fmt: skip
        writer.writerow(short | {"best": "*" if record["best"] else ""})
    return out.getvalue()


def show(plan: Plan, store: Store) -> None:
    """In the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(plan.title, style="bold")
    for block in plan.blocks:
        table = Table(block.title, box=None, padding=(0, 1, 0, 0), header_style="underline")
        for column in block.columns:
            table.add_column(column.label, justify="right")
        for row in grid(plan, block, store):
            cells = []
            for cell in row:
                main, *small = texts(cell, narrow=True)
                text = Text(main + ("*" if cell.best else " "), "bold" if cell.best else "")
                for line in filter(None, small):
                    text.append(f"\n{line} ", "dim not bold")
                cells.append(text)
            table.add_row(row[0].method.label, *cells)
        console.print(table)
        console.print()
    for line in notes(plan, store):
        console.print(line, highlight=False, markup=False)
