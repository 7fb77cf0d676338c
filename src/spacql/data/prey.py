"""What a prey is like: how much simple predators get from it, how it moves, where it stays.

Tag and world are as hard as their prey. Its statistics stand beside those of the published prey,
which is not ours to ship.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.policies import Policy, uniform
from spacql.worlds import make

EPISODES = 4000


class Pursue(eqx.Module):
    """A predator that accelerates straight at the prey (`sign` 1) or away from it (-1).

    Reads a predator's observation in tag or world, in which the prey's relative position are the
    two columns from `prey_at`.
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
    spec = world.spec
    prey_at = world.chase.prey_sees_predators_at[1] - 2  # of the others, the prey is the last
    actors = tuple(
        Pursue(size, prey_at, jnp.asarray(1.0 if number < hunters else -1.0))
        for number, size in enumerate(spec.observation_sizes)
    )
    return Policy(actors, name=f"pursuit by {hunters}", agents=spec.agents)


def statistics(task: str, prey: Policy, episodes: int = EPISODES, seed: int = 0) -> dict[str, Any]:
    """Returns (mean and deviation of single episodes) of four teams of predators, and how the
    prey moves while the predators act uniformly."""
    world = make(task, prey=prey)
    key = jax.random.key(seed)
    anonymous = make(task, prey=Policy(prey.actors))  # another name must not compile again
    result: dict[str, Any] = {}
    for name, team in {
        "uniform": uniform(world.spec),
        "three": pursuit(world, 3),
        "two": pursuit(world, 2),
        "one": pursuit(world, 1),
    }.items():
        returns, speed, outward = _episodes(anonymous, Policy(team.actors), key, episodes)
        returns = np.asarray(returns, np.float64)
        result[name] = {"return": float(returns.mean()), "std": float(returns.std())}
        if name == "uniform":
            result["speed"] = float(np.mean(speed))
            result["outward"] = float(np.mean(outward))
            result["outward at the end"] = float(np.mean(outward[-1]))
    return result


@eqx.filter_jit
def _episodes(world: Any, team: Policy, key: Array, episodes: int) -> tuple[Array, Array, Array]:
    """Returns (episodes,), the prey's speed and larger |coordinate| (steps, episodes)."""
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
