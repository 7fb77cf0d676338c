"""MACQL: conservative Q-learning on the joint action.

Target: all agents are replaced. Penalty: on joint actions, all agents at once.
"""

from dataclasses import dataclass

from jax import Array

from spacql.algorithms import actors, learner
from spacql.algorithms.config import Conservative
from spacql.algorithms.conservative import all_agents_at_once, partial_target, train_round
from spacql.algorithms.critics import Metrics
from spacql.algorithms.learner import State
from spacql.algorithms.replacement import all_agents
from spacql.algorithms.transitions import Transitions
from spacql.data import Batch
from spacql.policies import Policy

NEEDS_NEXT_ACTION = False  # every agent is replaced


@dataclass(frozen=True)
class Config(Conservative):
    """Nothing of its own."""


init = learner.init


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    return train_round(target, all_agents_at_once, state, batch, key, config)


def policy(state: State) -> Policy:
    return actors.policy(state.actors, state.spec, "macql")


def target(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Array, Metrics]:
    """Y = r + gamma min_j Qtar_j(s', pi(s'))."""
    sets = all_agents(*t.a.shape[:2])  # (B, 1, n)
    return state, *partial_target(key, state, t, sets, config)
