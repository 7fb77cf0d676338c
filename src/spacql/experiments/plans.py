"""What a table or figure is made of: a plan, and the runs that it needs.

A plan is made of blocks. A block is a grid of methods (rows) and columns (a dataset, with
settings that all methods share there); every cell is one configuration, run with every seed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

from spacql.algorithms.config import Training
from spacql.algorithms.settings import check, configure, usual_rounds
from spacql.data.collect import QUALITIES as BY_LEVEL
from spacql.errors import InputError, suggestion
from spacql.experiments.executors import PlannedRun
from spacql.experiments.store import SILENT, Store, StoredRun, signature
from spacql.worlds import TASKS

QUALITIES = tuple(reversed(BY_LEVEL))  # the order of the paper's tables
SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Method:
    """A row: an algorithm with hyperparameters of its own."""

    label: str
    algorithm: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    by_dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # on some datasets


@dataclass(frozen=True)
class Column:
    """A dataset, with hyperparameters that every method gets there."""

    label: str
    dataset: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        return self.dataset.partition("-")[0]


@dataclass(frozen=True)
class Block:
    title: str
    methods: tuple[Method, ...]
    columns: tuple[Column, ...]
    published: bool = False  # whether the paper has numbers for these cells
    # Labels of two methods each: rows are their differences, seed by seed, instead of scores.
    pairs: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=2048)  # tables ask thousands of times for the same
def _configured(algorithm: str, dataset: str, overrides: tuple[tuple[str, Any], ...]) -> Training:
    return configure(algorithm, dataset, dict(overrides))


@dataclass(frozen=True)
class Plan:
    name: str
    title: str
    blocks: tuple[Block, ...]
    seeds: tuple[int, ...] = SEEDS
    # Instead of the task's usual number. An algorithm with twice as many of smaller rounds keeps
    # twice as many.
    rounds: int | None = None

    def cell(self, method: Method, column: Column) -> list[PlannedRun]:
        """The runs of one cell, one per seed."""
        own = method.by_dataset.get(column.dataset, {})
        overrides = {**method.overrides, **own, **column.overrides}
        config = _configured(method.algorithm, column.dataset, tuple(overrides.items()))
        if self.rounds is not None:
            usual = usual_rounds(column.task) or config.rounds
            config = check(replace(config, rounds=round(self.rounds * config.rounds / usual)))
        return [PlannedRun(method.algorithm, column.dataset, s, config) for s in self.seeds]

    def runs(self) -> list[PlannedRun]:
        """All runs, each once: seed by seed over all cells, so that a table with fewer seeds
        stands at any time."""
        found: dict[str, PlannedRun] = {}
        cells = [
            self.cell(method, column)
            for block in self.blocks
            for column, method in product(block.columns, block.methods)
        ]
        for of_seed in zip(*cells, strict=True):
            for run in of_seed:
                found.setdefault(run.key, run)
        return list(found.values())

    def missing(self, store: Store) -> list[PlannedRun]:
        return [run for run in self.runs() if run.key not in store.runs]

    def stored(self, store: Store, method: Method, column: Column) -> list[StoredRun]:
        """The finished runs of one cell."""
        runs = (store.runs.get(run.key) for run in self.cell(method, column))
        return [run for run in runs if run is not None]

    def cells(self) -> Iterator[tuple[Block, Method, Column]]:
        for block in self.blocks:
            yield from ((block, m, c) for m, c in product(block.methods, block.columns))


def registered() -> tuple[str, ...]:
    from spacql.algorithms.registry import MODULES

    return tuple(MODULES)


def unlike_settings(algorithm: str, dataset: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Where a stored configuration differs from what a run would get today."""
    from spacql.algorithms.registry import names

    if algorithm not in names():
        return {}
    today = json.loads(signature(asdict(configure(algorithm, dataset))))
    mine = json.loads(signature(config))
    return {
        name: mine.get(name, SILENT.get(name))
        for name in today | mine
        if today.get(name) != mine.get(name)
    }


def narrow(blocks: tuple[Block, ...], only: Sequence[str]) -> tuple[Block, ...]:
    """The cells whose dataset and method fit. Each word names tasks, qualities, datasets or
    methods: exactly if there is such a name, else as a part of names."""
    by_column = {c: _names(c) for block in blocks for c in map(_frozen, block.columns)}
    by_method = {m: _names(m) for block in blocks for m in map(_frozen, block.methods)}
    wanted_columns, wanted_methods = set(), set()
    for word in only:
        in_columns, in_methods = _matching(word, by_column), _matching(word, by_method)
        if not in_columns and not in_methods:
            known = dict.fromkeys(n for names in (by_column | by_method).values() for n in names)
            raise InputError(
                f"--only {word}: nothing here has that name.{suggestion(word, known)} "
                f"Known: {', '.join(known)}."
            )
        wanted_columns |= in_columns
        wanted_methods |= in_methods
    narrowed = []
    for block in blocks:
        kept_columns = tuple(
            c for c in block.columns if not wanted_columns or _frozen(c) in wanted_columns
        )
        wanted = {m.label for m in block.methods if _frozen(m) in wanted_methods}
        if block.pairs:  # the other half of a pair is needed, too
            both = [pair for pair in block.pairs if {*pair} <= wanted]
            pairs = both or [p for p in block.pairs if not wanted_methods or wanted & {*p}]
            block = replace(block, pairs=tuple(pairs))
            wanted = {label for pair in pairs for label in pair}
        kept_methods = tuple(m for m in block.methods if not wanted_methods or m.label in wanted)
        if kept_columns and kept_methods:
            narrowed.append(replace(block, methods=kept_methods, columns=kept_columns))
    if only and not narrowed:
        raise InputError(
            f"--only {' '.join(only)}: these are names of different parts, and no cell has them "
            "all. Leave one out."
        )
    return tuple(narrowed)


def _frozen(item: Method | Column) -> tuple[str, str]:
    return item.label, item.dataset if isinstance(item, Column) else item.algorithm


def _names(item: tuple[str, str]) -> list[str]:
    """What a word of --only may be, of a column (label, dataset) or method (label, algorithm)."""
    label, name = item
    task, _, quality = name.partition("-")
    parts = [task, quality] if task in TASKS else []
    return [name, *parts, *(part for part in [label, *label.split(", ")] if part != name)]


def _matching(word: str, named: Mapping[tuple[str, str], list[str]]) -> set[tuple[str, str]]:
    exact = {item for item, names in named.items() if word in names}
    return exact or {item for item, names in named.items() if any(word in n for n in names)}
