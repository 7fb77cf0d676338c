"""Where named datasets are kept, so that each is made once."""

import os
from pathlib import Path

import platformdirs
from filelock import FileLock

from spacql.data import behaviours, collect
from spacql.data.dataset import Dataset
from spacql.data.storage import load_dataset
from spacql.errors import InputError, suggestion
from spacql.files import plain_disk_errors
from spacql.threads import cores


def folder() -> Path:
    """$SPACQL_CACHE, or `spacql` in the user's cache folder."""
    if place := os.environ.get("SPACQL_CACHE"):
        return Path(place)
    return platformdirs.user_cache_path("spacql")


def place(name: str, seed: int) -> Path:
    return folder() / f"edition-{collect.edition(name)}" / f"{name}-seed-{seed}"


def resolve(name_or_dir: str | Path, seed: int = 0) -> Dataset:
    """The dataset in a folder, or the named one, which is made if the cache lacks it.

    A run's seed k uses dataset k, as published; there are five, so that seed 5 uses dataset 0.
    Seeds from 100 on use the five datasets for development, 100 to 104.
    """
    if not isinstance(name_or_dir, str | Path):
        raise InputError(
            f"The data is a {type(name_or_dir).__name__}; expected a Dataset, a folder, or a name "
            "such as 'spread-random'."
        )
    return load_dataset(resolve_folder(name_or_dir, seed))


def resolve_folder(name_or_dir: str | Path, seed: int = 0, workers: int = 0) -> Path:
    """The same dataset's folder. `workers` processes make it, 0 one per core."""
    if is_folder(name_or_dir):
        return Path(name_or_dir)
    name = str(name_or_dir)
    seed = behaviours.dataset_seed(seed)
    path = place(name, seed)
    if not (path / "dataset.json").is_file():
        with plain_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Several processes of one machine want the same dataset: one makes it.
            with FileLock(path.with_name(f".{path.name}.lock")):
                if not (path / "dataset.json").is_file():
                    workers = workers or len(cores())
                    collect.make_dataset(name, path, seed=seed, workers=workers)
    return path


def is_folder(name_or_dir: str | Path) -> bool:
    """Whether it is a dataset folder. If not, it is the name of a dataset, or refused."""
    if (Path(name_or_dir) / "dataset.json").is_file():
        return True
    name = str(name_or_dir)
    if name not in collect.NAMES:
        near = suggestion(name, (str(x.parent) for x in Path(name).parent.glob("*/dataset.json")))
        if os.sep in name or Path(name).exists():
            raise InputError(
                f"{name} is no dataset folder: it holds no dataset.json. "
                f"See `spacql data import --help` for logs in other formats.{near}"
            )
        try:
            collect.parse(name)
        except InputError as error:
            raise InputError(f"{error} There is no folder {name!r} here either.{near}") from error
    return False
