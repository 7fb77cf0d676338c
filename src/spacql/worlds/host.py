"""Episodes in worlds outside JAX: a plain loop, in several processes when asked."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from spacql.policies import Policy
from spacql.worlds.rollout import Trajectories


def host_episodes(
    world: Any, policy: Policy, key: Array, episodes: int, workers: int
) -> Iterator[Trajectories]:
    """Episode after episode, in order, however many processes make them."""
    numbers = range(episodes)
    if workers <= 1 or episodes == 1:
        yield from (host_episode(world, policy, key, number) for number in numbers)
        return
    raise NotImplementedError


@eqx.filter_jit
def _act(policy: Policy, observations: tuple[np.ndarray, ...], key: Array) -> tuple[Array, ...]:
    return policy(observations, key)


def host_episode(world: Any, policy: Policy, key: Array, number: int) -> Trajectories:
    """One episode, until the world ends it or its horizon is reached."""
    start, acting = jax.random.split(jax.random.fold_in(key, number))
    keys = jax.random.split(acting, world.spec.horizon + 1)
    state = world.reset(start)
    observed, acted, rewarded, states = [], [], [], []
    for step_key in keys:
        observations = world.observe(state)
        actions = tuple(np.asarray(a) for a in _act(policy, observations, step_key))
        observed.append(observations)
        acted.append(actions)
        states.append(state.state)
        if state.terminated or state.truncated or len(rewarded) == world.spec.horizon:
            break
        state, rewards = world.step(state, actions)
        rewarded.append(rewards)
    stack = lambda rows: tuple(np.stack(column)[None] for column in zip(*rows, strict=True))  # noqa: E731
    return Trajectories(
        observations=stack(observed),
        actions=stack(acted),
        rewards=np.stack(rewarded)[None],
        states=np.stack(states)[None],
        terminated=np.array([state.terminated]),
    )
