"""One agent's way of acting. Each kind maps one observation (and a key) to one action.

A kind is an Equinox module with `observation_size`, `low` and `high`. Its arrays are saved as
safetensors and its other fields as JSON, by `spacql.policies.saved`, whose `KINDS` names them.
"""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

Bounds = tuple[float, ...]


class Uniform(eqx.Module):
    """Acts uniformly at random within the bounds."""

    observation_size: int = eqx.field(static=True)
    low: Bounds = eqx.field(static=True)
    high: Bounds = eqx.field(static=True)

    def __call__(self, observation: Array, key: Array) -> Array:
        low, high = jnp.array(self.low), jnp.array(self.high)
        shape = (*observation.shape[:-1], len(self.low))
        return jax.random.uniform(key, shape, minval=low, maxval=high)


class MLP(eqx.Module):
    """Standardises its input, then a ReLU network, then tanh scaled to the bounds.

    With `noise`, Gaussian noise of that deviation (in units of half the action range) is added
    and the result clipped: how behaviours make data.
    """

    mean: Array  # (observation,) statistics of the input
    std: Array
    weights: tuple[Array, ...]  # (in, out) each
    biases: tuple[Array, ...]
    low: Bounds = eqx.field(static=True)
    high: Bounds = eqx.field(static=True)
    noise: float = eqx.field(static=True, default=0.0)

    @property
    def observation_size(self) -> int:
        return self.weights[0].shape[0]

    def squashed(self, observation: Array) -> Array:
        """The action in [-1, 1], whatever the bounds."""
        return jnp.tanh(self.before_tanh(observation))

    def before_tanh(self, observation: Array) -> Array:
        mean, std = jax.lax.stop_gradient((self.mean, self.std))  # statistics do not learn
        x = (observation - mean) / std
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = jax.nn.relu(x @ weight + bias)
        return x @ self.weights[-1] + self.biases[-1]

    def __call__(self, observation: Array, key: Array) -> Array:
        action = self.squashed(observation)
        if self.noise > 0:
            noise = self.noise * jax.random.normal(key, action.shape)
            action = jnp.clip(action + noise, -1, 1)
        return from_unit(action, self.low, self.high)


class Flee(eqx.Module):
    """A scripted prey: runs from near predators and turns back at the border.

    Reads a prey's observation in tag or world: own position in columns 2 and 3, the predators'
    relative positions in the columns `predators_at`.
    """

    observation_size: int = eqx.field(static=True)
    predators_at: tuple[int, int] = eqx.field(static=True)  # first and last column, exclusive
    low: Bounds = eqx.field(static=True)
    high: Bounds = eqx.field(static=True)

    def __call__(self, observation: Array, key: Array) -> Array:
        position = observation[..., 2:4]
        start, end = self.predators_at
        relative = observation[..., start:end].reshape(*observation.shape[:-1], -1, 2)
        square = jnp.sum(relative**2, axis=-1, keepdims=True)
        away = -jnp.sum(relative / (square + 0.01), axis=-2)
        home = -4.0 * jnp.sign(position) * jnp.maximum(jnp.abs(position) - 0.7, 0.0) / 0.3
        return jnp.clip(away + home, jnp.array(self.low), jnp.array(self.high))


def from_unit(action: Array, low: Bounds, high: Bounds) -> Array:
    """Map [-1, 1] to the bounds. Rounding must not lead beyond them."""
    if all(x == -1 for x in low) and all(x == 1 for x in high):
        return action
    low_array, high_array = jnp.array(low), jnp.array(high)
    wide = low_array + (action + 1) / 2 * (high_array - low_array)
    return jnp.clip(wide, low_array, high_array)


def init_mlp(
    key: Array,
    observation_size: int,
    low: Bounds,
    high: Bounds,
    *,
    hidden: Sequence[int] = (64, 64),
    mean: Array | None = None,
    std: Array | None = None,
) -> MLP:
    """A fresh network, weights and biases uniform within one over the root of the inputs.

    The last layer begins a tenth as large, so that a fresh policy does not saturate its tanh.
    """
    sizes = (observation_size, *hidden, len(low))
    weights, biases = [], []
    for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
        key, weight_key, bias_key = jax.random.split(key, 3)
        bound = inputs**-0.5 * (0.1 if layer == len(sizes) - 2 else 1.0)
        weights.append(
            jax.random.uniform(weight_key, (inputs, outputs), minval=-bound, maxval=bound)
        )
        biases.append(jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound))
    return MLP(
        mean=jnp.zeros(observation_size) if mean is None else mean,
        std=jnp.ones(observation_size) if std is None else std,
        weights=tuple(weights),
        biases=tuple(biases),
        low=tuple(low),
        high=tuple(high),
    )
