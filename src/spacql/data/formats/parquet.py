"""Parquet logs, by pyarrow: one file, or a folder of them."""

from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.tables import from_table
from spacql.errors import DataError, InputError, MissingExtra
from spacql.files import read_record


def import_parquet(
    source: Path | str, bounds: OutOfBounds = "refuse", mapping: Path | None = None
) -> Dataset:
    """Read a table; see `spacql.data.formats.tables` for its columns."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("Reading Parquet", "parquet") from error
    source = Path(source)
    if not source.exists():
        raise InputError(f"There is no {source}.")
    try:
        table = parquet.read_table(source)
        columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    except Exception as error:  # whatever pyarrow makes of a file that is none
        raise DataError(f"{source} cannot be read as Parquet: {error}.") from error
    plain = {name: _plain(values) for name, values in columns.items()}
    brought = read_record(mapping, dict[str, Any]) if mapping else {}
    return from_table(plain, brought, source.stem, bounds)


def _plain(values: np.ndarray) -> np.ndarray:
    """Text as text. Lists and bytes become text, too, which is refused when it is used."""
    return np.array([str(value) for value in values]) if values.dtype.kind == "O" else values
