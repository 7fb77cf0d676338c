"""BC, behaviour cloning: the floor that every offline method must beat.

Each agent imitates what its behaviour did, from its own observation. No critic, no reward.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms.cloning import squared_distance
from spacql.algorithms.learner import (
    Metrics,
    act,
    init_actors,
    optimiser,
    step_actors,
    trained,
)
from spacql.algorithms.transitions import unit_actions
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.policies import MLP, Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # nothing follows


@dataclass(frozen=True)
class Config:
    # Length and size
    rounds: int = 2000  # a round: `updates` steps of every actor
    updates: int = 5  # steps a round, each on a batch of its own
    batch_size: int = 1024  # transitions a batch
    hidden: tuple[int, ...] = (64, 64)  # units of the hidden layers
    # Learning
    actor_learning_rate: float = 0.001  # Adam
    gradient_clip: float = 0.5  # largest gradient norm of a network


class State(eqx.Module):
    actors: tuple[MLP, ...]
    actor_optimiser: Any
    spec: Spec = eqx.field(static=True)


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    actors = init_actors(key, spec, config.hidden, statistics)
    begin = optimiser(config, config.actor_learning_rate).init
    return State(actors, tuple(begin(trained(actor)) for actor in actors), spec)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    """Steps on one batch each; `batch` has leading axes (updates, B), nothing is random."""
    arrays: Any = batch
    logged = (arrays.observations, unit_actions(state.spec, arrays.actions))
    state, metrics = jax.lax.scan(lambda state, x: clone(state, *x, config), state, logged)
    return state, {name: jnp.mean(values) for name, values in metrics.items()}


def policy(state: State) -> Policy:
    return Policy(state.actors, name="bc", agents=state.spec.agents)


def clone(
    state: State, observations: tuple[Array, ...], a: Array, config: Config
) -> tuple[State, Metrics]:
    """One step of every actor on the mean of (pi_i(o_i) - a_i)^2."""

    def loss(actors: tuple[MLP, ...]) -> Any:
        pi = act(state.spec, actors, observations)
        error = jnp.mean(squared_distance(state.spec, pi, a), axis=0)  # (n,)
        return jnp.sum(error), jnp.mean(error)

    state, error, metrics = step_actors(loss, state, config)
    return state, {"clone_error": error} | metrics
