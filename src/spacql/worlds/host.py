"""What worlds outside JAX share: checked actions, seeds, and episodes in several processes."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from multiprocessing import get_context
from pickle import PicklingError
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.errors import InputError, SpacqlError
from spacql.policies import Policy
from spacql.spec import Spec
from spacql.worlds.particle import check_values
from spacql.worlds.rollout import Trajectories


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
    workers = min(workers, episodes)
    if workers <= 1:
        run = episode_runner(world, policy, key)
        yield from map(run, range(episodes))
        return
    # Keys and weights travel as NumPy arrays: JAX arrays would start JAX in the new process
    # before `_start_worker` can tell it to use one thread.
    arguments: Any = (
        world,
        jax.tree.map(np.asarray, policy),
        np.asarray(jax.random.key_data(key)),
        jax.random.key_impl(key),
    )
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, arguments)
    pending: deque[Future[Trajectories]] = deque()
    try:
        for number in range(episodes):
            # A bounded queue: a slow reader must not make finished episodes pile up.
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
            pending.append(pool.submit(_run_in_worker, number))
        while pending:
            yield pending.popleft().result()
    except (PicklingError, TypeError, AttributeError) as error:
        raise InputError(f"The world {world.spec.task!r} cannot be copied to other processes "
                         f"({error}). Use one worker.") from error  # fmt: skip
    except BrokenProcessPool as error:
        raise SpacqlError("A process that ran episodes died, perhaps for want of memory. "
                          "Use fewer workers.") from error  # fmt: skip
    finally:
        pool.shutdown(cancel_futures=True)


_run: Callable[[int], Trajectories]  # what a worker process does with an episode's number


def _start_worker(world: Any, policy: Policy, key_data: np.ndarray, key_impl: str) -> None:
    global _run
    jax.config.update("jax_platforms", "cpu")
    # Handing each small computation to another thread costs more than the computation.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    _run = episode_runner(
        world, policy, jax.random.wrap_key_data(jnp.asarray(key_data), impl=key_impl)
    )


def _run_in_worker(number: int) -> Trajectories:
    return _run(number)


def episode_runner(world: Any, policy: Policy, key: Array) -> Callable[[int], Trajectories]:
    """A function that plays the episode of a number, which with `key` determines it."""
    spec = world.spec
    observation_cuts = np.cumsum(spec.observation_sizes)[:-1]
    ends = np.cumsum(spec.action_sizes).tolist()
    parts = [slice(e - size, e) for size, e in zip(spec.action_sizes, ends, strict=True)]
    # The name is left out: another name is no reason to compile again.
    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, Policy(policy.actors)))
    act = _actor(structure, tuple(observation_cuts.tolist()))

    def episode(number: int) -> Trajectories:
        start, keys = _keys(key, number, spec.horizon + 1)
        state = world.reset(start)
        observed, acted, states = [], [], []
        rewarded: list[np.ndarray] = []
        while True:
            observation = np.concatenate(world.observe(state), dtype=np.float32)
            action = np.asarray(act(leaves, observation, keys, len(rewarded)))
            observed.append(observation)
            acted.append(action)
            states.append(state.state)
            if state.terminated or state.truncated or len(rewarded) == spec.horizon:
                break
            state, rewards = world.step(state, [action[part] for part in parts])
            rewarded.append(rewards)
        return Trajectories(
            observations=tuple(np.split(np.stack(observed)[None], observation_cuts, axis=-1)),
            actions=tuple(np.split(np.stack(acted)[None], ends[:-1], axis=-1)),
            rewards=np.stack(rewarded)[None],
            states=np.stack(states)[None],
            terminated=np.array([state.terminated]),
        )

    return episode


@partial(jax.jit, static_argnums=2)
def _keys(key: Array, number: int, steps: int) -> tuple[Array, Array]:
    start, acting = jax.random.split(jax.random.fold_in(key, number))
    return start, jax.random.split(acting, steps)


@lru_cache(maxsize=32)
def _actor(structure: Any, cuts: tuple[int, ...]) -> Any:
    """The compiled joint policy, one array in and one array out.

    It is called a thousand times an episode and its cost is mostly in passing arguments, so it
    takes plain leaves and all keys of the episode, and is kept from call to call.
    """

    @jax.jit
    def act(leaves: list[Array], observed: Array, keys: Array, step: int) -> Array:
        policy = jax.tree.unflatten(structure, leaves)
        return jnp.concatenate(policy(jnp.split(observed, cuts), keys[step]))

    return act
