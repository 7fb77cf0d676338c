"""What the conservative algorithms share: one critic update with two choices.

    target      which joint actions the target looks at: sets of replaced agents, and their weights
    penalised   which actions the penalty pushes down: one agent at a time, or the joint action

Reading CFCQL, MACQL, ICQL-QS and SPaCQL side by side shows that they differ in nothing else.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import critics as critic_part
from spacql.algorithms import penalties
from spacql.algorithms.actors import Networks, act, act_and_saturation
from spacql.algorithms.config import Conservative, Counterfactual
from spacql.algorithms.critics import Metrics
from spacql.algorithms.ensemble import Critic, ensemble_q
from spacql.algorithms.learner import (
    S,
    State,
    critic_metrics,
    next_actions,
    own_values,
    play_round,
    with_actors,
    with_critics,
)
from spacql.algorithms.penalties import Alternatives, conservative_loss
from spacql.algorithms.replacement import (
    effective_agents,
    mixture,
    replace,
    uncertainty,
    weights,
)
from spacql.algorithms.transitions import Transitions, bellman, raw_q
from spacql.data import Batch

C = TypeVar("C", bound=Conservative)
Target = Callable[[Array, S, Transitions, C], tuple[S, Array, Metrics]]  # state, Y, metrics
Penalised = Callable[[Array, State, Transitions, C], Alternatives]
# From the state, s', a'^(k) and the target critics' values there (J, B, K) to w_k and u_k, (B, K).
Weigh = Callable[[State, Array, Array, Array], tuple[Array, Array]]


def train_round(
    target: Target[S, C], penalised: Penalised[C], state: S, batch: Batch, key: Array, config: C
) -> tuple[S, Metrics]:
    """One round. `batch` has leading axes (updates, B)."""

    def critic_step(key: Array, state: S, t: Transitions) -> tuple[S, Metrics]:
        return critic_update(target, penalised, key, state, t, config)

    def actor_step(_: Array, state: S, t: Transitions) -> tuple[S, Metrics]:
        return improve_actors(state, t, config)

    return play_round(critic_step, actor_step, state, batch, key, config)


def critic_update(
    target: Target[S, C], penalised: Penalised[C], key: Array, state: S, t: Transitions, config: C
) -> tuple[S, Metrics]:
    """One step of every critic on (Q - Y)^2 + xi_c, with the algorithm's two choices."""
    target_key, penalty_key = jax.random.split(key)
    state, y, of_target = target(target_key, state, t, config)
    alternatives = penalised(penalty_key, state, t, config)

    def loss(critic: Critic, z: Array, group: Any) -> Any:
        return conservative_loss(critic, z, group, config.alpha, config.penalty)

    groups = (y.reshape(len(alternatives.a), -1), alternatives)
    critics, of_loss = critic_part.step(state.critics, loss, t.s, t.a, groups, config)
    return with_critics(state, critics), of_target | critic_metrics(state, of_loss, config)


def equal_weights(state: State, s: Array, a_k: Array, q_k: Array) -> tuple[Array, Array]:
    """w_k = 1/K; what is reported as u_k is the disagreement of the target critics."""
    u_k = uncertainty(q_k)
    return jnp.full_like(u_k, 1 / u_k.shape[1]), u_k


def trust_weights(state: State, s: Array, a_k: Array, q_k: Array) -> tuple[Array, Array]:
    """w_k by 1 / u_k, the disagreement of the online critics: the paper's."""
    u_k = uncertainty(ensemble_q(state.critics.online, s, a_k))
    return weights(u_k), u_k


def partial_target(
    key: Array,
    state: State,
    t: Transitions,
    sets: Array,
    config: Conservative,
    weigh: Weigh = equal_weights,
) -> tuple[Array, Metrics]:
    """Y = r + gamma sum_k w_k min_j Qtar_j(s', a'^(k)), the agents in sets (B, K, n) replaced."""
    a_pi = next_actions(key, state, t, config.target_noise)  # (B, n, d)
    a_k = replace(sets, t.next_a, a_pi)  # (B, K, n, d)
    q_k = ensemble_q(state.critics.target, t.next_s, a_k)  # (J, B, K)
    w_k, u_k = weigh(state, t.next_s, a_k, q_k)  # (B, K)
    y = bellman(t, state.scale, mixture(w_k, q_k), config.discount)
    metrics = {
        "u": jnp.mean(u_k, axis=0) * state.scale.reward_std,  # (K,)
        "w": jnp.mean(w_k, axis=0),
        "k_eff": effective_agents(w_k, sets),
    }
    return y, metrics


def one_agent_at_a_time(
    key: Array, state: State, t: Transitions, config: Counterfactual
) -> Alternatives:
    """The penalty's alternatives Q(s, x, a_-i)."""
    return penalties.individual(key, state.spec, t.a, *policies(state, t), config)


def all_agents_at_once(
    key: Array, state: State, t: Transitions, config: Conservative
) -> Alternatives:
    """The penalty's alternatives Q(s, x) with joint actions x."""
    return penalties.joint(key, state.spec, t.a, *policies(state, t), config)


def policies(state: State, t: Transitions) -> tuple[Array, Array]:
    """The policies' actions at s and at s', (B, n, d) each."""
    networks = state.actors.online
    return (
        act(state.spec, networks, t.observations),
        act(state.spec, networks, t.next_observations),
    )


def improve_actors(state: S, t: Transitions, config: Conservative) -> tuple[S, Metrics]:
    """Each actor climbs the first critic at (s, pi_i(o_i), a_-i), the others as logged."""
    values_of = own_values(state, t.s, t.a)

    def loss(networks: Networks) -> Any:
        pi, saturation = act_and_saturation(state.spec, networks, t.observations)
        q = jnp.stack([jnp.mean(value) for value in values_of(pi)])
        cost = config.action_cost * jnp.sum(jnp.mean(pi**2, axis=(0, 2)))
        cost += config.tanh_cost * saturation
        return cost - jnp.sum(q), jnp.mean(q)

    actors, q, metrics = actor_part.step(state.actors, loss, config)
    found = {"q_policy": raw_q(state.scale, q, config.discount)}
    return with_actors(state, actors), found | metrics
