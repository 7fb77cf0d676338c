"""The cells of a table, as CSV and Parquet bring them: numbers, flags, text, and empty ones.

A column is an array of numbers, in which NaN is an empty cell, or of text (objects: an array of
text proper gives every cell the room of the longest).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spacql.errors import DataError

Where = Callable[[int], str]
NOTHING = ("", "nan", "none", "null")  # what an empty cell holds
FLAGS = {"1": True, "1.0": True, "true": True, "yes": True,
         "0": False, "0.0": False, "false": False, "no": False,
         **dict.fromkeys(NOTHING, False)}  # fmt: skip


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """One column from pieces, which may be numbers here and text there: then all become text."""
    if any(part.dtype.kind == "O" for part in parts):
        parts = [text(part) for part in parts]
    return np.concatenate(parts)


def text(values: np.ndarray) -> np.ndarray:
    """The cells as text; a whole number is the same whatever its type, so that names agree."""
    if values.dtype.kind == "O":
        return values
    return np.array([str(value).removesuffix(".0") for value in values.tolist()], object)


def data_row(row: int) -> str:
    """Where a cell is, before it is known which columns hold the episode and the step."""
    return f"data row {row + 1:,}"


def filled(name: str, values: np.ndarray, where: Where = data_row) -> np.ndarray:
    """The same values, none of which is empty. `where` says a row in words."""
    missing = empty(values)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        cell = values[first] if values.dtype.kind == "O" else ""
        what = f"holds {cell!r}, which counts as empty," if cell else "is empty"
        raise DataError(
            f"The column {name!r} {what} at {where(first)}. Fill in or drop such rows first."
        )
    return values


def number(name: str, values: np.ndarray, where: Where = data_row) -> np.ndarray:
    filled(name, values, where)
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError) as error:
        row = next((k for k, x in enumerate(values.tolist()) if not _is_number(x)), 0)
        raise DataError(
            f"The column {name!r} holds {str(values[row])[:30]!r} at {where(row)}, which is no "
            "number."
        ) from error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError):
        return False
    return True


def numbers(table: Any, names: Sequence[str], rows: np.ndarray, where: Where) -> np.ndarray:
    """Columns side by side, in the order of `rows`; `where` is told a row of the table."""

    def of_table(row: int) -> str:
        return where(int(rows[row]))

    return np.stack([number(name, table[name][rows], of_table) for name in names], axis=1)


def flags(name: str, values: np.ndarray, where: Where) -> np.ndarray:
    """True and false; an empty cell is false."""
    words = text(values)
    meant = [FLAGS.get(word[:6].lower()) for word in words]
    if None in meant:
        row = meant.index(None)
        raise DataError(
            f"The column {name!r} holds {words[row][:30]!r} at {where(row)}, which is neither true "
            "nor false."
        )
    return np.array(meant, bool)


def empty(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([value[:5].lower() in NOTHING for value in values], bool)
    return np.zeros(len(values), bool)
