"""CSV logs: one file, or a folder of files that are read one after the other."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.arrays import free_memory, refuse_larger
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.tables import Brought, from_files
from spacql.errors import DataError
from spacql.files import regular_file

HELD = 10  # bytes in memory for one of the file: a cell of some characters as an object


def import_csv(
    source: Path | str, bounds: OutOfBounds = "refuse", mapping: Path | None = None
) -> Dataset:
    """Read a table; see `spacql.data.formats.tables` for its columns."""
    return from_files(source, "csv", _read, bounds, mapping)


def _read(file: Path) -> Brought:
    refuse_larger(file, HELD * regular_file(file), free_memory(), "memory")
    try:
        with open(file, newline="", encoding="utf-8-sig") as stream:
            sample = stream.read(65536)
            stream.seek(0)
            separator = max(",;\t", key=sample.partition("\n")[0].count)
            header, rows = _rows(file, csv.reader(stream, delimiter=separator, strict=True))
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{file} cannot be read as CSV: {error}.") from error
    # Objects: an array of text gives every cell the room of the longest.
    return Brought({name: np.array([row[k].strip() for row in rows], object)
                    for k, name in enumerate(header)})  # fmt: skip


def _rows(file: Path, reader: Any) -> tuple[list[str], list[list[str]]]:
    """The header, and the rows below it that are not blank."""
    header = [name.strip() for name in next(reader, [])]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError(f"{file} has two columns {twice!r}.")
    rows = []
    for row in reader:
        if row and len(row) != len(header):
            raise DataError(
                f"{file}, line {reader.line_num}: {len(row)} cells, and the header has "
                f"{len(header)}."
            )
        if row:
            rows.append(row)
    if not rows:
        raise DataError(f"{file} holds no rows below its header.")
    return header, rows
