"""Arguments are checked before anything is written or trained: a sentence, and nothing is left."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacql.errors import InputError
from spacql.spec import LARGEST

LONGEST = 255  # bytes of a file's name


def whole(name: str, value: Any, least: int = 1) -> None:
    """A whole number that can be used. None is for what was not given."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        raise InputError(
            f"{name} is {value!r:.40}; it must be a whole number from {least} to {LARGEST:,}."
        )


def seeds(values: Sequence[int]) -> None:
    """At least one seed, each once."""
    if not values:
        raise InputError("There must be at least one seed.")
    for seed in values:
        whole("A seed", seed, 0)
    if len(set(values)) < len(values):
        raise InputError(f"Every seed must be given once, not {' '.join(map(str, values))}.")


def place(path: Path | None) -> None:
    """Where something is going to be written: refuse it now if it cannot be, not afterwards."""
    if path is None:
        return
    try:
        if "\0" in str(path):
            raise InputError(f"{str(path)!r} cannot be written: no name holds a zero byte.")
        there = path.exists()
        if there and not path.is_dir():
            raise InputError(f"{path} is a file; a folder is expected. Choose another place.")
        if any(len(os.fsencode(part)) > LONGEST for part in path.parts):
            raise InputError(f"A name of more than {LONGEST} bytes cannot be written: {path}.")
        parent = path.absolute()
        while not parent.exists():
            parent = parent.parent
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} cannot be written: {error}.") from error
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"Cannot write in {parent}. Choose another place.")
