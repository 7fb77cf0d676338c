"""SPaCQL, soft-partial conservative Q-learning: Algorithm 1 of the paper.

Target: for every k = 1..n a random set of k agents is replaced, and the n values are mixed with
weights w_k that fall with the ensemble's disagreement u_k. Penalty: one agent at a time.
"""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import penalties
from spacql.algorithms.critics import ensemble_q
from spacql.algorithms.learner import (
    Metrics,
    State,
    init_state,
    next_actions,
    one_agent_at_a_time,
    policy_of,
    target_metrics,
    train_round,
)
from spacql.algorithms.replacement import mixture, random_sets, replace, uncertainty, weights
from spacql.algorithms.transitions import Transitions, bellman
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.policies import Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = True  # a'^(k) keeps logged next actions


@dataclass(frozen=True)
class Config:
    # Length and size
    rounds: int = 2000  # a round: `updates` critic updates, then one step of actors and targets
    updates: int = 5  # critic updates a round, each on a batch of its own
    batch_size: int = 1024  # transitions a batch
    hidden: tuple[int, ...] = (64, 64)  # units of the hidden layers, of actors and critics
    critics: int = 10  # J, size of the ensemble
    # Learning
    learning_rate: float = 0.01  # Adam, critics
    actor_learning_rate: float = 0.001  # Adam, actors
    gradient_clip: float = 0.5  # largest gradient norm of a network
    target_rate: float = 0.01  # how far targets move towards their networks a round
    discount: float = 0.95  # gamma
    target_noise: float = 0.05  # deviation of the noise on target policies' actions
    action_cost: float = 0.001  # weight of the squared action in the actors' loss
    tanh_cost: float = 0.0  # the same before the tanh: it brings back an actor that saturated
    # Target
    replaced: tuple[int, ...] = ()  # the numbers k of replaced agents to mix; empty: 1 to n
    mixing: Literal["uncertainty", "uniform"] = "uncertainty"  # w_k by 1 / u_k, or all equal
    # Penalty
    alpha: float = 0.5  # weight of the penalty, for standardised rewards
    penalty: penalties.Form = "log-sum-exp"  # over sampled actions; or at the policy's action
    penalty_agents: penalties.Agents = "one"  # one agent a transition, or the sum over all
    penalty_every: int = 1  # the penalty looks at one transition in this many
    penalty_weights: penalties.Weights = "uniform"  # lambda_i: 1/n, or by divergence from data
    tau: float = 1.0  # sharpness of lambda_i by divergence
    samples: int = 10  # uniform actions in the log-sum-exp
    policy_samples: int = 0  # actions near the policy's, at s and at s' each, in the log-sum-exp
    sample_noise: float = 0.2  # deviation of those


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    return init_state(key, spec, config, statistics)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    return train_round(target, one_agent_at_a_time, state, batch, key, config)


def policy(state: State) -> Policy:
    return policy_of(state, "spacql")


def target(key: Array, state: State, t: Transitions, config: Config) -> tuple[Array, Metrics]:
    """Y = r + gamma sum_k w_k min_j Qtar_j(s', a'^(k)), lines 6 to 13 of Algorithm 1."""
    noise_key, set_key = jax.random.split(key)
    batch, n, _ = t.a.shape
    a_pi = next_actions(noise_key, state, t, config)  # (B, n, d)
    sets = random_sets(set_key, batch, n, config.replaced or range(1, n + 1))  # (B, K, n)
    a_k = replace(sets, t.next_a, a_pi)  # (B, K, n, d)
    u_k = uncertainty(ensemble_q(state.critics, t.next_s, a_k))  # (B, K)
    w_k = jnp.full_like(u_k, 1 / u_k.shape[1]) if config.mixing == "uniform" else weights(u_k)
    value = mixture(w_k, ensemble_q(state.target_critics, t.next_s, a_k))
    y = bellman(t, state.scale, value, config.discount)
    return y, target_metrics(state, u_k, w_k, sets)
