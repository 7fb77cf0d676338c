"""MA-TD3+BC: TD3 for a team, held near the data by cloning.

Target: all agents are replaced, with smoothed actions. Penalty: none; instead the actors' loss has
the squared distance to the logged action, and Q is scaled by its mean magnitude.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms.cloning import squared_distance
from spacql.algorithms.learner import (
    Metrics,
    State,
    act,
    critic_update,
    init_state,
    joint_target,
    no_penalty,
    own_values,
    play_round,
    policy_of,
    step_actors,
)
from spacql.algorithms.transitions import Transitions, raw_q, transitions
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.policies import MLP, Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # every agent is replaced


@dataclass(frozen=True)
class Config:
    # Length and size
    rounds: int = 5000  # a round: `updates` critic updates, then one step of actors and targets
    updates: int = 2  # critic updates a round, each on a batch of its own: TD3's policy delay
    batch_size: int = 1024  # transitions a batch
    hidden: tuple[int, ...] = (64, 64)  # units of the hidden layers, of actors and critics
    critics: int = 2  # J, size of the ensemble
    # Learning
    learning_rate: float = 0.01  # Adam, critics
    actor_learning_rate: float = 0.001  # Adam, actors
    gradient_clip: float = 0.5  # largest gradient norm of a network
    target_rate: float = 0.005  # how far targets move towards their networks a round
    discount: float = 0.95  # gamma
    target_noise: float = 0.2  # deviation of the noise on target policies' actions
    noise_clip: float = 0.5  # and its largest magnitude
    # Cloning
    q_weight: float = 2.5  # of Q over its mean magnitude, beside the cloning error


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    return init_state(key, spec, config, statistics)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    def critic_step(key: Array, state: State, t: Transitions, config: Any) -> Any:
        return critic_update(target, no_penalty, key, state, t, config)

    t = transitions(state.spec, state.scale, batch)
    return play_round(critic_step, improve_actors, state, t, key, config)


def policy(state: State) -> Policy:
    return policy_of(state, "td3bc")


def target(key: Array, state: State, t: Transitions, config: Config) -> tuple[Array, Metrics]:
    """Y = r + gamma min_j Qtar_j(s', pi(s') + noise), noise within `noise_clip`."""
    return joint_target(key, state, t, config, most=config.noise_clip)


def improve_actors(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Metrics]:
    """One step of every actor on -lambda_i Q(s, pi_i(o_i), a_-i) + (pi_i(o_i) - a_i)^2.

    lambda_i = q_weight / mean |Q|: a constant to the gradient.
    """
    values_of = own_values(state, t)

    def loss(actors: tuple[MLP, ...]) -> Any:
        pi = act(state.spec, actors, t.observations)
        q = jnp.concatenate(values_of(pi), axis=1)  # (B, n)
        lambda_i = config.q_weight / jax.lax.stop_gradient(jnp.mean(jnp.abs(q), axis=0))
        error = jnp.mean(squared_distance(state.spec, pi, t.a), axis=0)  # (n,)
        value = jnp.sum(error - lambda_i * jnp.mean(q, axis=0))
        return value, (jnp.mean(q), jnp.mean(error))

    state, (q, error), metrics = step_actors(loss, state, config)
    found = {"q_policy": raw_q(state.scale, q, config.discount), "clone_error": error}
    return state, found | metrics
