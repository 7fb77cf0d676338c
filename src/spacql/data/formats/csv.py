"""CSV logs: one file, or a folder of files that are read one after the other."""

import csv
from pathlib import Path

import numpy as np

from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.tables import from_files
from spacql.errors import DataError
from spacql.files import regular_file


def import_csv(
    source: Path | str, bounds: OutOfBounds = "refuse", mapping: Path | None = None
) -> Dataset:
    """Read a table; see `spacql.data.formats.tables` for its columns."""
    return from_files(source, "csv", _read, bounds, mapping)


def _read(file: Path) -> dict[str, np.ndarray]:
    regular_file(file)
    try:
        with open(file, newline="", encoding="utf-8-sig") as stream:
            sample = stream.read(65536)
            stream.seek(0)
            separator = max(",;\t", key=sample.partition("\n")[0].count)
            rows = list(csv.reader(stream, delimiter=separator, strict=True))
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{file} cannot be read as CSV: {error}.") from error
    if len(rows) < 2:
        raise DataError(f"{file} holds no rows below its header.")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError(f"{file} has two columns {twice!r}.")
    body = [row for row in rows[1:] if row]
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise DataError(
                f"{file}, line {number}: {len(row)} cells, and the header has {len(header)}."
            )
    # Objects: an array of text gives every cell the room of the longest.
    return {
        name: np.array([row[k].strip() for row in body], object) for k, name in enumerate(header)
    }
