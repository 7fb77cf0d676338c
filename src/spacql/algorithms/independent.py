"""Learners of their own: every agent is a team of one, and the shared code runs once per agent.

Agent i sees its own observation and is paid its own reward, in the team's units. OMAR and DoF are
made of such agents.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import learner
from spacql.algorithms.config import ActorCritic
from spacql.algorithms.critics import Metrics
from spacql.algorithms.learner import Step, play_round
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.spec import Spec

C = TypeVar("C", bound=ActorCritic)


class State(eqx.Module):
    agents: tuple[learner.State, ...]  # each a team of one
    spec: Spec = eqx.field(static=True)


def init(
    one: Callable[[Array, Spec, C, Statistics], learner.State],
    key: Array,
    spec: Spec,
    config: C,
    statistics: Statistics,
) -> State:
    """`one` makes the state of a team of one."""
    keys = jax.random.split(key, spec.n_agents)
    agents = tuple(
        one(keys[i], alone(spec, i), config, own_statistics(statistics, i))
        for i in range(spec.n_agents)
    )
    return State(agents, spec)


def play_rounds(
    critic_step: Step[learner.State],
    actor_step: Step[learner.State],
    state: State,
    batch: Batch,
    key: Array,
    config: ActorCritic,
) -> tuple[State, Metrics]:
    """One round of every agent; metrics are means over agents."""
    agents, metrics = [], []
    for i, agent in enumerate(state.agents):
        own_key = jax.random.fold_in(key, i)
        agent, found = play_round(
            critic_step, actor_step, agent, own_batch(batch, i), own_key, config
        )
        agents.append(agent)
        metrics.append(found)
    mean = {name: jnp.mean(jnp.stack([m[name] for m in metrics])) for name in metrics[0]}
    return State(tuple(agents), state.spec), mean


def alone(spec: Spec, i: int) -> Spec:
    """What agent i is to itself: a team of one, whose state is its observation."""
    return replace(
        spec,
        agents=spec.agents[i : i + 1],
        observation_sizes=spec.observation_sizes[i : i + 1],
        action_low=spec.action_low[i : i + 1],
        action_high=spec.action_high[i : i + 1],
        state_size=0,
    )


def own_statistics(statistics: Statistics, i: int) -> Statistics:
    """Agent i's observations. Its reward has the team's scale, which all agents share."""
    return statistics._replace(
        observation_mean=statistics.observation_mean[i : i + 1],
        observation_std=statistics.observation_std[i : i + 1],
        state_mean=None,
        state_std=None,
    )


def own_batch(batch: Batch, i: int) -> Batch:
    """What agent i sees, does and is paid."""
    return batch._replace(
        observations=batch.observations[i : i + 1],
        actions=batch.actions[i : i + 1],
        rewards=batch.rewards[..., i : i + 1],
        team_reward=batch.rewards[..., i],
        next_observations=batch.next_observations[i : i + 1],
        next_actions=batch.next_actions[i : i + 1],
        state=None,
        next_state=None,
    )
