"""Acting in NumPy: what a policy does outside JAX, without compiling for every batch size.

A team of plain MLPs is stacked along an axis of agents, padded with zeros where sizes differ, so
that a layer of the whole team is one product. Zeros change no sum.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from spacql.errors import InputError
from spacql.files import decoding
from spacql.policies.actors import MLP

Arrays = tuple[np.ndarray, ...]
OVERFLOW = "The policy's numbers overflow at this observation: its actions are not finite."


class Act(Protocol):
    """What `Policy.act` is."""

    def __call__(
        self, observations: Sequence[Any] | Mapping[str, Any], *, key: Any = 0
    ) -> Arrays: ...


class Acting:
    """A policy as its user calls it: observations are checked, actions are NumPy arrays.

    `compiled(arrays, key)` serves the kinds of actors that do not act in NumPy.
    """

    def __init__(
        self,
        agents: Sequence[str],
        actors: Sequence[Any],
        compiled: Callable[[Arrays, Any], Arrays],
    ):
        self.agents = tuple(agents)
        self.sizes = tuple(int(actor.observation_size) for actor in actors)
        self.team = numpy_team(actors)
        self.compiled = compiled

    def act(self, observations: Sequence[Any] | Mapping[str, Any], *, key: Any = 0) -> Arrays:
        """See `Policy.act`."""
        if isinstance(observations, Mapping):
            missing = [name for name in self.agents if name not in observations]
            if missing:
                raise InputError(
                    f"No observation for agent {missing[0]!r}; "
                    f"this policy acts for {', '.join(self.agents)}."
                )
            observations = [observations[name] for name in self.agents]
        arrays = self.checked(observations)
        x = self.joined(arrays)
        team = self.team
        if team is None:
            actions = self.compiled(tuple(arrays), key)
            if not all(np.isfinite(action).all() for action in actions):
                raise InputError(OVERFLOW)
            return actions
        with np.errstate(over="ignore", invalid="ignore"):
            y, one = team(x), arrays[0].ndim == 1
        if not np.isfinite(y).all():
            raise InputError(OVERFLOW)
        return tuple(
            [y[i, 0, :size] if one else y[i, :, :size] for i, size in enumerate(team.sizes)]
        )

    def checked(self, observations: Sequence[Any]) -> list[np.ndarray]:
        """float32 arrays of one batch, or an error that says whose is wrong."""
        if len(observations) != len(self.sizes):
            raise InputError(
                f"Got {len(observations)} observations; this policy acts for "
                f"{len(self.sizes)} agents ({', '.join(self.agents)})."
            )
        with decoding("An observation"):
            arrays = [np.asarray(observation, np.float32) for observation in observations]
        batch = arrays[0].shape[:-1]
        for agent, size, array in zip(self.agents, self.sizes, arrays, strict=True):
            shape = array.shape
            if len(shape) not in (1, 2) or shape[-1] != size:
                raise InputError(
                    f"The observation of {agent} has shape {shape}; expected ({size},) or "
                    f"(batch, {size})."
                )
            if shape[:-1] != batch:
                raise InputError(
                    f"The observation of {agent} has shape {shape} and that of "
                    f"{self.agents[0]} {arrays[0].shape}; all agents need the same batch."
                )
        return arrays

    def joined(self, arrays: list[np.ndarray]) -> np.ndarray:
        """(n, B, size), zeros behind smaller observations; refused where not finite."""
        first, size = arrays[0], max(self.sizes)
        batch = len(first) if first.ndim == 2 else 1
        if min(self.sizes) == size:
            joined = np.array(arrays).reshape(len(arrays), batch, size)
        else:
            joined = np.zeros((len(arrays), batch, size), np.float32)
            for row, array, own in zip(joined, arrays, self.sizes, strict=True):
                row[:, :own] = array
        if not np.isfinite(joined).all():
            for agent, array in zip(self.agents, joined, strict=True):
                if not np.isfinite(array).all():
                    raise InputError(f"The observation of {agent} holds NaN or infinity.")
        return joined


class NumpyTeam:
    """(n, B, observation) to (n, B, action), both padded."""

    def __init__(self, actors: Sequence[MLP]):
        depth = len(actors[0].weights)
        self.mean = stacked([actor.mean for actor in actors])[:, None]
        self.std = stacked([actor.std for actor in actors], fill=1)[:, None]
        weights = [stacked([a.weights[k] for a in actors]) for k in range(depth)]
        biases = [stacked([a.biases[k] for a in actors])[:, None] for k in range(depth)]
        self.layers = list(zip(weights, biases, strict=True))
        self.sizes = tuple(len(actor.low) for actor in actors)
        self.low = stacked([np.array(actor.low) for actor in actors])[:, None]
        self.high = stacked([np.array(actor.high) for actor in actors])[:, None]
        span = [np.array(actor.high) - np.array(actor.low) for actor in actors]
        self.span = stacked(span)[:, None]
        self.unit = all(set(a.low) == {-1.0} and set(a.high) == {1.0} for a in actors)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = (x - self.mean) / self.std
        *hidden, (weight, bias) = self.layers
        for w, b in hidden:
            x = x @ w
            x += b
            np.maximum(x, 0, out=x)
        x = x @ weight
        x += bias
        np.tanh(x, out=x)
        if self.unit:
            return x
        x = self.low + (x + 1) / 2 * self.span
        np.minimum(x, self.high, out=x)  # rounding must not lead beyond the bounds
        return np.maximum(x, self.low, out=x)


def numpy_team(actors: Sequence[Any]) -> NumpyTeam | None:
    """None where an actor is no deterministic MLP, or depths differ."""
    plain = all(type(actor) is MLP and actor.noise == 0 for actor in actors)
    if not plain or len({len(actor.weights) for actor in actors}) != 1:
        return None
    return NumpyTeam(actors)


def stacked(arrays: Sequence[Any], fill: float = 0) -> np.ndarray:
    """Arrays of one number of axes as one, (n, ...), padded to the largest."""
    parts = [np.asarray(array, np.float32) for array in arrays]
    shape = np.max([part.shape for part in parts], axis=0)
    whole = np.full((len(parts), *shape), fill, np.float32)
    for row, part in zip(whole, parts, strict=True):
        row[tuple(slice(size) for size in part.shape)] = part
    return whole
