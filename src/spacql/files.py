"""Writing so that a kill, a full disk or an error leaves nothing half-made."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacql.errors import InputError


@contextmanager
def _plain_disk_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {target}: {reason}. Nothing was written.") from error


@contextmanager
def new_file(path: Path | str) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it when the block ends well."""
    path = Path(path)
    with _plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent
        )
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path | str) -> Iterator[Path]:
    """A temporary folder beside `path`, renamed to it when the block ends well.

    Leftovers of killed attempts at the same path, which no process holds any more, are removed.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists already. Choose another place or remove it first.")
    with _plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for leftover in path.parent.glob(f".{path.name}.tmp-*"):
            if not _alive(int(leftover.name.rsplit("-", 1)[1])):
                shutil.rmtree(leftover, ignore_errors=True)
        temporary = path.parent / f".{path.name}.tmp-{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        try:
            yield temporary
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_json(path: Path | str, value: Any) -> None:
    with new_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1) + "\n")


def read_json(path: Path | str) -> Any:
    path = Path(path)
    try:
        return json.loads(path.read_text())
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid JSON: {error}.") from error


def sha256(path: Path | str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
