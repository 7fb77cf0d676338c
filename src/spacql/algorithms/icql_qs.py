"""ICQL-QS, individual conservative Q-learning with a shared Q: the paper's first algorithm.

Target: one agent is replaced at a time, and the n values are averaged, each with its own minimum
over critics. Penalty: one agent at a time.

The paper writes one loss per agent and averages the losses. By its proposition on gradients, that
is the same step as one loss with the averaged target, which is what stands here.
"""

from dataclasses import dataclass

from jax import Array

from spacql.algorithms import actors, learner
from spacql.algorithms.config import Counterfactual
from spacql.algorithms.conservative import one_agent_at_a_time, partial_target, train_round
from spacql.algorithms.critics import Metrics
from spacql.algorithms.learner import State
from spacql.algorithms.replacement import each_agent
from spacql.algorithms.transitions import Transitions
from spacql.data import Batch
from spacql.policies import Policy

NEEDS_NEXT_ACTION = True  # all but one keep their logged next actions


@dataclass(frozen=True)
class Config(Counterfactual):
    """Nothing of its own."""


init = learner.init


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    return train_round(target, one_agent_at_a_time, state, batch, key, config)


def policy(state: State) -> Policy:
    return actors.policy(state.actors, state.spec, "icql-qs")


def target(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Array, Metrics]:
    """Y = r + gamma (1/n) sum_i min_j Qtar_j(s', pi_i(s'), a'_-i)."""
    sets = each_agent(*t.a.shape[:2])  # (B, n, n)
    return state, *partial_target(key, state, t, sets, config)
