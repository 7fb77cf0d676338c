"""Tables of logs, from CSV or Parquet: one row per step and agent, or one row per step.

Columns are found by their names, or by a mapping file (JSON) that names them:

    {"episode": "run", "step": "t", "agent": "who",
     "observations": ["temperature", "price"], "actions": ["power"], "reward": "r",
     "terminal": "done", "action_low": 0, "action_high": {"kitchen": 4, "living": 3}}

*One row per step and agent* (there is a column `agent`): `observations` and `actions` are lists of
columns that all agents share, or one list for each agent; a cell that an agent does not use is
empty. *One row per step*: they map every agent to its columns, and so may `reward`.

Without a mapping: `episode`, `step`, `agent`, `reward`, `terminal`, and every column that begins
with `observation` or `obs` and with `action`; in tables of one row per step these end in the
agent's name after a dot, as `obs_1.kitchen`, `action.kitchen`, `reward.kitchen`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacql.data.build import from_episodes
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.errors import DataError, InputError, suggestion
from spacql.files import read_record

Table = Mapping[str, np.ndarray]  # columns of equal length
FLAGS = {"1": True, "1.0": True, "true": True, "yes": True,
         "0": False, "0.0": False, "false": False, "no": False, "": False}  # fmt: skip
KEYS = ("episode", "step", "agent", "observations", "actions", "reward", "terminal", "action_low",
        "action_high", "task")  # fmt: skip


def from_files(
    source: Path | str,
    ending: str,
    read: Callable[[Path], dict[str, np.ndarray]],
    bounds: OutOfBounds,
    mapping: Path | None,
) -> Dataset:
    """A dataset from one file, or from a folder of files that are read one after the other."""
    source = Path(source)
    files = sorted(source.glob(f"*.{ending}")) if source.is_dir() else [source]
    if not files:
        raise InputError(f"There is no .{ending} file in {source}.")
    tables = [read(file) for file in files]
    for file, table in zip(files, tables, strict=True):
        if list(table) != list(tables[0]):
            raise DataError(f"{file} has other columns than {files[0]}.")
    whole = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    brought = read_record(mapping, dict[str, Any]) if mapping else {}
    return from_table(whole, brought, source.stem, bounds)


def from_table(
    table: Table, mapping: Mapping[str, Any], name: str, bounds: OutOfBounds = "refuse"
) -> Dataset:
    """A dataset from the columns of a table. Anything ambiguous is refused with the fix."""
    unknown = [key for key in mapping if key not in KEYS]
    if unknown:
        raise DataError(
            f"The mapping has an unknown key {unknown[0]!r}.{suggestion(unknown[0], KEYS)} "
            f"Keys: {', '.join(KEYS)}."
        )
    if not table or not len(next(iter(table.values()))):
        raise DataError(f"{name} holds no rows.")
    episode, step = (_required(table, mapping, key) for key in ("episode", "step"))
    agent = _column(table, mapping, "agent")
    long = agent is not None
    if agent is not None and agent.dtype.kind != "O":
        agent = agent.astype(str).astype(object)
    columns = {
        field: _columns(table, mapping, field, agent) for field in ("observations", "actions")
    }
    if set(columns["observations"]) != set(columns["actions"]):
        raise DataError(
            f"The agents with observations ({', '.join(columns['observations'])}) are not those "
            f"with actions ({', '.join(columns['actions'])})."
        )
    agents = tuple(columns["observations"])
    terminal = _column(table, mapping, "terminal")
    rewards = _rewards(table, mapping, agents, long)
    chosen = {
        who: (np.flatnonzero(agent == who) if agent is not None else slice(None)) for who in agents
    }
    _, first_row, number = np.unique(episode, return_index=True, return_inverse=True)
    began = first_row[number]  # episodes stand in the order of their first rows
    parts = {}
    for who, rows in chosen.items():
        at = _order(episode[rows], began[rows], step[rows], who if long else "")
        parts[who] = {
            "episode": episode[rows][at],
            "step": step[rows][at],
            "observations": _numbers(table, columns["observations"][who], rows, at),
            "actions": _numbers(table, columns["actions"][who], rows, at),
            "reward": _number(rewards[who], table[rewards[who]][rows][at]),
            "terminal": None if terminal is None else _flags(terminal[rows][at]),
        }
    first = parts[agents[0]]
    for who in agents[1:]:
        same = len(parts[who]["step"]) == len(first["step"]) and all(
            (parts[who][key] == first[key]).all() for key in ("episode", "step")
        )
        if not same:
            raise DataError(
                f"{who!r} and {agents[0]!r} do not have the same steps: a team's agents need a row "
                "each at every step of every episode."
            )
    ends = np.flatnonzero(first["episode"][1:] != first["episode"][:-1]) + 1
    ended = first["terminal"]
    episodes = [
        _episode({who: {k: None if v is None else v[part] for k, v in parts[who].items()}
                  for who in agents})
        for part in np.split(np.arange(len(first["step"])), ends)
        if len(part) > 1 or (ended is not None and ended[part[0]])  # else there is no transition
    ]  # fmt: skip
    if not episodes:
        raise DataError(f"{name}: no episode has two rows, which a step and what followed take.")
    low, high = (_bound(mapping.get(key), agents, default) for key, default in
                 (("action_low", -1.0), ("action_high", 1.0)))  # fmt: skip
    return from_episodes(
        episodes, agents=agents, action_low=low, action_high=high, bounds=bounds,
        task=str(mapping.get("task", name)), info={"name": str(mapping.get("task", name))},
    )  # fmt: skip


def _episode(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Rows are transitions; an episode that the task did not end has its last row as the final
    observation, since nothing is known of what followed."""
    first = next(iter(parts.values()))
    ended = first["terminal"] is not None and bool(first["terminal"][-1])
    inside = first["terminal"] is not None and first["terminal"][:-1].any()
    if inside:
        raise DataError(
            f"Episode {first['episode'][0]} goes on after a terminal step "
            f"({first['step'][:-1][first['terminal'][:-1]][0]}). Give what follows another episode."
        )
    last = None if ended else -1
    seen = {who: part["observations"] for who, part in parts.items()}
    if ended:  # what was seen at the end is not logged, and no target looks at it
        seen = {who: np.concatenate([x, x[-1:]]) for who, x in seen.items()}
    return {
        "observations": seen,
        "actions": {
            who: part["actions"] if not ended else np.concatenate([x, x[-1:]])
            for who, part in parts.items()
            for x in [part["actions"]]
        },
        "rewards": {who: part["reward"][:last] for who, part in parts.items()},
        "terminated": ended,
    }


def _required(table: Table, mapping: Mapping[str, Any], key: str) -> np.ndarray:
    found = _column(table, {key: key, **mapping}, key)
    assert found is not None  # a column that is named and missing was refused
    return found


def _column(table: Table, mapping: Mapping[str, Any], key: str) -> np.ndarray | None:
    name = mapping.get(key, key)
    if not isinstance(name, str):
        raise DataError(f"The mapping's {key!r} must be the name of a column.")
    if name in table:
        return table[name]
    if key in mapping:
        raise DataError(
            f"There is no column {name!r} for {key!r}.{suggestion(name, table)} Columns: "
            f'{", ".join(list(table)[:30])}. Name it with --mapping, as {{"{key}": "COLUMN"}}.'
        )
    return None


def _columns(
    table: Table, mapping: Mapping[str, Any], field: str, agent: np.ndarray | None
) -> dict[str, list[str]]:
    """Which columns hold an agent's observations or actions."""
    given = mapping.get(field)
    known = [] if agent is None else sorted(set(agent))
    if given is None:
        prefixes = ("observation", "obs") if field == "observations" else ("action",)
        found = [name for name in table if name.startswith(prefixes)]
        if agent is not None:
            given = {who: _used(table, found, agent, who) for who in known}
        else:
            given = {}
            for name in found:
                stem, dot, who = name.partition(".")
                if not dot:
                    raise DataError(
                        f"The column {name!r} does not say whose it is: without a column 'agent', "
                        f"names end in the agent's, as {stem}.kitchen, or a mapping says it."
                    )
                given.setdefault(who, []).append(name)
        if not given or not all(given.values()):
            raise DataError(
                f"No columns of {field} were found: their names begin with "
                f"{' or '.join(map(repr, prefixes))}, or a mapping names them."
            )
    elif isinstance(given, list):
        if agent is None:
            raise DataError(
                f"The mapping's {field!r} is one list, and there is no column 'agent': name the "
                f'columns of each agent, as {{"{field}": {{"kitchen": [...]}}}}.'
            )
        given = {who: _used(table, given, agent, who) for who in known}
    if not isinstance(given, Mapping) or not all(isinstance(x, list) for x in given.values()):
        raise DataError(f"The mapping's {field!r} is neither a list of columns nor one per agent.")
    for names in given.values():
        for name in names:
            if not isinstance(name, str) or name not in table:
                raise DataError(f"There is no column {name!r}.{suggestion(str(name), table)}")
    return {str(who): list(names) for who, names in given.items()}


def _used(table: Table, names: Sequence[str], agent: np.ndarray, who: str) -> list[str]:
    """The shared columns that an agent has anything in."""
    rows = agent == who
    for name in names:
        if not isinstance(name, str) or name not in table:
            raise DataError(f"There is no column {name!r}.{suggestion(str(name), table)}")
    return [name for name in names if not _empty(table[name][rows]).all()]


def _rewards(
    table: Table, mapping: Mapping[str, Any], agents: Sequence[str], long: bool
) -> dict[str, str]:
    given = mapping.get("reward", "reward")
    if isinstance(given, str) and given not in table and not long:
        each = {who: f"{given}.{who}" for who in agents}
        if all(name in table for name in each.values()):
            return each
    if isinstance(given, str):
        given = dict.fromkeys(agents, given)
    if not isinstance(given, Mapping) or set(given) != set(agents):
        raise DataError("The mapping's 'reward' is neither a column nor one per agent.")
    for name in given.values():
        if not isinstance(name, str) or name not in table:
            raise DataError(
                f"There is no column {name!r} for the reward.{suggestion(str(name), table)}"
            )
    return dict(given)


def _order(episode: np.ndarray, began: np.ndarray, step: np.ndarray, who: str) -> np.ndarray:
    """Rows by episode, in the order of where it began, and in it by step."""
    at = _number("step", step)
    order = np.lexsort((at, began))
    same = (np.diff(began[order]) == 0) & (np.diff(at[order]) == 0)
    if same.any():
        row = order[np.flatnonzero(same)[0]]
        whose = f" of {who!r}" if who else ""
        hint = "" if who else " If rows are of different agents, name the column that says whose."
        raise DataError(f"Episode {episode[row]} has step {step[row]}{whose} twice.{hint}")
    return order


def _numbers(table: Table, names: Sequence[str], rows: Any, at: np.ndarray) -> np.ndarray:
    return np.stack([_number(name, table[name][rows][at]) for name in names], axis=1)


def _number(name: str, values: np.ndarray) -> np.ndarray:
    empty = _empty(values)
    if empty.any():
        raise DataError(f"The column {name!r} is empty in {int(empty.sum()):,} rows that need it.")
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError) as error:
        said = str(error)[:100]
        raise DataError(f"The column {name!r} holds what is no number: {said}.") from error


def _flags(values: np.ndarray) -> np.ndarray:
    meant = [FLAGS.get(str(value)[:6].lower()) for value in values]
    if None in meant:
        word = str(values[meant.index(None)])[:30]
        raise DataError(f"The column of terminals holds {word!r}, which is neither true nor false.")
    return np.array(meant, bool)


def _empty(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([v[:5].lower() in ("", "nan", "none", "null") for v in values], bool)
    return np.zeros(len(values), bool)


def _bound(given: Any, agents: Sequence[str], default: float) -> Any:
    """A number for all, or one entry (number or list) per agent."""
    if given is None:
        return default
    if isinstance(given, Mapping):
        missing = [who for who in agents if who not in given]
        if missing:
            raise DataError(f"The mapping's bounds say nothing of {missing[0]!r}.")
        return [given[who] for who in agents]
    return given
