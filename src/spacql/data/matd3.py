"""Online MATD3 (multi-agent twin delayed DDPG): how behaviours for datasets are made.

Agents of one team share a reward and a pair of centralised critics; each agent has its own
decentralised actor. In the particle worlds the worlds, the buffer and the updates run inside one
compiled program. Worlds outside JAX are stepped by the host between compiled updates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from spacql.policies import MLP, Policy, init_mlp
from spacql.spec import Spec


@dataclass(frozen=True)
class Config:
    """Settings of one training. The defaults are those of the particle worlds."""

    teams: tuple[tuple[int, ...], ...]  # agents that share a reward and a critic
    iterations: int = 20_000  # each steps every world once and then updates
    worlds: int = 32  # stepped at once
    updates: int = 1  # updates an iteration
    warmup: int = 200  # iterations of uniform actions before the first update
    capacity: int = 500_000  # transitions that the buffer holds
    batch: int = 512
    hidden: int = 64  # units in each of two layers
    learning_rate: float = 1e-3
    discount: float = 0.95
    target_rate: float = 0.01
    reward_scale: float = 0.1  # keeps Q-values near ten
    noise: float = 0.1  # deviation of exploration, also in the data made later
    target_noise: float = 0.2  # smooths the target policy
    target_clip: float = 0.5
    delay: int = 2  # critic updates an actor update
    action_cost: float = 1e-3  # on the square of actions, against a saturated tanh


class Critic(NamedTuple):
    """Q(joint observation, joint action) with two hidden layers."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array
    w3: Array

    def __call__(self, inputs: Array) -> Array:
        x = jax.nn.relu(inputs @ self.w1 + self.b1)
        x = jax.nn.relu(x @ self.w2 + self.b2)
        return (x @ self.w3)[..., 0]


class Networks(NamedTuple):
    actors: tuple[MLP, ...]  # per agent
    critics: tuple[tuple[Critic, Critic], ...]  # per team


class Learner(NamedTuple):
    online: Networks
    target: Networks
    optimisers: tuple[Any, Any]  # of the actors, of the critics
    count: Array  # updates so far


class Transition(NamedTuple):
    """Joint vectors: the agents' parts one after another."""

    observation: Array  # (..., sum of observation sizes)
    action: Array  # (..., sum of action sizes), in [-1, 1]
    reward: Array  # (..., teams)
    next_observation: Array


def init(key: Array, spec: Spec, config: Config) -> Learner:
    actor_key, critic_key = jax.random.split(key)
    hidden = (config.hidden, config.hidden)
    actors = tuple(
        init_mlp(k, size, low, high, hidden=hidden)
        for k, size, low, high in zip(
            jax.random.split(actor_key, spec.n_agents),
            spec.observation_sizes,
            spec.action_low,
            spec.action_high,
            strict=True,
        )
    )
    inputs = sum(spec.observation_sizes) + sum(spec.action_sizes)
    keys = jax.random.split(critic_key, (len(config.teams), 2))
    critics = tuple(
        (_init_critic(pair[0], inputs, config.hidden), _init_critic(pair[1], inputs, config.hidden))
        for pair in keys
    )
    online = Networks(actors, critics)
    optimiser = _optimiser(config)
    learner = Learner(
        online=online,
        target=online,
        optimisers=(
            tuple(optimiser.init(a) for a in map(_trainable, actors)),
            tuple(optimiser.init(c) for c in critics),
        ),
        count=jnp.zeros((), jnp.int32),
    )
    return jax.tree.map(jnp.copy, learner)  # no two leaves share a buffer: all can be donated


def update(learner: Learner, batch: Transition, key: Array, spec: Spec, config: Config) -> Learner:
    """One step of every critic, and every `delay` steps one of every actor."""
    optimiser = _optimiser(config)
    observations = split(batch.next_observation, spec.observation_sizes)
    next_action = jnp.concatenate(
        [a.squashed(o) for a, o in zip(learner.target.actors, observations, strict=True)], axis=-1
    )
    noise = config.target_noise * jax.random.normal(key, next_action.shape)
    noise = jnp.clip(noise, -config.target_clip, config.target_clip)
    next_action = jnp.clip(next_action + noise, -1, 1)
    next_inputs = jnp.concatenate([batch.next_observation, next_action], axis=-1)
    inputs = jnp.concatenate([batch.observation, batch.action], axis=-1)

    critics, critic_states = [], []
    for team, (pair, target_pair, state) in enumerate(
        zip(learner.online.critics, learner.target.critics, learner.optimisers[1], strict=True)
    ):
        value = jnp.minimum(target_pair[0](next_inputs), target_pair[1](next_inputs))
        # Episodes end by time limits alone, so every target bootstraps.
        y = config.reward_scale * batch.reward[:, team] + config.discount * value

        def loss(pair: tuple[Critic, Critic], y: Array = y) -> Array:
            return jnp.mean((pair[0](inputs) - y) ** 2 + (pair[1](inputs) - y) ** 2)

        steps, state = optimiser.update(jax.grad(loss)(pair), state)
        critics.append(optax.apply_updates(pair, steps))
        critic_states.append(state)

    def improve(actors: tuple[MLP, ...], states: tuple[Any, ...]) -> tuple[Any, Any]:
        observations = split(batch.observation, spec.observation_sizes)
        logged = split(batch.action, spec.action_sizes)
        new_actors, new_states = list(actors), list(states)
        for team, members in enumerate(config.teams):
            for i in members:

                def loss(actor: MLP, i: int = i, team: int = team) -> Array:
                    action = actor.squashed(observations[i])
                    joint = jnp.concatenate([*logged[:i], action, *logged[i + 1 :]], axis=-1)
                    inputs = jnp.concatenate([batch.observation, joint], axis=-1)
                    value = jnp.mean(critics[team][0](inputs))
                    return -value + config.action_cost * jnp.mean(action**2)

                gradient = _trainable(jax.grad(loss)(actors[i]))
                steps, new_states[i] = optimiser.update(gradient, states[i])
                new_actors[i] = _apply(actors[i], steps)
        return tuple(new_actors), tuple(new_states)

    actors, actor_states = jax.lax.cond(
        learner.count % config.delay == config.delay - 1,
        improve,
        lambda actors, states: (actors, states),
        learner.online.actors,
        learner.optimisers[0],
    )
    online = Networks(actors, tuple(critics))
    target = optax.incremental_update(online, learner.target, config.target_rate)
    return Learner(online, target, (actor_states, tuple(critic_states)), learner.count + 1)


def explore(
    actors: tuple[MLP, ...], observations: tuple[Array, ...], key: Array, noise: float, warm: Array
) -> Array:
    """The joint action in [-1, 1]: noisy policies, or uniform while not yet `warm`."""
    action = jnp.concatenate(
        [actor.squashed(o) for actor, o in zip(actors, observations, strict=True)], axis=-1
    )
    noisy_key, uniform_key = jax.random.split(key)
    noisy = jnp.clip(action + noise * jax.random.normal(noisy_key, action.shape), -1, 1)
    return jnp.where(warm, noisy, jax.random.uniform(uniform_key, action.shape, minval=-1.0))


class Carry(NamedTuple):
    """All that a training in a JAX world is: it goes on from here bit by bit."""

    learner: Learner
    buffer: Transition  # (capacity, ...)
    states: Any  # of the worlds, (worlds, ...)
    iteration: Array
    key: Array


def start(world: Any, config: Config, seed: int) -> Carry:
    key, learner_key = jax.random.split(jax.random.key(seed))
    spec = world.spec
    observed, acted = sum(spec.observation_sizes), sum(spec.action_sizes)
    empty = lambda size: jnp.zeros((config.capacity, size), jnp.float32)  # noqa: E731
    return Carry(
        learner=init(learner_key, spec, config),
        buffer=Transition(empty(observed), empty(acted), empty(len(config.teams)), empty(observed)),
        states=jax.vmap(world.reset)(jax.random.split(learner_key, config.worlds)),
        iteration=jnp.zeros((), jnp.int32),
        key=key,
    )


@eqx.filter_jit(donate="all-except-first")
def run(world: Any, carry: Carry, config: Config, iterations: int) -> tuple[Carry, Transition]:
    """Train on for `iterations`; also returns what was experienced, (iterations, worlds, ...)."""
    spec = world.spec

    def iterate(carry: Carry, _: None) -> tuple[Carry, Transition]:
        key, reset_key, act_key, sample_key, noise_key = jax.random.split(carry.key, 5)
        fresh = jax.vmap(world.reset)(jax.random.split(reset_key, config.worlds))
        over = carry.iteration % spec.horizon == 0
        states = jax.tree.map(lambda a, b: jnp.where(over, a, b), fresh, carry.states)
        observations = jax.vmap(world.observe)(states)
        warm = carry.iteration >= config.warmup
        action = explore(carry.learner.online.actors, observations, act_key, config.noise, warm)
        agents = jnp.stack(split(action, spec.action_sizes), axis=1)  # (worlds, agents, 2)
        states, rewards = jax.vmap(world.step)(states, agents)
        lived = Transition(
            jnp.concatenate(observations, axis=-1),
            action,
            jnp.stack([jnp.mean(rewards[:, np.array(t)], axis=1) for t in config.teams], axis=1),
            jnp.concatenate(jax.vmap(world.observe)(states), axis=-1),
        )
        at = carry.iteration * config.worlds % config.capacity
        buffer = jax.tree.map(
            lambda old, new: jax.lax.dynamic_update_slice(old, new, (at, 0)), carry.buffer, lived
        )
        filled = jnp.minimum((carry.iteration + 1) * config.worlds, config.capacity)
        rows = jax.random.randint(sample_key, (config.batch,), 0, filled)
        learner = jax.lax.cond(
            warm,
            lambda learner: update(
                learner, jax.tree.map(lambda x: x[rows], buffer), noise_key, spec, config
            ),
            lambda learner: learner,
            carry.learner,
        )
        return Carry(learner, buffer, states, carry.iteration + 1, key), lived

    return jax.lax.scan(iterate, carry, None, length=iterations)


def train_in_host_world(
    world: Any, config: Config, seed: int, report: int
) -> Iterator[tuple[Learner, list[dict[str, np.ndarray]]]]:
    """The same learner where the host steps the worlds, one episode after another.

    Yields the learner and the episodes since the last time, every `report` steps. An episode is
    a dict of joint `observations` and `states` (T + 1, ...), `actions` and `rewards` (T, ...).
    """
    spec = world.spec
    key, learner_key = jax.random.split(jax.random.key(seed))
    learner = init(learner_key, spec, config)
    rng = np.random.default_rng(seed)
    observed, acted = sum(spec.observation_sizes), sum(spec.action_sizes)
    empty = lambda size: np.zeros((config.capacity, size), np.float32)  # noqa: E731
    buffer = Transition(empty(observed), empty(acted), empty(len(config.teams)), empty(observed))
    limits = np.concatenate(spec.action_low), np.concatenate(spec.action_high)
    episodes: list[dict[str, np.ndarray]] = []
    episode: dict[str, list[np.ndarray]] = {}
    state, steps = None, 0
    while True:
        if state is None:
            key, reset_key = jax.random.split(key)
            state = world.reset(reset_key)
            episode = {"observations": [], "states": [], "actions": [], "rewards": []}
        observation = np.concatenate(world.observe(state)).astype(np.float32)
        key, act_key, update_key = jax.random.split(key, 3)
        warm = steps >= config.warmup
        action = np.asarray(
            _explore(learner.online.actors, observation, act_key, warm, spec, config.noise)
        )
        scaled = limits[0] + (action + 1) / 2 * (limits[1] - limits[0])
        episode["observations"].append(observation)
        episode["states"].append(state.state)
        episode["actions"].append(scaled.astype(np.float32))
        parts = np.split(scaled, np.cumsum(spec.action_sizes)[:-1])
        state, rewards = world.step(state, parts)
        episode["rewards"].append(np.asarray(rewards, np.float32))
        after = np.concatenate(world.observe(state)).astype(np.float32)
        row = steps % config.capacity
        reward = np.array([np.mean(rewards[list(team)]) for team in config.teams])
        for column, value in zip(buffer, (observation, action, reward, after), strict=True):
            column[row] = value
        steps += 1
        if state.truncated or len(episode["rewards"]) == spec.horizon:
            episode["observations"].append(after)
            episode["states"].append(state.state)
            episodes.append({name: np.stack(rows) for name, rows in episode.items()})
            state = None
        if steps >= config.warmup and steps % config.worlds == 0:
            filled = min(steps, config.capacity)
            rows = rng.integers(filled, size=(config.updates, config.batch))
            batches = jax.tree.map(lambda column, rows=rows: column[rows], buffer)
            learner = _updates(spec, learner, batches, update_key, config)
        if steps % report == 0:
            yield learner, episodes
            episodes = []


def to_policy(actors: tuple[MLP, ...], spec: Spec, name: str, noise: float = 0.0) -> Policy:
    """The actors as a policy; with `noise` as a behaviour that makes data."""
    noisy = tuple(
        MLP(a.mean, a.std, a.weights, a.biases, a.low, a.high, noise=noise) for a in actors
    )
    return Policy(noisy, name=name, agents=spec.agents)


def split(joint: Array, sizes: tuple[int, ...]) -> list[Array]:
    """A joint vector cut into the agents' parts."""
    return jnp.split(joint, np.cumsum(sizes)[:-1], axis=-1)


@eqx.filter_jit
def _explore(
    actors: tuple[MLP, ...], observation: Array, key: Array, warm: bool, spec: Spec, noise: float
) -> Array:
    parts = tuple(split(observation, spec.observation_sizes))
    return explore(actors, parts, key, noise, jnp.asarray(warm))


@eqx.filter_jit(donate="all-except-first")
def _updates(
    spec: Spec, learner: Learner, batches: Transition, key: Array, config: Config
) -> Learner:
    def one(learner: Learner, xs: tuple[Transition, Array]) -> tuple[Learner, None]:
        return update(learner, *xs, spec, config), None

    return jax.lax.scan(one, learner, (batches, jax.random.split(key, config.updates)))[0]


def _optimiser(config: Config) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(0.5), optax.adam(config.learning_rate))


def _init_critic(key: Array, inputs: int, hidden: int) -> Critic:
    k1, k2, k3 = jax.random.split(key, 3)
    draw = lambda k, m, n: jax.random.uniform(k, (m, n), minval=-(m**-0.5), maxval=m**-0.5)  # noqa: E731
    zeros = jnp.zeros(hidden)
    return Critic(
        draw(k1, inputs, hidden), zeros, draw(k2, hidden, hidden), zeros, draw(k3, hidden, 1)
    )


def _trainable(actor: MLP) -> tuple[Any, Any]:
    """What learning changes of an actor; its input statistics stay."""
    return actor.weights, actor.biases


def _apply(actor: MLP, steps: tuple[Any, Any]) -> MLP:
    weights, biases = optax.apply_updates(_trainable(actor), steps)
    return eqx.tree_at(_trainable, actor, (weights, biases))
