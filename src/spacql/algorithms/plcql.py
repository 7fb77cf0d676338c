"""PLCQL, partial action replacement that is learnt: our reading of SPaCQL's successor.

Target: a contextual bandit sees s' and chooses how many agents to replace, k = 1..n. One random set
of k agents is replaced per transition, so the target costs one evaluation of one ensemble. The
bandit is paid for high value and low disagreement, and learns by PPO. Penalty: one agent at a time.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors, learner, values
from spacql.algorithms.config import Counterfactual
from spacql.algorithms.conservative import one_agent_at_a_time, train_round
from spacql.algorithms.critics import Metrics, squared_error
from spacql.algorithms.ensemble import ensemble_q, group_size, in_groups
from spacql.algorithms.learner import next_actions
from spacql.algorithms.optimisation import optimiser, step_each
from spacql.algorithms.replacement import random_sets, replace, uncertainty
from spacql.algorithms.transitions import Transitions, bellman
from spacql.algorithms.values import Value, v
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.errors import InputError
from spacql.policies import MLP, Policy, init_mlp
from spacql.spec import Spec

NEEDS_NEXT_ACTION = True  # a'^(k) keeps logged next actions


@dataclass(frozen=True)
class Config(Counterfactual):
    critics: int = 10  # J, size of the ensemble
    disagreement_cost: float = 1.0  # c: of u in the bandit's reward, beside min_j Q
    bandit_learning_rate: float = 0.001  # Adam, the bandit's policy
    bandit_steps: int = 4  # PPO steps per batch
    ratio_clip: float = 0.2  # how far PPO's ratio may go from 1
    entropy: float = 0.01  # weight of the bandit's entropy

    def __post_init__(self) -> None:
        if self.bandit_steps < 1 or self.ratio_clip <= 0:
            raise InputError(
                f"{self.bandit_steps} bandit steps with a ratio clip of {self.ratio_clip} are "
                "impossible: steps must be at least 1, the clip above 0."
            )


class Bandit(eqx.Module):
    """pi(k | s'), and the reward that it expects at s'."""

    network: MLP  # its `before_tanh` are the logits of k = 1..n
    optimiser_state: Any
    baseline: Value


class State(learner.State):
    bandit: Bandit


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    team_key, bandit_key = jax.random.split(key)
    team = learner.init(team_key, spec, config, statistics)
    bandit = init_bandit(bandit_key, len(team.scale.state_mean), spec.n_agents, config)
    return State(team.actors, team.critics, team.scale, spec, bandit)


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    return train_round(target, one_agent_at_a_time, state, batch, key, config)


def policy(state: State) -> Policy:
    return actors.policy(state.actors, state.spec, "plcql")


def target(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Array, Metrics]:
    """Y = r + gamma min_j Qtar_j(s', a'^(k)), k drawn by the bandit, which then learns."""
    noise_key, set_key, arm_key = jax.random.split(key, 3)
    log_pi = log_probabilities(state.bandit.network, t.next_s)  # (B, n)
    arm = jax.random.categorical(arm_key, log_pi)  # (B,), k - 1
    batch, n = log_pi.shape
    sets = random_sets(set_key, batch, n, arm[:, None] + 1)  # (B, 1, n)
    a_k = replace(sets, t.next_a, next_actions(noise_key, state, t, config.target_noise))
    q = ensemble_q(state.critics.target, t.next_s, a_k)  # (J, B, 1)
    value, u = jnp.min(q, axis=0)[:, 0], uncertainty(q)[:, 0]
    acts = t.terminal == 0  # nobody acts in a terminal state, which teaches the bandit nothing
    paid = reward(value, u, acts, config.disagreement_cost)
    bandit = learn(state.bandit, t.next_s, arm, log_pi, paid, acts, config)
    pi = jnp.exp(log_pi)
    metrics = {
        "u": jnp.mean(u, keepdims=True) * state.scale.reward_std,
        "w": jnp.mean(pi, axis=0),  # (n,) how often which k
        "k_eff": jnp.mean(arm + 1.0),
        "entropy": jnp.mean(-jnp.sum(pi * log_pi, axis=-1)),
    }
    y = bellman(t, state.scale, value, config.discount)
    return eqx.tree_at(lambda s: s.bandit, state, bandit), y, metrics


def init_bandit(key: Array, state_size: int, arms: int, config: Config) -> Bandit:
    network_key, value_key = jax.random.split(key)
    bounds = ((-1.0,) * arms, (1.0,) * arms)  # which logits have none
    network = init_mlp(network_key, state_size, *bounds, hidden=config.hidden)
    begin = optimiser(config, config.bandit_learning_rate).init
    learning = eqx.filter(network, eqx.is_inexact_array)
    return Bandit(network, (begin(learning),), values.init(value_key, state_size, config))


def log_probabilities(network: MLP, s: Array) -> Array:
    """log pi(k | s), (B, n)."""
    return jax.nn.log_softmax(network.before_tanh(s))


def reward(value: Array, u: Array, acts: Array, cost: float) -> Array:
    """Value - cost * disagreement, in deviations of the values where agents act, whose mean becomes
    0."""
    return (value - mean_where(acts, value) - cost * u) / (std_where(acts, value) + 1e-6)


def learn(
    bandit: Bandit,
    s: Array,
    arm: Array,
    log_pi: Array,
    paid: Array,
    acts: Array,
    config: Config,
) -> Bandit:
    """PPO on returns of one step: log_pi (B, n) drew `arm` (B,) at s, which was `paid` (B,)."""
    expected = v(bandit.baseline, s)
    paid = jnp.where(acts, paid, expected)  # no error for the baseline elsewhere
    advantage = paid - expected
    advantage = (advantage - mean_where(acts, advantage)) / (std_where(acts, advantage) + 1e-6)
    _, rest = eqx.partition(bandit.network, eqx.is_inexact_array)

    def loss(learning: tuple[Any]) -> Array:
        new = log_probabilities(eqx.combine(learning[0], rest), s)
        return ppo_loss(new, log_pi, arm, advantage, acts, config)

    def step(carry: Any, _: None) -> tuple[Any, None]:
        learning, optimiser_state = carry
        moved = step_each(
            learning, jax.grad(loss)(learning), optimiser_state, config, config.bandit_learning_rate
        )
        return moved, None

    begin = ((eqx.filter(bandit.network, eqx.is_inexact_array),), bandit.optimiser_state)
    (learning, optimiser_state), _ = jax.lax.scan(step, begin, length=config.bandit_steps)
    groups = in_groups(paid, group_size(len(paid), 1, most=len(paid)))
    baseline = values.step(bandit.baseline, squared_error, s, groups, config)
    return Bandit(eqx.combine(learning[0], rest), optimiser_state, baseline)


def ppo_loss(
    new: Array, old: Array, arm: Array, advantage: Array, acts: Array, config: Config
) -> Array:
    """-E[min(ratio A, clipped ratio A)] - entropy where agents act; new and old (B, n) are
    log-probabilities."""
    ratio = jnp.exp(jnp.take_along_axis(new - old, arm[:, None], axis=1)[:, 0])
    clipped = jnp.clip(ratio, 1 - config.ratio_clip, 1 + config.ratio_clip)
    gain = jnp.minimum(ratio * advantage, clipped * advantage)
    entropy = -jnp.sum(jnp.exp(new) * new, axis=-1)
    return -mean_where(acts, gain + config.entropy * entropy)


def mean_where(chosen: Array, x: Array) -> Array:
    """The mean of some of x (B,); 0 of none."""
    return jnp.sum(jnp.where(chosen, x, 0)) / jnp.maximum(jnp.sum(chosen), 1)


def std_where(chosen: Array, x: Array) -> Array:
    return jnp.sqrt(mean_where(chosen, (x - mean_where(chosen, x)) ** 2))
