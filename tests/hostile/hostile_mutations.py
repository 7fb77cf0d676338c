"""Seeded ways to spoil a valid value, JSON text or file."""

import copy
import io
import json
import pickle
import zipfile
from typing import Any

import hostile_harness
import numpy as np

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 1e-300, 1e308, -1e308, 0.5, 2**31 - 1, 2**31, 2**63, -(2**63),
    10**30, "", "x", "..", ".", "../../../escaped", "/etc/passwd", "/tmp/spacql-escaped", "a\0b",
    "a/b", "x" * 5000, "[/red]", "\x1b[31m", "NaN", "ä", "💥", "-1", [], {}, [[]], [None], [1, 2, 3],
    {"a": 1}, {"": {}}, [[[[[[[[]]]]]]]], [1e308] * 3, ["agent"] * 3, {"../x": [1]},
)  # fmt: skip
RAW = (  # what json.dumps would not write
    "1" * 5000, "[" * 3000, "[" * 3000 + "]" * 3000, "NaN", "-Infinity", "1e999", "-1e999", '"\\ud800"',
    "01", "0x10", "'a'", '{"a":1,"a":2}', "1.", "\ufeff{}", "nul", '"', "{", "1" * 30, '"\x01"',
)  # fmt: skip


class Canary:
    """Unpickling one of these is seen."""

    def __reduce__(self) -> Any:
        return hostile_harness.canary, ()


PICKLE = pickle.dumps(Canary())


def pick(rng: np.random.Generator, options: Any) -> Any:
    chosen = options[int(rng.integers(len(options)))]
    return copy.deepcopy(chosen) if isinstance(chosen, dict | list) else chosen


def spoil_value(rng: np.random.Generator, value: Any, values: Any = VALUES) -> Any:
    """The same tree of lists and mappings with a few places changed."""
    value = json.loads(json.dumps(value))
    for _ in range(int(rng.integers(1, 4))):
        holder, key = _place(rng, value)
        if holder is None:
            return pick(rng, values)
        kind = rng.integers(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[pick(rng, ("../x", "", "extra", "/etc/passwd", "a\0"))] = holder.pop(key)
        elif kind == 1:
            holder.append(holder[key])
        elif kind == 2:
            holder[key] = _nudged(rng, holder[key], values)
        else:
            holder[key] = pick(rng, values)
    return value


def _place(rng: np.random.Generator, value: Any) -> tuple[Any, Any]:
    """Somewhere in the tree, often deep."""
    holder, key = None, None
    while isinstance(value, dict | list) and value and (holder is None or rng.random() < 0.8):
        holder = value
        key = pick(rng, list(value)) if isinstance(value, dict) else int(rng.integers(len(value)))
        value = holder[key]
    return holder, key


def _nudged(rng: np.random.Generator, value: Any, values: Any) -> Any:
    """Another value of the same type."""
    same = [x for x in values if type(x) is type(value)]
    return pick(rng, same) if same else None


def spoil_json(rng: np.random.Generator, value: Any) -> bytes:
    """Valid JSON of a spoiled value, or text that is spoiled itself."""
    kind = rng.integers(10)
    if kind < 7:
        return json.dumps(spoil_value(rng, value)).encode()
    if kind == 7:
        marked = json.dumps(spoil_value(rng, value, ("@MARK@",)))
        return marked.replace('"@MARK@"', pick(rng, RAW)).encode()
    return spoil_bytes(rng, json.dumps(value).encode())


def spoil_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    """Flipped, cut, lengthened, repeated, emptied, replaced."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        where = int(rng.integers(len(data) + 1))
        # Headers are where decoders go wrong.
        where = min(where, int(rng.integers(1, 200))) if rng.random() < 0.6 else where
        kind = rng.integers(9)
        if kind <= 2 and where < len(data):
            data[where] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            data = data[:where]
        elif kind == 4:
            data[where:where] = rng.bytes(int(rng.integers(1, 50)))
        elif kind == 5:
            data[where : where + 8] = pick(rng, (b"\0" * 8, b"\xff" * 8, b"99999999"))
        elif kind == 6:
            data[where : where + int(rng.integers(1, 40))] = b""
        elif kind == 7:
            data += data[where : where + 100]
        elif rng.random() < 0.3:
            data = bytearray(pick(rng, (b"", PICKLE, b"PK\x05\x06" + b"\0" * 18, rng.bytes(300))))
    return bytes(data)


def header(rng: np.random.Generator, rows: int = 4) -> bytes:
    """The beginning of an .npy file that declares something odd."""
    descr = pick(rng, ("'<f4'", "'|O'", "'<f8'", "'>i2'", "'<U9'", "'<c8'", "'<M8[s]'", "'V8'", "'<f99'",
                       "[('a','<f4')]", "'|b1'", "None", "'<f4','x'", "'<i8'", "5", "'('"))  # fmt: skip
    shape = pick(rng, (f"({rows},)", f"({rows}, 3)", "(-1,)", f"({2**62}, 4)", f"({2**31},)", "()", "(0,)",
                       f"(0, {2**62})", f"({10**30},)", "(1.5,)", "(True,)", "5", "('a',)", "(" * 60,
                       f"({rows}" + ",1" * 40 + ")", "[4]", "(4,]"))  # fmt: skip
    fortran = pick(rng, ("False", "True", "None", "1"))
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    if rng.random() < 0.2:
        text = pick(
            rng, ("", "{" * 5000, "__import__('os').system('true')", text[:-4], "{}", "[" * 200)
        )
    version = pick(rng, (b"\x01\0", b"\x02\0", b"\x03\0", b"\x09\x09"))
    size = 2 if version == b"\x01\0" else 4
    length = len(text) if rng.random() < 0.8 else int(rng.integers(2 ** (8 * size)))
    return b"\x93NUMPY" + version + length.to_bytes(size, "little") + text.encode()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def spoil_npy(rng: np.random.Generator, array: np.ndarray) -> bytes:
    """A file that holds another array, or is damaged, or lies about itself."""
    kind = rng.integers(6) if array.ndim else pick(rng, (0, 1, 4))
    if kind == 0:
        return header(rng, len(array) if array.ndim else 1) + array.tobytes()
    if kind == 1:
        return npy(np.array([Canary(), Canary()], object))
    if kind == 2:
        flat = np.array(array, copy=True)
        if flat.size and flat.dtype.kind == "f":
            flat.reshape(-1)[int(rng.integers(flat.size))] = pick(
                rng, (np.nan, np.inf, -np.inf, 3e38)
            )
        return npy(flat)
    if kind == 3:
        options = (
            array[:-1], array.astype(np.float64), array.astype(np.int64, copy=True), array[..., None],
            array.ravel()[:1], array.astype("U5"), array.astype(">f8"), np.asfortranarray(array),
            np.array(5.0), np.zeros((0, 3)), array.astype(complex), array.astype(bool),
        )  # fmt: skip
        with np.errstate(all="ignore"):
            return npy(pick(rng, options))
    return spoil_bytes(rng, npy(array))


def spoil_zip(rng: np.random.Generator, members: dict[str, bytes]) -> bytes:
    """An archive with a trick in it."""
    stream = io.BytesIO()
    method = pick(rng, (0, 8, 8, 12, 14))
    kind = rng.integers(8)
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        if kind == 0:
            bad = ("../../escaped", "/tmp/spacql-escaped", "a/../../x", "..\\x", "C:x", "", ".", "a\0b",
                   "x" * 3000, "d/", "../")  # fmt: skip
            archive.writestr(zipfile.ZipInfo(pick(rng, bad)), b"x")
        elif kind == 1:
            link = zipfile.ZipInfo(pick(rng, ("link", "d/link.npy")))
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "../../..")
            archive.writestr(f"{link.filename}/through", "x")
        elif kind == 2:
            archive.writestr("bomb.npy", b"\0" * 2_000_000)
        elif kind == 3:
            archive.writestr(pick(rng, [*members, "again"]), b"twice")
        elif kind == 4:
            archive.writestr("pickle.npy", npy(np.array([Canary()], object)))
            archive.writestr("data.pkl", PICKLE)
    content = bytearray(stream.getvalue())
    if kind == 5:  # lies in the directory: encryption, method, sizes
        where = content.find(b"PK\x01\x02") + pick(rng, (8, 10, 20, 24, 28, 42))
        content[where : where + 4] = pick(
            rng, (b"\x01\0\0\0", b"\x63\0\0\0", b"\xff" * 4, b"\0" * 4)
        )
    return spoil_bytes(rng, bytes(content)) if kind > 5 else bytes(content)
