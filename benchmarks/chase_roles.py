"""What do the predators of a team in tag or world do?

    python benchmarks/chase_roles.py TASK          straight pursuits, and the expert behaviours
    python benchmarks/chase_roles.py TASK RUN...   e.g. world runs/reproduce/world-random

One line a team, over 500 episodes: its score; the predators' mean distances from the prey in the
second half of an episode, the nearest first; and the touches of a step then. In a pursuit a
predator accelerates straight towards the prey; one that stays away accelerates away from it.
"""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.data.behaviours import SEEDS, behaviour, record
from spacql.policies import Policy
from spacql.worlds import make, rollout

EPISODES = 500


class Pursue(eqx.Module):
    """Full force towards the prey, or with `sign` -1 away from it."""

    observation_size: int = eqx.field(static=True)
    prey_at: int = eqx.field(static=True)
    sign: float = eqx.field(static=True)
    low: tuple[float, ...] = (-1.0, -1.0)
    high: tuple[float, ...] = (1.0, 1.0)

    def __call__(self, observation: Array, key: Array) -> Array:
        prey = observation[..., self.prey_at : self.prey_at + 2]
        return self.sign * prey / jnp.max(jnp.abs(prey), axis=-1, keepdims=True)


def line(name: str, world: object, policy: Policy) -> None:
    (prey_at, touching), known = _constants(world), record(world.spec.task)
    parts = rollout(world, policy, jax.random.key(0), EPISODES, trajectories=True)
    seen = np.concatenate([np.stack(part.observations, axis=-2) for part in parts])
    late = seen[:, world.spec.horizon // 2 :, :, prey_at : prey_at + 2]
    distance = np.linalg.norm(late, axis=-1)  # (episodes, steps, predators)
    nearest = np.sort(distance.mean(axis=1), axis=-1).mean(axis=0)
    touches = (distance < touching).sum(axis=-1).mean()
    returns = np.concatenate([part.returns for part in parts]).mean()
    random, expert = known["random"]["return"], known["expert"]
    score = 100 * (returns - random) / (expert - random)
    print(f"{score:6.1f}   {'  '.join(f'{d:.2f}' for d in nearest)}   {touches:7.3f}   {name}")


def _constants(world: object) -> tuple[int, float]:
    """Where a predator sees the prey, and the distance of a touch."""
    size = world.bodies.size
    return 4 + 2 * len(world.looks) + 2 * (world.spec.n_agents - 1), size[0] + size[-1]


def main(task: str, *folders: str) -> None:
    world = make(task)
    print(" score   distances          touches   team")
    if not folders:
        n, size = world.spec.n_agents, world.spec.observation_sizes[0]
        for away in range(n):
            signs = [1.0] * (n - away) + [-1.0] * away
            actors = tuple(Pursue(size, _constants(world)[0], sign) for sign in signs)
            name = f"pursuit, {away} of {n} stay away"
            line(name, world, Policy(actors, name=name, agents=world.spec.agents))
        for seed in SEEDS:
            line(f"{task}-expert, seed {seed}", world, behaviour(task, "expert", seed))
    found = sorted({p.parent for folder in folders for p in Path(folder).rglob("result.json")})
    if folders and not found:
        sys.exit(f"No finished run below: {', '.join(folders)}")
    for run in found:
        line(str(run), world, Policy.load(run))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("tag", "world"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
