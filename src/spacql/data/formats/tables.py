"""Tables of logs, from CSV or Parquet: one row per step and agent, or one row per step.

Columns are found by their names, or by a mapping file (JSON) that names them:

    {"episode": "run", "step": "t", "agent": "who",
     "observations": ["temperature", "price"], "actions": ["power"], "reward": "r",
     "terminal": "done", "action_low": 0, "action_high": {"kitchen": 4, "living": 3}}

*One row per step and agent* (there is a column `agent`): `observations` and `actions` are lists of
columns that all agents share, or one list for each agent; a cell that an agent does not use is
empty. *One row per step*: they map every agent to its columns, and so may `reward`.

Without a mapping: `episode`, `step`, `agent`, `reward`, `terminal` (or `terminals`, `terminated`),
and every column that begins with `observation` or `obs` and with `action`; in tables of one row per
step these end in the agent's name after a dot, as `obs_1.kitchen`, `action.kitchen`,
`reward.kitchen`. An episode is over for the team when the task ended for any of its agents.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spacql.data.build import from_episodes
from spacql.data.checks import OutOfBounds
from spacql.data.dataset import Dataset
from spacql.data.formats import cells, columns
from spacql.data.formats.columns import Table
from spacql.errors import DataError, InputError
from spacql.files import read_record


class Brought(NamedTuple):
    """What a file holds: its columns, and the names of those that are no cells."""

    columns: dict[str, np.ndarray]
    others: tuple[str, ...] = ()


def from_files(
    source: Path | str,
    ending: str,
    read: Callable[[Path], Brought],
    bounds: OutOfBounds,
    mapping: Path | None,
) -> Dataset:
    """A dataset from one file, or from a folder of files that are read one after the other."""
    source = Path(source)
    files = sorted(source.glob(f"*.{ending}")) if source.is_dir() else [source]
    if not files:
        raise InputError(f"There is no .{ending} file in {source}.")
    parts = [read(file) for file in files]
    first = parts[0]
    for file, part in zip(files, parts, strict=True):
        if list(part.columns) != list(first.columns):
            raise DataError(f"{file} has other columns than {files[0]}.")
    whole = {name: cells.joined([part.columns[name] for part in parts]) for name in first.columns}
    brought = read_record(mapping, dict[str, Any]) if mapping else {}
    return from_table(whole, brought, source.stem, bounds, first.others)


def from_table(
    table: Table,
    mapping: Mapping[str, Any],
    name: str,
    bounds: OutOfBounds = "refuse",
    others: tuple[str, ...] = (),
) -> Dataset:
    """A dataset from the columns of a table. Anything ambiguous is refused with the fix.

    Its `info` says which columns were not used; `others` are some that could not be.
    """
    columns.check_keys(mapping)
    if not table or not len(next(iter(table.values()))):
        raise DataError(f"{name} holds no rows.")
    episode, step = (columns.required(table, mapping, key) for key in ("episode", "step"))
    agent = columns.column(table, mapping, "agent")
    whose = None if agent is None else cells.text(cells.filled(agent, table[agent]))
    rows = _rows(
        cells.filled(episode, table[episode]), table[step], cells.number(step, table[step]), whose
    )

    def where(row: int) -> str:
        of = "" if whose is None else f", {str(whose[row])[:30]!r}"
        return f"episode {table[episode][row]}, step {table[step][row]}{of}"

    mine = None if agent is None else rows
    seen, acted = (
        columns.of_agents(table, mapping, field, mine) for field in ("observations", "actions")
    )
    if set(seen) != set(acted):
        raise DataError(
            f"The agents with observations ({', '.join(seen)}) are not those with actions "
            f"({', '.join(acted)})."
        )
    agents = tuple(seen)
    paid = columns.rewards(table, mapping, agents, long=agent is not None)
    ends = columns.terminals(table, mapping, agents)
    if agent is None:
        rows = dict.fromkeys(agents, rows[""])
    one = rows[agents[0]]
    ended = np.zeros(len(one), bool)
    for end in ends:
        found = cells.flags(end, table[end], where)
        ended |= np.any([found[rows[who]] for who in agents], axis=0)
    parts = {
        "observations": {who: cells.numbers(table, seen[who], rows[who], where) for who in agents},
        "actions": {who: cells.numbers(table, acted[who], rows[who], where) for who in agents},
        "rewards": {
            who: cells.numbers(table, [paid[who]], rows[who], where)[:, 0] for who in agents
        },
    }
    episodes, cut = _episodes(parts, ended, table[episode][one], table[step][one])
    if not episodes:
        raise DataError(f"{name}: no episode has two rows, which a step and what followed take.")
    used = {episode, step, agent, *paid.values(), *ends}
    used |= {x for names in (*seen.values(), *acted.values()) for x in names}
    low, high = (columns.bound(mapping.get(key), agents, default) for key, default in
                 (("action_low", -1.0), ("action_high", 1.0)))  # fmt: skip
    task = str(mapping.get("task", name))
    left = [*(x for x in table if x not in used), *others]
    return from_episodes(
        episodes, agents=agents, action_low=low, action_high=high, bounds=bounds, task=task,
        info={"name": task, **({"columns_not_used": left} if left else {}),
              **({"last_steps_left_out": cut} if cut else {})},
    )  # fmt: skip


def _rows(
    episode: np.ndarray, step: np.ndarray, at: np.ndarray, agent: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Every agent's rows, by episode in the order of first rows, and in it by step.

    Without a column of agents they are those of ''. `at` are the steps as numbers. All agents have
    the same steps. That is seen before any other column is looked at, since a wrong column may hold
    as many names as rows.
    """
    names, number = np.array([""], object), np.zeros(len(episode), np.int64)
    if agent is not None:
        names, number = np.unique(agent, return_inverse=True)
    _, first_row, which = np.unique(episode, return_index=True, return_inverse=True)
    began = first_row[which]
    order = np.lexsort((at, began, number))
    same = np.all([np.diff(x[order]) == 0 for x in (number, began, at)], axis=0)
    if same.any():
        row = order[np.flatnonzero(same)[0]]
        whose = "" if agent is None else f" of {agent[row]!r}"
        hint = " If rows are of different agents, name the column that says whose."
        raise DataError(
            f"Episode {episode[row]} has step {step[row]}{whose} twice."
            + (hint if agent is None else "")
        )
    counts = np.bincount(number)
    other = np.flatnonzero(counts != counts[0])
    if not len(other):
        grid = order.reshape(len(names), -1)
        unlike = (began[grid] != began[grid[0]]) | (at[grid] != at[grid[0]])
        other = np.flatnonzero(unlike.any(axis=1))
    if len(other):
        raise DataError(
            f"{names[other[0]]!r} and {names[0]!r} do not have the same steps: a team's agents "
            "need a row each at every step of every episode."
        )
    return dict(zip(names.tolist(), grid, strict=True))


def _episodes(
    parts: Mapping[str, Mapping[str, np.ndarray]],
    ended: np.ndarray,
    episode: np.ndarray,
    step: np.ndarray,
) -> tuple[list[dict[str, Any]], int]:
    """Rows are transitions; an episode that the task did not end has its last row as the final
    observation, since nothing is known of what followed. With one row it has no transition.

    Beside the episodes stands how many of them lost their last step in this way."""
    cuts = np.flatnonzero(episode[1:] != episode[:-1]) + 1
    found, cut = [], 0
    for rows in np.split(np.arange(len(step)), cuts):
        inside, end = ended[rows[:-1]], bool(ended[rows[-1]])
        if inside.any():
            raise DataError(
                f"Episode {episode[rows[0]]} goes on after a terminal step "
                f"({step[rows[:-1]][inside][0]}). Give what follows another episode."
            )
        cut += not end
        if len(rows) == 1 and not end:
            continue
        # What was seen at the end is not logged, and no target looks at it.
        more = np.append(rows, rows[-1]) if end else rows
        of = {"observations": more, "actions": more, "rewards": more[:-1]}
        log = {field: {who: x[of[field]] for who, x in parts[field].items()} for field in parts}
        found.append({**log, "terminated": end})
    return found, cut
