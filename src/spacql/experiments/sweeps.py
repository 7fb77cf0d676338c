"""Sweeps of a hyperparameter, beside the value that every algorithm is run with."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spacql import records as stored_records
from spacql.algorithms.settings import configure
from spacql.experiments.plans import QUALITIES, registered, unlike_settings
from spacql.experiments.store import Store
from spacql.experiments.tables import markdown_row
from spacql.worlds import TASKS

NOTE = (
    "Scores by alpha, or by the hyperparameter that a column names; means over seeds that no "
    "table reports (their number). Marked: the value in use. °: trainings that were shorter, or "
    "had other settings than today's."
)


@dataclass(frozen=True)
class Sweep:
    """One algorithm's on one dataset, as `spacql tune` wrote it."""

    algorithm: str
    dataset: str
    rounds: int
    seeds: tuple[int, ...]
    penalty: str
    config: Mapping[str, Any]
    hyperparameter: str
    by_seed: Mapping[Any, Sequence[float]]  # value to the scores of seeds that have one
    scores: Mapping[Any, float]  # value to mean score, of the trainings that did not fail

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Sweep":
        """From what `spacql.records` has read."""
        penalty = record["config"].get("penalty", "")
        tried = [(_hashable(entry["value"]), entry) for entry in record["values"]]
        if all(isinstance(value, int | float) for value, _ in tried):
            tried.sort(key=lambda pair: pair[0])
        return cls(
            algorithm=record["algorithm"],
            dataset=record["data"],
            rounds=record["rounds"],
            seeds=tuple(record["seeds"]),
            penalty=penalty,
            config=record["config"],
            hyperparameter=record["hyperparameter"],
            by_seed={value: entry["scores"] for value, entry in tried},
            scores={value: e["mean"] for value, e in tried if e["mean"] is not None},
        )

    @property
    def place(self) -> tuple[str, str]:
        """Table and row: the task, and the quality with the penalty if it is not the usual one."""
        task, _, quality = self.dataset.partition("-")
        return task, quality + (", policy penalty" if self.penalty == "policy" else "")

    @property
    def column(self) -> str:
        """The algorithm, and what was varied if that is not alpha."""
        return f"{self.algorithm} {self.hyperparameter.removeprefix('alpha')}".strip()

    @property
    def used(self) -> Any:
        """The value that a run gets today; None if it no longer has such a hyperparameter."""
        overrides = {"penalty": self.penalty} if self.penalty else {}
        config = asdict(configure(self.algorithm, self.dataset, overrides))
        return _hashable(config.get(self.hyperparameter))

    @property
    def unlike_today(self) -> bool:
        config = {**self.config, "rounds": self.rounds}
        unlike = unlike_settings(self.algorithm, self.dataset, config)
        return not unlike.keys() <= {self.hyperparameter, "penalty"}


def trial_rounds(rounds: int, share: float) -> int:
    """The length of a sweep's trainings, in whole tens."""
    return max(10, round(rounds * share / 10) * 10)


def text_of(value: Any) -> str:
    """As it stands in tables and names of folders."""
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def stored(store: Store, only: Sequence[str] = ()) -> list[Sweep]:
    """Those whose dataset and algorithm contain all words of `only`, in the order of tables."""
    paths = sorted((store.results / "tuning").glob("[!.]*.json"))
    found = [_read(path) for path in paths]
    order = [*TASKS, *QUALITIES]

    def rank(sweep: Sweep) -> tuple[Any, ...]:
        names = sweep.dataset.split("-", 1)
        known = [order.index(name) if name in order else len(order) for name in names]
        place = registered().index(sweep.algorithm)
        return known, sweep.dataset, sweep.penalty, place, sweep.hyperparameter

    known = [sweep for sweep in found if sweep.algorithm in registered()]
    return [
        sweep
        for sweep in sorted(known, key=rank)
        if all(word in f"{sweep.dataset} {sweep.algorithm}" for word in only)
    ]


def _read(path: Path) -> Sweep:
    return Sweep.from_json(stored_records.sweep(path))


def records(sweeps: Sequence[Sweep]) -> list[dict[str, Any]]:
    return [
        {
            "dataset": sweep.dataset,
            "algorithm": sweep.algorithm,
            "penalty": sweep.penalty,
            "rounds": sweep.rounds,
            "seeds": list(sweep.seeds),
            "hyperparameter": sweep.hyperparameter,
            "values": list(sweep.scores),
            "scores": list(sweep.scores.values()),
            "trainings": [len(sweep.by_seed[value]) for value in sweep.scores],
            "used": sweep.used,
            "unlike_today": sweep.unlike_today,
        }
        for sweep in sweeps
    ]


def columns(sweeps: Sequence[Sweep]) -> list[str]:
    """Algorithms in the order of tables, each with what was varied."""
    there = {(registered().index(sweep.algorithm), sweep.column) for sweep in sweeps}
    return [column for _, column in sorted(there)]


def grids(sweeps: Sequence[Sweep]) -> dict[str, dict[str, dict[str, Sweep]]]:
    """By task, quality and column."""
    found: dict[str, dict[str, dict[str, Sweep]]] = {}
    for sweep in sweeps:
        task, row = sweep.place
        found.setdefault(task, {}).setdefault(row, {})[sweep.column] = sweep
    return found


def lines(sweep: Sweep | None) -> list[tuple[str, bool]]:
    """What stands in a cell: a text for every value, and whether that is in use."""
    if sweep is None:
        return [("–", False)]
    mark, found = "°" if sweep.unlike_today else "", []
    for value, score in sweep.scores.items():
        count = len(sweep.by_seed[value])
        fewer = "" if count == len(sweep.seeds) else f" ({count})"  # others of its trainings failed
        found.append((f"{text_of(value)}: {score:z.1f}{mark}{fewer}", value == sweep.used))
    return [*found, (f"({len(sweep.seeds)})", False)]


def markdown(sweeps: Sequence[Sweep]) -> str:
    names, parts = columns(sweeps), []
    for task, rows in grids(sweeps).items():
        table = [markdown_row([task, *names]), markdown_row(["---", *["---:"] * len(names)])]
        for row, cells in rows.items():
            texts = [
                "<br>".join(f"**{text}**" if used else text for text, used in lines(cells.get(n)))
                for n in names
            ]
            table.append(markdown_row([row, *texts]))
        parts.append("\n".join(table))
    return "\n\n".join([*parts, NOTE]) + "\n"


def show(sweeps: Sequence[Sweep]) -> None:
    """In the terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    console = Console()
    names = columns(sweeps)
    for task, rows in grids(sweeps).items():
        table = Table(task, box=None, padding=(0, 1, 0, 0), header_style="underline")
        for name in names:
            table.add_column(name, justify="right")
        for row, cells in rows.items():
            texts = [
                Text("\n").join(
                    Text(text + ("*" if used else " "), "bold" if used else "")
                    for text, used in lines(cells.get(name))
                )
                for name in names
            ]
            table.add_row(escape(row), *texts)
        console.print(table)
        console.print()
    console.print(NOTE, highlight=False, markup=False)
