"""Flashbax Vaults: `<scenario>.vlt/<uid>/`, read and written with flashbax (an extra).

A vault holds one row a step: `observations`, `actions`, `rewards`, `terminals`, `truncations`
and `infos.state`. Agents of unlike sizes are padded with -inf. It has no final observation and no
next action: where a time limit ends an episode, the last row serves as the final observation on
import and its reward is left out, so such an episode comes back one transition shorter. A vault
that spacql wrote keeps names, bounds, team reward and provenance; one from elsewhere does not
have them.
"""

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from spacql.data.arrays import NUMBERS, RATIO, free_memory, refuse_larger
from spacql.data.build import from_arrays
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.published import TASKS, reference
from spacql.data.formats.stored import options_of, with_spec
from spacql.errors import DataError, InputError, MissingExtra
from spacql.files import as_record, decode_json, decoding, new_folder, read_json, safe_name
from spacql.spec import Spec

LARGEST_CHUNK = 1 << 28  # bytes; flashbax writes pieces of some megabytes
LEAVES = ("observations", "actions", "rewards", "terminals", "truncations")


def vaults_in(folder: Path | str) -> list[Path]:
    """All `<scenario>.vlt/<uid>` folders at or under a folder."""
    folder = Path(folder)
    if (folder / "metadata.json").is_file():
        return [folder]
    return sorted(file.parent for file in folder.rglob("metadata.json"))


def import_vault(folder: Path | str, bounds: OutOfBounds = "refuse") -> Dataset:
    """Read one vault: a `<uid>` folder, or a folder with a single one in it."""
    if not Path(folder).is_dir():
        raise InputError(f"There is no folder {folder}.")
    found = vaults_in(folder)
    if len(found) != 1:
        inside = ", ".join(str(path) for path in found)
        raise InputError(
            f"{folder} holds {len(found)} vaults, not one. "
            + (f"Name one of: {inside}." if found else "A vault is <scenario>.vlt/<uid>.")
        )
    path = found[0].absolute()
    leaves, metadata = _read(path)
    for name in ("observations", "actions"):
        if leaves[name].ndim != 3:
            raise DataError(f"{path}: {name} has shape {leaves[name].shape}; expected (steps, "
                            "agents, size).")  # fmt: skip
    task = TASKS.get(path.parent.name.removesuffix(".vlt"))
    ended = _any_agent(leaves["terminals"])
    cut = _any_agent(leaves["truncations"])
    if task:
        cut, ended = cut | ended, np.zeros_like(ended)
        if not cut[:-1].any():
            cut = np.arange(1, len(cut) + 1) % task.horizon == 0
    spec = None
    options: dict[str, Any] = {}
    info: dict[str, Any]
    if "spacql" in metadata:
        where = f"{path / 'metadata.json'}, spacql"
        text = as_record(metadata["spacql"], str, where, DataError)
        ours = as_record(decode_json(text, where, DataError), Ours, where, DataError)
        spec, info = ours.spec, ours.info
        options = options_of(spec)
    else:
        scenario = path.parent.name.removesuffix(".vlt")
        info = {"name": f"{scenario}-{path.name}", "provenance": "imported from a Flashbax Vault"}
        if task:
            info["reference"] = reference(task)
            options = {"agents": task.agents, "task": task.name, "horizon": task.horizon}
    state = leaves.get("state")
    dataset = from_arrays(
        _unpad(leaves["observations"]),
        _unpad(leaves["actions"]),
        leaves["rewards"],
        terminals=ended,
        timeouts=cut & ~ended,
        states=None if state is None else state.reshape(len(state), -1),
        team_reward=leaves.get("team_reward"),
        bounds=bounds,
        info=info,
        **options,
    )
    return dataset if spec is None else with_spec(dataset, spec, path)


def export_vault(dataset: Dataset, folder: Path | str) -> None:
    """Write `<folder>/<uid>/`; a vault's folder is usually named `<scenario>.vlt`."""
    flashbax = require_flashbax()
    rows = dataset.transition_rows()
    last = np.zeros(dataset.n_rows, bool)
    last[dataset.starts[1:] - 2] = True
    terminal = dataset.is_terminal(rows)
    n = dataset.spec.n_agents

    def for_all(flags: np.ndarray) -> np.ndarray:
        return np.repeat(flags[:, None], n, axis=1)

    infos = {"team_reward": dataset.team_reward[rows]}
    if dataset.states is not None:
        infos["state"] = dataset.states[rows]
    experience = {
        "observations": _pad([x[rows] for x in dataset.observations]),
        "actions": _pad([x[rows] for x in dataset.actions]),
        "rewards": dataset.rewards[rows],
        "terminals": for_all(terminal),
        "truncations": for_all(last[rows] & ~terminal),
        "infos": infos,
    }
    import jax

    experience = jax.tree.map(lambda x: x[None], experience)
    metadata = {"spacql": json.dumps({"spec": dataset.spec.to_json(), "info": dataset.info})}
    uid = safe_name(dataset.info.get("name", "dataset"))
    with new_folder(folder) as temporary, contextlib.redirect_stdout(io.StringIO()):
        vault = flashbax.vault.Vault(
            vault_name=temporary.name,
            experience_structure=experience,
            rel_dir=str(temporary.parent.absolute()),
            vault_uid=uid,
            metadata=metadata,
        )
        state = flashbax.buffers.trajectory_buffer.TrajectoryBufferState(
            experience=experience, current_index=np.array(len(rows)), is_full=np.array(False)
        )
        vault.write(state, source_interval=(0, len(rows)))


def require_flashbax() -> Any:
    """The package that writes vaults, or a sentence that says how to get it."""
    try:
        import flashbax
        import flashbax.vault
    except ImportError as error:
        raise MissingExtra("Writing Flashbax Vaults", "vault") from error
    return flashbax


def require_tensorstore() -> Any:
    """The package that reads vaults, or a sentence that says how to get it."""
    try:
        import tensorstore
    except ImportError as error:
        raise MissingExtra("Reading Flashbax Vaults", "vault") from error
    return tensorstore


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The leaves, without their leading axis of one.

    Read with tensorstore alone: what the vault declares is held against the size of its files
    before anything is allocated, which flashbax does not do.
    """
    metadata = read_json(path / "metadata.json", DataError)
    described = as_record(metadata, Metadata, path / "metadata.json", DataError)
    if int(described.version) != 1:
        raise DataError(f"{path} is a vault of version {described.version}; version 1 is read.")
    structure = described.structure_shape
    missing = [name for name in LEAVES if name not in structure]
    if missing:
        raise DataError(f"{path} has no {missing[0]}; it holds {', '.join(structure)}.")
    infos = structure.get("infos")
    names = {name: f"{name}." for name in LEAVES}
    for name in ("state", "team_reward"):
        if isinstance(infos, dict) and name in infos:
            names[name] = f"infos.{name}."
    stores = {name: _open(path, place) for name, place in names.items()}
    index = _open(path, "vault_index")
    with decoding(path, DataError):
        steps = int(index[0].read().result())
    if steps < 1:
        raise DataError(f"{path} holds {steps} steps.")
    stored = sum(file.lstat().st_size for file in path.rglob("*"))
    needed = sum(_bytes(path, name, store, steps) for name, store in stores.items())
    if needed > RATIO * stored:
        raise DataError(f"{path} claims {steps:,} steps, which its {stored:,} bytes cannot hold.")
    refuse_larger(path, needed, free_memory(), "memory")
    with decoding(path, DataError):
        leaves = {n: np.asarray(store[0, :steps].read().result()) for n, store in stores.items()}
    return leaves, metadata


class Ours(msgspec.Struct, frozen=True):
    """What spacql adds to it."""

    spec: Spec
    info: dict[str, Any]


class Metadata(msgspec.Struct, frozen=True):
    """What is relied on of a vault's metadata.json."""

    version: float
    structure_shape: dict[str, Any]


def _open(path: Path, name: str) -> Any:
    tensorstore = require_tensorstore()
    spec = {
        "driver": "zarr",
        "kvstore": {
            "driver": "ocdbt",
            "base": {"driver": "file", "path": f"{path}/"},
            "path": name,
        },
    }
    with decoding(f"{path}, {name.rstrip('.')}", DataError):
        return tensorstore.open(spec, open=True, read=True).result()


def _bytes(path: Path, name: str, store: Any, steps: int) -> int:
    """What reading a leaf takes, if it is one."""
    shape, dtype = tuple(store.shape), np.dtype(store.dtype.numpy_dtype)
    chunk = math.prod(store.chunk_layout.read_chunk.shape or ()) * dtype.itemsize
    if len(shape) < 2 or shape[0] != 1 or dtype.kind not in NUMBERS or shape[1] < steps:
        raise DataError(f"{path}: {name} has shape {shape} of {dtype}; expected (1, steps, ...).")
    if chunk > LARGEST_CHUNK:
        raise DataError(f"{path}: {name} is cut into pieces of {chunk:,} bytes, which is odd.")
    return steps * math.prod(shape[2:]) * dtype.itemsize


def _any_agent(flags: np.ndarray) -> np.ndarray:
    return np.logical_or.reduce(flags.astype(bool).reshape(len(flags), -1), axis=1)


def _unpad(stacked: np.ndarray) -> list[np.ndarray]:
    """Per agent, without the columns that are -inf in every row."""
    parts = [stacked[:, i] for i in range(stacked.shape[1])]
    if stacked.dtype.kind != "f":
        return parts
    return [part[:, ~np.isneginf(part).all(axis=0)] for part in parts]


def _pad(parts: list[np.ndarray]) -> np.ndarray:
    width = max(part.shape[1] for part in parts)
    return np.stack(
        [
            np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-np.inf)
            for part in parts
        ],
        axis=1,
    )
