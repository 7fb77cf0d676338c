"""A learned density of each agent's behaviour, mu_i(a_i | o_i), for CFCQL's weights lambda_i.

A Gaussian whose mean and deviation a network computes from the observation. CFCQL's own code has a
variational autoencoder here; a Gaussian is enough to tell how far a policy has moved, has a
divergence in closed form, and needs no sampling.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms.transitions import pad
from spacql.policies import MLP
from spacql.spec import Spec


def gaussian(network: MLP, observation: Array) -> tuple[Array, Array]:
    """Mean within [-1, 1], and log deviation within [-4, 0]."""
    mean, log_std = jnp.split(network.squashed(observation), 2, axis=-1)
    return mean, 2 * log_std - 2


def negative_log_likelihood(network: MLP, observation: Array, action: Array) -> Array:
    """Mean of -log mu_i(a_i | o_i), up to a constant; action (B, d_i) in [-1, 1]."""
    mean, log_std = gaussian(network, observation)
    return jnp.mean(jnp.sum(((action - mean) / jnp.exp(log_std)) ** 2 / 2 + log_std, axis=-1))


def lambda_weights(
    spec: Spec,
    networks: Sequence[MLP] | None,
    observations: Sequence[Array],
    pi: Array,
    tau: float,
    policy_std: float,
) -> Array:
    """lambda_i, (B, n): uniform without networks, else softmax_i of tau * E[log pi_i / mu_i].

    The policy counts as a Gaussian of deviation `policy_std` around its action pi (B, n, d), so
    that the expectation is the divergence between two Gaussians.
    """
    batch, n, _ = pi.shape
    if networks is None:
        return jnp.full((batch, n), 1 / n)
    parts = [gaussian(network, o) for network, o in zip(networks, observations, strict=True)]
    mean, log_std = (pad(spec, part) for part in zip(*parts, strict=True))
    real = pad(spec, [jnp.ones_like(part[0]) for part in parts])
    spread = policy_std**2 + (pi - mean) ** 2
    divergence = log_std - jnp.log(policy_std) + spread / (2 * jnp.exp(2 * log_std)) - 0.5
    return jax.nn.softmax(tau * jnp.sum(divergence * real, axis=-1), axis=-1)
