"""The prey of tag and world: what it is like, and how ours was trained and chosen.

Tag and world are as hard as their prey. The published one is not ours to ship, so ours is chosen
to be like it: by what simple predators get from it and how it moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.data import behaviours, matd3
from spacql.errors import InputError
from spacql.files import read_json
from spacql.policies import Policy, uniform
from spacql.progress import Advance
from spacql.worlds import make

TASKS = ("tag", "world")
EPISODES = 4000
TEAMS = ("uniform", "three", "two", "one")  # of predators whose returns are measured
Statistics = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """How a task's prey is trained: against predators that learn at the same time."""

    config: matd3.Config
    name: str
    snapshot: int  # iterations between snapshots
    seeds: tuple[int, ...]
    episodes: int = 2000  # to measure a snapshot


# What actions cost keeps the prey slow, and the early end keeps it from learning to escape.
_CONFIG = replace(behaviours.PARTICLE, teams=((0, 1, 2), (3,)))
RECIPES = {
    "tag": Recipe(
        config=replace(_CONFIG, iterations=2_500, action_cost=0.03),
        name="tag-prey-2",
        snapshot=50,
        seeds=(0, 1, 2, 3),
    ),
    "world": Recipe(
        config=replace(_CONFIG, iterations=600, action_cost=0.01),
        name="world-prey-2",
        snapshot=20,
        seeds=(0, 1, 2, 3, 4, 5),
    ),
}


def train(task: str, folder: Path, advance: Advance) -> Iterator[tuple[int, int, Statistics]]:
    """Train preys, keep every snapshot, save the one that is most like the published as
    `folder/<task>-prey`. Yields seed, iteration and statistics of each snapshot.
    """
    recipe, world = RECIPES[task], make(task, prey=None)
    total = len(recipe.seeds) * recipe.config.iterations
    best, least = folder, np.inf
    for seed in recipe.seeds:
        carry = matd3.start(world, recipe.config, seed)
        for iteration in range(recipe.snapshot, recipe.config.iterations + 1, recipe.snapshot):
            carry, _ = matd3.run(world, carry, recipe.config, recipe.snapshot)
            actor = matd3.to_policy(carry.learner.online.actors, world.spec, "").actors[-1]
            prey = Policy((actor,), name=recipe.name, agents=("prey",))
            place = folder / f"{task}-prey-{seed}" / f"{iteration}"
            prey.save(place)
            found = statistics(task, prey, recipe.episodes)
            advance(recipe.snapshot / total)
            yield seed, iteration, found
            if (off := unlikeness(task, found)) < least:
                best, least = place, off
    Policy.load(best).save(folder / f"{task}-prey")  # training has taken back the arrays


def unlikeness(task: str, found: Statistics) -> float:
    """How far a prey's statistics are from the published, the furthest in units of its tolerance.

    Tolerated are 10 % or 5 points of every return, whichever is more, and 15 % of the speed.
    """
    published = published_statistics()[task]
    off = [abs(found["speed"] - published["speed"]) / (0.15 * published["speed"])]
    for team in TEAMS:
        wanted = published[team]["return"]
        off.append(abs(found[team]["return"] - wanted) / max(5.0, 0.1 * abs(wanted)))
    return max(off)


@cache
def published_statistics() -> dict[str, Statistics]:
    """Those of the published preys, measured in the same way."""
    return read_json(behaviours.ASSETS / "published-prey.json")


def task_of(prey: Policy) -> str:
    """The task whose prey sees as many numbers."""
    sizes = tuple(actor.observation_size for actor in prey.actors)
    for task in TASKS:
        if sizes == make(task, prey=None).spec.observation_sizes[-1:]:
            return task
    raise InputError(
        f"{prey.name!r} is no prey: it has agents that see {sizes} numbers. The prey of tag is "
        "one agent that sees 14, that of world one that sees 22."
    )


def statistics(task: str, prey: Policy, episodes: int = EPISODES, seed: int = 0) -> Statistics:
    """Returns (mean and deviation of single episodes) of four teams of predators, and how the
    prey moves while the predators act uniformly."""
    world = make(task, prey=Policy(prey.actors))  # another name is no reason to compile again
    result: Statistics = {}
    teams = (uniform(world.spec), *(pursuit(world, hunters) for hunters in (3, 2, 1)))
    for name, team in zip(TEAMS, teams, strict=True):
        returned, speed, outward = _episodes(world, team, jax.random.key(seed), episodes)
        returns = np.asarray(returned, np.float64)
        result[name] = {"return": float(returns.mean()), "std": float(returns.std())}
        if name == "uniform":
            result["speed"] = float(np.mean(speed))
            result["outward"] = float(np.mean(outward))
            result["outward at the end"] = float(np.mean(outward[-1]))
    return result


class Pursue(eqx.Module):
    """A predator that accelerates straight at the prey (`sign` 1) or away from it (-1).

    Reads a predator's observation in tag or world, in which the prey's relative position is in
    the two columns from `prey_at`.
    """

    observation_size: int = eqx.field(static=True)
    prey_at: int = eqx.field(static=True)
    sign: Array  # no constant, so that all pursuits are one compiled program
    low: tuple[float, ...] = eqx.field(static=True, default=(-1.0, -1.0))
    high: tuple[float, ...] = eqx.field(static=True, default=(1.0, 1.0))

    def __call__(self, observation: Array, key: Array) -> Array:
        towards = observation[..., self.prey_at : self.prey_at + 2]
        size = jnp.sqrt(jnp.sum(towards**2, axis=-1, keepdims=True) + 1e-12)
        return self.sign * towards / size


def pursuit(world: Any, hunters: int) -> Policy:
    """The first `hunters` predators run straight at the prey, the others flee from it."""
    prey_at = world.chase.prey_sees_predators_at[1] - 2  # of the others, the prey is the last
    actors = tuple(
        Pursue(size, prey_at, jnp.asarray(1.0 if number < hunters else -1.0))
        for number, size in enumerate(world.spec.observation_sizes)
    )
    return Policy(actors, agents=world.spec.agents)


@eqx.filter_jit
def _episodes(world: Any, team: Policy, key: Array, episodes: int) -> tuple[Array, Array, Array]:
    """Returns (episodes,), the prey's speed and its larger |coordinate| (steps, episodes)."""
    act = jax.vmap(team, in_axes=(-1, 0), out_axes=-1)
    start, acting = jax.random.split(key)

    def step(state: Any, key: Array) -> tuple[Any, Any]:
        actions = act(world.observe(state), jax.random.split(key, episodes))
        state, rewards = world.step(state, jnp.stack(actions))
        position, velocity = state.position[-1], state.velocity[-1]
        speed = jnp.sqrt(velocity[0] ** 2 + velocity[1] ** 2)
        return state, (rewards[0], speed, jnp.max(jnp.abs(position), axis=0))

    state = jax.vmap(world.reset, out_axes=-1)(jax.random.split(start, episodes))
    keys = jax.random.split(acting, world.spec.horizon)
    _, (rewards, speed, outward) = jax.lax.scan(step, state, keys)
    return jnp.sum(rewards, axis=0), speed, outward
