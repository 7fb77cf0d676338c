"""MA-TD3+BC: TD3 for a team, held near the data by cloning.

Target: all agents are replaced, with smoothed actions. Penalty: none; instead the actors' loss has
the squared distance to the logged action, and Q is scaled by its mean magnitude.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import learner
from spacql.algorithms.actors import Networks, act, squared_distance
from spacql.algorithms.config import ActorCritic
from spacql.algorithms.critics import Metrics
from spacql.algorithms.learner import (
    State,
    joint_target,
    next_actions,
    own_values,
    play_round,
    td_step,
    with_actors,
)
from spacql.algorithms.transitions import Transitions, raw_q
from spacql.data import Batch
from spacql.policies import Policy

NEEDS_NEXT_ACTION = False  # every agent is replaced


@dataclass(frozen=True)
class Config(ActorCritic):
    rounds: int = 5000  # a round: `updates` steps of the critics, then one of actors and targets
    updates: int = 2  # critic updates per round: TD3's policy delay
    target_rate: float = 0.005  # how far targets move towards their networks, per round
    target_noise: float = 0.2  # deviation of the noise on target policies' actions
    noise_clip: float = 0.5  # and its largest magnitude
    q_weight: float = 2.5  # of Q over its mean magnitude, beside the cloning error


init = learner.init


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    def critic_step(key: Array, state: State, t: Transitions) -> tuple[State, Metrics]:
        target_key, _ = jax.random.split(key)  # the other would be a penalty's
        return td_step(state, t, target(target_key, state, t, config), config)

    def actor_step(_: Array, state: State, t: Transitions) -> tuple[State, Metrics]:
        return improve_actors(state, t, config)

    return play_round(critic_step, actor_step, state, batch, key, config)


def policy(state: State) -> Policy:
    return actor_part.policy(state.actors, state.spec, "td3bc")


def target(key: Array, state: State, t: Transitions, config: Config) -> Array:
    """Y = r + gamma min_j Qtar_j(s', pi(s') + noise), noise within `noise_clip`."""
    a_pi = next_actions(key, state, t, config.target_noise, most=config.noise_clip)
    return joint_target(state, t, a_pi, config)


def improve_actors(state: State, t: Transitions, config: Config) -> tuple[State, Metrics]:
    """One step of every actor on -lambda_i Q(s, pi_i(o_i), a_-i) + (pi_i(o_i) - a_i)^2.

    lambda_i = q_weight / mean |Q|: a constant to the gradient.
    """
    values_of = own_values(state, t.s, t.a)

    def loss(networks: Networks) -> Any:
        pi = act(state.spec, networks, t.observations)
        q = jnp.concatenate(values_of(pi), axis=1)  # (B, n)
        lambda_i = config.q_weight / jax.lax.stop_gradient(jnp.mean(jnp.abs(q), axis=0))
        error = jnp.mean(squared_distance(state.spec, pi, t.a), axis=0)  # (n,)
        value = jnp.sum(error - lambda_i * jnp.mean(q, axis=0))
        return value, (jnp.mean(q), jnp.mean(error))

    actors, (q, error), metrics = actor_part.step(state.actors, loss, config)
    found = {"q_policy": raw_q(state.scale, q, config.discount), "clone_error": error}
    return with_actors(state, actors), found | metrics
