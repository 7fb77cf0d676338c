"""Reading what people bring: per-agent arrays in any shape, refused with a sentence if wrong.

Every message says which field, which agent and which row, and what to do about it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from spacql.errors import DataError
from spacql.spec import LARGEST

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


def agent_names(observations: Any, given: Any) -> tuple[str, ...]:
    """The agents: those given, or the keys of a mapping, or numbered ones."""
    if given is not None:
        names = tuple(sequence("agents", given))
    elif isinstance(observations, Mapping):
        names = tuple(observations)
    elif isinstance(observations, list | tuple):
        names = tuple(f"agent_{i}" for i in range(len(observations)))
    else:
        shape = array_of("observations", observations).shape
        if len(shape) != 3:
            raise DataError(
                f"observations has shape {shape}; expected (rows, agents, size), or a list or a "
                "mapping with one array (rows, size) an agent."
            )
        names = tuple(f"agent_{i}" for i in range(shape[1]))
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"The name of an agent is text, not {_shown(name)}.")
    if len(set(names)) != len(names):
        raise DataError(f"Two agents have the same name: {', '.join(names)}.")
    if len(names) < 2:
        raise DataError(
            f"There is only one agent ({', '.join(names) or 'none'}); replacing some of the "
            "agents' actions needs at least two. An array that holds several agents is "
            "brought as (rows, agents, size), or as a list with one array an agent."
        )
    return tuple(map(str, names))  # NumPy's text becomes plain


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
        stacked = array_of(field, value)
        if stacked.ndim != ndim + 1:
            shape = "(rows, agents, size)" if ndim == 2 else "(rows, agents)"
            raise DataError(f"{field} has shape {stacked.shape}; expected {shape}.")
        parts = [stacked[:, i] for i in range(stacked.shape[1])]
    if len(parts) != len(agents):
        entries = "1 entry" if len(parts) == 1 else f"{len(parts)} entries"
        raise DataError(f"{field} has {entries}; there are {len(agents)} agents.")
    arrays = [as_array(field, part, ndim, agent) for agent, part in zip(agents, parts, strict=True)]
    for agent, array in zip(agents, arrays, strict=True):
        if ndim == 2 and array.shape[1] == 0:
            raise DataError(f"{field} of {agent!r} has no columns.")
    return arrays


def reward_parts(value: Any, agents: Sequence[str]) -> list[np.ndarray]:
    """Rewards (rows,) an agent; a single (rows,) is shared by all."""
    if isinstance(value, list | tuple) and len(value) > 0 and np.isscalar(value[0]):
        value = array_of("rewards", value)
    if not isinstance(value, Mapping | list | tuple):
        value = array_of("rewards", value)
        if value.shape[1:] not in ((), (len(agents),)):
            raise DataError(
                f"rewards has shape {value.shape}; expected (rows,) for the team, or (rows, "
                f"{len(agents)}) with a column an agent."
            )
        if value.ndim == 1:
            value = [value] * len(agents)
    return per_agent("rewards", value, agents, ndim=1)


def array_of(field: str, value: Any, agent: str | None = None) -> np.ndarray:
    """One numeric array, its type and shape left as they are."""
    if np.ma.isMaskedArray(value):
        raise DataError(f"{_of(field, agent)} is a masked array. Drop or fill what is masked.")
    try:
        array = np.asarray(value)
    except Exception as error:  # whatever an object that is no array says
        ragged = isinstance(error, ValueError) and "inhomogeneous" in str(error)
        why = "is ragged: its rows differ in length" if ragged else f"is no array: {error}"
        raise DataError(f"{_of(field, agent)} {why}.") from error
    if array.dtype.kind not in "fiub":
        raise DataError(f"{_of(field, agent)} holds {array.dtype}, not numbers.")
    return array


def as_array(field: str, value: Any, ndim: int, agent: str | None = None) -> np.ndarray:
    """One numeric array of the expected number of dimensions, its type left as it is."""
    array = array_of(field, value, agent)
    if array.ndim != ndim:
        expected = {1: "(rows,)", 2: "(rows, size)"}[ndim]
        hint = " One number a row is brought as a[:, None]." if array.ndim == 1 else ""
        raise DataError(f"{_of(field, agent)} has shape {array.shape}; expected {expected}.{hint}")
    return array


def flags(field: str, value: Any, rows: int) -> np.ndarray:
    """Whether something happened after each row."""
    if value is None:
        return np.zeros(rows, bool)
    array = array_of(field, value)
    if array.shape != (rows,):
        raise DataError(
            f"{field} has shape {array.shape}; expected ({rows},), one flag a row for the team."
        )
    if not ((array == 0) | (array == 1)).all():
        raise DataError(f"{field} holds a value that is neither true nor false.")
    return array.astype(bool)


def whole_number(field: str, value: Any) -> int:
    """A number of steps, at least 1, in whatever type it comes."""
    array = array_of(field, value)
    if array.ndim or array.dtype.kind not in "iu" or not 1 <= array.item() <= LARGEST:
        raise DataError(f"{field} is {_shown(value)}; expected a whole number, at least 1.")
    return int(array.item())


def sequence(field: str, value: Any) -> list[Any]:
    """The elements of a list, a tuple, an array or another iterable that is no text."""
    if isinstance(value, str | bytes | Mapping):
        raise DataError(f"{field} is a {type(value).__name__}; expected a list.")
    try:
        return list(value)
    except Exception as error:  # whatever its own iterator says
        raise DataError(f"{field} is no list: {error}.") from error


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
    alone = np.isscalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0)
    entries = [value] * len(agents) if alone else sequence(name, value)
    if len(entries) != len(agents):
        raise DataError(f"{name} has {len(entries)} entries; there are {len(agents)} agents.")
    bounds = []
    for agent, entry, size in zip(agents, entries, sizes, strict=True):
        array = array_of(name, entry, agent)
        if array.shape not in ((), (1,), (size,)):
            raise DataError(
                f"{name} of {agent!r} is {_shown(entry)}; expected a number or {size} numbers."
            )
        bounds.append(tuple(map(float, np.broadcast_to(array.astype(float), (size,)))))
    return tuple(bounds)


def within_bounds(
    actions: Sequence[np.ndarray],
    low: Bounds,
    high: Bounds,
    agents: Sequence[str],
    where: Rows,
    otherwise: OutOfBounds,
) -> tuple[list[np.ndarray], Bounds, Bounds, dict[str, Any]]:
    """The actions, the bounds that they lie in, and what was done, for the record.

    "rescale" takes the range found in the data for the bounds: everything that learns maps bounds
    to [-1, 1] by itself, and policies act in the log's own units.
    """
    if not isinstance(otherwise, str) or otherwise not in ("refuse", "clip", "rescale"):
        raise DataError(f"bounds is {_shown(otherwise)}; it can be 'refuse', 'clip' or 'rescale'.")
    inside, lows_used, highs_used, record = [], [], [], {}
    for agent, array, lows, highs in zip(agents, actions, low, high, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            floor, ceiling = np.array(lows, np.float32), np.array(highs, np.float32)
            ranges = np.isfinite(ceiling - floor) & (floor < ceiling)
        if not ranges.all():
            raise DataError(f"The action bounds of {agent!r} are no range: {lows} to {highs}.")
        outside = (array < floor) | (array > ceiling)
        if otherwise == "rescale":
            floor, ceiling = array.min(axis=0), array.max(axis=0)
            still = floor == ceiling  # a coordinate that never moves is the middle of its range
            room = np.where(still, np.maximum(1, np.abs(floor) / 2), 0).astype(np.float32)
            floor, ceiling = floor - room, ceiling + room
            with np.errstate(over="ignore"):
                if not np.isfinite(ceiling - floor).all():
                    raise DataError(f"The actions of {agent!r} span more than float32 can hold.")
            record[agent] = {"low": floor.tolist(), "high": ceiling.tolist()}
        elif otherwise == "refuse" and outside.any():
            row, column = (int(i) for i in np.argwhere(outside)[0])
            count = int(outside.any(axis=1).sum())
            raise DataError(
                f"actions of {agent!r} at {where(row)}, column {column} is "
                f"{array[row, column]:.6g}, outside [{lows[column]:g}, {highs[column]:g}] "
                f"({count} {'row' if count == 1 else 'rows'} in all). Give the true action_low "
                "and action_high (of a table in the file of its --mapping), or clip what lies "
                "outside (bounds='clip', or --bounds clip), or take the range found in the data "
                "for the bounds (bounds='rescale', or --bounds rescale)."
            )
        elif outside.any():
            record[agent] = {"rows": int(outside.any(axis=1).sum())}
        inside.append(np.clip(array, floor, ceiling))
        lows_used.append(tuple(map(float, floor)) if otherwise == "rescale" else lows)
        highs_used.append(tuple(map(float, ceiling)) if otherwise == "rescale" else highs)
    done: dict[str, Any] = {otherwise: record} if record else {}
    return inside, tuple(lows_used), tuple(highs_used), done


def _shown(value: Any) -> str:
    """A value for a message, short, whatever its own repr does."""
    try:
        return f"{value!r:.60}"
    except Exception:
        return f"a {type(value).__name__}"


def _of(field: str, agent: str | None) -> str:
    return field if agent is None else f"{field} of {agent!r}"
