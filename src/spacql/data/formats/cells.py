"""The cells of a table, as CSV and Parquet bring them: numbers, flags, text, and empty ones.

A column is an array of numbers, in which NaN is an empty cell, or of text (objects: an array of
text proper gives every cell the room of the longest).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spacql.errors import DataError

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


def filled(name: str, values: np.ndarray) -> np.ndarray:
    """The same values, none of which is empty."""
    missing = empty(values)
    if missing.any():
        raise DataError(
            f"The column {name!r} is empty in {int(missing.sum()):,} rows that need it."
        )
    return values


def number(name: str, values: np.ndarray) -> np.ndarray:
    filled(name, values)
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError) as error:
        said = str(error)[:100]
        raise DataError(f"The column {name!r} holds what is no number: {said}.") from error


def numbers(table: Any, names: Sequence[str], rows: np.ndarray) -> np.ndarray:
    return np.stack([number(name, table[name][rows]) for name in names], axis=1)


def flags(name: str, values: np.ndarray) -> np.ndarray:
    """True and false; an empty cell is false."""
    words = text(values)
    meant = [FLAGS.get(word[:6].lower()) for word in words]
    if None in meant:
        word = words[meant.index(None)][:30]
        raise DataError(f"The column {name!r} holds {word!r}, which is neither true nor false.")
    return np.array(meant, bool)


def empty(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([value[:5].lower() in NOTHING for value in values], bool)
    return np.zeros(len(values), bool)
