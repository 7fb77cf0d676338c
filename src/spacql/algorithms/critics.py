"""Part: an ensemble of critics Q_j(s, a), its target networks and its optimiser.

    critics = init(key, spec, state_size, config)
    critics, metrics = step(critics, loss, s, a, groups, config)
    critics = update_targets(critics, rate)

`td_step` is the step on the plain TD error. Nothing here knows an actor: whoever has targets Y can
train critics, with `ensemble_q(critics.online, s, a)` as their values.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from spacql.algorithms.config import ActorCritic
from spacql.algorithms.ensemble import (
    Critic,
    ensemble_gradient,
    group_size,
    in_groups,
    init_critics,
    later_layers,
)
from spacql.algorithms.optimisation import optimiser, polyak_update
from spacql.spec import Spec

Metrics = dict[str, Array]


class Critics(eqx.Module):
    online: Critic  # every array with a leading axis J
    target: Critic
    optimiser_state: Any


def init(
    key: Array, spec: Spec, state_size: int, config: ActorCritic, layer_norm: bool = False
) -> Critics:
    """Fresh critics; the targets begin as copies."""
    sizes = (spec.n_agents, max(spec.action_sizes))
    online = init_critics(key, config.critics, state_size, *sizes, config.hidden, layer_norm)
    begin = optimiser(config, config.learning_rate).init
    return Critics(online, online, jax.vmap(begin)(online))


def step(
    critics: Critics,
    loss: Callable[[Critic, Array, Any], Any],
    s: Array,
    a: Array,
    groups: Any,
    config: ActorCritic,
) -> tuple[Critics, Metrics]:
    """One step of every critic on its mean loss, which is that of `ensemble_gradient`."""
    gradients, of_loss = ensemble_gradient(loss, critics.online, s, a, groups)
    update = jax.vmap(optimiser(config, config.learning_rate).update)
    steps, optimiser_state = update(gradients, critics.optimiser_state)
    online = optax.apply_updates(critics.online, steps)
    norm = jnp.mean(jax.vmap(optax.global_norm)(gradients))
    return Critics(online, critics.target, optimiser_state), of_loss | {"critic_gradient": norm}


def td_step(
    critics: Critics, s: Array, a: Array, y: Array, config: ActorCritic
) -> tuple[Critics, Metrics]:
    """One step of every critic on the mean of (Q - Y)^2."""
    groups = in_groups(y, group_size(len(y), 1, most=len(y)))
    return step(critics, squared_error, s, a, groups, config)


def squared_error(critic: Critic, z: Array, y: Array) -> Any:
    """Mean of (Q - Y)^2 over one group of transitions, for one critic."""
    q = later_layers(critic, z)
    td = jnp.mean((q - y) ** 2)
    return td, {"td": td, "q_data": jnp.mean(q)}


def update_targets(critics: Critics, rate: float) -> Critics:
    target = polyak_update(critics.target, critics.online, rate)
    return Critics(critics.online, target, critics.optimiser_state)
