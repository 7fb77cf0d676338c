"""What the algorithms share: their state, steps of critics and actors, and the round.

A round is `updates` critic updates, each on a batch of its own, then one step of all actors on the
last batch, then one step of all target networks. The conservative algorithms differ in the critic
update alone; the baselines have actors' steps of their own.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from spacql.algorithms import penalties
from spacql.algorithms.behaviour import lambda_weights, negative_log_likelihood
from spacql.algorithms.critics import (
    Critic,
    ensemble_gradient,
    ensemble_q,
    first_layer,
    group_size,
    in_groups,
    init_critics,
    later_layers,
    q_of_agent,
    uniform_arrays,
)
from spacql.algorithms.penalties import Alternatives, conservative_loss
from spacql.algorithms.replacement import effective_agents
from spacql.algorithms.transitions import (
    Scale,
    Transitions,
    action_mask,
    bellman,
    pad,
    raw_q,
    scale_of,
    transitions,
)
from spacql.data import Batch
from spacql.data.dataset import Statistics
from spacql.policies import MLP, Policy
from spacql.spec import Spec

Metrics = dict[str, Array]


class State(eqx.Module):
    """Everything that training changes, and the statistics it stands on."""

    actors: tuple[MLP, ...]
    target_actors: tuple[MLP, ...]
    critics: Critic  # every array with a leading axis J
    target_critics: Critic
    behaviour: tuple[MLP, ...] | None  # mu_i, where lambda_i needs it
    actor_optimiser: Any
    critic_optimiser: Any
    behaviour_optimiser: Any
    scale: Scale
    spec: Spec = eqx.field(static=True)


def init_state(key: Array, spec: Spec, config: Any, statistics: Statistics) -> State:
    """Fresh networks; the targets begin as copies."""
    scale = scale_of(spec, statistics)
    actor_key, critic_key, behaviour_key = jax.random.split(key, 3)
    actors = init_actors(actor_key, spec, config.hidden, statistics)
    critics = init_critics(
        critic_key,
        config.critics,
        scale.state_mean.shape[0],
        spec.n_agents,
        max(spec.action_sizes),
        config.hidden,
    )
    behaviour = None
    if getattr(config, "penalty_weights", "uniform") == "divergence":
        behaviour = init_actors(behaviour_key, spec, config.hidden, statistics, outputs=2)
    begin = optimiser(config).init
    return State(
        actors=actors,
        target_actors=actors,
        critics=critics,
        target_critics=critics,
        behaviour=behaviour,
        actor_optimiser=tuple(begin(trained(actor)) for actor in actors),
        critic_optimiser=jax.vmap(begin)(critics),
        behaviour_optimiser=behaviour and tuple(begin(trained(mu)) for mu in behaviour),
        scale=scale,
        spec=spec,
    )


def init_actors(
    key: Array, spec: Spec, hidden: tuple[int, ...], statistics: Statistics, outputs: int = 1
) -> tuple[MLP, ...]:
    """One network an agent, with `outputs` numbers for every action coordinate.

    The last layer begins a tenth as large, so that a fresh policy does not saturate its tanh.
    """
    layers = [
        list(pairwise((size, *hidden, outputs * acts)))
        for size, acts in zip(spec.observation_sizes, spec.action_sizes, strict=True)
    ]
    shapes = [shape for sizes in layers for i, o in sizes for shape in (((i, o), i), ((o,), i))]
    arrays = iter(uniform_arrays(key, shapes))
    actors = []
    for agent, sizes in enumerate(layers):
        pairs = [(next(arrays), next(arrays)) for _ in sizes]
        pairs[-1] = (0.1 * pairs[-1][0], 0.1 * pairs[-1][1])
        weights, biases = zip(*pairs, strict=True)
        actors.append(
            MLP(
                mean=jnp.asarray(statistics.observation_mean[agent]),
                std=jnp.asarray(statistics.observation_std[agent]),
                weights=weights,
                biases=biases,
                low=spec.action_low[agent] * outputs,
                high=spec.action_high[agent] * outputs,
            )
        )
    return tuple(actors)


def optimiser(config: Any, rate: float | None = None) -> optax.GradientTransformation:
    """Adam after clipping; used for each network by itself. The rate: `learning_rate` if None."""
    return optax.chain(
        optax.clip_by_global_norm(config.gradient_clip),
        optax.adam(config.learning_rate if rate is None else rate),
    )


def trained(actor: MLP) -> Any:
    """The part of an actor that learns: all but its input statistics."""
    return actor.weights, actor.biases


def policy_of(state: State, name: str) -> Policy:
    return Policy(state.actors, name=name, agents=state.spec.agents)


def act(spec: Spec, actors: tuple[MLP, ...], observations: tuple[Array, ...]) -> Array:
    """All agents' actions in [-1, 1], (B, n, d)."""
    return pad(spec, [actor.squashed(o) for actor, o in zip(actors, observations, strict=True)])


def next_actions(
    key: Array, state: State, t: Transitions, config: Any, most: float | None = None
) -> Array:
    """The target policies' actions at s', with noise that is at most `most`, (B, n, d)."""
    a = act(state.spec, state.target_actors, t.next_observations)
    noise = config.target_noise * action_mask(state.spec) * jax.random.normal(key, a.shape)
    return jnp.clip(a + (noise if most is None else jnp.clip(noise, -most, most)), -1, 1)


def joint_target(
    key: Array, state: State, t: Transitions, config: Any, most: float | None = None
) -> tuple[Array, Metrics]:
    """Y = r + gamma min_j Qtar_j(s', pi(s')), all agents replaced."""
    a_pi = next_actions(key, state, t, config, most)
    value = jnp.min(ensemble_q(state.target_critics, t.next_s, a_pi[:, None]), axis=0)[:, 0]
    return bellman(t, state.scale, value, config.discount), {}


def one_agent_at_a_time(key: Array, state: State, t: Transitions, config: Any) -> Alternatives:
    """The penalty's alternatives Q(s, x, a_-i), with weights lambda_i."""
    pi = act(state.spec, state.actors, t.observations)
    next_pi = act(state.spec, state.actors, t.next_observations)
    lambda_i = lambda_weights(
        state.spec, state.behaviour, t.observations, pi, config.tau, config.sample_noise
    )
    return penalties.individual(key, state.spec, t.a, pi, next_pi, lambda_i, config)


def all_agents_at_once(key: Array, state: State, t: Transitions, config: Any) -> Alternatives:
    """The penalty's alternatives Q(s, x) with joint actions x."""
    pi = act(state.spec, state.actors, t.observations)
    next_pi = act(state.spec, state.actors, t.next_observations)
    return penalties.joint(key, state.spec, t.a, pi, next_pi, config)


def improve_critics(
    state: State, t: Transitions, y: Array, alternatives: Alternatives | None, config: Any
) -> tuple[State, Metrics]:
    """One step of every critic on (Q - Y)^2 + xi_c; without alternatives there is no xi_c."""

    def loss(critic: Critic, z: Array, group: Any) -> Any:
        if alternatives is None:
            return squared_error(critic, z, group)
        return conservative_loss(critic, z, group, config.alpha, config.penalty)

    if alternatives is None:
        groups = in_groups(y, group_size(len(y), 1, most=len(y)))
    else:
        groups = (y.reshape(len(alternatives.weight), -1), alternatives)
    critics, memory, slopes, of_loss = step_critics(
        loss, state.critics, state.critic_optimiser, t.s, t.a, groups, config
    )
    metrics = {"td_error": jnp.sqrt(jnp.mean(of_loss["td"])) * state.scale.reward_std}
    if alternatives is not None:
        metrics["penalty"] = jnp.mean(of_loss["penalty"]) * state.scale.reward_std
    metrics |= {
        "q_data": raw_q(state.scale, jnp.mean(of_loss["q_data"]), config.discount),
        "critic_gradient": jnp.mean(jax.vmap(optax.global_norm)(slopes)),
    }
    return eqx.tree_at(lambda s: (s.critics, s.critic_optimiser), state, (critics, memory)), metrics


def squared_error(critic: Critic, z: Array, y: Array) -> Any:
    """Mean of (Q - Y)^2 over one group of transitions, for one critic."""
    q = later_layers(critic, z)
    td = jnp.mean((q - y) ** 2)
    return td, {"td": td, "q_data": jnp.mean(q)}


def step_critics(
    loss: Callable[[Critic, Array, Any], Any],
    critics: Critic,
    memory: Any,
    s: Array,
    a: Array,
    groups: Any,
    config: Any,
) -> tuple[Critic, Any, Any, Any]:
    """One optimiser step of every critic: critics, memory, gradients and the loss's metrics."""
    slopes, metrics = ensemble_gradient(loss, critics, s, a, groups)
    steps, memory = jax.vmap(optimiser(config).update)(slopes, memory)
    return optax.apply_updates(critics, steps), memory, slopes, metrics


def target_metrics(state: State, u_k: Array, w_k: Array, sets: Array) -> Metrics:
    """How uncertain the target is about each replaced set, and what it makes of that."""
    return {
        "u": jnp.mean(u_k, axis=0) * state.scale.reward_std,  # (K,)
        "w": jnp.mean(w_k, axis=0),
        "k_eff": effective_agents(w_k, sets),
    }


def improve_actors(state: State, t: Transitions, config: Any) -> tuple[State, Metrics]:
    """Each actor climbs the first critic at (s, pi_i(o_i), a_-i), the others as logged."""
    values_of = own_values(state, t)

    def loss(actors: tuple[MLP, ...]) -> Any:
        pi = act(state.spec, actors, t.observations)
        values = values_of(pi)
        # A sum over agents: every actor's gradient is that of its own objective.
        cost = config.action_cost * jnp.sum(jnp.mean(pi**2, axis=(0, 2)))
        cost += tanh_cost(actors, t, config)
        q = jnp.stack([jnp.mean(value) for value in values])
        return cost - jnp.sum(q), jnp.mean(q)

    state, q, metrics = step_actors(loss, state, config)
    return state, {"q_policy": raw_q(state.scale, q, config.discount)} | metrics


def tanh_cost(actors: tuple[MLP, ...], t: Transitions, config: Any) -> Any:
    """What the actors pay for large inputs of their tanh, where it would have no slope."""
    if config.tanh_cost == 0:
        return 0.0
    inputs = [actor.before_tanh(o) for actor, o in zip(actors, t.observations, strict=True)]
    return config.tanh_cost * sum(jnp.mean(x**2) for x in inputs)


def own_values(state: State, t: Transitions) -> Callable[[Array], list[Array]]:
    """A function from actions x (B, n, d) to the first critic's Q(s, x_i, a_-i), (B, 1) each."""
    first = jax.tree.map(lambda x: x[0], state.critics)
    z = first_layer(first, t.s, t.a)  # the same for all agents

    def values(x: Array) -> list[Array]:
        return [q_of_agent(first, z, t.a, i, x[:, i, None]) for i in range(state.spec.n_agents)]

    return values


def step_actors(
    loss: Callable[[tuple[MLP, ...]], Any], state: Any, config: Any
) -> tuple[Any, Any, Metrics]:
    """One step of every actor on a loss that returns (value, extra); the state, extra, metrics.

    `state` is anything with `actors` and their `actor_optimiser`.
    """
    weights = tuple(trained(actor) for actor in state.actors)
    of_weights = lambda weights: loss(with_weights(state.actors, weights))  # noqa: E731
    slopes, extra = jax.grad(of_weights, has_aux=True)(weights)
    rate = config.actor_learning_rate
    weights, memory = step_each(weights, slopes, state.actor_optimiser, config, rate)
    norm = jnp.mean(jnp.stack([optax.global_norm(slope) for slope in slopes]))
    actors = with_weights(state.actors, weights)
    state = eqx.tree_at(lambda s: (s.actors, s.actor_optimiser), state, (actors, memory))
    return state, extra, {"actor_gradient": norm}


def improve_behaviour(state: State, t: Transitions, config: Any) -> tuple[State, Metrics]:
    """One maximum-likelihood step of every mu_i."""
    if state.behaviour is None:
        return state, {}
    networks, sizes = state.behaviour, state.spec.action_sizes

    def loss(weights: Any) -> Array:
        agents = zip(with_weights(networks, weights), t.observations, sizes, strict=True)
        return sum(  # type: ignore[return-value]
            negative_log_likelihood(network, o, t.a[:, i, :size])
            for i, (network, o, size) in enumerate(agents)
        )

    weights = tuple(trained(network) for network in networks)
    value, slopes = jax.value_and_grad(loss)(weights)
    weights, memory = step_each(weights, slopes, state.behaviour_optimiser, config)
    where = lambda s: (s.behaviour, s.behaviour_optimiser)  # noqa: E731
    state = eqx.tree_at(where, state, (with_weights(networks, weights), memory))
    return state, {"behaviour_loss": value}


def with_weights(actors: tuple[MLP, ...], weights: Any) -> tuple[MLP, ...]:
    return tuple(eqx.tree_at(trained, a, w) for a, w in zip(actors, weights, strict=True))


def step_each(
    weights: Any, slopes: Any, memory: Any, config: Any, rate: float | None = None
) -> tuple[Any, Any]:
    """One optimiser step for each network by itself."""
    step = optimiser(config, rate).update
    steps = [step(slope, m) for slope, m in zip(slopes, memory, strict=True)]
    moved = tuple(
        optax.apply_updates(weight, step) for weight, (step, _) in zip(weights, steps, strict=True)
    )
    return moved, tuple(m for _, m in steps)


def follow(target: Any, online: Any, rate: float) -> Any:
    """Target networks move towards the online ones."""
    return jax.tree.map(lambda old, new: old + rate * (new - old), target, online)


Target = Callable[[Array, State, Transitions, Any], tuple[Array, Metrics]]
Penalised = Callable[[Array, State, Transitions, Any], Alternatives | None]


def no_penalty(key: Array, state: State, t: Transitions, config: Any) -> None:
    """No alternatives: plain TD learning."""


def critic_update(
    target: Target, penalised: Penalised, key: Array, state: State, t: Transitions, config: Any
) -> tuple[State, Metrics]:
    """One step of all critics, with the algorithm's two choices."""
    target_key, penalty_key = jax.random.split(key)
    y, of_target = target(target_key, state, t, config)
    alternatives = penalised(penalty_key, state, t, config)
    state, of_critics = improve_critics(state, t, y, alternatives, config)
    return state, of_target | of_critics


def train_round(
    target: Target, penalised: Penalised, state: State, batch: Batch, key: Array, config: Any
) -> tuple[State, Metrics]:
    """One round of a conservative algorithm. `batch` has leading axes (updates, B)."""

    def critic_step(key: Array, state: State, t: Transitions, config: Any) -> Any:
        return critic_update(target, penalised, key, state, t, config)

    def actor_step(_: Array, state: State, t: Transitions, config: Any) -> Any:
        state, of_behaviour = improve_behaviour(state, t, config)
        state, of_actors = improve_actors(state, t, config)
        return state, of_behaviour | of_actors

    t = transitions(state.spec, state.scale, batch)
    return play_round(critic_step, actor_step, state, t, key, config)


Step = Callable[[Array, State, Transitions, Any], tuple[State, Metrics]]


def play_round(
    critic_step: Step, actor_step: Step, state: State, t: Transitions, key: Array, config: Any
) -> tuple[State, Metrics]:
    """Critic steps on a batch each, an actor step on the last of these, a step of the targets."""
    keys = jax.random.split(key, config.updates)
    state, metrics = jax.lax.scan(
        lambda state, x: critic_step(x[0], state, x[1], config), state, (keys, t)
    )
    metrics = {name: jnp.mean(values, axis=0) for name, values in metrics.items()}
    last = jax.tree.map(lambda x: x[-1], t)
    state, of_actors = actor_step(jax.random.fold_in(key, config.updates), state, last, config)
    targets = (
        follow(state.target_critics, state.critics, config.target_rate),
        follow(state.target_actors, state.actors, config.target_rate),
    )
    state = eqx.tree_at(lambda s: (s.target_critics, s.target_actors), state, targets)
    return state, metrics | of_actors
