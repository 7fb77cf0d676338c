"""BC, behaviour cloning: the floor that every offline method must beat.

Each agent imitates what its behaviour did, from its own observation. No critic, no reward.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms.actors import Actors, Networks, act, init_mlps, squared_distance
from spacql.algorithms.config import Training
from spacql.algorithms.critics import Metrics
from spacql.algorithms.transitions import unit_actions
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.policies import Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = False  # nothing follows


@dataclass(frozen=True)
class Config(Training):
    """Nothing of its own; a round is `updates` steps of every actor."""


class State(eqx.Module):
    actors: Actors
    spec: Spec = eqx.field(static=True)


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    networks = init_mlps(key, spec, config.hidden, statistics)
    return State(actor_part.init(networks, config), spec)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    """Steps on one batch each; `batch` has leading axes (updates, B), nothing is random."""
    arrays: Any = batch
    logged = (arrays.observations, unit_actions(state.spec, arrays.actions))
    state, metrics = jax.lax.scan(lambda state, x: clone(state, *x, config), state, logged)
    return state, {name: jnp.mean(values) for name, values in metrics.items()}


def policy(state: State) -> Policy:
    return actor_part.policy(state.actors, state.spec, "bc")


def clone(
    state: State, observations: tuple[Array, ...], a: Array, config: Config
) -> tuple[State, Metrics]:
    """One step of every actor on the mean of (pi_i(o_i) - a_i)^2."""

    def loss(networks: Networks) -> Any:
        pi = act(state.spec, networks, observations)
        error = jnp.mean(squared_distance(state.spec, pi, a), axis=0)  # (n,)
        return jnp.sum(error), jnp.mean(error)

    actors, error, metrics = actor_part.step(state.actors, loss, config)
    return State(actors, state.spec), {"clone_error": error} | metrics
