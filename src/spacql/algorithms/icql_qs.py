"""ICQL-QS, individual conservative Q-learning with a shared Q: the paper's first algorithm.

Target: one agent is replaced at a time, and the n values are averaged, each with its own minimum
over critics. Penalty: one agent at a time.

The paper writes one loss an agent and averages the losses. By its proposition on gradients, that
is the same step as one loss with the averaged target, which is what stands here.
"""

from dataclasses import dataclass

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
from spacql.algorithms.replacement import each_agent, mixture, replace, uncertainty
from spacql.algorithms.transitions import Transitions, bellman
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.policies import Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = True  # all but one keep their logged next actions


@dataclass(frozen=True)
class Config:
    # Length and size
    rounds: int = 2000  # a round: `updates` critic updates, then one step of actors and targets
    updates: int = 5  # critic updates a round, each on a batch of its own
    batch_size: int = 1024  # transitions a batch
    hidden: tuple[int, ...] = (64, 64)  # units of the hidden layers, of actors and critics
    critics: int = 2  # J, size of the ensemble
    # Learning
    learning_rate: float = 0.01  # Adam, critics
    actor_learning_rate: float = 0.001  # Adam, actors
    gradient_clip: float = 0.5  # largest gradient norm of a network
    target_rate: float = 0.01  # how far targets move towards their networks a round
    discount: float = 0.95  # gamma
    target_noise: float = 0.05  # deviation of the noise on target policies' actions
    action_cost: float = 0.001  # weight of the squared action in the actors' loss
    tanh_cost: float = 0.0  # the same before the tanh: it brings back an actor that saturated
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
    return policy_of(state, "icql-qs")


def target(key: Array, state: State, t: Transitions, config: Config) -> tuple[Array, Metrics]:
    """Y = r + gamma (1/n) sum_i min_j Qtar_j(s', pi_i(s'), a'_-i)."""
    batch, n, _ = t.a.shape
    a_pi = next_actions(key, state, t, config)  # (B, n, d)
    sets = each_agent(batch, n)  # (B, n, n)
    a_k = replace(sets, t.next_a, a_pi)  # (B, n, n, d)
    u_k = uncertainty(ensemble_q(state.critics, t.next_s, a_k))  # (B, n), to report
    w_k = jnp.full_like(u_k, 1 / n)
    value = mixture(w_k, ensemble_q(state.target_critics, t.next_s, a_k))
    y = bellman(t, state.scale, value, config.discount)
    return y, target_metrics(state, u_k, w_k, sets)
