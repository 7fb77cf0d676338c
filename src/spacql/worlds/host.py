"""What worlds outside JAX share: checked actions, seeds, and episodes in several processes."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.policies import Policy
from spacql.spec import Spec
from spacql.worlds.particle import check_values
from spacql.worlds.rollout import Trajectories
from spacql.worlds.workers import in_processes


def seed_of(key: Array) -> int:
    """A seed for a simulator that has its own random numbers."""
    return int(jax.random.bits(key) >> 1)


def check_actions(spec: Spec, actions: Sequence[Any]) -> list[np.ndarray]:
    """The agents' actions as arrays, refused when they do not fit the spec."""
    if len(actions) != spec.n_agents:
        raise InputError(f"{spec.task}: got actions for {len(actions)} agents; "
                         f"this world has {spec.n_agents} ({', '.join(spec.agents)}).")  # fmt: skip
    arrays = [np.asarray(action) for action in actions]
    for agent, size, action in zip(spec.agents, spec.action_sizes, arrays, strict=True):
        if action.shape != (size,):
            raise InputError(f"{spec.task}: the action of {agent} has shape {action.shape}; "
                             f"expected ({size},).")  # fmt: skip
    check_values(spec, arrays)
    return arrays


def host_episodes(
    world: Any, policy: Policy, key: Array, episodes: int, workers: int
) -> Iterator[Trajectories]:
    """Episode after episode, in order, however many processes make them.

    Each process builds its own world: from `world` itself, which must be picklable then.
    """
    size = at_once(world)
    blocks = [range(first, min(first + size, episodes)) for first in range(0, episodes, size)]
    workers = min(workers, len(blocks))
    if workers <= 1:
        yield from chain.from_iterable(map(episode_runner(world, policy, key), blocks))
        return
    # Keys and weights travel as NumPy arrays: JAX arrays would start JAX in the new process
    # before `_in_worker` can tell it to use one thread.
    arguments = (
        world,
        jax.tree.map(np.asarray, policy),
        np.asarray(jax.random.key_data(key)),
        str(jax.random.key_impl(key)),
    )
    yield from chain.from_iterable(in_processes(_in_worker, arguments, blocks, workers))


def at_once(world: Any) -> int:
    """Episodes that are stepped in turn, so that one call of the policy serves them all.

    One, unless the world says that any of its states may be stepped.
    """
    return getattr(world, "at_once", 1)


def _in_worker(
    world: Any, policy: Policy, key_data: np.ndarray, key_impl: str
) -> Callable[[range], list[Trajectories]]:
    jax.config.update("jax_platforms", "cpu")
    # Handing each small computation to another thread costs more than the computation.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    key = jax.random.wrap_key_data(jnp.asarray(key_data), impl=key_impl)
    return episode_runner(world, policy, key)


def episode_runner(world: Any, policy: Policy, key: Array) -> Callable[[range], list[Trajectories]]:
    """A function that plays the episodes of at most `at_once` numbers, which with `key` determine
    them: the arrays always have room for all of them, so that no rounding depends on their count.
    """
    spec = world.spec
    observation_cuts = np.cumsum(spec.observation_sizes)[:-1]
    ends = np.cumsum(spec.action_sizes).tolist()
    parts = [slice(e - size, e) for size, e in zip(spec.action_sizes, ends, strict=True)]
    # The name is left out: another name is no reason to compile again.
    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, Policy(policy.actors)))
    act = _actor(structure, tuple(observation_cuts.tolist()))
    places = np.arange(at_once(world))
    step_all = getattr(world, "step_all", partial(_one_by_one, world, parts))

    def play(numbers: range) -> list[Trajectories]:
        starts, keys = _keys(key, numbers[0] + places, spec.horizon + 1)
        states = [world.reset(starts[place]) for place in range(len(numbers))]
        sees = np.zeros((len(places), sum(spec.observation_sizes)), np.float32)
        observed: list[np.ndarray] = []
        acted: list[np.ndarray] = []
        seen: list[Any] = [[] for _ in states]
        rewarded: list[Any] = [[] for _ in states]
        going = list(range(len(states)))
        for step in range(spec.horizon + 1):
            for place in going:
                np.concatenate(world.observe(states[place]), out=sees[place])
                seen[place].append(states[place].state)
            observed.append(sees.copy())
            acted.append(np.asarray(act(leaves, sees, keys, step)))
            ended = [state.terminated or state.truncated for state in states]
            going = [place for place in going if not ended[place]]
            if not going or step == spec.horizon:
                break
            moved = step_all([states[place] for place in going], acted[-1][going])
            for place, (state, rewards) in zip(going, moved, strict=True):
                states[place] = state
                rewarded[place].append(rewards)

        def of_agents(rows: list[np.ndarray], place: int, cuts: Any) -> tuple[np.ndarray, ...]:
            mine = np.stack([row[place] for row in rows[: len(seen[place])]])
            return tuple(np.split(mine[None], cuts, axis=-1))

        return [
            Trajectories(
                observations=of_agents(observed, place, observation_cuts),
                actions=of_agents(acted, place, ends[:-1]),
                rewards=np.stack(rewarded[place])[None],
                states=np.stack(seen[place])[None],
                terminated=np.array([state.terminated]),
            )
            for place, state in enumerate(states)
        ]

    return play


def _one_by_one(
    world: Any, parts: Sequence[slice], states: Sequence[Any], actions: np.ndarray
) -> list[tuple[Any, Any]]:
    """The next state and the rewards of each, with its row of all agents' actions."""
    return [
        world.step(state, [row[part] for part in parts])
        for state, row in zip(states, actions, strict=True)
    ]


@partial(jax.jit, static_argnums=2)
def _keys(key: Array, numbers: Array, steps: int) -> tuple[Array, Array]:
    def of(number: Array) -> tuple[Array, Array]:
        start, acting = jax.random.split(jax.random.fold_in(key, number))
        return start, jax.random.split(acting, steps)

    return jax.vmap(of, out_axes=(0, 1))(numbers)


@lru_cache(maxsize=32)
def _actor(structure: Any, cuts: tuple[int, ...]) -> Any:
    """The compiled joint policy for several episodes, one array in and one array out.

    It is called a thousand times an episode and its cost is mostly in passing arguments, so it
    takes plain leaves and all keys of the episodes, and is kept from call to call.
    """

    @jax.jit
    def act(leaves: list[Array], observed: Array, keys: Array, step: int) -> Array:
        policy = jax.tree.unflatten(structure, leaves)
        parts = jax.vmap(policy)(jnp.split(observed, cuts, axis=-1), keys[step])
        return jnp.concatenate(parts, axis=-1)

    return act
