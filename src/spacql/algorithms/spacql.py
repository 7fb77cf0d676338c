"""SPaCQL, soft-partial conservative Q-learning: Algorithm 1 of the paper.

Target: for every k = 1..n a random set of k agents is replaced, and the n values are mixed with
weights w_k that fall with the ensemble's disagreement u_k. Penalty: one agent at a time.
"""

from dataclasses import dataclass
from typing import Literal

import jax
from jax import Array

from spacql.algorithms import actors, learner
from spacql.algorithms.config import Counterfactual
from spacql.algorithms.conservative import (
    equal_weights,
    one_agent_at_a_time,
    partial_target,
    train_round,
    trust_weights,
)
from spacql.algorithms.critics import Metrics
from spacql.algorithms.learner import State
from spacql.algorithms.replacement import random_sets
from spacql.algorithms.transitions import Transitions
from spacql.data import Batch
from spacql.policies import Policy

NEEDS_NEXT_ACTION = True  # a'^(k) keeps logged next actions


@dataclass(frozen=True)
class Config(Counterfactual):
    critics: int = 10  # J, size of the ensemble
    replaced: tuple[int, ...] = ()  # the numbers k of replaced agents to mix; empty: 1 to n
    mixing: Literal["uncertainty", "uniform"] = "uncertainty"  # w_k by 1 / u_k, or all equal


init = learner.init


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    return train_round(target, one_agent_at_a_time, state, batch, key, config)


def policy(state: State) -> Policy:
    return actors.policy(state.actors, state.spec, "spacql")


def target(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Array, Metrics]:
    """Y = r + gamma sum_k w_k min_j Qtar_j(s', a'^(k)), lines 6 to 13 of Algorithm 1."""
    noise_key, set_key = jax.random.split(key)
    batch, n, _ = t.a.shape
    sets = random_sets(set_key, batch, n, config.replaced or range(1, n + 1))  # (B, K, n)
    weigh = trust_weights if config.mixing == "uncertainty" else equal_weights
    return state, *partial_target(noise_key, state, t, sets, config, weigh)
