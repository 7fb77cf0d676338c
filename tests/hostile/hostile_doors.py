"""The doors through which files come in, each with a fuzzer that spoils something valid."""

import functools
import hashlib
import io
import json
import shutil
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from hostile_harness import Door
from hostile_mutations import (
    VALUES,
    npy,
    pick,
    spoil_bytes,
    spoil_json,
    spoil_npy,
    spoil_value,
    spoil_zip,
)

from spacql.data import Dataset, load_dataset, save_dataset
from spacql.data.arrays import read_npy
from spacql.data.dataset import identity
from spacql.data.fetch import download, extract
from spacql.data.formats.npz import export_npz, import_npz
from spacql.data.formats.omar import export_omar, import_omar
from spacql.data.formats.vault import export_vault, import_vault
from spacql.data.storage import _seal
from spacql.files import read_record, safe_name
from spacql.spec import Spec
from spacql.training.checkpoints import Checkpoints
from spacql.training.metrics import MetricsFile, read_metrics, whole_rounds


def log(rng: np.random.Generator, rows: int = 6) -> dict[str, Any]:
    """One episode of two agents with a global state."""
    return {
        "observations": {"a": rng.normal(size=(rows, 3)), "b": rng.normal(size=(rows, 2))},
        "actions": {"a": rng.uniform(-1, 1, (rows, 2)), "b": rng.uniform(-1, 1, (rows, 1))},
        "rewards": rng.normal(size=(rows - 1, 2)),
        "states": rng.normal(size=(rows, 4)),
    }


@functools.cache
def dataset() -> Dataset:
    rng = np.random.default_rng(0)
    info = {"name": "toy", "seed": 0, "reference": {"random": 0.0, "expert": 10.0}}
    return Dataset.from_episodes([log(rng) for _ in range(3)], task="toy", info=info)


@functools.cache
def samples() -> Path:
    """Everything valid, written once."""
    place = Path(tempfile.mkdtemp(prefix="spacql-hostile-"))
    save_dataset(dataset(), place / "dataset")
    export_npz(dataset(), place / "log.npz")
    export_omar(dataset(), place / "omar")
    export_vault(dataset(), place / "toy.vlt")
    return place


def use(found: Dataset) -> None:
    """What is accepted must serve a training and be inspected without surprise."""
    batch = found.batch(found.target_rows()[:5])
    assert all(np.isfinite(x).all() for x in (*batch.observations, *batch.actions, batch.rewards))
    assert np.isfinite(found.returns).all()
    assert all((std > 0).all() for std in found.statistics().observation_std)
    assert "/" not in safe_name(found.info.get("name", "x"))


def a_record(rng: np.random.Generator, folder: Path) -> None:
    file = folder / "x.json"
    spec = dataset().spec.to_json()
    if rng.random() < 0.03:
        file.mkdir()
    else:
        file.write_bytes(spoil_json(rng, spec))
    found = read_record(file, Spec)
    assert found.n_agents == len(found.action_sizes)


def a_dataset(rng: np.random.Generator, folder: Path) -> None:
    place = folder / "dataset"
    shutil.copytree(samples() / "dataset", place)
    described = json.loads((place / "dataset.json").read_text())
    arrays = {path.name: np.load(path) for path in place.glob("*.npy")}
    if rng.random() < 0.5:
        name = pick(rng, sorted(arrays))
        content = spoil_npy(rng, arrays[name])
        (place / name).write_bytes(content)
        described["files"][name] = {
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
        }
        text = json.dumps(reseal(described)).encode()
    elif rng.random() < 0.7:
        text = json.dumps(reseal(spoil_value(rng, described))).encode()
    else:
        text = spoil_json(rng, described)
    (place / "dataset.json").write_bytes(text)
    use(load_dataset(place, verify=True))


def reseal(described: Any) -> Any:
    """As somebody would who wants to be believed."""
    try:
        files = described["files"]
        described["identity"] = identity({n: e["sha256"] for n, e in files.items()})
        del described["seal"]
        return described | {"seal": _seal(described)}
    except (KeyError, TypeError, AttributeError):
        return described


def an_array(rng: np.random.Generator, folder: Path) -> None:
    file = folder / "x.npy"
    file.write_bytes(spoil_npy(rng, rng.normal(size=(4, 3)).astype(np.float32)))
    np.asarray(read_npy(file)).sum()


def an_npz(rng: np.random.Generator, folder: Path) -> None:
    import zipfile

    with zipfile.ZipFile(samples() / "log.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    kind = rng.integers(4)
    if kind == 0:
        content = spoil_bytes(rng, (samples() / "log.npz").read_bytes())
    elif kind == 1:
        content = spoil_zip(rng, members)
    else:
        name = pick(rng, sorted(members))
        array = np.load(io.BytesIO(members[name]))
        if kind == 2 and array.dtype.kind == "U":
            spoiled = spoil_json(rng, json.loads(str(array))).decode("utf8", "surrogateescape")
            members[name] = npy(np.array(spoiled))
        elif rng.random() < 0.2:
            members[pick(rng, ("../x.npy", "extra.npy", "actions/.npy", "rewards"))] = members.pop(
                name
            )
        else:
            members[name] = spoil_npy(rng, array)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        content = stream.getvalue()
    (folder / "x.npz").write_bytes(content)
    use(import_npz(folder / "x.npz", pick(rng, ("refuse", "clip", "rescale"))))


def an_omar_folder(rng: np.random.Generator, folder: Path) -> None:
    place = folder / pick(rng, ("omar", "simple_spread"))
    shutil.copytree(samples() / "omar", place)
    file = pick(rng, sorted(place.iterdir()))
    if rng.random() < 0.1:
        file.unlink()
    else:
        file.write_bytes(spoil_npy(rng, np.load(file)))
    if rng.random() < 0.05:
        file.unlink(missing_ok=True)
        file.mkdir()
    use(import_omar(place, pick(rng, ("refuse", "clip", "rescale"))))


def an_archive(rng: np.random.Generator, folder: Path) -> None:
    file = folder / "x.zip"
    file.write_bytes(
        spoil_zip(rng, {"a/b": b"hello" * 30, "c": b"x", "toy.vlt/metadata.json": b"{}"})
    )
    extract(file, folder / "out")


def a_vault(rng: np.random.Generator, folder: Path) -> None:
    place = folder / "toy.vlt"
    shutil.copytree(samples() / "toy.vlt", place)
    metadata = next(place.rglob("metadata.json"))
    kind = rng.integers(4)
    if kind <= 1:
        metadata.write_bytes(spoil_json(rng, json.loads(metadata.read_text())))
    elif kind == 2:
        file = pick(rng, sorted(p for p in place.rglob("*") if p.is_file()))
        file.write_bytes(spoil_bytes(rng, file.read_bytes()))
    else:
        _declare(rng, metadata.parent)
    use(import_vault(place, pick(rng, ("refuse", "clip"))))


def _declare(rng: np.random.Generator, vault: Path) -> None:
    """Another index, or a leaf of another shape and type."""
    import tensorstore

    def store(name: str) -> dict[str, Any]:
        base = {"driver": "file", "path": f"{vault}/"}
        return {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": base, "path": name}}

    if rng.random() < 0.5:
        index = tensorstore.open(store("vault_index"), open=True).result()
        index[0] = pick(rng, (2**31 - 1, -1, 0, 10**6, 1, 3, -(2**31)))
        return
    name = pick(rng, ("observations.", "actions.", "rewards.", "terminals.", "infos.state."))
    tensorstore.open(
        store(name),
        create=True,
        delete_existing=True,
        dtype=pick(rng, (tensorstore.float32, tensorstore.int32, tensorstore.bool)),
        shape=pick(
            rng, ((1, 10**12, 2, 2), (1, 20), (10**9, 10**9), (1, 2, 2, 2), (1, 10**12, 10**6))
        ),
    ).result()


class Server:
    """Answers each request with what the case has prepared."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 200, {}, b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.wfile.write(f"HTTP/1.1 {outer.status} x\r\n".encode())
                for name, value in outer.headers.items():
                    self.wfile.write(f"{name}: {value}\r\n".encode("latin-1", "replace"))
                self.wfile.write(b"Connection: close\r\n\r\n" + outer.body)
                self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/x.zip"


@functools.cache
def server() -> Server:
    return Server()


URLS = (
    "file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "https://[::1", "http://a b/c", "http://ä/",
    "http://127.0.0.1:99999/x", "http://127.0.0.1:x/", "javascript:1", "", "http:///x", "http://\0",
    "http://127.0.0.1\r\nX: y/", "http://%00/", "HTTP://x", "http://[::1]]/x", "data:,x", "http://.",
)  # fmt: skip


def a_download(rng: np.random.Generator, folder: Path) -> None:
    answers, file = server(), folder / "x.zip"
    answers.body = pick(rng, (b"", b"hello", rng.bytes(3000)))
    answers.status = pick(rng, (200, 200, 200, 206, 204, 302, 404, 416, 500, 999))
    names = ("Content-Length", "ETag", "Location", "X-Linked-ETag", "Content-Range", "X" * 300)
    values = ("", "-1", "abc", "5", str(10**30), "1e5", '"tag"', "W/x", "0" * 64, "file:///etc/passwd",
              "ftp://127.0.0.1:1/", "http://[", "\x7f", "é", "a: b", "x" * 5000, "/x.zip")  # fmt: skip
    answers.headers = {pick(rng, names): pick(rng, values) for _ in range(int(rng.integers(0, 4)))}
    victim = folder.parent / "victim"  # one outside; written through a link it would appear
    for planted in ("x.zip.part", "x.zip.part.etag", "x.zip"):
        kind = rng.random()
        if kind < 0.15:
            (folder / planted).symlink_to(victim)
        elif kind < 0.3 and planted != "x.zip":
            (folder / planted).write_bytes(
                pick(rng, (b"", b"part", rng.bytes(50), b'"tag"', b"a\nb: c"))
            )
    url = pick(rng, URLS) if rng.random() < 0.3 else answers.url
    download(url, file, pick(rng, (None, None, "0" * 64)))


def _wrong(rng: np.random.Generator, value: Any) -> Any:
    """Something else where an array, a list, a number or a text is meant."""
    usual = isinstance(value, np.ndarray) and value.ndim
    array = np.asarray(value) if usual else rng.normal(size=(5, 2))
    options = (
        *VALUES, np.float32(1), np.int64(3), np.array(2.0), np.array("x"), np.array(None), np.nan, 1j,
        object(), np.zeros((0, 2)), np.zeros(0), array[:-1], array[..., None], array.astype(int),
        array.astype(complex), array.astype("U3"), array.astype(object), array * np.nan, array * 1e300,
        array.tolist(), [array, array], [array], (array, array, array), {"a": array, "b": array},
        {"a": array}, {0: array, 1: array}, iter([1]), range(5), b"bytes", {1, 2}, lambda: 0, array > 0,
        np.ma.masked_array(array, array > 0), np.float16(1), [[1, 2], [3]], [[1], "a"], slice(3), Exception,
        np.array([np.inf, -np.inf]), [np.array(1.0)] * 5, ["a", "b"], ("b", "a"), ["a", 1], ["a", "a"],
        np.datetime64("2020"), np.zeros((5, 2), "V4"), _Odd(), np.array(["a", "b"]), -0.0, "clip", 3,
    )  # fmt: skip
    return pick(rng, options)


class _Odd:
    """An object whose every answer is an error."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __len__(self) -> int:
        raise KeyError("no length")

    def __repr__(self) -> str:
        raise ZeroDivisionError


def arrays(rng: np.random.Generator, folder: Path) -> None:
    rows = 8
    call: dict[str, Any] = {
        "observations": {"a": rng.normal(size=(rows, 3)), "b": rng.normal(size=(rows, 2))},
        "actions": {"a": rng.uniform(-1, 1, (rows, 2)), "b": rng.uniform(-1, 1, (rows, 1))},
        "rewards": rng.normal(size=(rows, 2)),
        "terminals": np.arange(rows) % 4 == 3,
    }
    optional: dict[str, Any] = {
        "timeouts": np.zeros(rows, bool), "states": rng.normal(size=(rows, 2)), "agents": ["a", "b"],
        "action_low": -1.0, "action_high": np.array(1.0), "bounds": "clip", "task": "toy", "horizon": 4,
        "info": {"name": "x", "seed": np.int64(1)}, "team_reward": np.zeros(rows),
        "next_observations": None, "next_actions": None, "next_states": None,
    }  # fmt: skip
    for name in optional:
        if rng.random() < 0.3:
            call[name] = optional[name]
    for _ in range(int(rng.integers(1, 3))):
        name = pick(rng, [*call, *optional])
        if isinstance(call.get(name), dict) and rng.random() < 0.5:
            agent = pick(rng, sorted(call[name]))
            call[name] = {**call[name], agent: _wrong(rng, call[name][agent])}
        else:
            call[name] = _wrong(rng, call.get(name))
    use(Dataset.from_arrays(**call))


def episodes(rng: np.random.Generator, folder: Path) -> None:
    brought: Any = [log(rng) | {"terminated": False} for _ in range(3)]
    options: dict[str, Any] = {}
    for _ in range(int(rng.integers(1, 3))):
        kind = rng.integers(4)
        if kind == 0:
            name = pick(
                rng, ("agents", "action_low", "action_high", "bounds", "task", "horizon", "info")
            )
            options[name] = _wrong(rng, None)
        elif kind == 1 and isinstance(brought, list) and brought:
            brought[int(rng.integers(len(brought)))] = _wrong(rng, None)
        elif kind == 2 and rng.random() < 0.2:
            brought = _wrong(rng, None)
        elif isinstance(brought, list) and brought:
            episode = brought[int(rng.integers(len(brought)))]
            if isinstance(episode, dict) and episode:
                name = pick(rng, [*episode, "team_reward", "x"])
                episode[name] = _wrong(rng, episode.get(name))
    found = Dataset.from_episodes(brought, **options)
    use(found)
    save_dataset(found, folder / "out")
    use(load_dataset(folder / "out", verify=True))


def a_checkpoint(rng: np.random.Generator, folder: Path) -> None:
    state = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "n": np.array(3)}
    said: list[str] = []
    checkpoints = Checkpoints(folder / "checkpoints", said.append)
    for round_ in (10, 20, 30):
        checkpoints.save(round_, {**state, "n": np.array(round_)})
    for path in sorted((folder / "checkpoints").iterdir()):
        if rng.random() < 0.6:
            path.write_bytes(spoil_bytes(rng, path.read_bytes()))
    checkpoints = Checkpoints(folder / "checkpoints", said.append)
    found = checkpoints.latest()
    assert len(said) == len(list((folder / "checkpoints").glob("damaged-*")))
    if found is not None:
        assert int(checkpoints.restore(found, state)["n"]) == found


def metrics(rng: np.random.Generator, folder: Path) -> None:
    file = folder / "metrics.jsonl"
    lines = [json.dumps({"round": k, "loss": 0.5, "score": None}).encode() for k in range(1, 9)]
    number = int(rng.integers(len(lines)))
    lines[number] = spoil_json(rng, json.loads(lines[number]))
    content = b"\n".join(lines) + b"\n"
    file.write_bytes(spoil_bytes(rng, content) if rng.random() < 0.3 else content)
    rounds = [row["round"] for row in read_metrics(file)]
    assert rounds == sorted(set(rounds))
    count = whole_rounds(file)
    continued = MetricsFile(file, after=count)
    continued.write([{"round": count + 1}])
    continued.close()
    assert whole_rounds(file) == len(read_metrics(file)) == count + 1


# Name, door, and its share of the cases: what is quick is tried more often.
DOORS: dict[str, tuple[Door, float]] = {
    "record": (a_record, 1.5),
    "dataset": (a_dataset, 1.0),
    "npy": (an_array, 1.5),
    "npz": (an_npz, 1.0),
    "omar": (an_omar_folder, 1.0),
    "zip": (an_archive, 1.0),
    "vault": (a_vault, 0.3),
    "download": (a_download, 0.5),
    "from_arrays": (arrays, 1.5),
    "from_episodes": (episodes, 1.0),
    "checkpoint": (a_checkpoint, 0.5),
    "metrics": (metrics, 1.0),
}
