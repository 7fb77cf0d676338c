"""The published `.npy` files, `<task>/<quality>/seed_<k>_data/<field>_<agent>.npy`.

Fields are `obs`, `acs`, `rews`, `next_obs` and `dones`; with a global state also `states` and
`next_states`.

The layout holds no next action, so the last transition of an episode is marked and never used
for a target. It does not hold the agents' names, the bounds of their actions, a team reward of
its own, or where a dataset came from. Its `dones` are never set in the published tasks, whose
episodes end by a time limit alone; where one ends shows in `next_obs`, which then is not the
next row's `obs`.
"""

from pathlib import Path

import numpy as np

from spacql.data.arrays import read_npy
from spacql.data.build import from_arrays
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.published import TASKS, reference
from spacql.errors import DataError, InputError
from spacql.files import new_folder


def import_omar(folder: Path | str, bounds: OutOfBounds = "refuse") -> Dataset:
    """Read one `seed_<k>_data` folder.

    If its path names a published task (`simple_spread`, `simple_tag`, `simple_world`,
    `HalfCheetah-v2`), the dataset gets that task's agents, horizon and reference scores, and
    `dones` count as time limits. Otherwise they count as the task's own end.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    n = len(list(folder.glob("obs_*.npy")))
    if n == 0:
        raise InputError(
            f"{folder} holds no obs_0.npy. Name the folder of one dataset, for example "
            "simple_spread/random/seed_0_data."
        )
    task = next((TASKS[part] for part in reversed(folder.absolute().parts) if part in TASKS), None)
    observations = [_load(folder, "obs", i) for i in range(n)]
    following = [_load(folder, "next_obs", i) for i in range(n)]
    dones = [_load(folder, "dones", i).astype(bool) for i in range(n)]
    rows = len(dones[0])
    for now, then, ended in zip(observations, following, dones, strict=True):
        if now.ndim != 2 or now.shape != then.shape or len(now) != rows or ended.shape != (rows,):
            raise DataError(f"{folder}: obs, next_obs and dones differ in length.")
    if not rows:
        raise DataError(f"{folder} is empty: its arrays have no rows.")
    done = np.any(dones, axis=0)
    end = done.copy()
    for now, then in zip(observations, following, strict=True):
        end[:-1] |= ~np.isclose(then[:-1], now[1:], rtol=1e-4, atol=1e-5).all(axis=1)
    end[-1] = True
    has_states = (folder / "states_0.npy").exists()
    return from_arrays(
        observations,
        [_load(folder, "acs", i) for i in range(n)],
        [_load(folder, "rews", i) for i in range(n)],
        terminals=None if task else done,
        timeouts=end if task else end & ~done,
        next_observations=following,
        states=_load(folder, "states", 0) if has_states else None,
        next_states=_load(folder, "next_states", 0) if has_states else None,
        agents=task.agents if task and len(task.agents) == n else None,
        bounds=bounds,
        task=task.name if task else "custom",
        horizon=task.horizon if task else None,
        info={
            "name": "/".join(folder.absolute().parts[-3:]),
            "provenance": "imported from the published .npy layout",
            **({"reference": reference(task)} if task else {}),
        },
    )


def export_omar(dataset: Dataset, folder: Path | str) -> None:
    """Write the layout. Team rewards, final actions, names, bounds and provenance are lost."""
    rows = dataset.transition_rows()
    terminal = dataset.is_terminal(rows).astype(np.float32)
    with new_folder(folder) as temporary:
        for i in range(dataset.spec.n_agents):
            arrays = {
                "obs": dataset.observations[i][rows],
                "acs": dataset.actions[i][rows],
                "rews": dataset.rewards[rows, i],
                "next_obs": dataset.observations[i][rows + 1],
                "dones": terminal,
            }
            if dataset.states is not None:
                arrays["states"] = dataset.states[rows]
                arrays["next_states"] = dataset.states[rows + 1]
            for name, array in arrays.items():
                np.save(temporary / f"{name}_{i}.npy", array)


def _load(folder: Path, name: str, agent: int) -> np.ndarray:
    array = read_npy(folder / f"{name}_{agent}.npy")
    if array.ndim == 0:
        raise DataError(f"{folder / f'{name}_{agent}.npy'} holds one number, not rows.")
    # Rewards and dones come as (rows,) or (rows, 1).
    if name in ("rews", "dones") and array.shape == (len(array), 1):
        return array.reshape(len(array))
    return array
