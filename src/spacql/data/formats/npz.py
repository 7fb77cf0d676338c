"""One `.npz` file with the arguments of `Dataset.from_arrays` by name.

`observations`, `actions` and `next_observations`, `next_actions` are either one array
(rows, agents, size), or one array an agent under `observations/<agent>` and so on. `rewards`
(rows, agents) or (rows,), `terminals`, `timeouts`, `states`, `next_states` and `team_reward` are
plain arrays; `action_low` and `action_high` likewise, a number or (agents, size).

A file that spacql wrote also has `spec` and `info` as JSON text, so that everything comes back,
save next actions that are known for some episodes and not for others: those are left out.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.arrays import read_npz
from spacql.data.build import from_arrays
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats.stored import options_of, with_spec
from spacql.errors import DataError, InputError
from spacql.files import decode_json, decoding, new_file
from spacql.spec import Spec

PER_AGENT = ("observations", "actions", "next_observations", "next_actions")
SHARED = ("rewards", "terminals", "timeouts", "states", "next_states", "team_reward")
BOUNDS = ("action_low", "action_high")


def import_npz(file: Path | str, bounds: OutOfBounds = "refuse") -> Dataset:
    """Read a file of the layout above. Extra arrays are refused, since a typo looks like one."""
    file = Path(file)
    arrays = read_npz(file)
    options: dict[str, Any] = {"bounds": bounds, "info": {"name": file.stem}}
    spec = None
    if "spec" in arrays:
        spec = Spec.from_json(_json(file, "spec", arrays), f"{file}: spec")
        options |= options_of(spec)
    if "info" in arrays:
        options["info"] = _json(file, "info", arrays)
    for name, array in arrays.items():
        field, slash, agent = name.partition("/")
        if slash and field in PER_AGENT and field in arrays:
            raise DataError(
                f"{file} has {field} twice: as {field!r} and as {name!r}. Keep one of the two."
            )
        if slash and field in PER_AGENT:
            options.setdefault(field, {})[agent] = array
        elif not slash and field in (*PER_AGENT, *SHARED, *BOUNDS):
            options[field] = array
        else:
            raise DataError(
                f"{file}: unknown array {name!r}. Known: {', '.join(PER_AGENT)} (also with "
                f"'/<agent>'), {', '.join((*SHARED, *BOUNDS))}."
            )
    for field in ("observations", "actions", "rewards"):
        if field not in options:
            raise DataError(f"{file} has no {field}; it holds {', '.join(sorted(arrays))}.")
    dataset = from_arrays(**options)
    return dataset if spec is None else with_spec(dataset, spec, file)


def _json(file: Path, name: str, arrays: dict[str, np.ndarray]) -> Any:
    text = arrays.pop(name)
    if text.dtype.kind != "U" or text.ndim:
        raise DataError(f"{file}: {name} is not the text that spacql writes.")
    with decoding(f"{file}: {name}", DataError):  # a code point that is none
        return decode_json(str(text), f"{file}: {name}", DataError)


def export_npz(dataset: Dataset, file: Path | str) -> None:
    """Write one compressed file."""
    rows = dataset.transition_rows()
    last = np.zeros(dataset.n_rows, bool)
    last[dataset.starts[1:] - 2] = True
    terminal = dataset.is_terminal(rows)
    arrays = {
        "rewards": dataset.rewards[rows],
        "team_reward": dataset.team_reward[rows],
        "terminals": terminal,
        "timeouts": last[rows] & ~terminal,
        "spec": np.array(json.dumps(dataset.spec.to_json())),
        "info": np.array(json.dumps(dataset.info)),
    }
    if zero := [agent for agent in dataset.spec.agents if "\0" in agent]:
        raise InputError(f"An .npz file cannot hold the name {zero[0]!r}: it has a zero byte.")
    for agent, seen, acted in zip(
        dataset.spec.agents, dataset.observations, dataset.actions, strict=True
    ):
        arrays[f"observations/{agent}"] = seen[rows]
        arrays[f"next_observations/{agent}"] = seen[rows + 1]
        arrays[f"actions/{agent}"] = acted[rows]
        if dataset.final_action_known.all():
            arrays[f"next_actions/{agent}"] = acted[rows + 1]
    if dataset.states is not None:
        arrays |= {"states": dataset.states[rows], "next_states": dataset.states[rows + 1]}
    file = Path(file)
    if file.suffix != ".npz":
        raise InputError(f"{file} should end in .npz.")
    if file.exists():
        raise InputError(f"{file} exists already. Choose another place or remove it first.")
    with new_file(file) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **arrays)
