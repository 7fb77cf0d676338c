"""The one reader of NumPy's files and of zip archives, none of which is trusted.

What a header declares is held against the size of the file before anything is allocated; object
arrays, which NumPy would unpickle, do not pass; and whatever a decoder raises is a `DataError`.
"""

import math
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, NamedTuple

import numpy as np

from spacql.errors import DataError, NoRoom
from spacql.files import decoding, regular_file

NUMBERS = "fiub"  # kinds of dtype: real numbers and booleans
RATIO = 1032  # the most that deflate can compress
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Header(NamedTuple):
    """What the beginning of an `.npy` file declares."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(file: Path | str, kinds: str = NUMBERS) -> np.ndarray:
    """An `.npy` file, mapped into memory: nothing is read before it is used."""
    size = regular_file(file, DataError)
    with decoding(file, DataError), open(file, "rb") as stream:
        header = _header(stream, file, kinds)
        begin = stream.tell()
        if header.bytes != size - begin:
            raise DataError(
                f"{file} is damaged: its header promises {header.bytes:,} bytes, and "
                f"{size - begin:,} follow."
            )
        if header.bytes == 0:
            return np.zeros(header.shape, header.dtype)
        mapped = np.memmap(
            file, header.dtype, mode="r", offset=begin, shape=header.shape, order=header.order
        )
        return np.asarray(mapped)  # a plain view: memmap's own indexing is slower


def read_npz(file: Path | str, kinds: str = NUMBERS + "U") -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file, by name. They are in memory, which must suffice."""
    arrays = {}
    # Names are of arrays, and an agent may be called 'room:kitchen': nothing is unpacked to a file.
    with open_zip(file, unpacked=False) as archive:
        refuse_larger(file, sum(m.file_size for m in archive.infolist()), free_memory(), "memory")
        for member in archive.infolist():
            name = member.filename
            if not name.endswith(".npy"):
                raise DataError(f"{file} is no .npz file: it holds {name!r}.")
            with archive.open(member) as stream:
                header = _header(stream, f"{file}: {name}", kinds)  # type: ignore[arg-type]
                left = member.file_size - stream.tell()
                if header.bytes != left:
                    raise DataError(f"{file}: {name} is damaged: its header promises "
                                    f"{header.bytes:,} bytes, and {left:,} follow.")  # fmt: skip
                data = stream.read(left + 1)  # one more: the checksum is compared at the end
                flat = np.frombuffer(data, header.dtype)
                array = flat.reshape(header.shape, order=header.order)
                arrays[name.removesuffix(".npy")] = array
    return arrays


def _header(stream: BinaryIO, where: Path | str, kinds: str) -> Header:
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise DataError(f"{where} has .npy version {version}; versions 1 and 2 are read.")
    shape, fortran, dtype = readers[version](stream)
    if dtype.kind not in kinds or dtype.hasobject or dtype.subdtype or dtype.itemsize == 0:
        raise DataError(f"{where} holds {dtype}, not numbers.")
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise DataError(f"{where} declares the shape {shape}.")
    return Header(shape, "F" if fortran else "C", dtype)


@contextmanager
def open_zip(file: Path | str, unpacked: bool = True) -> Iterator[zipfile.ZipFile]:
    """A zip archive whose every member is one that can be read safely, and `unpacked` to a file.

    Within the block, an error of the decoder is a sentence too.
    """
    size = regular_file(file, DataError)
    with decoding(file, DataError), zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        if len(names) != len(members):
            raise DataError(f"{file} is refused: two members have the same name.")
        if sum(member.compress_size for member in members) > size:
            raise DataError(f"{file} is refused: its members overlap.")
        for member in members:
            if why := (_leaves(member) if unpacked else "") or _odd(member):
                raise DataError(f"{file} is refused: its member {member.filename!r} {why}.")
        yield archive


def _leaves(member: zipfile.ZipInfo) -> str:
    path = PurePosixPath(member.filename)
    outside = path.is_absolute() or ".." in path.parts or not path.parts
    if outside or any(c in member.filename for c in "\\:\0"):
        return "would leave the folder"
    return ""


def _odd(member: zipfile.ZipInfo) -> str:
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a link"
    if member.flag_bits & 1:
        return "is encrypted"
    if member.compress_type not in METHODS:
        return f"is compressed by method {member.compress_type}, not by deflate"
    if member.file_size > RATIO * member.compress_size + 64:
        return "claims to be larger than its compressed bytes can hold"
    return ""


def refuse_larger(what: Path | str, needed: int, free: int, of: str) -> None:
    """Refuse what would not fit before any of it is unpacked."""
    if needed > free:
        raise NoRoom(f"{what} unpacks to {needed:,} bytes, and {free:,} of {of} are free.")


def free_memory() -> int:
    """Bytes that can be had without swapping."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
