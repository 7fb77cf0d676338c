"""Episodes of any policy in any world: compiled and thousands at once where the world is JAX."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.policies import Policy
from spacql.policies.policy import check_order
from spacql.worlds.world import is_jax

CHUNK = 2048  # episodes at once; bounds the memory of a compiled rollout


@dataclass(frozen=True)
class Trajectories:
    """Episodes of one length T. Observations and actions have T + 1 entries: the last action is
    what the policy would have done at the last observation, and was not carried out."""

    observations: tuple[np.ndarray, ...]  # per agent (episodes, T + 1, size)
    actions: tuple[np.ndarray, ...]  # per agent (episodes, T + 1, size)
    rewards: np.ndarray  # (episodes, T, agents)
    states: np.ndarray  # (episodes, T + 1, state size); size 0 without a global state
    terminated: np.ndarray  # (episodes,) whether the episode ended by itself

    @property
    def returns(self) -> np.ndarray:
        """Sum of rewards, (episodes, agents)."""
        return self.rewards.sum(axis=1, dtype=np.float64)


def rollout(
    world: Any,
    policy: Policy,
    key: Array,
    episodes: int,
    *,
    trajectories: bool = False,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Run `episodes` episodes. Returns the returns (episodes, agents), or with `trajectories`
    a list of `Trajectories`.

    Episode e is determined by `key` and e, so a longer run begins with the shorter one: up to
    rounding, since fewer than `CHUNK` episodes are compiled as so many.
    `workers` processes share the episodes of a world outside JAX. `progress` is called with the
    number of episodes that have just finished.
    """
    parts = []
    for part in episode_chunks(
        world, policy, key, episodes, trajectories=trajectories, workers=workers
    ):
        parts.append(part)
        if progress is not None:
            progress(len(part.rewards) if trajectories else len(part))
    return parts if trajectories else np.concatenate(parts)


def episode_chunks(
    world: Any,
    policy: Policy,
    key: Array,
    episodes: int,
    *,
    trajectories: bool = True,
    workers: int = 1,
) -> Iterator[Any]:
    """The same, a bounded chunk of episodes at a time."""
    check_fit(world, policy)
    if episodes < 1:
        raise InputError(f"Asked for {episodes} episodes; at least 1 is needed.")
    if workers < 1:
        raise InputError(f"Asked for {workers} workers; at least 1 is needed.")
    if is_jax(world):
        anonymous = Policy(policy.actors)  # another name is no reason to compile again
        chunk = min(CHUNK, episodes)
        for start in range(0, episodes, chunk):
            count = min(chunk, episodes - start)
            # The last chunk runs at full size and is cut: one compiled shape serves all.
            numbers = jnp.arange(start, start + chunk)
            result = _compiled(world, anonymous, key, numbers, trajectories)
            yield jax.tree.map(lambda x, count=count: np.asarray(x)[:count], result)
    else:
        from spacql.worlds.host import host_episodes

        for trajectory in host_episodes(world, policy, key, episodes, workers):
            yield trajectory if trajectories else trajectory.returns


def check_fit(world: Any, policy: Policy) -> None:
    """Refuse a policy that was made for other agents than the world's."""
    seen = tuple(actor.observation_size for actor in policy.actors)
    acted = tuple(len(actor.low) for actor in policy.actors)
    spec = world.spec
    if seen != spec.observation_sizes or acted != spec.action_sizes:
        raise InputError(
            f"The policy {policy.name!r} does not fit the world {spec.task!r}: it observes {seen} "
            f"numbers and acts with {acted}; the world has {spec.observation_sizes} and "
            f"{spec.action_sizes}."
        )
    check_order(policy, spec)


@eqx.filter_jit
def _compiled(world: Any, policy: Policy, key: Array, numbers: Array, trajectories: bool) -> Any:
    # Episodes lie along the last axis of every array: see `spacql.worlds.particle`.
    act = jax.vmap(policy, in_axes=(-1, 0), out_axes=-1)

    def keys_of(number: Array) -> tuple[Array, Array]:
        start, acting = jax.random.split(jax.random.fold_in(key, number))
        return start, jax.random.split(acting, world.spec.horizon + 1)

    def step(state: Any, keys: Array) -> tuple[Any, Any]:
        observations = world.observe(state)
        actions = act(observations, keys)
        state, rewards = world.step(state, jnp.stack(actions))
        return state, (observations, actions, rewards) if trajectories else rewards

    starts, keys = jax.vmap(keys_of, out_axes=(0, 1))(numbers)
    state = jax.vmap(world.reset, out_axes=-1)(starts)
    # The last action, too, is chosen, and carried out for nothing: to treat it like the others
    # takes half the time to compile.
    _, history = jax.lax.scan(step, state, keys)
    if not trajectories:
        return jnp.sum(history[:-1], axis=0).T
    observations, actions, rewards = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), history)
    fields: dict[str, Any] = {
        "observations": observations,
        "actions": actions,
        "rewards": rewards[:, :-1],
        "states": jnp.zeros((len(numbers), world.spec.horizon + 1, 0)),
        "terminated": jnp.zeros(len(numbers), bool),
    }
    return Trajectories(**fields)


jax.tree_util.register_dataclass(
    Trajectories,
    data_fields=["observations", "actions", "rewards", "states", "terminated"],
    meta_fields=[],
)
