"""Which columns of a table hold what: those that a mapping names, or those whose names say it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spacql.data.formats.cells import empty
from spacql.errors import DataError, suggestion

Table = Mapping[str, np.ndarray]  # columns of equal length
KEYS = ("episode", "step", "agent", "observations", "actions", "reward", "terminal", "action_low",
        "action_high", "task")  # fmt: skip
PREFIXES = {"observations": ("observation", "obs"), "actions": ("action",)}
TERMINALS = ("terminal", "terminals", "terminated")
UNCLEAR = ("done", "dones")  # the task's own end, or a time limit?


def check_keys(mapping: Mapping[str, Any]) -> None:
    unknown = [key for key in mapping if key not in KEYS]
    if unknown:
        raise DataError(
            f"The mapping has an unknown key {unknown[0]!r}.{suggestion(unknown[0], KEYS)} "
            f"Keys: {', '.join(KEYS)}."
        )


def required(table: Table, mapping: Mapping[str, Any], key: str) -> str:
    """The name of a column that must be there."""
    found = column(table, {key: key, **mapping}, key)
    assert found is not None  # a column that is named and missing was refused
    return found


def column(table: Table, mapping: Mapping[str, Any], key: str) -> str | None:
    """The name of a column, if it is there."""
    name = mapping.get(key, key)
    if not isinstance(name, str):
        raise DataError(f"The mapping's {key!r} must be the name of a column.")
    if name in table:
        return name
    if key in mapping:
        raise _no_column(table, name, key)
    return None


def _no_column(table: Table, name: Any, key: str) -> DataError:
    return DataError(
        f"There is no column {name!r} for {key!r}.{suggestion(str(name), table)} Columns: "
        f'{", ".join(list(table)[:30])}. Name it with --mapping, as {{"{key}": "COLUMN"}}.'
    )


def of_agents(
    table: Table, mapping: Mapping[str, Any], field: str, rows: Mapping[str, np.ndarray] | None
) -> dict[str, list[str]]:
    """The columns of each agent's observations or actions, at least one.

    `rows` are those of each agent; None where a row is a step of all of them.
    """
    given = mapping.get(field)
    if given is None:
        found = [name for name in table if name.startswith(PREFIXES[field])]
        if not found:
            prefixes = " or ".join(map(repr, PREFIXES[field]))
            raise DataError(
                f"No columns of {field} were found: their names begin with {prefixes}, or a "
                "mapping names them."
            )
        given = _by_name(found) if rows is None else found
    if isinstance(given, list):
        if rows is None:
            raise DataError(
                f"The mapping's {field!r} is one list, and there is no column 'agent': name the "
                f'columns of each agent, as {{"{field}": {{"kitchen": [...]}}}}.'
            )
        _exist(table, given)
        given = {
            who: [name for name in given if not empty(table[name][mine]).all()]
            for who, mine in rows.items()
        }
    if not isinstance(given, Mapping) or not all(isinstance(x, list) for x in given.values()):
        raise DataError(f"The mapping's {field!r} is neither a list of columns nor one per agent.")
    if rows is not None and (other := sorted(set(given) ^ set(rows))):
        where = "column of agents" if other[0] in given else f"mapping's {field!r}"
        raise DataError(f"The agent {other[0]!r} is not in the {where}: both must have the same.")
    if not given:
        raise DataError(f"The mapping's {field!r} names no agent.")
    for who, names in given.items():
        _exist(table, names)
        if not names:
            raise DataError(f"{who!r} has no columns of {field}, or all of their cells are empty.")
    return {who: list(names) for who, names in given.items()}


def _by_name(found: Iterable[str]) -> dict[str, list[str]]:
    """Columns by the agent's name, which follows a dot."""
    given: dict[str, list[str]] = {}
    for name in found:
        stem, dot, who = name.partition(".")
        if not dot:
            raise DataError(
                f"The column {name!r} does not say whose it is: without a column 'agent', "
                f"names end in the agent's, as {stem}.kitchen, or a mapping says it."
            )
        given.setdefault(who, []).append(name)
    return given


def _exist(table: Table, names: Iterable[Any]) -> None:
    for name in names:
        if not isinstance(name, str) or name not in table:
            raise DataError(f"There is no column {name!r}.{suggestion(str(name), table)}")


def rewards(
    table: Table, mapping: Mapping[str, Any], agents: Sequence[str], long: bool
) -> dict[str, str]:
    """The column of each agent's reward, which may be the same for all."""
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
            raise _no_column(table, name, "reward")
    return dict(given)


def terminals(table: Table, mapping: Mapping[str, Any], agents: Sequence[str]) -> list[str]:
    """The columns that say whether the task itself ended: one, or one an agent after a dot.

    There are none where a log does not say it, or a mapping says that it does not (null).
    """
    if "terminal" in mapping:
        name = None if mapping["terminal"] is None else column(table, mapping, "terminal")
        return [] if name is None else [name]
    for known in (TERMINALS, UNCLEAR):
        found: dict[str, list[str]] = {}
        for name in table:
            stem, dot, who = name.partition(".")
            if stem in known and (not dot or who in agents):
                found.setdefault(stem, []).append(name)
        if len(found) > 1 or (found and known is UNCLEAR):
            raise DataError(
                f"From {' and '.join(map(repr, found))} it is not clear whether the task itself "
                "ended or a time limit cut the episode. Name the column that says the former with "
                '--mapping, as {"terminal": "COLUMN"}, or {"terminal": null} if none does.'
            )
        if found:
            return next(iter(found.values()))
    return []


def bound(given: Any, agents: Sequence[str], default: float) -> Any:
    """A number for all, or one entry (number or list) per agent."""
    if given is None:
        return default
    if isinstance(given, Mapping):
        missing = [who for who in agents if who not in given]
        if missing:
            raise DataError(f"The mapping's bounds say nothing of {missing[0]!r}.")
        return [given[who] for who in agents]
    return given
