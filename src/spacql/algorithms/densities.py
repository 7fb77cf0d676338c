"""Part: a learnt density of each agent's behaviour, mu_i(a_i | o_i).

    densities = init(key, spec, statistics, config)
    densities, metrics = step(densities, spec, observations, a, config)

A Gaussian whose mean and deviation a network computes from the observation: enough to tell how far
a policy has left the log, in units of how widely the log acts there.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms.actors import init_mlps
from spacql.algorithms.config import Training
from spacql.algorithms.optimisation import optimiser, step_each
from spacql.algorithms.transitions import pad
from spacql.data.dataset import Statistics
from spacql.policies import MLP
from spacql.spec import Spec

UNIFORM = 3.0  # 1 / deviation^2 of uniform actions in [-1, 1]


class Densities(eqx.Module):
    networks: tuple[MLP, ...]  # per agent
    optimiser_state: tuple[Any, ...]


def init(key: Array, spec: Spec, statistics: Statistics, config: Training) -> Densities:
    networks = init_mlps(key, spec, config.hidden, statistics, outputs=2)
    begin = optimiser(config, config.actor_learning_rate).init
    learning = eqx.filter(networks, eqx.is_inexact_array)
    return Densities(networks, tuple(begin(network) for network in learning))


def gaussian(network: MLP, observation: Array) -> tuple[Array, Array]:
    """Mean within [-1, 1], and log deviation within [-4, 0]."""
    mean, log_std = jnp.split(network.squashed(observation), 2, axis=-1)
    return mean, 2 * log_std - 2


def negative_log_likelihood(network: MLP, observation: Array, action: Array) -> Array:
    """Mean of -log mu_i(a_i | o_i), up to a constant; action (B, d_i) in [-1, 1]."""
    mean, log_std = gaussian(network, observation)
    return jnp.mean(jnp.sum(((action - mean) / jnp.exp(log_std)) ** 2 / 2 + log_std, axis=-1))


def standardised_distance(
    densities: Densities, spec: Spec, observations: tuple[Array, ...], pi: Array
) -> Array:
    """Mean over agent i's coordinates of ((pi_i - mean_i) / deviation_i)^2; (B, n, d) to (B, n)."""
    parts = [gaussian(mu, o) for mu, o in zip(densities.networks, observations, strict=True)]
    mean, deviation = (
        pad(spec, [mean for mean, _ in parts]),
        pad(spec, [jnp.exp(log_std) for _, log_std in parts]),
    )
    # Padding is 0 in pi and the mean, and adds nothing.
    squares = ((pi - mean) / jnp.where(deviation > 0, deviation, 1)) ** 2
    return jnp.sum(squares, axis=-1) / jnp.array(spec.action_sizes)


def mean_variance(densities: Densities, spec: Spec, observations: tuple[Array, ...]) -> Array:
    """How widely each agent acts, on average over observations: deviation^2, (n, d), padding 0."""
    parts = [gaussian(mu, o) for mu, o in zip(densities.networks, observations, strict=True)]
    return jnp.mean(pad(spec, [jnp.exp(2 * log_std) for _, log_std in parts]), axis=0)


def step(
    densities: Densities, spec: Spec, observations: tuple[Array, ...], a: Array, config: Training
) -> tuple[Densities, dict[str, Array]]:
    """One maximum-likelihood step of every mu_i."""
    learning, rest = eqx.partition(densities.networks, eqx.is_inexact_array)

    def loss(learning: Any) -> Array:
        networks = eqx.combine(learning, rest)
        agents = zip(networks, observations, spec.action_sizes, strict=True)
        terms = [
            negative_log_likelihood(network, o, a[:, i, :size])
            for i, (network, o, size) in enumerate(agents)
        ]
        return jnp.sum(jnp.stack(terms))

    value, gradients = jax.value_and_grad(loss)(learning)
    learning, optimiser_state = step_each(
        learning, gradients, densities.optimiser_state, config, config.actor_learning_rate
    )
    networks = eqx.combine(learning, rest)
    return Densities(networks, optimiser_state), {"behaviour_loss": value}
