"""Part: a value function V(s) and its optimiser.

    value = init(key, state_size, config)
    value = step(value, loss, s, groups, config)

V is the network of a critic that no agent acts on, so that its work is cut in the same way.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from spacql.algorithms.config import ActorCritic
from spacql.algorithms.ensemble import Critic, ensemble_gradient, ensemble_q, init_critics
from spacql.algorithms.optimisation import optimiser


class Value(eqx.Module):
    network: Critic  # of no agents; every array with a leading axis of 1
    optimiser_state: Any


def init(key: Array, state_size: int, config: ActorCritic) -> Value:
    network = init_critics(key, 1, state_size, 0, 0, config.hidden)
    return Value(network, jax.vmap(optimiser(config, config.learning_rate).init)(network))


def v(value: Value, s: Array) -> Array:
    """V(s), (B,)."""
    return ensemble_q(value.network, s, jnp.zeros((len(s), 1, 0, 0)))[0, :, 0]


def step(
    value: Value,
    loss: Callable[[Critic, Array, Any], Any],
    s: Array,
    groups: Any,
    config: ActorCritic,
) -> Value:
    """One step on the mean loss, which is that of `ensemble_gradient`."""
    nothing = jnp.zeros((len(s), 0, 0))
    gradients, _ = ensemble_gradient(loss, value.network, s, nothing, groups)
    update = jax.vmap(optimiser(config, config.learning_rate).update)
    steps, optimiser_state = update(gradients, value.optimiser_state)
    return Value(optax.apply_updates(value.network, steps), optimiser_state)
