"""Other people's formats: `omar` (published `.npy` files), `vault` (Flashbax), `npz`, tables in
`csv` and `parquet`, and `minari`."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spacql.errors import InputError

if TYPE_CHECKING:
    from spacql.data.checks import OutOfBounds
    from spacql.data.dataset import Dataset

Written = Literal["omar", "vault", "npz"]
Format = Literal["omar", "vault", "npz", "csv", "parquet", "minari"]
TABLES = ("csv", "parquet")


def read(
    format: Format, source: Path, bounds: "OutOfBounds" = "refuse", mapping: Path | None = None
) -> "Dataset":
    """Import a source of any of the formats. `mapping` names the columns of a table."""
    if mapping is not None and format not in TABLES:
        raise InputError(f"A mapping names the columns of {' and '.join(TABLES)}, not of {format}.")
    module = import_module(f"spacql.data.formats.{format}")
    more = (mapping,) if format in TABLES else ()
    return getattr(module, f"import_{format}")(source, bounds, *more)


def write(format: Written, dataset: "Dataset", out: Path) -> None:
    """Export a dataset to any of the formats."""
    module = import_module(f"spacql.data.formats.{format}")
    getattr(module, f"export_{format}")(dataset, out)
