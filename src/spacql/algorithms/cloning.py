"""How far policies are from given actions: what all the baselines' actors have in their loss."""

import jax.numpy as jnp
from jax import Array

from spacql.spec import Spec


def squared_distance(spec: Spec, pi: Array, a: Array) -> Array:
    """Mean of (pi_i - a_i)^2 over agent i's own coordinates; pi and a (B, n, d) to (B, n)."""
    # Padding is zero in both, so it adds nothing; only the mean must not count it.
    return jnp.sum((pi - a) ** 2, axis=-1) / jnp.array(spec.action_sizes)
