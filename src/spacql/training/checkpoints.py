"""Training state on disk: one file a checkpoint, the newest few kept, each with its checksum.

A file is `MAGIC`, the SHA-256 of what follows, and the arrays as safetensors. It appears by a
rename, so a half-written one is never seen; one that was damaged later is set aside, and the one
before it is used, from which the training comes to the same bits.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from safetensors.numpy import load, save

from spacql.errors import SpacqlError, TrainingError
from spacql.files import decoding, new_file, plain_disk_errors, regular_file

KEPT = 3
MAGIC = b"spacql checkpoint 1\n"
DIGEST = 32  # bytes


def say_on_stderr(sentence: str) -> None:
    print(f"spacql: {sentence}", file=sys.stderr)


class Checkpoints:
    """The checkpoints in a folder, numbered by the round they were taken after."""

    def __init__(self, folder: Path, say: Callable[[str], None] = say_on_stderr):
        self.folder, self._say = folder, say
        with plain_disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._sound: dict[int, bytes] = {}
            if any(path.is_dir() and path.name.isdigit() for path in folder.iterdir()):
                raise TrainingError(
                    f"{folder} holds checkpoints of an older version, which cannot be continued. "
                    "Begin anew in another folder."
                )

    def rounds(self) -> list[int]:
        """Of all checkpoints, whole or not, the newest first."""
        names = (re.fullmatch(r"(\d{8,})\.checkpoint", p.name) for p in self.folder.iterdir())
        return sorted((int(name[1]) for name in names if name), reverse=True)

    def latest(self, at_most: int | None = None) -> int | None:
        """The newest round whose checkpoint is whole. Damaged ones are set aside, and said."""
        damaged = []
        for round_ in self.rounds():
            if at_most is not None and round_ > at_most:
                continue
            try:
                self._sound = {round_: self._body(round_)}
                return round_
            except SpacqlError as error:
                path = self._path(round_)
                with plain_disk_errors(path):
                    path.replace(path.with_name(f"damaged-{path.name}"))
                self._say(f"{error} It was set aside as damaged-{path.name}.")
                damaged.append(round_)
        if damaged:
            raise TrainingError(
                f"No whole checkpoint is left in {self.folder}. The same command begins anew, "
                "from the first round."
            )
        return None

    def save(self, round_: int, state: Any) -> None:
        arrays = jax.tree.leaves(eqx.filter(state, eqx.is_array))
        body = save({str(k): np.asarray(x, order="C") for k, x in enumerate(arrays)})
        with new_file(self._path(round_)) as temporary, open(temporary, "wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
            file.flush()
            os.fsync(file.fileno())
        for old in [r for r in self.rounds() if r <= round_][KEPT:]:
            self._path(old).unlink(missing_ok=True)

    def restore(self, round_: int, like: Any) -> Any:
        """The state after a round; `like` is a state of the same structure."""
        body = self._sound.pop(round_, None) or self._body(round_)
        arrays, rest = eqx.partition(like, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        with decoding(self._path(round_), TrainingError):
            found = load(body)
        expected = {str(k): (tuple(x.shape), np.dtype(x.dtype)) for k, x in enumerate(leaves)}
        if {name: (x.shape, x.dtype) for name, x in found.items()} != expected:
            raise TrainingError(
                f"{self._path(round_)} is of another configuration or version. "
                "Begin anew in another folder."
            )
        placed = [jax.numpy.asarray(found[str(k)]) for k in range(len(leaves))]
        return eqx.combine(jax.tree.unflatten(structure, placed), rest)

    def close(self) -> None:
        self._sound.clear()

    def _path(self, round_: int) -> Path:
        return self.folder / f"{round_:08d}.checkpoint"

    def _body(self, round_: int) -> bytes:
        path = self._path(round_)
        regular_file(path, TrainingError)
        with decoding(path, TrainingError):
            content = path.read_bytes()
        digest, body = content[len(MAGIC) :][:DIGEST], content[len(MAGIC) + DIGEST :]
        if not content.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
            raise TrainingError(f"{path} is damaged: its checksum does not fit.")
        return body
