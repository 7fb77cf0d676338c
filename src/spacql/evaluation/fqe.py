"""Fitted Q evaluation: critics of a policy that is given, trained on a log alone.

    Q(s, a) <- r + gamma Qtar(s', pi(s'))

Every critic follows its own target, so that the ensemble's disagreement grows with the distance
from the data. `robust` adds layer normalisation, which bounds what critics say of actions that the
log lacks, and targets within the returns that its rewards allow; without it this is the plain form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from spacql.algorithms import critics as critic_part
from spacql.algorithms.config import ActorCritic
from spacql.algorithms.critics import Critics
from spacql.algorithms.ensemble import Critic, each, ensemble_q, q_of_joint
from spacql.algorithms.optimisation import optimiser
from spacql.algorithms.transitions import (
    Scale,
    Transitions,
    bellman,
    raw_q,
    scale_of,
    transitions,
    unit_actions,
)
from spacql.data import Dataset
from spacql.policies import Policy
from spacql.spec import Spec

CHUNK = 50  # steps per compiled call


@dataclass(frozen=True)
class Config(ActorCritic):
    critics: int = 3
    learning_rate: float = 0.001
    target_rate: float = 0.02
    batch_size: int = 256
    steps: int = 1500
    robust: bool = True


def fit(
    dataset: Dataset,
    rows: np.ndarray,
    policy: Policy | None,
    config: Config,
    seed: int = 0,
    report: Callable[[float], None] = lambda share: None,
) -> Critics:
    """Critics of a policy; of the behaviour itself, whose next actions the log holds, if None."""
    spec, scale = dataset.spec, scale_of(dataset.spec, dataset.statistics())
    reward = (dataset.team_reward[rows] - float(scale.reward_mean)) / float(scale.reward_std)
    worth = [float(reward.min()), float(reward.max())]  # what a step can be worth
    if dataset.is_terminal(rows).any():
        worth.append(-float(scale.reward_mean / scale.reward_std))  # after the end
    possible = (min(worth) / (1 - config.discount), max(worth) / (1 - config.discount))
    key = jax.random.key(seed)
    critics = critic_part.init(key, spec, len(scale.state_mean), config, config.robust)
    if dataset.is_terminal(rows).any():
        # Values are then far from 0, the mean of a task that goes on, and layers that are
        # standardised get there slowly.
        level = logged_values(dataset, scale, config.discount)[rows].mean()
        biases = lambda c: (c.online.last_bias, c.target.last_bias)  # noqa: E731
        critics = eqx.tree_at(biases, critics, [bias + level for bias in biases(critics)])
    policy = policy and Policy(policy.actors)  # another name is no reason to compile again
    random = np.random.default_rng(seed)
    for start in range(0, config.steps, CHUNK):
        drawn = rows[random.integers(0, len(rows), (CHUNK, config.batch_size))]
        batch = dataset.batch(drawn)
        keys = jax.random.fold_in(key, start)
        critics = _steps(critics, policy, batch, keys, scale, spec, config, possible)
        report((start + CHUNK) / config.steps)
    return critics


def logged_values(dataset: Dataset, scale: Scale, discount: float) -> np.ndarray:
    """At every row what the log itself got from there on, discounted and in the critics' units;
    where time cut an episode, as if mean rewards had followed."""
    mean, std = float(scale.reward_mean), float(scale.reward_std)
    reward = (dataset.team_reward - mean) / std
    starts, lengths = dataset.starts[:-1], np.diff(dataset.starts) - 1
    value = np.where(dataset.terminated, -mean / (std * (1 - discount)), 0.0)  # per episode
    values = np.zeros(dataset.n_rows)
    for step in reversed(range(int(lengths.max()))):
        under_way = lengths > step
        rows = starts[under_way] + step
        value[under_way] = reward[rows] + discount * value[under_way]
        values[rows] = value[under_way]
    return values


@eqx.filter_jit
def _steps(
    critics: Critics,
    policy: Policy | None,
    batch: Any,
    key: Array,
    scale: Scale,
    spec: Spec,
    config: Config,
    possible: tuple[float, float],
) -> Critics:
    t = transitions(spec, scale, batch)
    arrays, rest = eqx.partition(critics, eqx.is_array)

    def one(arrays: Any, inputs: Any) -> Any:
        critics: Critics = eqx.combine(arrays, rest)
        t, key = inputs
        a = t.next_a if policy is None else unit_actions(spec, policy(t.next_observations, key))
        value = ensemble_q(critics.target, t.next_s, a[:, None])[:, :, 0]  # (J, B)
        y = bellman(t, scale, value, config.discount)
        critics = _step(critics, t, jnp.clip(y, *possible) if config.robust else y, config)
        critics = critic_part.update_targets(critics, config.target_rate)
        return eqx.filter(critics, eqx.is_array), None

    arrays, _ = jax.lax.scan(one, arrays, (t, jax.random.split(key, len(t.r))))
    return eqx.combine(arrays, rest)


def _step(critics: Critics, t: Transitions, y: Array, config: Config) -> Critics:
    """One step of every critic towards its own row of y (J, B)."""

    def gradient(member: tuple[Critic, Array]) -> Any:
        def loss(critic: Critic) -> Array:
            return jnp.mean((q_of_joint(critic, t.s, t.a[:, None])[:, 0] - member[1]) ** 2)

        return jax.grad(loss)(member[0])

    gradients = each(gradient, (critics.online, y))
    update = jax.vmap(optimiser(config, config.learning_rate).update)
    steps, state = update(gradients, critics.optimiser_state)
    return Critics(optax.apply_updates(critics.online, steps), critics.target, state)


def values(
    critics: Critics, dataset: Dataset, policy: Policy | None, rows: np.ndarray, config: Config
) -> np.ndarray:
    """Every critic's V at rows, in the reward's own units: (J, rows)."""
    spec, scale = dataset.spec, scale_of(dataset.spec, dataset.statistics())
    batch = dataset.batch(rows)
    t = transitions(spec, scale, batch)
    a = t.a
    if policy is not None:
        a = unit_actions(spec, policy([jnp.asarray(o) for o in batch.observations],
                                      jax.random.key(0)))  # fmt: skip
    q = ensemble_q(critics.online, t.s, a[:, None])[:, :, 0]
    return np.asarray(raw_q(scale, q, config.discount), np.float64)
