"""An actor that samples its action: a denoising diffusion model, given the observation.

Noise is added to an action in K steps, x_k = sqrt(abar_k) a + sqrt(1 - abar_k) eps. A network
that has learnt to tell eps from (x_k, k, observation) takes the steps back, from noise to action.
"""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.policies.actors import MLP, Bounds, from_unit

TIME = 16  # numbers that tell the network k
Kind = Literal["linear", "vp"]


class Schedule(NamedTuple):
    """Of every step k = 1..K; the first entry is that of k = 1."""

    beta: np.ndarray  # variance of the noise that the step adds
    kept: np.ndarray  # abar_k: what is left of the action's variance
    before: np.ndarray  # abar_{k-1}, which is 1 for k = 1


def make_schedule(steps: int, kind: Kind) -> Schedule:
    """`linear`: beta from 1e-4 to 2e-2. `vp`: abar_K is 0.006 for any K, nearly pure noise."""
    if kind == "linear":
        beta = np.linspace(1e-4, 2e-2, steps)
    else:
        k = np.arange(1, steps + 1)
        beta = 1 - np.exp(-0.1 / steps - 0.5 * (10 - 0.1) * (2 * k - 1) / steps**2)
    kept = np.cumprod(1 - beta)
    return Schedule(beta, kept, np.concatenate([[1.0], kept[:-1]]))


def time_embedding(steps: int) -> np.ndarray:
    """Sines and cosines of k, (K, TIME)."""
    half = TIME // 2
    angle = np.arange(1, steps + 1)[:, None] * 10_000.0 ** (-np.arange(half) / (half - 1))
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)


class Diffusion(eqx.Module):
    """Samples by K denoising steps; with `critic`, the best of several samples by its value."""

    mean: Array  # (observation,) statistics of the input
    std: Array
    weights: tuple[Array, ...]  # (in, out) each; the first takes action, time and observation
    biases: tuple[Array, ...]
    share: Array | None  # () the learnt weight of the agent's part in the team's noise, or 1
    low: Bounds = eqx.field(static=True)
    high: Bounds = eqx.field(static=True)
    steps: int = eqx.field(static=True, default=10)  # K
    schedule: Kind = eqx.field(static=True, default="linear")
    temperature: float = eqx.field(static=True, default=1.0)  # factor of the noise when acting
    candidates: int = eqx.field(static=True, default=1)  # of which the critic chooses one
    critic: MLP | None = None  # its `before_tanh` is Q_i(o_i, a_i), a_i in [-1, 1]

    @property
    def observation_size(self) -> int:
        return self.mean.shape[0]

    def condition(self, observation: Array) -> Array:
        """The observation's part of the first layer, which is the same in all steps."""
        mean, std = jax.lax.stop_gradient((self.mean, self.std))  # statistics do not learn
        weight = self.weights[0][len(self.low) + TIME :]
        return (observation - mean) / std @ weight + self.biases[0]

    def noise(self, x: Array, time: Array, condition: Array) -> Array:
        """The noise in x (..., d), as the network sees it; time (..., TIME)."""
        of_action, of_time, _ = jnp.split(self.weights[0], [len(self.low), len(self.low) + TIME])
        h = mish(x @ of_action + time @ of_time + condition)
        for weight, bias in zip(self.weights[1:-1], self.biases[1:-1], strict=True):
            h = mish(h @ weight + bias)
        eps = h @ self.weights[-1] + self.biases[-1]
        return eps if self.share is None else self.share * eps

    def sample(self, observation: Array, key: Array, temperature: float = 1.0) -> Array:
        """An action in [-1, 1] per observation."""
        condition = self.condition(observation)
        shape = (self.steps + 1, *observation.shape[:-1], len(self.low))
        z = temperature * jax.random.normal(key, shape)
        numbers = jnp.asarray(np.stack(make_schedule(self.steps, self.schedule), 1), jnp.float32)
        steps = (numbers, jnp.asarray(time_embedding(self.steps)))

        def back(x: Array, inputs: Any) -> tuple[Array, None]:
            (numbers, time), z = inputs
            return denoise(x, self.noise(x, time, condition), z, *numbers), None

        x, _ = jax.lax.scan(back, z[0], (jax.tree.map(lambda x: x[::-1], steps), z[1:]))
        return x

    def __call__(self, observation: Array, key: Array) -> Array:
        if self.critic is None:
            action = self.sample(observation, key, self.temperature)
        else:
            seen = jnp.broadcast_to(observation, (self.candidates, *observation.shape))
            x = self.sample(seen, key, self.temperature)
            q = self.critic.before_tanh(jnp.concatenate([seen, x], axis=-1))  # (N, ..., 1)
            action = jnp.take_along_axis(x, jnp.argmax(q, axis=0, keepdims=True), axis=0)[0]
        return from_unit(action, self.low, self.high)


@jax.custom_jvp
def mish(x: Array) -> Array:
    """x tanh(log(1 + e^x)), with one exponential instead of three."""
    return x * _tanh_softplus(jnp.exp(jnp.minimum(x, 20)))


def _tanh_softplus(e: Array) -> Array:
    """tanh(log(1 + e^x)), of e = e^x."""
    return e * (e + 2) / (e * (e + 2) + 2)


@mish.defjvp
def _mish_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """By hand: what JAX derives from the above takes twice as long."""
    [x], [dx] = primals, tangents
    e = jnp.exp(jnp.minimum(x, 20))
    t = _tanh_softplus(e)
    return x * t, (t + x * (1 - t * t) * (e / (1 + e))) * dx


def denoise(x: Array, eps: Array, z: Array, beta: Array, kept: Array, before: Array) -> Array:
    """x_{k-1} given x_k: a draw, by z, from the posterior at the action that eps tells of.

    The last step, whose `before` is 1, adds no noise and returns that action.
    """
    action = jnp.clip((x - jnp.sqrt(1 - kept) * eps) / jnp.sqrt(kept), -1, 1)
    mean = jnp.sqrt(before) * beta * action + jnp.sqrt(1 - beta) * (1 - before) * x
    return mean / (1 - kept) + jnp.sqrt(beta * (1 - before) / (1 - kept)) * z


def noised(actor: Diffusion, action: Array, k: Array, eps: Array) -> tuple[Array, Array]:
    """x_k of an action in [-1, 1] and the embedding of k, for k (B,) from 0 for the first step."""
    kept = jnp.asarray(make_schedule(actor.steps, actor.schedule).kept, jnp.float32)[k][:, None]
    time = jnp.asarray(time_embedding(actor.steps))[k]
    return jnp.sqrt(kept) * action + jnp.sqrt(1 - kept) * eps, time


def denoising_error(actor: Diffusion, observation: Array, action: Array, key: Array) -> Array:
    """Mean of (eps - eps_i(x_k, k, o_i))^2 at a random step per row; action (B, d) in [-1, 1]."""
    step_key, noise_key = jax.random.split(key)
    k = jax.random.randint(step_key, (len(action),), 0, actor.steps)
    eps = jax.random.normal(noise_key, action.shape)
    x, time = noised(actor, action, k, eps)
    return jnp.mean((eps - actor.noise(x, time, actor.condition(observation))) ** 2)
