"""What a team does: episodes of particle worlds for the canvas, numbers of all others."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from spacql.errors import SpacqlError
from spacql.report.source import Trained, dataset_of
from spacql.report.teams import Team

EPISODES = 3  # of each team
ROWS = 40  # of a table
LOGGED = 4096  # rows of the log that are looked at
PLACES = 3  # digits of a position


def moving(team: Team) -> dict[str, Any] | None:
    """Episodes of a team's first policy as what the page draws; None where none can be drawn."""
    import jax

    from spacql.policies import Policy
    from spacql.runs import world_of
    from spacql.worlds import rollout
    from spacql.worlds.render import states_of
    from spacql.worlds.world import is_jax

    policy, run = policy_of(team)
    if policy is None or run is None or run.folder is None:
        return None
    try:
        prey = Policy.load(run.folder / "prey") if (run.folder / "prey.json").exists() else None
        world: Any = world_of({"task": run.task, "prey": run.prey}, prey)
        if not is_jax(world):
            return None
        (found,) = rollout(world, policy, jax.random.key(run.seed), EPISODES, trajectories=True)
    except SpacqlError:
        return None
    chased = world.spec.task in ("tag", "world")
    sizes = [float(size) for size in world.bodies.size]
    episodes = []
    for k in range(EPISODES):
        states = states_of(world, [o[k] for o in found.observations])
        so_far = np.concatenate([[0.0], np.cumsum(found.rewards[k].mean(axis=-1))])
        position = np.stack([np.asarray(state.position) for state in states])
        episodes.append(
            {
                "position": position.round(PLACES).tolist(),
                "landmarks": np.asarray(states[0].landmarks).round(PLACES).tolist(),
                "reward": so_far.round(2).tolist(),
            }
        )
    furthest = max(np.abs(np.array(e["position"])).max() for e in episodes)
    return {
        "name": f"{team.label} on {team.dataset}, seed {run.seed}",
        "task": world.spec.task,
        "start": float(world.extent),
        "extent": max(1.1 * float(world.extent), float(furthest) + max(sizes)),
        "agents": [
            {"size": size, "prey": chased and k == len(sizes) - 1} for k, size in enumerate(sizes)
        ],
        "landmarks": [
            {"look": look, "size": float(size)}
            for look, size in zip(cycle(world.looks), world.bodies.landmark_size, strict=False)
        ],
        "episodes": episodes,
    }


def policy_of(team: Team) -> tuple[Any, Trained | None]:
    """The policy of the first seed that has one."""
    from spacql.policies import Policy

    for run in team.runs:
        if run.folder is not None and (run.folder / "policy.json").is_file():
            try:
                return Policy.load(run.folder), run
            except SpacqlError:
                continue
    return None, None


def beside_the_log(team: Team) -> tuple[list[str], list[list[Any]]] | None:
    """Steps of a logged episode: what each agent did, and what its policy would do there."""
    policy, run = policy_of(team)
    log = None if run is None else dataset_of(run)
    if log is None:
        return None
    stop = min(int(log.starts[1]) - 1, ROWS)
    seen = [np.asarray(o[:stop]) for o in log.observations]
    chosen = policy.act(seen)
    head = ["step"]
    for agent in log.spec.agents:
        head += [f"{agent}: log", f"{agent}: policy"]
    rows = []
    for step in range(stop):
        row: list[Any] = [(str(step), step)]
        for logged, mine in zip(log.actions, chosen, strict=True):
            row += [_vector(logged[step]), _vector(mine[step])]
        rows.append([*row, (f"{log.team_reward[step]:.3g}", float(log.team_reward[step]))])
    return [*head, "team reward in the log"], rows


def departure(team: Team) -> list[tuple[str, float, float]] | None:
    """How far each agent's policy leaves the log: agent, distance between its action and the
    logged one (root of the mean square over coordinates), and the spread of the logged actions
    around their mean."""
    policy, run = policy_of(team)
    log = None if run is None else dataset_of(run)
    if log is None:
        return None
    rows = log.transition_rows()
    picked = np.sort(np.random.default_rng(0).choice(rows, min(LOGGED, len(rows)), replace=False))
    chosen = policy.act([np.asarray(o[picked]) for o in log.observations])
    found = []
    for agent, logged, mine in zip(log.spec.agents, log.actions, chosen, strict=True):
        logged = np.asarray(logged[picked], np.float64)
        apart = float(np.sqrt(((mine - logged) ** 2).mean()))
        spread = float(np.sqrt(((logged - logged.mean(axis=0)) ** 2).mean()))
        found.append((str(agent), apart, spread))
    return found


def _vector(values: Sequence[float]) -> str:
    return " ".join(f"{v:z.2f}" for v in values)
