"""What actor-critic algorithms share: their state, and the round.

A round is `updates` critic steps, each on a batch of its own, then one step of all actors on the
last batch, then one step of all target networks. An algorithm gives the two kinds of step.
"""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from spacql.algorithms import actors as actor_part
from spacql.algorithms import critics as critic_part
from spacql.algorithms.actors import Actors, act, init_mlps
from spacql.algorithms.config import ActorCritic
from spacql.algorithms.critics import Critics, Metrics
from spacql.algorithms.ensemble import ensemble_q, first_layer, q_of_agent
from spacql.algorithms.transitions import (
    Scale,
    Transitions,
    action_mask,
    bellman,
    raw_q,
    scale_of,
    transitions,
)
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.spec import Spec


class State(eqx.Module):
    """A team that learns: the parts, and the statistics they stand on."""

    actors: Actors
    critics: Critics
    scale: Scale
    spec: Spec = eqx.field(static=True)


def init(key: Array, spec: Spec, config: ActorCritic, statistics: Statistics) -> State:
    scale = scale_of(spec, statistics)
    actor_key, critic_key = jax.random.split(key)
    networks = init_mlps(actor_key, spec, config.hidden, statistics)
    critics = critic_part.init(critic_key, spec, len(scale.state_mean), config)
    return State(actor_part.init(networks, config), critics, scale, spec)


S = TypeVar("S", bound=State)
Step = Callable[[Array, S, Transitions], tuple[S, Metrics]]


def play_round(
    critic_step: Step[S],
    actor_step: Step[S],
    state: S,
    batch: Batch,
    key: Array,
    config: ActorCritic,
) -> tuple[S, Metrics]:
    """One round. `batch` has leading axes (updates, B)."""
    t = transitions(state.spec, state.scale, batch)
    keys = jax.random.split(key, config.updates)
    state, metrics = jax.lax.scan(
        lambda state, inputs: critic_step(inputs[0], state, inputs[1]), state, (keys, t)
    )
    metrics = {name: jnp.mean(values, axis=0) for name, values in metrics.items()}
    last = jax.tree.map(lambda x: x[-1], t)
    state, of_actors = actor_step(jax.random.fold_in(key, config.updates), state, last)
    return update_targets(state, config), metrics | of_actors


def update_targets(state: S, config: ActorCritic) -> S:
    """Target critics and target actors move towards the online ones."""
    critics = critic_part.update_targets(state.critics, config.target_rate)
    actors = actor_part.update_targets(state.actors, config.target_rate)
    return eqx.tree_at(lambda s: (s.critics, s.actors), state, (critics, actors))


def next_actions(
    key: Array, state: State, t: Transitions, noise: float, most: float | None = None
) -> Array:
    """The target policies' actions at s', with noise that is at most `most`, (B, n, d)."""
    a = act(state.spec, state.actors.target, t.next_observations)
    z = noise * action_mask(state.spec) * jax.random.normal(key, a.shape)
    return jnp.clip(a + (z if most is None else jnp.clip(z, -most, most)), -1, 1)


def joint_target(state: State, t: Transitions, a_pi: Array, config: ActorCritic) -> Array:
    """Y = r + gamma min_j Qtar_j(s', a_pi), all agents replaced."""
    value = jnp.min(ensemble_q(state.critics.target, t.next_s, a_pi[:, None]), axis=0)[:, 0]
    return bellman(t, state.scale, value, config.discount)


def td_step(state: S, t: Transitions, y: Array, config: ActorCritic) -> tuple[S, Metrics]:
    """One step of every critic on (Q - Y)^2."""
    critics, of_loss = critic_part.td_step(state.critics, t.s, t.a, y, config)
    return with_critics(state, critics), critic_metrics(state, of_loss, config)


def with_critics(state: S, critics: Critics) -> S:
    return eqx.tree_at(lambda s: s.critics, state, critics)


def with_actors(state: S, actors: Actors) -> S:
    return eqx.tree_at(lambda s: s.actors, state, actors)


def critic_metrics(state: State, of_loss: Metrics, config: ActorCritic) -> Metrics:
    """What a step of the critics reports, in the reward's own units."""
    unit = state.scale.reward_std
    metrics = {
        "td_error": jnp.sqrt(jnp.mean(of_loss["td"])) * unit,
        "q_data": raw_q(state.scale, jnp.mean(of_loss["q_data"]), config.discount),
        "critic_gradient": of_loss["critic_gradient"],
    }
    if "penalty" in of_loss:
        metrics["penalty"] = jnp.mean(of_loss["penalty"]) * unit
    return metrics


def own_values(
    state: State, s: Array, a: Array, j: Array | int = 0
) -> Callable[[Array], list[Array]]:
    """A function from actions x (B, n, d) to critic j's Q(s, x_i, a_-i), (B, 1) each."""
    critic = jax.tree.map(lambda x: x[j], state.critics.online)
    z = first_layer(critic, s, a)  # the same for all agents

    def values(x: Array) -> list[Array]:
        return [q_of_agent(critic, z, a, i, x[:, i, None]) for i in range(state.spec.n_agents)]

    return values
