"""Part: one actor per agent, their target networks and their optimisers.

    actors = init(networks, config)
    actors, extra, metrics = step(actors, loss, config)
    actors = update_targets(actors, rate)

Any Equinox module may be an actor. What learns is all of its arrays of floating-point numbers; what
must not, such as statistics of its input, passes `jax.lax.stop_gradient`.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from spacql.algorithms.config import Training
from spacql.algorithms.ensemble import uniform_arrays
from spacql.algorithms.optimisation import optimiser, polyak_update, step_each
from spacql.algorithms.transitions import pad
from spacql.data.dataset import Statistics
from spacql.policies import MLP, Policy
from spacql.spec import Spec

Networks = tuple[Any, ...]  # one module per agent


class Actors(eqx.Module):
    online: Networks
    target: Networks
    optimiser_state: tuple[Any, ...]  # per agent


def init(networks: Networks, config: Training) -> Actors:
    """The targets begin as copies."""
    begin = optimiser(config, config.actor_learning_rate).init
    learning = eqx.filter(networks, eqx.is_inexact_array)
    return Actors(networks, networks, tuple(begin(network) for network in learning))


def init_mlps(
    key: Array, spec: Spec, hidden: tuple[int, ...], statistics: Statistics, outputs: int = 1
) -> tuple[MLP, ...]:
    """One network per agent, with `outputs` numbers for every action coordinate.

    The last layer begins a tenth as large, so that a fresh policy does not saturate its tanh.
    """
    layers = [
        list(pairwise((size, *hidden, outputs * acts)))
        for size, acts in zip(spec.observation_sizes, spec.action_sizes, strict=True)
    ]
    shapes = [shape for sizes in layers for i, o in sizes for shape in (((i, o), i), ((o,), i))]
    arrays = iter(uniform_arrays(key, shapes))
    networks = []
    for agent, sizes in enumerate(layers):
        pairs = [(next(arrays), next(arrays)) for _ in sizes]
        pairs[-1] = (0.1 * pairs[-1][0], 0.1 * pairs[-1][1])
        weights, biases = zip(*pairs, strict=True)
        networks.append(
            MLP(
                mean=jnp.asarray(statistics.observation_mean[agent]),
                std=jnp.asarray(statistics.observation_std[agent]),
                weights=weights,
                biases=biases,
                low=spec.action_low[agent] * outputs,
                high=spec.action_high[agent] * outputs,
            )
        )
    return tuple(networks)


def step(
    actors: Actors, loss: Callable[[Networks], Any], config: Training
) -> tuple[Actors, Any, dict[str, Array]]:
    """One step of every actor on a loss that returns (value, extra): the actors, extra, metrics.

    A loss that is a sum over agents gives every actor the gradient of its own term.
    """
    learning, rest = eqx.partition(actors.online, eqx.is_inexact_array)
    gradients, extra = jax.grad(lambda x: loss(eqx.combine(x, rest)), has_aux=True)(learning)
    learning, optimiser_state = step_each(
        learning, gradients, actors.optimiser_state, config, config.actor_learning_rate
    )
    norm = jnp.mean(jnp.stack([optax.global_norm(gradient) for gradient in gradients]))
    online = eqx.combine(learning, rest)
    return Actors(online, actors.target, optimiser_state), extra, {"actor_gradient": norm}


def update_targets(actors: Actors, rate: float) -> Actors:
    learning, rest = eqx.partition(actors.target, eqx.is_inexact_array)
    online = eqx.filter(actors.online, eqx.is_inexact_array)
    target = eqx.combine(polyak_update(learning, online, rate), rest)
    return Actors(actors.online, target, actors.optimiser_state)


def act(spec: Spec, networks: Networks, observations: Sequence[Array]) -> Array:
    """All agents' actions in [-1, 1], (B, n, d)."""
    return pad(spec, [actor.squashed(o) for actor, o in zip(networks, observations, strict=True)])


def act_and_saturation(
    spec: Spec, networks: Networks, observations: Sequence[Array]
) -> tuple[Array, Array]:
    """The same of MLPs, and the sum over agents of the mean squared input of their tanh, which is
    large where it is flat. Of both there is one backward pass, not two."""
    inputs = [actor.before_tanh(o) for actor, o in zip(networks, observations, strict=True)]
    pi = pad(spec, [jnp.tanh(x) for x in inputs])
    return pi, jnp.sum(jnp.stack([jnp.mean(x**2) for x in inputs]))


def squared_distance(spec: Spec, pi: Array, a: Array) -> Array:
    """Mean of (pi_i - a_i)^2 over agent i's own coordinates; pi and a (B, n, d) to (B, n)."""
    # Padding is zero in both, so it adds nothing; only the mean must not count it.
    return jnp.sum((pi - a) ** 2, axis=-1) / jnp.array(spec.action_sizes)


def policy(actors: Actors, spec: Spec, name: str) -> Policy:
    return Policy(actors.online, name=name, agents=spec.agents)
