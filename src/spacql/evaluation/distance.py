"""How far a policy leaves the log, agent by agent, in units of how widely the log acts there."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.algorithms import densities as part
from spacql.algorithms.config import Training
from spacql.algorithms.densities import Densities
from spacql.algorithms.transitions import unit_actions
from spacql.data import Dataset
from spacql.policies import MLP, Policy
from spacql.policies.actors import from_unit
from spacql.spec import Spec

CONFIG = Training(batch_size=256, actor_learning_rate=0.002)
STEPS, CHUNK = 2000, 50
FAR = 3.0  # deviations of the behaviour: beyond, a state counts as one that the policy leaves at
MOST_ROWS = 10_000


class Distance(NamedTuple):
    mean: tuple[float, ...]  # per agent: root mean square over states and coordinates
    outside: tuple[float, ...]  # per agent: share of states where it is beyond FAR


def learn(dataset: Dataset, rows: np.ndarray, seed: int = 0) -> Densities:
    """A density of each agent's behaviour, from the transitions that begin at `rows`."""
    spec = dataset.spec
    densities = part.init(jax.random.key(seed), spec, dataset.statistics(), CONFIG)
    random = np.random.default_rng(seed)

    @jax.jit
    def steps(arrays: Any, batches: Any) -> Any:
        def one(arrays: Any, batch: Any) -> Any:
            observations, actions = batch
            a = unit_actions(spec, actions)
            moved, _ = part.step(eqx.combine(arrays, rest), spec, observations, a, CONFIG)
            return eqx.filter(moved, eqx.is_array), None

        return jax.lax.scan(one, arrays, batches)[0]

    arrays, rest = eqx.partition(densities, eqx.is_array)
    for _ in range(0, STEPS, CHUNK):
        batch = dataset.batch(rows[random.integers(0, len(rows), (CHUNK, CONFIG.batch_size))])
        arrays = steps(arrays, (batch.observations, batch.actions))
    found: Densities = eqx.combine(arrays, rest)
    return found


class Sampled(eqx.Module):
    """An actor that does what the log's density says, at random."""

    network: MLP
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    @property
    def observation_size(self) -> int:
        return self.network.observation_size

    def __call__(self, observation: Array, key: Array) -> Array:
        mean, log_std = part.gaussian(self.network, observation)
        drawn = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)
        return from_unit(jnp.clip(drawn, -1, 1), self.low, self.high)


def behaviour(densities: Densities, spec: Spec) -> Policy:
    """What made the log, as a policy."""
    parts = zip(densities.networks, spec.action_low, spec.action_high, strict=True)
    return Policy(tuple(Sampled(*actor) for actor in parts), name="the log")


def distance(densities: Densities, dataset: Dataset, policy: Policy, rows: np.ndarray) -> Distance:
    """Of a policy's actions at the observations of `rows`."""
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    seen = tuple(jnp.asarray(x[rows]) for x in dataset.observations)
    acted = unit_actions(dataset.spec, policy(seen, jax.random.key(0)))
    square = np.asarray(part.standardised_distance(densities, dataset.spec, seen, acted))  # (B, n)
    return Distance(
        tuple(float(x) for x in np.sqrt(square.mean(axis=0))),
        tuple(float(x) for x in (square > FAR**2).mean(axis=0)),
    )
