"""Who does what in a team: the landmarks of spread, the distances of a chase, and actions that are
always the same. What a score does not say, measured in the team's own episodes."""

from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.policies import Policy
from spacql.reference import Reference, reference
from spacql.worlds import make, rollout

TASKS = ("spread", "tag", "world")
LANDMARKS = slice(4, 10)  # of an observation in spread: the landmarks, relative to the agent
AT_BOUND, SAME = 0.95, 0.01


@dataclass(frozen=True)
class Roles:
    """Of one team, over many episodes."""

    score: float | None
    at_bound: float  # share of the actions that are at a bound
    same: int  # coordinates of the joint action that are always the same: their tanh is saturated
    coordinates: int
    # In spread: shares of episodes that end with 1, 2, 3 different nearest landmarks; and with each
    # agent at the landmark where it ends most often.
    landmarks: tuple[float, ...] = ()
    favourites: tuple[float, ...] = ()
    # In a chase, in the second half of an episode: the predators' mean distances from the prey, the
    # nearest first; and touches per step.
    distances: tuple[float, ...] = ()
    touches: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def roles(
    policy: Policy,
    task: str,
    episodes: int = 500,
    seed: int = 0,
    *,
    world: Any = None,
    scale: Reference | None = None,
) -> Roles:
    """What the agents of a team do in spread, tag or world. `world` is the task's with another prey
    than the shipped one, and `scale` has the returns that count as 0 and 100 there."""
    if task not in TASKS:
        raise InputError(f"Roles are known in {', '.join(TASKS)}, not in {task!r}.")
    world = make(task) if world is None else world
    parts = rollout(world, policy, jax.random.key(seed), episodes, trajectories=True)
    seen = np.concatenate([np.stack(part.observations, axis=-2) for part in parts])
    actions = np.concatenate([np.concatenate(part.actions, axis=-1) for part in parts])
    flat = actions.reshape(-1, actions.shape[-1])
    scale = scale or reference(world.spec)
    returned = float(np.concatenate([part.returns for part in parts]).mean())
    more = _landmarks(seen) if task == "spread" else _chase(world, seen)
    return Roles(
        score=None if scale is None else scale.score(returned),
        at_bound=float(np.mean(np.abs(flat) > AT_BOUND)),
        same=int(np.sum(flat.std(axis=0) < SAME)),
        coordinates=flat.shape[-1],
        **more,
    )


def _landmarks(seen: np.ndarray) -> dict[str, Any]:
    """Of observations (episodes, steps, agents, size)."""
    ends = seen[:, -1, :, LANDMARKS]
    nearest = np.linalg.norm(ends.reshape(*ends.shape[:2], 3, 2), axis=-1).argmin(axis=-1)
    taken = np.array([len(set(row)) for row in nearest])
    return {
        "landmarks": tuple((np.bincount(taken, minlength=4)[1:] / len(taken)).tolist()),
        "favourites": tuple(float(np.bincount(c).max() / len(c)) for c in nearest.T),
    }


def _chase(world: Any, seen: np.ndarray) -> dict[str, Any]:
    at, size = prey_at(world), world.bodies.size
    late = seen[:, world.spec.horizon // 2 :, :, at : at + 2]
    distance = np.linalg.norm(late, axis=-1)  # (episodes, steps, predators)
    touching = distance < size[0] + size[-1]
    return {
        "distances": tuple(np.sort(distance.mean(axis=1), axis=-1).mean(axis=0).tolist()),
        "touches": float(touching.sum(axis=-1).mean()),
    }


def prey_at(world: Any) -> int:
    """Where a predator sees the prey: after itself, the landmarks and the other predators."""
    return 4 + 2 * len(world.looks) + 2 * (world.spec.n_agents - 1)


class Pursue(eqx.Module):
    """Full force towards the prey, or with `sign` -1 away from it."""

    observation_size: int = eqx.field(static=True)
    prey_at: int = eqx.field(static=True)
    sign: Array
    low: tuple[float, ...] = eqx.field(static=True, default=(-1.0, -1.0))
    high: tuple[float, ...] = eqx.field(static=True, default=(1.0, 1.0))

    def __call__(self, observation: Array, key: Array | None = None) -> Array:
        prey = observation[..., self.prey_at : self.prey_at + 2]
        return self.sign * prey / jnp.max(jnp.abs(prey), axis=-1, keepdims=True)


def pursuit(task: str, away: int) -> Policy:
    """Predators that accelerate straight towards the prey, but for the last `away`, which
    accelerate away from it."""
    world = make(task)
    n, size = world.spec.n_agents, world.spec.observation_sizes[0]
    signs = [1.0] * (n - away) + [-1.0] * away
    actors = tuple(Pursue(size, prey_at(world), jnp.asarray(sign)) for sign in signs)
    return Policy(actors, name=f"pursuit, {away} of {n} stay away", agents=world.spec.agents)
