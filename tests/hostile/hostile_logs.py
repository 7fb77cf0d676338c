"""The doors for logs of other people's formats: CSV, Parquet, Minari."""

import functools
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hostile_doors import use
from hostile_harness import Door
from hostile_mutations import pick, spoil_bytes, spoil_json

from spacql.data.formats import read

MAPPING = {"action_low": -1, "action_high": {"a": 2.0, "b": 1}, "task": "toy"}
ODD = ("", " ", "x", "1e999", "nan", "-inf", "1,5", '"', "'", "1e308", "-0", "0x1", "1_0", "\0", "ä", "٣",
       "True", "2020-01-01", "../../x", "=cmd", "1" * 400, "None", "a\nb")  # fmt: skip
NAMES = ("episode", "obs.c", "", "action.", "x" * 300, "reward.a", "../x", "done", "terminated",
         "terminal.a")  # fmt: skip


def table(rng: np.random.Generator, wide: bool) -> dict[str, list[Any]]:
    """A valid log as columns: a row per step and agent, or a row per step."""
    agents = ("a", "b")
    rows = [(e, t, who) for e in range(2) for t in range(4) for who in agents]
    if wide:
        rows = rows[::2]
        found: dict[str, list[Any]] = {
            "episode": [r[0] for r in rows],
            "step": [r[1] for r in rows],
        }
        for who in agents:
            found |= {f"{what}.{who}": rng.uniform(-1, 1, len(rows)).tolist()
                      for what in ("obs", "action", "reward")}  # fmt: skip
        return found
    found = {name: [row[k] for row in rows] for k, name in enumerate(("episode", "step", "agent"))}
    for name in ("obs_1", "obs_2", "action", "reward"):
        found[name] = rng.uniform(-1, 1, len(rows)).tolist()
    return found | {"terminal": [0] * len(rows)}


def spoil_table(rng: np.random.Generator, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    for _ in range(int(rng.integers(1, 4))):
        name = pick(rng, sorted(columns)) if columns else ""
        kind = rng.integers(6)
        if not columns:
            break
        if kind == 0:
            del columns[name]
        elif kind == 1:
            columns[pick(rng, NAMES)] = columns.pop(name)
        elif kind == 2:
            columns[name] = [pick(rng, ODD)] * len(columns[name])
        else:
            columns[name][int(rng.integers(len(columns[name])))] = pick(rng, (*ODD, -1, 1e30, None))
    return columns


def mapping(rng: np.random.Generator, folder: Path) -> Path | None:
    """None, a right one, or a spoiled one."""
    file = folder / "mapping.json"
    if rng.random() < 0.4:
        return None
    columns = {"observations": ["obs_1", "obs_2"], "reward": "reward", "agent": "agent"}
    each = {
        field: {
            who: pick(rng, ([], ["obs_1"], ["action"], ["obs_2", "reward"]))
            for who in pick(rng, ("", "a", "ab", "abc", "cd"))
        }
        for field in ("observations", "actions")
    }
    brought = MAPPING | pick(
        rng, ({}, {}, columns, columns, each, {"terminal": None}, {"agent": "obs_1"})
    )
    text = spoil_json(rng, brought) if rng.random() < 0.6 else json.dumps(brought).encode()
    file.write_bytes(text)
    return file


def a_csv(rng: np.random.Generator, folder: Path) -> None:
    columns = table(rng, wide=rng.random() < 0.5)
    columns = spoil_table(rng, columns) if rng.random() < 0.8 else columns
    separator = pick(rng, (",", ";", "\t"))
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    text = "\n".join(separator.join(map(str, line)) for line in lines).encode("utf8", "replace")
    content = spoil_bytes(rng, text) if rng.random() < 0.3 else text
    place = folder / pick(rng, ("log.csv", "logs/a.csv"))
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(content)
    source = place if rng.random() < 0.8 else place.parent
    use(read("csv", source, pick(rng, ("refuse", "clip", "rescale")), mapping(rng, folder)))


def a_parquet(rng: np.random.Generator, folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    columns: dict[str, Any] = dict(table(rng, wide=rng.random() < 0.5))
    rows = len(columns["step"])
    made = {}
    for name, values in columns.items():
        made[name] = pyarrow.array(values)
        if rng.random() < 0.12:
            odd = (None, [1.0, 2.0], {"x": 1}, "1.5", "x", b"\xff\0", True, 2**62, float("nan"), -1.5,
                   np.datetime64("2020-01-01", "s"), float("inf"), 1e308)  # fmt: skip
            value = pick(rng, odd)
            made[name] = pyarrow.array([value if rng.random() < 0.9 else None for _ in range(rows)])
        elif rng.random() < 0.05:
            made[name] = pyarrow.array(values).dictionary_encode()
    if rng.random() < 0.3:
        made[pick(rng, ("obs.c", "action.", "", "../x", "agent"))] = made.pop(
            pick(rng, sorted(made))
        )
    file = folder / "log.parquet"
    pyarrow.parquet.write_table(pyarrow.table(made), file)
    if rng.random() < 0.4:
        file.write_bytes(spoil_bytes(rng, file.read_bytes()))
    use(read("parquet", file, pick(rng, ("refuse", "clip", "rescale")), mapping(rng, folder)))


@functools.cache
def samples() -> Path:
    """A Minari store with a small dataset of two agents."""
    import minari
    from gymnasium.spaces import Box, Dict
    from minari.data_collector.episode_buffer import EpisodeBuffer

    place = Path(tempfile.mkdtemp(prefix="spacql-hostile-"))
    rng = np.random.default_rng(0)

    def box(low: float, high: float, size: int) -> Box:
        return Box(low, high, (size,), np.float32)

    buffers = [
        EpisodeBuffer(
            id=k,
            observations={a: rng.normal(size=(6, n)).astype(np.float32) for a, n in (("a", 3), ("b", 2))},
            actions={a: rng.uniform(-1, 1, (5, 2)).astype(np.float32) for a in ("a", "b")},
            rewards=rng.normal(size=5).tolist(), terminations=[False] * 5,
            truncations=[False] * 4 + [True],
        )
        for k in range(3)
    ]  # fmt: skip
    here = mock.patch.dict(os.environ, {"MINARI_DATASETS_PATH": str(place)})
    with here, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no author
        minari.create_dataset_from_buffers(
            "toy/team-v0", buffers,
            observation_space=Dict({"a": box(-9, 9, 3), "b": box(-9, 9, 2)}),
            action_space=Dict({"a": box(-1, 1, 2), "b": box(-1, 1, 2)}),
        )  # fmt: skip
    return place


def a_minari_store(rng: np.random.Generator, folder: Path) -> None:
    place = folder / "store"
    shutil.copytree(samples(), place)
    data = place / "toy" / "team-v0" / "data"
    described = data / "metadata.json"
    kind = rng.integers(10)
    if kind < 5:
        content = json.loads(described.read_text())
        spaces = [name for name in ("action_space", "observation_space") if name in content]
        if kind < 2 and spaces:  # spaces are JSON within JSON
            name = pick(rng, spaces)
            inner = json.loads(content[name]) if isinstance(content[name], str) else content[name]
            content[name] = spoil_json(rng, inner).decode("utf8", "replace")
            described.write_text(json.dumps(content))
        else:
            content |= {"total_episodes": pick(rng, (3, 0, -1, 2**62, 10**30, "x", 4))}
            described.write_bytes(spoil_json(rng, content))
    elif kind < 9:
        _change_hdf5(rng, data / "main_data.hdf5")
    else:
        # Its head only: damage within is HDF5's own affair, whose library may end the process.
        file = data / "main_data.hdf5"
        content = file.read_bytes()
        file.write_bytes(pick(rng, (b"", content[:100], b"x" + content[1:], content[:-500])))
    name = pick(rng, ("toy/team-v0",) * 12 + ("toy/none-v0", "../../x", "", "toy"))
    with mock.patch.dict(os.environ, {"MINARI_DATASETS_PATH": str(place)}):
        use(read("minari", name, pick(rng, ("refuse", "clip", "rescale"))))


def _change_hdf5(rng: np.random.Generator, path: Path) -> None:
    """Arrays of other shapes and types, enormous ones, and ones that lie in other files."""
    import h5py

    with h5py.File(path, "a") as file:
        names: list[str] = []
        file.visititems(lambda name, found: names.append(name))
        for _ in range(int(rng.integers(1, 3))):
            name = pick(rng, names)
            if name not in file:
                continue
            del file[name]
            kind = rng.integers(7)
            if kind == 0:
                file[name] = pick(
                    rng, (np.zeros((6, 3), np.float32), np.zeros(5), np.array(3), np.zeros(0))
                )
            elif kind == 1:
                file[name] = np.full((6, 2), pick(rng, (np.nan, np.inf, 1e300)))
            elif kind == 2:
                file.create_dataset(name, shape=(10**12, 10), dtype="f4", chunks=(10**5, 10))
            elif kind == 3:
                file.create_dataset(name, shape=(5,), dtype="f4", external=[("/etc/passwd", 0, 20)])
            elif kind == 4:
                file[name] = h5py.ExternalLink("/etc/passwd", "/x")
            elif kind == 5:
                file[name] = pick(
                    rng, (np.array([b"x"] * 5), np.ones(5, bool), np.ones((6, 3), complex))
                )


DOORS: dict[str, tuple[Door, float]] = {
    "csv": (a_csv, 1.0),
    "parquet": (a_parquet, 0.7),
    "minari": (a_minari_store, 0.5),
}
