"""Run folders and datasets as bytes: to other machines and back, and in a storage that they share.

A run folder goes with its newest checkpoint, so that it can be continued wherever it arrives. Names
are those that a run folder has and no others, whatever the sender says.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from spacql.errors import InputError
from spacql.files import decoding, new_file, plain_disk_errors

RUN_FILES = re.compile(
    r"(run|result|diverged|seconds)\.json|metrics\.jsonl|(policy|prey)\.(json|safetensors)"
    r"|checkpoints/\d{8,12}\.checkpoint|tensorboard/events[\w.-]{1,200}"
)
LAST = ("diverged.json", "result.json")  # a run counts as ended when one of them is there
DATA_FILES = re.compile(r"dataset\.json|[a-z_]{1,40}\.npy|prey\.(json|safetensors)")
MAGIC = b"spacql run 1\n"
DIGEST = 32  # bytes
KEPT = 2  # states in a storage: one that a dying node left half-written has one before it

Files = Mapping[str, bytes]


def newest_checkpoint(folder: Path) -> Path | None:
    return max((folder / "checkpoints").glob("[0-9]*.checkpoint"), default=None)


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a run folder, of its checkpoints the newest; none if there is no folder."""
    newest = newest_checkpoint(folder)
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if RUN_FILES.fullmatch(name) and (path.suffix != ".checkpoint" or path == newest):
            with decoding(path):
                found[name] = path.read_bytes()
    return found


def unpack(files: Files, folder: Path) -> None:
    """Write them into a run folder, over what was there; what says that the run ended, last."""
    for name in sorted(files, key=lambda name: name in LAST):
        if not RUN_FILES.fullmatch(name):
            raise InputError(f"A run folder has no file {name[:100]!r}. It was not written.")
        with new_file(folder / name) as temporary:
            temporary.write_bytes(files[name])
    if "run.json" in files:
        for name in set(LAST) - set(files):
            (folder / name).unlink(missing_ok=True)


def read_dataset(folder: Path) -> dict[str, Any]:
    """The files of a dataset folder, as arrays of bytes, which Ray need not copy."""
    import numpy as np

    with decoding(folder):
        paths = [path for path in sorted(folder.iterdir()) if DATA_FILES.fullmatch(path.name)]
        return {path.name: np.fromfile(path, np.uint8) for path in paths}


def write_dataset(files: Mapping[str, Any], folder: Path) -> None:
    """The reverse, into an existing folder; then every byte is compared with its checksum."""
    from spacql.data.storage import load_dataset

    for name, content in files.items():
        if not DATA_FILES.fullmatch(name):
            raise InputError(f"A dataset has no file {name[:100]!r}. It was not written.")
        with plain_disk_errors(folder / name):
            (folder / name).write_bytes(content)
    load_dataset(folder, verify=True)


class Storage:
    """The newest states of one run in a place that every node can reach: a folder or a URI."""

    def __init__(self, uri: str, place: str = ""):
        from fsspec.core import url_to_fs

        self.uri = uri
        try:
            self._files, root = url_to_fs(uri)
        except (ImportError, ValueError) as error:
            raise InputError(f"{uri} cannot be used as a storage: {error}") from error
        self._folder = f"{root.rstrip('/')}/{place}" if place else root

    def check(self) -> None:
        """Refuse now what could not be written later."""
        with self._plain_errors():
            self._files.makedirs(self._folder, exist_ok=True)
            self._files.pipe_file(f"{self._folder}/.spacql", b"")

    def save(self, folder: Path) -> None:
        """Keep a run folder as it is now."""
        newest = newest_checkpoint(folder)
        body = msgspec.msgpack.encode(pack(folder))
        with self._plain_errors():
            self._files.makedirs(self._folder, exist_ok=True)
            name = f"{self._folder}/{newest.stem if newest else '00000000'}.run"
            self._files.pipe_file(name, MAGIC + hashlib.sha256(body).digest() + body)
            for old in self._states()[KEPT:]:
                self._files.rm_file(old)

    def load(self, folder: Path) -> None:
        """Fill a run folder with the newest whole state, if that is newer than what is there."""
        newest = newest_checkpoint(folder)
        reached = int(newest.stem) if newest else -1
        with self._plain_errors():
            states = self._states()
        for name in states:
            if int(Path(name).stem) <= reached:
                return
            with self._plain_errors():
                content = self._files.cat_file(name)
            digest, body = content[len(MAGIC) :][:DIGEST], content[len(MAGIC) + DIGEST :]
            if content.startswith(MAGIC) and hashlib.sha256(body).digest() == digest:
                with decoding(name):
                    files = msgspec.msgpack.decode(body, type=dict[str, bytes])
                unpack(files, folder)
                return

    def clear(self) -> None:
        """Remove what is kept of a run that has ended."""
        with suppress(Exception):  # it costs space, and nothing else
            self._files.rm(self._folder, recursive=True)

    def _states(self) -> list[str]:
        """The newest first."""
        self._files.invalidate_cache()
        if not self._files.isdir(self._folder):
            return []
        names = self._files.ls(self._folder, detail=False)
        return sorted((n for n in names if re.search(r"/\d{8,12}\.run$", n)), reverse=True)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of whatever protocol
            reason = (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(".")
            raise InputError(f"The storage {self.uri} cannot be used: {reason}.") from error
