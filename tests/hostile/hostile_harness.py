"""Runs hostile cases at a door and counts what must never happen.

A door is a function `(rng, folder)` that spoils something valid inside `folder` and hands it to
spacql. It may return, or raise a `SpacqlError`. Anything else is counted: an untyped exception,
something executed, a file opened for writing, made or removed outside the folder.
"""

import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from spacql.errors import SpacqlError

Door = Callable[[np.random.Generator, Path], Any]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
RUNS = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen")
CHANGES = {  # audit events: where their paths and the folders' descriptors stand
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
}


class Watch:
    """An audit hook, which Python never takes out again; `folder` switches it on."""

    folder: str | None = None
    outside: list[str]
    executed: list[str]

    def __init__(self) -> None:
        self.outside, self.executed = [], []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                self._written(event, path, None)
        elif event in CHANGES:
            for path, folder in CHANGES[event]:
                self._written(event, arguments[path], None if folder is None else arguments[folder])
        elif event in RUNS or event == "pickle.find_class":
            self.executed.append(f"{event} {arguments!r:.200}")

    def _written(self, event: str, path: Any, folder: int | None) -> None:
        if isinstance(path, int):
            return
        path = os.fsdecode(path)
        if folder not in (None, -1):
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
        parent = os.path.realpath(os.path.dirname(os.path.abspath(path)))
        compiled = jax.config.jax_compilation_cache_dir or self.folder  # JAX's own, if it has one
        allowed = (self.folder, "/dev/null", "/proc/self", str(compiled))
        inside = f"{parent}/".startswith(f"{self.folder}/") or path.startswith(allowed)
        if not inside and "__pycache__" not in path:
            self.outside.append(f"{event} {path!r:.200}")


WATCH = Watch()


def canary() -> None:
    """What a hostile pickle calls."""
    WATCH.executed.append("canary")


@dataclass
class Tally:
    """What came of a door's cases."""

    door: str
    cases: int = 0
    refused: int = 0
    untyped: list[str] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def sound(self) -> bool:
        return not (self.untyped or self.executed or self.outside)

    def line(self) -> str:
        return (
            f"{self.door:<14}{self.cases:>7} cases {self.refused:>7} refused "
            f"{len(self.untyped):>4} untyped {len(self.executed):>4} executed "
            f"{len(self.outside):>4} outside   slowest {self.slowest:5.2f} s"
        )


def run_door(name: str, door: Door, cases: int, first: int = 0) -> Tally:
    """Case k of a door is determined by the door's name and k."""
    tally = Tally(name)
    here = os.getcwd()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of small files
    with tempfile.TemporaryDirectory(dir=memory) as root, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        deep = Path(os.path.realpath(root)) / "a" / "b" / "c"  # room to escape into
        deep.mkdir(parents=True)
        try:
            for number in range(first, first + cases):
                folder = deep / "case"
                folder.mkdir()
                _one(tally, door, number, folder)
                os.chdir(deep)
                shutil.rmtree(folder)
                # Compiled code does not pass the audit hook; what it left is seen here.
                left = [p for p in Path(root).rglob("*") if p not in (deep, *deep.parents)]
                for path in left:
                    tally.outside.append(f"case {number}: left {path}")
                    path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
        finally:
            os.chdir(here)
    return tally


def _one(tally: Tally, door: Door, number: int, folder: Path) -> None:
    rng = np.random.default_rng([zlib.crc32(tally.door.encode()), number])
    os.chdir(folder)
    WATCH.outside.clear()
    WATCH.executed.clear()
    began = time.monotonic()
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    WATCH.folder = str(folder)
    try:
        door(rng, folder)
    except SpacqlError as error:
        tally.refused += 1
        if not str(error).strip():
            tally.untyped.append(f"case {number}: an error without a sentence")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error!s:.150}"
        tally.untyped.append(f"case {number}: {what} ({where.filename}:{where.lineno})")
    finally:
        WATCH.folder = None
        sys.dont_write_bytecode = bytecode
    tally.cases += 1
    tally.slowest = max(tally.slowest, time.monotonic() - began)
    tally.executed += [f"case {number}: {what}" for what in WATCH.executed]
    tally.outside += [f"case {number}: {what}" for what in WATCH.outside]
