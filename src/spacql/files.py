"""The one door for files: JSON in as typed records, and writing that leaves nothing half-made.

No file is trusted. What cannot be read is an `InputError` that names the file, and the field if
there is one; a name that a file holds becomes one component of a path by `safe_name`.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from spacql.errors import InputError, SpacqlError

T = TypeVar("T")
LARGEST_JSON = 1 << 28  # bytes; no file of ours comes near it
LONGEST_NAME = 100
# What is being written now: whoever ends the process at once removes these first.
unfinished: set[Path] = set()


# Reading


@contextmanager
def decoding(what: Path | str, error: type[SpacqlError] = InputError) -> Iterator[None]:
    """For a decoder that is fed foreign bytes: whatever it raises becomes one sentence.

    Decoders fail in many ways (ValueError, OverflowError, MemoryError, zlib.error, ...), and
    none of them says which file it was.
    """
    try:
        yield
    except SpacqlError:
        raise
    except FileNotFoundError as problem:
        raise error(f"There is no file {what}.") from problem
    except OSError as problem:
        raise error(f"{what} cannot be read: {problem.strerror or problem}.") from problem
    except Exception as problem:
        reason = (str(problem) or type(problem).__name__).splitlines()[0][:200]
        raise error(f"{what} cannot be read: {reason.rstrip('.')}.") from problem


def regular_file(path: Path | str, error: type[SpacqlError] = InputError) -> int:
    """The size of a file that is one: a pipe or a device could be read for ever."""
    with decoding(path, error):
        found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
        raise error(f"{path} is {what}; a file is expected.")
    return found.st_size


def read_json(path: Path | str, error: type[SpacqlError] = InputError) -> Any:
    """What a JSON file holds."""
    if regular_file(path, error) > LARGEST_JSON:
        raise error(f"{path} is no file of spacql: it has more than {LARGEST_JSON:,} bytes.")
    with decoding(path, error):
        text = Path(path).read_bytes()
    return decode_json(text, path, error)


def decode_json(text: bytes | str, where: Path | str, error: type[SpacqlError] = InputError) -> Any:
    """What JSON text holds that came from `where`. Numbers are finite and of bounded length."""
    try:
        return msgspec.json.decode(text)
    except Exception as problem:  # RecursionError and UnicodeError among them
        raise error(f"{where} is not valid JSON: {str(problem).rstrip('.')}.") from problem


def read_record(path: Path | str, kind: type[T], error: type[SpacqlError] = InputError) -> T:
    """A JSON file as a record: a dataclass or msgspec Struct, every field of the right type."""
    return as_record(read_json(path, error), kind, path, error)


def as_record(
    value: Any, kind: type[T], where: Path | str, error: type[SpacqlError] = InputError
) -> T:
    """Plain JSON values as a record, or a sentence that names the field that is wrong."""
    try:
        return msgspec.convert(value, kind)
    except Exception as problem:
        said, _, place = str(problem).partition(" - at `$")
        field = f", field {place.strip('`').lstrip('.')}" if place else ""
        raise error(f"{where}{field}: {said.rstrip('.')}.") from problem


def of_format(value: Any, format: int, where: Path | str, error: type[SpacqlError]) -> Any:
    """The mapping that a versioned file holds, if this version reads its format."""
    if not isinstance(value, dict):
        raise error(f"{where}: expected an object, found {type(value).__name__}.")
    if (found := value.get("format")) != format or isinstance(found, bool):
        raise error(f"{where} has format {str(found)[:20]}; this version reads {format}.")
    return value


def as_json(value: Any, where: Path | str, error: type[SpacqlError] = InputError) -> Any:
    """The value as plain JSON values: tuples as lists, NumPy's numbers and arrays as numbers and
    lists. Refused is what JSON cannot hold, NaN and infinity among it."""
    try:
        text = json.dumps(value, allow_nan=False, default=_plain)
    except Exception as problem:
        raise error(f"{where} cannot be kept as JSON: {problem}.") from problem
    return decode_json(text, where, error)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no number, text, list or mapping")


def safe_name(name: str) -> str:
    """One component of a path, from a name that a file or a user brought.

    Letters, digits and `._+=-` stay; it never begins with a dot and is never empty or long.
    """
    kept = re.sub(r"[^A-Za-z0-9._+=-]+", "-", name).strip("-").lstrip(".")
    if len(kept) > LONGEST_NAME:
        kept = f"{kept[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return kept or "unnamed"


def sha256(path: Path | str) -> str:
    regular_file(path)
    with decoding(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Writing


@contextmanager
def plain_disk_errors(target: Path | str, kept: str = "Nothing was written.") -> Iterator[None]:
    """A full disk, a folder without permission: one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {target}: {reason}. {kept}") from error
    except ValueError as error:  # a name with a zero byte
        if isinstance(error, SpacqlError):
            raise
        if "null byte" in str(error):
            raise InputError(f"Cannot write {str(target)!r}: {error}. {kept}") from error
        raise


@contextmanager
def new_file(path: Path | str) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it when the block ends well."""
    path = Path(path)
    with plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(path)
        temporary = _temporary(path)
        # O_EXCL: what somebody planted at this name is not written through.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        unfinished.add(temporary)
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
            unfinished.discard(temporary)


@contextmanager
def new_folder(path: Path | str) -> Iterator[Path]:
    """A temporary folder beside `path`, renamed to it when the block ends well.

    Leftovers of killed attempts at the same path, which no process holds any more, are removed.
    """
    path = Path(path)
    with plain_disk_errors(path):
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise InputError(f"{path} exists already. Choose another place or remove it first.")
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(path)
        temporary = _temporary(path)
        temporary.mkdir()
        unfinished.add(temporary)
        try:
            yield temporary
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            unfinished.discard(temporary)


def _temporary(path: Path) -> Path:
    """`.NAME.tmp-PID-RANDOM` with the same suffix; a long name is cut, for file systems."""
    if path.name in ("", ".."):
        raise InputError(f"'{path}' is no name for something new. Choose another place.")
    return path.with_name(
        f".{path.stem[:LONGEST_NAME]}.tmp-{os.getpid()}-{secrets.token_hex(4)}{path.suffix}"
    )


def _clear_leftovers(path: Path) -> None:
    pattern = rf"\.{re.escape(path.stem[:LONGEST_NAME])}\.tmp-(\d{{1,9}})-[0-9a-f]+"
    for leftover in path.parent.iterdir():
        found = re.fullmatch(pattern + re.escape(path.suffix), leftover.name)
        if found and not _alive(int(found[1])):
            remove(leftover)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, as far as it goes."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write_json(path: Path | str, value: Any) -> None:
    with new_file(path) as temporary:
        temporary.write_text(json.dumps(as_json(value, path), indent=1) + "\n")
