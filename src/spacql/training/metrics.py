"""Metrics: one JSON object per round in `metrics.jsonl`, and optional loggers beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spacql.errors import Diverged, InputError, MissingExtra

LOGGERS = ("tensorboard", "wandb")


class MetricsFile:
    """Appends rounds. Opened to continue after round r, it drops everything later than r.

    Holds no times of day or durations, so that equal runs have equal files.
    """

    def __init__(self, path: Path, after: int = 0):
        kept = [row for row in read_metrics(path) if row["round"] <= after] if after else []
        self._file = open(path, "w")  # noqa: SIM115
        self.write(kept)

    def write(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_metrics(path: Path | str) -> list[dict[str, Any]]:
    """All complete rows; a line that a kill cut short is left out."""
    path = Path(path)
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def rows_of(metrics: Mapping[str, Any], first_round: int) -> list[dict[str, Any]]:
    """Arrays with a leading axis of rounds, as one plain dictionary per round."""
    arrays = {name: np.asarray(values, np.float64) for name, values in metrics.items()}
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


class Loggers:
    """TensorBoard or Weights & Biases, fed the same rows."""

    def __init__(self, names: tuple[str, ...], folder: Path, config: Mapping[str, Any]):
        self._tensorboard: Any = None
        self._wandb: Any = None
        for name in names:
            if name not in LOGGERS:
                raise InputError(f"There is no logger {name!r}. Loggers: {', '.join(LOGGERS)}.")
        if "tensorboard" in names:
            try:
                from tensorboardX import SummaryWriter
            except ImportError as error:
                raise MissingExtra("The TensorBoard logger", "loggers") from error
            self._tensorboard = SummaryWriter(str(folder / "tensorboard"))
        if "wandb" in names:
            try:
                import wandb
            except ImportError as error:
                raise MissingExtra("The Weights & Biases logger", "loggers") from error
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
