"""`spacql roles`: who does what in a team."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tyro

if TYPE_CHECKING:
    from spacql.evaluation.roles import Roles
    from spacql.policies import Policy
    from spacql.reference import Reference


class Team(NamedTuple):
    task: str
    name: str
    policy: "Policy"
    world: Any = None  # that of its data, if it is not the task's usual one
    scale: "Reference | None" = None


def roles(
    where: tyro.conf.Positional[tuple[str, ...]],
    /,
    episodes: int = 500,
    json: bool = False,
) -> None:
    """Show what the agents of teams do in spread, tag or world: what a score does not say.

    WHERE is a folder, whose runs are all looked at, or a task, whose expert behaviours are (and in
    a chase also teams that run straight at the prey). One line per team: its score; how much of
    its actions is at a bound, and how many coordinates of them are always the same. In spread the
    share of episodes that end with one, two and three landmarks taken, and of those that each
    agent ends at its favourite. In a chase the predators' distances from the prey, the nearest
    first, and touches per step, both in the second half of an episode.

    Example: spacql roles world

    Args:
        where: Folders of runs, or tasks.
        episodes: Episodes per team.
        json: Print JSON instead of tables.
    """
    from json import dumps

    from spacql.errors import InputError
    from spacql.evaluation.roles import roles as measure

    if not where:
        raise InputError("Which runs? For example: spacql roles runs/spacql-spread-random")
    by_task: dict[str, dict[str, Roles]] = {}
    for team in (team for place in where for team in teams(place)):
        found = measure(team.policy, team.task, episodes, world=team.world, scale=team.scale)
        by_task.setdefault(team.task, {})[team.name] = found
    if json:
        listed = [
            {"task": task, "team": name, **entry.to_json()}
            for task, rows in by_task.items()
            for name, entry in rows.items()
        ]
        print(dumps(listed, indent=1))
        return
    for task, rows in by_task.items():
        show(task, rows)


def teams(place: str) -> Iterator[Team]:
    """All teams at a place. One that was trained is looked at where `spacql evaluate` scores it."""
    from spacql import records
    from spacql.data.behaviours import SEEDS, behaviour
    from spacql.errors import InputError, suggestion
    from spacql.evaluation.roles import TASKS, pursuit
    from spacql.policies import Policy
    from spacql.reference import Reference
    from spacql.runs import world_of

    if place in TASKS:
        if place != "spread":
            for away in range(3):
                team = pursuit(place, away)
                yield Team(place, team.name, team)
        for seed in SEEDS:
            yield Team(place, f"{place}-expert, seed {seed}", behaviour(place, "expert", seed))
        return
    folders = sorted(path.parent for path in Path(place).rglob("run.json"))
    folders = [folder for folder in folders if (folder / "policy.json").exists()]
    if not folders:
        raise InputError(
            f"There is no trained policy below {place}.{suggestion(place, TASKS)} "
            f"Tasks with shipped behaviours: {', '.join(TASKS)}."
        )
    for folder in folders:
        described = records.run(folder)
        task, stored, world = described["spec"]["task"], described["dataset"]["reference"], None
        if task in TASKS:  # else it is refused
            prey = Policy.load(folder / "prey") if (folder / "prey.json").exists() else None
            world = world_of(described["spec"], prey)
        scale = Reference.from_json(stored) if stored else None
        yield Team(task, str(folder), Policy.load(folder), world, scale)


def show(task: str, rows: "dict[str, Roles]") -> None:
    import numpy as np
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    spread = task == "spread"
    heads = ("1, 2, 3 landmarks", "favourites") if spread else ("distances", "touches")
    table = Table(task, "score", "at bounds", "same", *heads, box=None, padding=(0, 1, 0, 0))
    for name, found in rows.items():
        cells: list[Any]
        if spread:
            cells = [_percent(*found.landmarks), _percent(*found.favourites)]
        else:
            cells = [" ".join(f"{d:z.2f}" for d in found.distances), f"{found.touches:.3f}"]
        score = "" if found.score is None else f"{found.score:z.1f}"
        same = f"{found.same} of {found.coordinates}"
        table.add_row(escape(name), score, _percent(found.at_bound), same, *cells)
    Console().print(table)
    scored = [r for r in rows.values() if r.score is not None]
    if spread and len(scored) > 2 and len({r.landmarks[2] for r in scored}) > 1:
        three = np.corrcoef([r.score for r in scored], [r.landmarks[2] for r in scored])[0, 1]
        print(f"correlation of score and three landmarks: {three:z.2f}")


def _percent(*shares: float) -> str:
    return " ".join(f"{100 * share:z.0f} %" for share in shares)
