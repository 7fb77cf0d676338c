"""Metrics: one JSON object per round in `metrics.jsonl`, and optional loggers beside it."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from spacql.errors import Diverged, InputError, MissingExtra
from spacql.files import decoding, plain_disk_errors, regular_file

LOGGERS = {  # their names, and the package of each
    "tensorboard": ("TensorBoard", "tensorboardX"),
    "wandb": ("Weights & Biases", "wandb"),
}


class MetricsFile:
    """Appends rounds. Opened to continue after round r, it drops everything later than r.

    Holds no times of day or durations, so that equal runs have equal files.
    """

    def __init__(self, path: Path, after: int = 0):
        self.path = path
        end = sum(len(line) for line, _ in _whole_rows(path)[:after])
        with plain_disk_errors(path):
            self._file = open(path, "ab")  # noqa: SIM115
            self._file.truncate(end)  # in place: a kill must not lose what was there before

    def write(self, rows: list[dict[str, Any]]) -> None:
        with plain_disk_errors(self.path, "The last checkpoint is kept, and the run can go on."):
            for row in rows:
                self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()

    def close(self) -> None:
        with suppress(OSError):  # what could not be written has been said
            self._file.close()


Row = dict[str, int | float | list[float] | None]


def _whole_rows(path: Path | str) -> list[tuple[bytes, dict[str, Any]]]:
    """The lines up to the first that is cut or damaged, and what they hold."""
    if not Path(path).exists():
        return []
    regular_file(path)
    rows: list[tuple[bytes, dict[str, Any]]] = []
    with decoding(path), open(path, "rb") as file:
        for line in file:
            try:
                row = msgspec.json.decode(line, type=Row)
            except (msgspec.MsgspecError, RecursionError):
                break
            number, before = row.get("round"), rows[-1][1]["round"] if rows else 0
            if not line.endswith(b"\n") or not isinstance(number, int) or number <= before:
                break
            rows.append((line, row))
    return rows


def read_metrics(path: Path | str) -> list[dict[str, Any]]:
    """The rounds as far as they are whole; a line that a kill cut short is left out."""
    return [row for _, row in _whole_rows(path)]


def whole_rounds(path: Path | str) -> int:
    """How many rounds there are, from the first, without one that is missing."""
    rows = _whole_rows(path)
    return next((k for k, (_, row) in enumerate(rows) if row["round"] != k + 1), len(rows))


def rows_of(metrics: Mapping[str, Any], first_round: int) -> list[dict[str, Any]]:
    """Arrays with a leading axis of rounds, as one plain dictionary per round."""
    arrays = {name: np.asarray(values, np.float64) for name, values in metrics.items()}
    if not arrays:
        raise InputError("An algorithm's update must return at least one metric, such as a loss.")
    for name, values in arrays.items():
        if values.ndim not in (1, 2):
            raise InputError(f"The metric {name!r} has the shape {values.shape[1:]}; a metric is a "
                             "number, or a row of numbers.")  # fmt: skip
    count = len(next(iter(arrays.values())))
    return [
        {"round": first_round + k} | {name: x[k].tolist() for name, x in sorted(arrays.items())}
        for k in range(count)
    ]


def refuse_non_finite(rows: list[dict[str, Any]], checkpoint: int | None) -> None:
    """Stop a run whose numbers have broken down."""
    kept = f"The checkpoint of round {checkpoint} is kept" if checkpoint else "No checkpoint yet"
    for row in rows:
        broken = [name for name, value in row.items() if not np.isfinite(value).all()]
        if broken:
            raise Diverged(
                f"Not finite at round {row['round']}: {', '.join(broken)}. {kept}. A smaller "
                "learning rate, a larger alpha or the log-sum-exp penalty usually helps."
            )


def check_loggers(names: Sequence[str]) -> None:
    """Refuse what there is not, or not on this machine, before anything is written."""
    for name in names:
        if name not in LOGGERS:
            raise InputError(f"There is no logger {name!r}. Loggers: {', '.join(LOGGERS)}.")
        title, package = LOGGERS[name]
        try:
            import_module(package)
        except ImportError as error:
            raise MissingExtra(f"The {title} logger", "loggers") from error


class Loggers:
    """TensorBoard or Weights & Biases, fed the same rows."""

    def __init__(self, names: tuple[str, ...], folder: Path, config: Mapping[str, Any]):
        self._tensorboard: Any = None
        self._wandb: Any = None
        check_loggers(names)
        if "tensorboard" in names:
            from tensorboardX import SummaryWriter

            self._tensorboard = SummaryWriter(str(folder / "tensorboard"))
        if "wandb" in names:
            import wandb

            self._wandb = wandb.init(project="spacql", dir=str(folder), config=dict(config))

    def write(self, rows: list[dict[str, Any]]) -> None:
        for row in rows if self._tensorboard or self._wandb else ():
            flat = dict(_flat(row))
            if self._tensorboard:
                for name, value in flat.items():
                    self._tensorboard.add_scalar(name, value, row["round"])
            if self._wandb:
                self._wandb.log(flat, step=row["round"])

    def close(self) -> None:
        if self._tensorboard:
            self._tensorboard.close()
        if self._wandb:
            self._wandb.finish()


def _flat(row: Mapping[str, Any]) -> Any:
    for name, value in row.items():
        if isinstance(value, list):
            yield from ((f"{name}_{k + 1}", v) for k, v in enumerate(value))
        elif value is not None:
            yield name, value
