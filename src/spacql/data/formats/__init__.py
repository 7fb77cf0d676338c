"""Other people's formats: `omar` (published `.npy` files), `vault` (Flashbax), `npz`."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from spacql.data.checks import OutOfBounds
    from spacql.data.dataset import Dataset

Format = Literal["omar", "vault", "npz"]


def read(format: Format, source: Path, bounds: "OutOfBounds" = "refuse") -> "Dataset":
    """Import a source of any of the formats."""
    module = import_module(f"spacql.data.formats.{format}")
    return getattr(module, f"import_{format}")(source, bounds)


def write(format: Format, dataset: "Dataset", out: Path) -> None:
    """Export a dataset to any of the formats."""
    module = import_module(f"spacql.data.formats.{format}")
    getattr(module, f"export_{format}")(dataset, out)
