"""ASPAC, anchored soft-partial actor-critic: our own algorithm, one configuration for all data.

SPaCQL's critic with three changes, each of which an option takes out again.

**Target.** Sets of k = 1..n replaced agents as in SPaCQL, but the weight goes to the sets whose
value is highest in the worst case, with b the sharpness:

    Y = r + gamma sum_k w_k q_k,      q_k = min_j Qtar_j(s', a'^(k)),      w = softmax_k(b q_k)

Where the critics agree about what all policies would do together, that is the joint target; where
they do not, its minimum falls and fewer agents are replaced.

**Actors.** As many steps as the critics. Agent i climbs Q_j(s, pi_i(o_i), x_-i), where each of the
others does in x what its policy would do, with a probability that is drawn uniformly for every
transition, and else what the log says. All logged is the paper's actor, which answers to a team
that does not change; all policies is MADDPG's, which asks for joint actions that no log has. The
critic j is drawn anew for every step: an actor that climbs one critic climbs its errors too.

**Anchor.** An actor pays for leaving the log, the more the more narrowly the log acts:

    lambda(p) mean_d (pi_i(o_i) - a_i)^2 max(1 / s_i^2 - 3, 0)

s_i^2 is the variance of agent i's behaviour at given observations, on average over them, by a
learnt Gaussian; 3 is 1 / s^2 of uniform actions. Where behaviour is narrow, as an expert's, the
anchor holds fast; where it is uniform, not at all: the strength comes from the data. It is one
number per coordinate: a strength per observation leaves the actors to the few where behaviour is
narrowest.

Over the training lambda comes down geometrically, from a T to c T^(4/3) at the share p_1, and stays
there. Critics know little at first, and actors that leave a narrow log then do not come back. T is
the steps of an episode: a team strays from the logged states a little with every step, which costs
at least as T and at most as T^2; 4/3 is what development data said.

**Penalty.** CFCQL's log-sum-exp, one agent at a time, with one alpha for all data. Some of its
actions are near the policy's: with uniform ones alone, of which none is near narrow data, Q falls
at them without end.

The policy that acts is the running average of the actors, their targets: steadier than the last.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import densities as density_part
from spacql.algorithms import learner
from spacql.algorithms.actors import Networks, act, act_and_saturation, squared_distance
from spacql.algorithms.config import Counterfactual
from spacql.algorithms.conservative import (
    critic_update,
    one_agent_at_a_time,
    partial_target,
    trust_weights,
)
from spacql.algorithms.critics import Metrics
from spacql.algorithms.densities import UNIFORM, Densities, mean_variance
from spacql.algorithms.learner import own_values, play_round, with_actors
from spacql.algorithms.replacement import random_sets, uncertainty
from spacql.algorithms.transitions import Transitions, raw_q
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.errors import InputError
from spacql.policies import Policy
from spacql.spec import Spec

NEEDS_NEXT_ACTION = True  # a'^(k) keeps logged next actions


@dataclass(frozen=True)
class Config(Counterfactual):
    rounds: int = 15_000  # a round: one step of the critics, then one of actors and targets
    updates: int = 1  # critic updates per round
    batch_size: int = 256  # transitions per batch
    hidden: tuple[int, ...] = (128, 128)  # units of the hidden layers, of all networks
    learning_rate: float = 0.003  # Adam, critics
    actor_learning_rate: float = 0.003  # Adam, actors
    target_rate: float = 0.01  # how far targets move towards their networks, per round
    critics: int = 4  # J, size of the ensemble
    tanh_cost: float = 0.01  # weight of the squared input of the tanh in the actors' loss
    alpha: float = 0.1  # weight of the penalty, for standardised rewards
    samples: int = 4  # uniform actions in the log-sum-exp
    policy_samples: int = 3  # actions near the policy's, at s and at s' each, in the log-sum-exp
    penalty_every: int = 4  # the penalty looks at one transition in this many
    replaced: tuple[int, ...] = ()  # the numbers k of replaced agents to mix; empty: 1 to n
    mixing: Literal["lower-bound", "uncertainty"] = "lower-bound"  # w_k as above, or SPaCQL's
    sharpness: float = 10.0  # b, of the softmax over lower bounds, for standardised rewards
    others: Literal["partial", "logged", "policies"] = "partial"  # what the actors see
    anchor: Literal["by-width", "plain"] = "by-width"  # or the plain squared distance
    anchor_weight: float = 3.4e-5  # c; 0: no anchor
    anchor_start: float = 0.003  # a; 0: lambda is the same all the time
    anchor_release: float = 0.6  # p_1, share of the training after which lambda is the same
    may_be_lengthened: ClassVar[bool] = False  # lambda looks at the share of all rounds

    def __post_init__(self) -> None:
        for name in ("sharpness", "anchor_weight", "anchor_start"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 0.")
        if self.anchor_release <= 0:
            raise InputError(
                f"anchor_release is {self.anchor_release}, a share of the training; it must be "
                "above 0."
            )


class State(learner.State):
    densities: Densities
    steps: Array  # of the actors


def init(key: Array, spec: Spec, config: Config, statistics: Statistics) -> State:
    team_key, density_key = jax.random.split(key)
    team = learner.init(team_key, spec, config, statistics)
    densities = density_part.init(density_key, spec, statistics, config)
    return State(team.actors, team.critics, team.scale, spec, densities, jnp.zeros((), jnp.int32))


def update(state: State, batch: Batch, key: Array, config: Config) -> tuple[State, Metrics]:
    def critic_step(key: Array, state: State, t: Transitions) -> tuple[State, Metrics]:
        return critic_update(target, one_agent_at_a_time, key, state, t, config)

    def actor_step(key: Array, state: State, t: Transitions) -> tuple[State, Metrics]:
        state, of_densities = improve_densities(state, t, config)
        state, of_actors = improve_actors(key, state, t, config)
        return state, of_densities | of_actors

    return play_round(critic_step, actor_step, state, batch, key, config)


def policy(state: State) -> Policy:
    return Policy(state.actors.target, name="aspac", agents=state.spec.agents)


def target(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Array, Metrics]:
    """Y = r + gamma sum_k w_k min_j Qtar_j(s', a'^(k))."""
    noise_key, set_key = jax.random.split(key)
    batch, n, _ = t.a.shape
    sets = random_sets(set_key, batch, n, config.replaced or range(1, n + 1))  # (B, K, n)

    def lower_bound_weights(state: learner.State, s: Array, a_k: Array, q_k: Array) -> Any:
        return jax.nn.softmax(config.sharpness * jnp.min(q_k, axis=0)), uncertainty(q_k)

    weigh = lower_bound_weights if config.mixing == "lower-bound" else trust_weights
    return state, *partial_target(noise_key, state, t, sets, config, weigh)


def improve_densities(state: State, t: Transitions, config: Config) -> tuple[State, Metrics]:
    """One maximum-likelihood step of the behaviour's densities, where the anchor needs them."""
    if config.anchor != "by-width" or not config.anchor_weight:
        return state, {}
    densities, metrics = density_part.step(state.densities, state.spec, t.observations, t.a, config)
    return eqx.tree_at(lambda s: s.densities, state, densities), metrics


def what_others_do(key: Array, pi: Array, a: Array, config: Config) -> Array:
    """x (B, n, d): policies' and logged actions, agent by agent, as the actors see them."""
    if config.others == "logged":
        return a
    if config.others == "policies":
        return pi
    share_key, draw_key = jax.random.split(key)
    share = jax.random.uniform(share_key, (len(a), 1))  # of the others that are replaced
    return jnp.where((jax.random.uniform(draw_key, a.shape[:2]) < share)[..., None], pi, a)


def precision(state: State, t: Transitions, config: Config) -> Array:
    """What a squared distance to the log counts, (n, d): 1 / s_i^2 beyond uniform actions'."""
    if config.anchor == "plain":
        return jnp.ones(t.a.shape[1:])
    variance = mean_variance(state.densities, state.spec, t.observations)
    variance = jnp.where(variance > 0, variance, 1 / UNIFORM)  # padding
    return jnp.maximum(1 / variance - UNIFORM, 0)


def anchor_strength(state: State, config: Config) -> Array:
    """lambda(p)."""
    steps = state.spec.horizon
    last = config.anchor_weight * steps ** (4 / 3)
    if not last:
        return jnp.zeros(())
    left = 1 - state.steps / (config.anchor_release * config.rounds)
    return last * max(config.anchor_start * steps / last, 1.0) ** jnp.maximum(left, 0)


def improve_actors(
    key: Array, state: State, t: Transitions, config: Config
) -> tuple[State, Metrics]:
    """One step of every actor on -Q_j(s, pi_i(o_i), x_-i) + its anchor + its costs."""
    spec = state.spec
    others_key, critic_key = jax.random.split(key)
    pi = act(spec, state.actors.online, t.observations)
    x = what_others_do(others_key, pi, t.a, config)
    j = jax.random.randint(critic_key, (), 0, config.critics)
    values_of = own_values(state, t.s, x, j)
    firmness = jnp.sqrt(precision(state, t, config))
    weight = anchor_strength(state, config)

    def loss(networks: Networks) -> Any:
        pi, saturation = act_and_saturation(spec, networks, t.observations)
        q = jnp.stack([jnp.mean(value) for value in values_of(pi)])  # (n,)
        distance = squared_distance(spec, pi * firmness, t.a * firmness)  # (B, n)
        anchor = weight * jnp.sum(jnp.mean(distance, axis=0))
        cost = config.action_cost * jnp.sum(jnp.mean(pi**2, axis=(0, 2)))
        cost += config.tanh_cost * saturation
        return anchor + cost - jnp.sum(q), (jnp.mean(q), jnp.mean(distance))

    actors, (q, distance), metrics = actor_part.step(state.actors, loss, config)
    found = {"q_policy": raw_q(state.scale, q, config.discount), "anchor_distance": distance}
    state = eqx.tree_at(lambda s: s.steps, with_actors(state, actors), state.steps + 1)
    return state, found | metrics
