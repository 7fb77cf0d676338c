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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.build import from_arrays
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.published import TASKS, reference
from spacql.errors import DataError, InputError, MissingExtra
from spacql.files import new_folder
from spacql.spec import Spec

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
    task = TASKS.get(path.parent.name.removesuffix(".vlt"))
    ended = _any_agent(leaves["terminals"])
    cut = _any_agent(leaves["truncations"])
    if task:
        cut, ended = cut | ended, np.zeros_like(ended)
        if not cut[:-1].any():
            cut = np.arange(1, len(cut) + 1) % task.horizon == 0
    spec = None
    options: dict[str, Any] = {}
    if "spacql" in metadata:
        try:
            described = json.loads(metadata["spacql"])
            spec, info = Spec.from_json(described["spec"]), described["info"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise DataError(f"{path / 'metadata.json'} is damaged: {error!r}.") from error
        options = {
            "agents": spec.agents,
            "action_low": spec.action_low,
            "action_high": spec.action_high,
        }
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
    return dataset if spec is None else replace(dataset, spec=spec)


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
    uid = str(dataset.info.get("name", "dataset")).replace("/", "-")
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
    """The package, or a sentence that says how to get it."""
    try:
        import flashbax
        import flashbax.vault
    except ImportError as error:
        raise MissingExtra("Reading and writing Flashbax Vaults", "vault") from error
    return flashbax


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The leaves, without their leading axis of one."""
    flashbax = require_flashbax()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            vault = flashbax.vault.Vault(
                vault_name=path.parent.name,
                rel_dir=str(path.parent.parent),
                vault_uid=path.name,
            )
            experience = vault.read().experience
    except Exception as error:  # tensorstore and flashbax raise many kinds, assertions among them
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{path} cannot be read as a vault: {reason}") from error
    missing = [name for name in LEAVES if name not in experience]
    if missing:
        raise DataError(f"{path} has no {missing[0]}; it holds {', '.join(experience)}.")
    leaves = {name: np.asarray(experience[name]) for name in LEAVES}
    infos = experience.get("infos", {})
    leaves |= {key: np.asarray(infos[key]) for key in ("state", "team_reward") if key in infos}
    for name, leaf in leaves.items():
        if leaf.ndim < 2 or leaf.shape[0] != 1:
            raise DataError(f"{path}: {name} has shape {leaf.shape}; expected (1, steps, ...).")
    return {name: leaf[0] for name, leaf in leaves.items()}, vault._metadata


def _any_agent(flags: np.ndarray) -> np.ndarray:
    return np.logical_or.reduce(flags.astype(bool).reshape(len(flags), -1), axis=1)


def _unpad(stacked: np.ndarray) -> list[np.ndarray]:
    """Per agent, without the columns that are -inf in every row."""
    parts = [stacked[:, i] for i in range(stacked.shape[1])]
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
