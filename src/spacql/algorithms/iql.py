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

from spacql.algorithms import learner
from spacql.algorithms.cloning import squared_distance
from spacql.algorithms.critics import (
    Critic,
    ensemble_q,
    group_size,
    in_groups,
    init_critics,
    later_layers,
)
from spacql.algorithms.learner import (
    Metrics,
    act,
    follow,
    improve_critics,
    init_state,
    optimiser,
    policy_of,
    step_actors,
    step_critics,
)
from spacql.algorithms.transitions import Transitions, bellman, transitions
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.errors import InputError
from spacql.policies import MLP, Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # V(s') takes its place


@dataclass(frozen=True)
class Config:
    # Length and size
    rounds: int = 2000  # a round: `updates` steps of every network
    updates: int = 5  # steps a round, each on a batch of its own
    batch_size: int = 1024  # transitions a batch
    hidden: tuple[int, ...] = (64, 64)  # units of the hidden layers, of all networks
    critics: int = 2  # J, size of the ensemble
    # Learning
    learning_rate: float = 0.01  # Adam, critics and value
    actor_learning_rate: float = 0.001  # Adam, actors
    gradient_clip: float = 0.5  # largest gradient norm of a network
    target_rate: float = 0.005  # how far target critics move towards the critics an update
    discount: float = 0.95  # gamma
    # Value and policy
    expectile: float = 0.7  # which expectile of Q over logged actions V is; 0.5: the mean
    temperature: float = 3.0  # beta: weights are exp(beta (Q - V)), of standardised rewards
    weight_cap: float = 100.0  # the largest weight

    def __post_init__(self) -> None:
        if not 0 < self.expectile < 1:
            raise InputError(f"expectile is {self.expectile}; it must be above 0 and below 1.")


class State(eqx.Module):
    team: learner.State  # its target actors are not used
    value: Critic  # V(s): a critic of one agent that always does 0; leading axis 1
    value_optimiser: Any


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    team_key, value_key = jax.random.split(key)
    team = init_state(team_key, spec, config, statistics)
    value = init_critics(value_key, 1, team.scale.state_mean.shape[0], 1, 1, config.hidden)
    return State(team, value, jax.vmap(optimiser(config, config.learning_rate).init)(value))


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    """Steps on one batch each; `batch` has leading axes (updates, B), nothing is random."""
    t = transitions(state.team.spec, state.team.scale, batch)
    state, metrics = jax.lax.scan(lambda state, t: step(state, t, config), state, t)
    return state, {name: jnp.mean(values) for name, values in metrics.items()}


def policy(state: State) -> Policy:
    return policy_of(state.team, "iql")


def step(state: State, t: Transitions, config: Config) -> tuple[State, Metrics]:
    """One step of V, then of the policies, then of Q, then of the target critics."""
    team = state.team
    q = jnp.min(ensemble_q(team.target_critics, t.s, t.a[:, None]), axis=0)[:, 0]  # (B,)
    value, memory = improve_value(state, t, q, config)
    team, of_actors = improve_actors(team, t, q - value_of(value, t.s), config)
    y = bellman(t, team.scale, value_of(value, t.next_s), config.discount)
    team, of_critics = improve_critics(team, t, y, None, config)
    targets = follow(team.target_critics, team.critics, config.target_rate)
    team = eqx.tree_at(lambda team: team.target_critics, team, targets)
    return State(team, value, memory), of_critics | of_actors


def value_of(value: Critic, s: Array) -> Array:
    """V(s), (B,)."""
    return ensemble_q(value, s, jnp.zeros((len(s), 1, 1, 1)))[0, :, 0]


def expectile_loss(u: Array, expectile: float) -> Array:
    """L(u) = |expectile - 1(u < 0)| u^2, smallest where V is that expectile of Q = V + u."""
    return jnp.where(u < 0, 1 - expectile, expectile) * u**2


def improve_value(state: State, t: Transitions, q: Array, config: Config) -> tuple[Critic, Any]:
    """One step of V on the mean of L(Q - V)."""

    def loss(value: Critic, z: Array, q: Array) -> Any:
        return jnp.mean(expectile_loss(q - later_layers(value, z), config.expectile)), {}

    groups = in_groups(q, group_size(len(q), 1, most=len(q)))
    nothing = jnp.zeros((len(q), 1, 1))
    value, memory, _, _ = step_critics(
        loss, state.value, state.value_optimiser, t.s, nothing, groups, config
    )
    return value, memory


def advantage_weights(advantage: Array, config: Config) -> Array:
    """exp(beta A), at most `weight_cap`."""
    # The cap stands inside the exponential, so that a large advantage does not overflow.
    return jnp.exp(jnp.minimum(config.temperature * advantage, jnp.log(config.weight_cap)))


def improve_actors(
    team: learner.State, t: Transitions, advantage: Array, config: Config
) -> tuple[learner.State, Metrics]:
    """One step of every actor on the mean of exp(beta A) (pi_i(o_i) - a_i)^2."""
    weight = advantage_weights(advantage, config)

    def loss(actors: tuple[MLP, ...]) -> Any:
        distance = squared_distance(team.spec, act(team.spec, actors, t.observations), t.a)
        return jnp.mean(jnp.sum(weight[:, None] * distance, axis=1)), jnp.mean(distance)

    team, error, metrics = step_actors(loss, team, config)
    found = {
        "advantage": jnp.mean(advantage) * team.scale.reward_std,
        "weight": jnp.mean(weight),
        "clone_error": error,
    }
    return team, found | metrics
