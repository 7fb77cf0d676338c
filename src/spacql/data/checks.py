"""Reading what people bring: per-agent arrays in any shape, refused with a sentence if wrong.

Every message says which field, which agent and which row, and what to do about it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from spacql.errors import DataError

Bounds = tuple[tuple[float, ...], ...]
OutOfBounds = Literal["refuse", "clip", "rescale"]


class Rows:
    """Says where a row stands, in the words of the one who brought it."""

    def __init__(self, last: np.ndarray, episodes: bool):
        self.last = last  # (episodes,) the last row of each
        self.episodes = episodes  # whether they came as a list, and not as one flat array

    def __call__(self, row: int) -> str:
        final = row - int(self.last[-1]) - 1  # final rows stand behind all others
        if final >= 0:
            row = int(self.last[final])
        if self.episodes:
            episode = int(np.searchsorted(self.last, row))
            first = 0 if episode == 0 else int(self.last[episode - 1]) + 1
            return f"row {row - first + (final >= 0)} of episode {episode}"
        return f"row {row}" if final < 0 else f"the step that follows row {row}"


def agent_names(observations: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    """The agents: those given, or the keys of a mapping, or numbered ones."""
    if isinstance(observations, Mapping):
        names = tuple(given) if given is not None else tuple(map(str, observations))
    elif isinstance(observations, list | tuple):
        names = tuple(given or (f"agent_{i}" for i in range(len(observations))))
    else:
        shape = np.shape(observations)
        if len(shape) != 3:
            raise DataError(
                f"observations has shape {shape}; expected (rows, agents, size), or a list or a "
                "mapping with one array (rows, size) an agent."
            )
        names = tuple(given or (f"agent_{i}" for i in range(shape[1])))
    if len(set(names)) != len(names):
        raise DataError(f"Two agents have the same name: {', '.join(names)}.")
    if len(names) < 2:
        raise DataError(
            f"There is only one agent ({', '.join(names) or 'none'}); replacing some of the "
            "agents' actions needs at least two. An array that holds several agents is "
            "brought as (rows, agents, size), or as a list with one array an agent."
        )
    return names


def per_agent(field: str, value: Any, agents: Sequence[str], ndim: int = 2) -> list[np.ndarray]:
    """One array (rows, size) an agent, or (rows,) with `ndim` 1, from a mapping, list or stack."""
    if isinstance(value, Mapping):
        missing = [name for name in agents if name not in value]
        extra = [str(name) for name in value if name not in agents]
        if missing or extra:
            wrong = f"no entry for agent {missing[0]!r}" if missing else f"an entry {extra[0]!r}"
            raise DataError(f"{field} has {wrong}; the agents are {', '.join(agents)}.")
        parts = [value[name] for name in agents]
    elif isinstance(value, list | tuple):
        parts = list(value)
    else:
        stacked = np.asarray(value)
        if stacked.ndim != ndim + 1:
            shape = "(rows, agents, size)" if ndim == 2 else "(rows, agents)"
            raise DataError(f"{field} has shape {stacked.shape}; expected {shape}.")
        parts = [stacked[:, i] for i in range(stacked.shape[1])]
    if len(parts) != len(agents):
        raise DataError(f"{field} has {len(parts)} agents; there are {len(agents)}.")
    arrays = [as_array(field, part, ndim, agent) for agent, part in zip(agents, parts, strict=True)]
    for agent, array in zip(agents, arrays, strict=True):
        if ndim == 2 and array.shape[1] == 0:
            raise DataError(f"{field} of {agent!r} has no columns.")
    return arrays


def reward_parts(value: Any, agents: Sequence[str]) -> list[np.ndarray]:
    """Rewards (rows,) an agent; a single (rows,) is shared by all."""
    if isinstance(value, list | tuple) and len(value) > 0 and np.ndim(value[0]) == 0:
        value = np.asarray(value)
    if not isinstance(value, Mapping | list | tuple) and np.ndim(value) == 1:
        value = [value] * len(agents)
    return per_agent("rewards", value, agents, ndim=1)


def as_array(field: str, value: Any, ndim: int, agent: str | None = None) -> np.ndarray:
    """One numeric array of the expected number of dimensions, its type left as it is."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{_of(field, agent)} is ragged: its rows differ in length.") from error
    if array.dtype.kind not in "fiub":
        raise DataError(f"{_of(field, agent)} holds {array.dtype}, not numbers.")
    if array.ndim != ndim:
        expected = {1: "(rows,)", 2: "(rows, size)"}[ndim]
        raise DataError(f"{_of(field, agent)} has shape {array.shape}; expected {expected}.")
    return array


def continuous(actions: Sequence[np.ndarray], agents: Sequence[str]) -> None:
    """Refuse integer actions, which are choices rather than quantities."""
    for agent, array in zip(agents, actions, strict=True):
        if array.dtype.kind != "f":
            raise DataError(
                f"actions of {agent!r} are of type {array.dtype}: discrete actions are not "
                "supported. If they are quantities all the same, convert them with "
                "astype('float32')."
            )


def equal_rows(
    rows: int, arrays: Mapping[str, Sequence[np.ndarray]], agents: Sequence[str]
) -> None:
    """Refuse fields whose lengths differ from the first agent's observations."""
    for field, parts in arrays.items():
        for number, array in enumerate(parts):
            if len(array) != rows:
                agent = agents[number] if len(parts) == len(agents) else None
                raise DataError(
                    f"{_of(field, agent)} has {len(array)} rows; observations of "
                    f"{agents[0]!r} has {rows}."
                )


def finite(field: str, array: np.ndarray, where: Rows, agent: str | None = None) -> np.ndarray:
    """The array as float32, or a sentence that says where it is not finite."""
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    bad = ~np.isfinite(array)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        what = "NaN" if np.isnan(array[index]) else "infinity"
        column = f", column {index[1]}" if array.ndim == 2 else ""
        count = int(bad.reshape(len(bad), -1).any(axis=1).sum())
        raise DataError(
            f"{_of(field, agent)} holds {what} at {where(index[0])}{column} "
            f"({count} {'row' if count == 1 else 'rows'} in all). Mend or drop such rows first."
        )
    return array


def action_bounds(name: str, value: Any, agents: Sequence[str], sizes: Sequence[int]) -> Bounds:
    """Bounds for every agent and coordinate, from a number, or one entry an agent."""
    if isinstance(value, Mapping):
        value = [value.get(agent) for agent in agents]
    entries = [value] * len(agents) if np.isscalar(value) else list(value)
    if len(entries) != len(agents):
        raise DataError(f"{name} has {len(entries)} entries; there are {len(agents)} agents.")
    bounds = []
    for agent, entry, size in zip(agents, entries, sizes, strict=True):
        try:
            bounds.append(tuple(map(float, np.broadcast_to(np.asarray(entry, float), (size,)))))
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{name} of {agent!r} is {entry!r}; expected a number or {size} numbers."
            ) from error
    return tuple(bounds)


def within_bounds(
    actions: Sequence[np.ndarray],
    low: Bounds,
    high: Bounds,
    agents: Sequence[str],
    where: Rows,
    otherwise: OutOfBounds,
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The actions within the bounds, and what was done to them, for the record."""
    if otherwise not in ("refuse", "clip", "rescale"):
        raise DataError(f"bounds is {otherwise!r}; it can be 'refuse', 'clip' or 'rescale'.")
    inside, record = [], {}
    for agent, array, lows, highs in zip(agents, actions, low, high, strict=True):
        floor, ceiling = np.array(lows, np.float32), np.array(highs, np.float32)
        if not (np.isfinite(ceiling - floor) & (floor < ceiling)).all():
            raise DataError(f"The action bounds of {agent!r} are no range: {lows} to {highs}.")
        outside = (array < floor) | (array > ceiling)
        if otherwise == "rescale":
            least, most = array.min(axis=0), array.max(axis=0)
            unit = (array - least) / np.where(most > least, most - least, 1)
            unit[:, most == least] = 0.5
            array = floor + unit * (ceiling - floor)
            record[agent] = {"from_low": least.tolist(), "from_high": most.tolist()}
        elif otherwise == "refuse" and outside.any():
            row, column = (int(i) for i in np.argwhere(outside)[0])
            count = int(outside.any(axis=1).sum())
            raise DataError(
                f"actions of {agent!r} at {where(row)}, column {column} is "
                f"{array[row, column]:.6g}, outside [{lows[column]:g}, {highs[column]:g}] "
                f"({count} {'row' if count == 1 else 'rows'} in all). Pass the true action_low "
                "and action_high, or bounds='clip' to clip, or bounds='rescale' to map the "
                "range found in the data to the bounds."
            )
        elif outside.any():
            record[agent] = {"rows": int(outside.any(axis=1).sum())}
        inside.append(np.clip(array, floor, ceiling))
    return inside, {otherwise: record} if record else {}


def _of(field: str, agent: str | None) -> str:
    return field if agent is None else f"{field} of {agent!r}"
