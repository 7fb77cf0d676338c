"""Parquet logs, by pyarrow: one file, or a folder of them."""

from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.arrays import free_memory, refuse_larger
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.cells import joined
from spacql.data.formats.tables import Brought, from_files
from spacql.errors import DataError, MissingExtra
from spacql.files import regular_file

ROWS = 65_536  # that are read at a time


def import_parquet(
    source: Path | str, bounds: OutOfBounds = "refuse", mapping: Path | None = None
) -> Dataset:
    """Read a table; see `spacql.data.formats.tables` for its columns."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtra("Reading Parquet", "parquet") from error
    return from_files(source, "parquet", _read, bounds, mapping)


def _read(file: Path) -> Brought:
    """The columns of numbers, times and text. Others, such as lists, are named alone."""
    from pyarrow import parquet, types

    regular_file(file)
    free = free_memory()
    try:
        opened = parquet.ParquetFile(file)
        schema, about = opened.schema_arrow, opened.metadata
        words = [f.name for f in schema if types.is_string(f.type) or types.is_large_string(f.type)]
        flat = (types.is_primitive, types.is_dictionary, types.is_decimal, types.is_null)
        names = [f.name for f in schema if f.name in words or any(kind(f.type) for kind in flat)]
        if len(set(schema.names)) < len(schema.names):
            raise DataError(f"{file} has two columns of one name.")
        stored = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        refuse_larger(file, stored + 8 * about.num_rows * len(schema.names), free, "memory")
        # Text that repeats is kept once: a small file may repeat much of it.
        opened = parquet.ParquetFile(file, read_dictionary=words)
        parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
        held = 0
        for batch in opened.iter_batches(ROWS, columns=names):
            held += batch.nbytes
            refuse_larger(file, held, free, "memory")
            for name in names:
                parts[name].append(_cells(batch.column(name)))
    except DataError:
        raise
    except Exception as error:  # whatever pyarrow makes of a file that is none
        raise DataError(f"{file} cannot be read as Parquet: {str(error)[:200]}.") from error
    found = {name: joined(pieces or [np.zeros(0)]) for name, pieces in parts.items()}
    return Brought(found, tuple(name for name in schema.names if name not in found))


def _cells(column: Any) -> np.ndarray:
    """Numbers with NaN for null; else objects, text as text."""
    from pyarrow import types

    if hasattr(column, "dictionary"):
        words = np.array([*map(str, column.dictionary.to_pylist()), "None"], object)
        return words[column.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
    if types.is_boolean(column.type):
        column = column.cast("float64")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "mM":  # times; an integer has no other place for null
        missing, values = np.isnat(values), values.astype(np.int64)
        return np.where(missing, np.nan, values) if missing.any() else values
    if values.dtype.kind in "fiu":
        return values
    return np.array(list(map(str, values)), object)
