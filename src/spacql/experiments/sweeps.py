"""Sweeps of alpha, beside the alpha that every algorithm is run with."""

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
    "Scores by alpha, means over seeds that no table reports (their number). Marked: the alpha in "
    "use. °: trainings that were shorter, or had other settings than today's."
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
    by_seed: Mapping[float, Sequence[float]]  # alpha to the scores of seeds that have one
    scores: Mapping[float, float]  # alpha to mean score, of the trainings that did not fail

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Sweep":
        """From what `spacql.records` has read."""
        penalty = record["config"].get("penalty", "")
        tried = sorted(record["alphas"], key=lambda entry: entry["alpha"])
        return cls(
            algorithm=record["algorithm"],
            dataset=record["data"],
            rounds=record["rounds"],
            seeds=tuple(record["seeds"]),
            penalty=penalty,
            config=record["config"],
            by_seed={entry["alpha"]: entry["scores"] for entry in tried},
            scores={e["alpha"]: e["mean"] for e in tried if e["mean"] is not None},
        )

    @property
    def place(self) -> tuple[str, str]:
        """Table and row: the task, and the quality with the penalty if it is not the usual one."""
        task, _, quality = self.dataset.partition("-")
        return task, quality + (", policy penalty" if self.penalty == "policy" else "")

    @property
    def used(self) -> float:
        """The alpha that a run gets today."""
        config = configure(self.algorithm, self.dataset, {"penalty": self.penalty})
        return float(asdict(config)["alpha"])

    @property
    def unlike_today(self) -> bool:
        config = {**self.config, "rounds": self.rounds}
        unlike = unlike_settings(self.algorithm, self.dataset, config)
        return not unlike.keys() <= {"alpha", "penalty"}


def stored(store: Store, only: Sequence[str] = ()) -> list[Sweep]:
    """Those whose dataset and algorithm contain all words of `only`, in the order of tables."""
    paths = sorted((store.results / "tuning").glob("[!.]*.json"))
    found = [_read(path) for path in paths]
    order = [*TASKS, *QUALITIES]

    def rank(sweep: Sweep) -> tuple[Any, ...]:
        names = sweep.dataset.split("-", 1)
        known = [order.index(name) if name in order else len(order) for name in names]
        return known, sweep.dataset, sweep.penalty, registered().index(sweep.algorithm)

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
            "alphas": list(sweep.scores),
            "scores": list(sweep.scores.values()),
            "used": sweep.used,
            "unlike_today": sweep.unlike_today,
        }
        for sweep in sweeps
    ]


def columns(sweeps: Sequence[Sweep]) -> list[str]:
    there = {sweep.algorithm for sweep in sweeps}
    return [name for name in registered() if name in there]


def grids(sweeps: Sequence[Sweep]) -> dict[str, dict[str, dict[str, Sweep]]]:
    """By task, quality and algorithm."""
    found: dict[str, dict[str, dict[str, Sweep]]] = {}
    for sweep in sweeps:
        task, row = sweep.place
        found.setdefault(task, {}).setdefault(row, {})[sweep.algorithm] = sweep
    return found


def lines(sweep: Sweep | None) -> list[tuple[str, bool]]:
    """What stands in a cell: a text for every alpha, and whether that is in use."""
    if sweep is None:
        return [("–", False)]
    mark = "°" if sweep.unlike_today else ""
    return [
        *((f"{a:g}: {score:z.1f}{mark}", a == sweep.used) for a, score in sweep.scores.items()),
        (f"({len(sweep.seeds)})", False),
    ]


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
