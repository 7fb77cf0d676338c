"""IQL, implicit Q-learning: never asks for the value of an action that is not in the data.

V(s) is an expectile of Q(s, a) over the logged joint actions, Q(s, a) bootstraps from V(s'), and
the policies clone the logged actions with weights that grow with the advantage Q - V. Critic and
value are the team's; the team's policy is the product of its agents', so every agent clones its
own action with the team's weight.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import critics as critic_part
from spacql.algorithms import learner, values
from spacql.algorithms.actors import Networks, act, squared_distance
from spacql.algorithms.config import ActorCritic
from spacql.algorithms.critics import Metrics
from spacql.algorithms.ensemble import Critic, ensemble_q, group_size, in_groups, later_layers
from spacql.algorithms.learner import td_step, with_actors, with_critics
from spacql.algorithms.transitions import Transitions, bellman, transitions
from spacql.algorithms.values import Value, v
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.errors import InputError
from spacql.policies import Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # V(s') takes its place


@dataclass(frozen=True)
class Config(ActorCritic):
    target_rate: float = 0.005  # how far target critics move towards the critics, per update
    expectile: float = 0.7  # which expectile of Q over logged actions V is; 0.5: the mean
    temperature: float = 3.0  # beta: weights are exp(beta (Q - V)), of standardised rewards
    weight_cap: float = 100.0  # the largest weight

    def __post_init__(self) -> None:
        if not 0 < self.expectile < 1:
            raise InputError(f"expectile is {self.expectile}; it must be above 0 and below 1.")


class State(learner.State):
    value: Value


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    team_key, value_key = jax.random.split(key)
    team = learner.init(team_key, spec, config, statistics)
    value = values.init(value_key, len(team.scale.state_mean), config)
    return State(team.actors, team.critics, team.scale, spec, value)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    """Steps on one batch each; `batch` has leading axes (updates, B), nothing is random."""
    t = transitions(state.spec, state.scale, batch)
    state, metrics = jax.lax.scan(lambda state, t: step(state, t, config), state, t)
    return state, {name: jnp.mean(values) for name, values in metrics.items()}


def policy(state: State) -> Policy:
    return actor_part.policy(state.actors, state.spec, "iql")


def step(state: State, t: Transitions, config: Config) -> tuple[State, Metrics]:
    """One step of V, then of the policies, then of Q, then of the target critics."""
    q = jnp.min(ensemble_q(state.critics.target, t.s, t.a[:, None]), axis=0)[:, 0]  # (B,)
    value = improve_value(state.value, t, q, config)
    state = eqx.tree_at(lambda s: s.value, state, value)
    state, of_actors = improve_actors(state, t, q - v(value, t.s), config)
    y = bellman(t, state.scale, v(value, t.next_s), config.discount)
    state, of_critics = td_step(state, t, y, config)
    critics = critic_part.update_targets(state.critics, config.target_rate)
    return with_critics(state, critics), of_critics | of_actors


def expectile_loss(u: Array, expectile: float) -> Array:
    """L(u) = |expectile - 1(u < 0)| u^2, smallest where V is that expectile of Q = V + u."""
    return jnp.where(u < 0, 1 - expectile, expectile) * u**2


def improve_value(value: Value, t: Transitions, q: Array, config: Config) -> Value:
    """One step of V on the mean of L(Q - V)."""

    def loss(network: Critic, z: Array, q: Array) -> Any:
        return jnp.mean(expectile_loss(q - later_layers(network, z), config.expectile)), {}

    groups = in_groups(q, group_size(len(q), 1, most=len(q)))
    return values.step(value, loss, t.s, groups, config)


def advantage_weights(advantage: Array, config: Config) -> Array:
    """exp(beta A), at most `weight_cap`."""
    # The cap stands inside the exponential, so that a large advantage does not overflow.
    return jnp.exp(jnp.minimum(config.temperature * advantage, jnp.log(config.weight_cap)))


def improve_actors(
    state: State, t: Transitions, advantage: Array, config: Config
) -> tuple[State, Metrics]:
    """One step of every actor on the mean of exp(beta A) (pi_i(o_i) - a_i)^2."""
    weight = advantage_weights(advantage, config)

    def loss(networks: Networks) -> Any:
        distance = squared_distance(state.spec, act(state.spec, networks, t.observations), t.a)
        return jnp.mean(jnp.sum(weight[:, None] * distance, axis=1)), jnp.mean(distance)

    actors, error, metrics = actor_part.step(state.actors, loss, config)
    found = {
        "advantage": jnp.mean(advantage) * state.scale.reward_std,
        "weight": jnp.mean(weight),
        "clone_error": error,
    }
    return with_actors(state, actors), found | metrics
