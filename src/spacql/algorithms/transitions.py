"""A batch in the units that networks like, and the way back to the reward's own units.

Actions are in [-1, 1] and padded to the largest agent's size; state and team reward are
standardised with the dataset's statistics. Subtracting the reward's mean m shifts every value by
m / (1 - discount) as long as rewards go on for ever. Where the task ends they do not: the raw
reward is 0 from then on, which is -m / std a step after standardising. A terminal state therefore
has the value -m / (std (1 - discount)), not 0; with that, `raw_q` is exact with and without
terminals, and standardising changes no policy's rank.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.data.dataset import Statistics
from spacql.spec import Spec


class Scale(eqx.Module):
    """The statistics that critics need. Actors hold their own."""

    state_mean: Array  # (S,)
    state_std: Array
    reward_mean: Array  # ()
    reward_std: Array


class Transitions(NamedTuple):
    """B transitions (s, a, r, s', a')."""

    observations: tuple[Array, ...]  # per agent (B, size), raw: actors standardise them
    s: Array  # (B, S) standardised: the global state, or else the joint observation
    a: Array  # (B, n, d) in [-1, 1]
    r: Array  # (B,) standardised team reward
    next_observations: tuple[Array, ...]
    next_s: Array
    next_a: Array  # what the behaviour did next
    terminal: Array  # (B,)


def scale_of(spec: Spec, statistics: Statistics) -> Scale:
    if statistics.state_mean is None or statistics.state_std is None:
        mean = np.concatenate(statistics.observation_mean)
        std = np.concatenate(statistics.observation_std)
    else:
        mean, std = statistics.state_mean, statistics.state_std
    return Scale(
        jnp.asarray(mean, jnp.float32),
        jnp.asarray(std, jnp.float32),
        jnp.asarray(statistics.team_reward_mean, jnp.float32),
        jnp.asarray(statistics.team_reward_std, jnp.float32),
    )


def transitions(spec: Spec, scale: Scale, batch: Any) -> Transitions:
    """A `Batch`, with any leading axes, in the units of the networks."""

    def state(known: Array | None, observations: Sequence[Array]) -> Array:
        raw = jnp.concatenate(observations, axis=-1) if known is None else known
        return (raw - scale.state_mean) / scale.state_std

    return Transitions(
        observations=batch.observations,
        s=state(batch.state, batch.observations),
        a=unit_actions(spec, batch.actions),
        r=(batch.team_reward - scale.reward_mean) / scale.reward_std,
        next_observations=batch.next_observations,
        next_s=state(batch.next_state, batch.next_observations),
        next_a=unit_actions(spec, batch.next_actions),
        terminal=batch.terminal,
    )


def bellman(t: Transitions, scale: Scale, next_value: Array, discount: float) -> Array:
    """Y = r + gamma V(s'), where V of a terminal state is that of raw rewards of 0 for ever."""
    ended = -scale.reward_mean / (scale.reward_std * (1 - discount))
    return t.r + discount * jnp.where(t.terminal > 0, ended, next_value)


def raw_q(scale: Scale, q: Array, discount: float) -> Array:
    """A Q-value in the reward's own units."""
    return q * scale.reward_std + scale.reward_mean / (1 - discount)


def unit_actions(spec: Spec, actions: Sequence[Array]) -> Array:
    """Actions within the bounds, one array an agent, to one padded array in [-1, 1]."""
    units = []
    for action, low, high in zip(actions, spec.action_low, spec.action_high, strict=True):
        low_, high_ = jnp.asarray(low), jnp.asarray(high)
        units.append(2 * (action - low_) / (high_ - low_) - 1)
    return pad(spec, units)


def pad(spec: Spec, actions: Sequence[Array]) -> Array:
    """One array an agent (..., d_i) to (..., n, d), zeros behind smaller actions."""
    size = max(spec.action_sizes)
    widths = [[(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])] for x in actions]
    return jnp.stack([jnp.pad(x, w) for x, w in zip(actions, widths, strict=True)], axis=-2)


def action_mask(spec: Spec) -> np.ndarray:
    """(n, d): 1 for real action coordinates, 0 for padding."""
    real = np.arange(max(spec.action_sizes)) < np.array(spec.action_sizes)[:, None]
    return real.astype(np.float32)
