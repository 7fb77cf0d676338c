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
from spacql.worlds import Trajectories


@dataclass(frozen=True)
class Config:
    """Settings of one training. The defaults are those of the particle worlds."""

    teams: tuple[tuple[int, ...], ...]  # agents that share a reward and a critic
    iterations: int = 20_000  # each steps every world once and then updates
    worlds: int = 32  # stepped at once
    updates: int = 1  # updates per iteration
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
    delay: int = 2  # critic updates per actor update
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
    updates: Array  # made so far


class Transition(NamedTuple):
    """Joint vectors: the agents' parts one after another. JAX arrays, or NumPy on the host."""

    observation: Any  # (..., sum of observation sizes)
    action: Any  # (..., sum of action sizes), in [-1, 1]
    reward: Any  # (..., teams)
    next_observation: Any


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
        updates=jnp.zeros((), jnp.int32),
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
        learner.updates % config.delay == config.delay - 1,
        improve,
        lambda actors, states: (actors, states),
        learner.online.actors,
        learner.optimisers[0],
    )
    online = Networks(actors, tuple(critics))
    target = optax.incremental_update(online, learner.target, config.target_rate)
    return Learner(online, target, (actor_states, tuple(critic_states)), learner.updates + 1)


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


class Experience(NamedTuple):
    """What happened in the worlds, for datasets made of a training's own experience."""

    transition: Transition
    rewards: Array  # (..., agents)
    intended: Array  # the joint action that exploration would take at the next observation


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
def run(world: Any, carry: Carry, config: Config, iterations: int) -> tuple[Carry, Experience]:
    """Train on for `iterations`; also returns its experience, (iterations, worlds, ...)."""
    spec = world.spec

    def iterate(carry: Carry, _: None) -> tuple[Carry, Experience]:
        key, reset_key, act_key, intend_key, sample_key, noise_key = jax.random.split(carry.key, 6)
        fresh = jax.vmap(world.reset)(jax.random.split(reset_key, config.worlds))
        over = carry.iteration % spec.horizon == 0
        states = jax.tree.map(lambda a, b: jnp.where(over, a, b), fresh, carry.states)
        observations = jax.vmap(world.observe)(states)
        warm = carry.iteration >= config.warmup
        action = explore(carry.learner.online.actors, observations, act_key, config.noise, warm)
        agents = jnp.stack(split(action, spec.action_sizes), axis=1)  # (worlds, agents, 2)
        states, rewards = jax.vmap(world.step)(states, agents)
        transition = Transition(
            jnp.concatenate(observations, axis=-1),
            action,
            jnp.stack([jnp.mean(rewards[:, np.array(t)], axis=1) for t in config.teams], axis=1),
            jnp.concatenate(jax.vmap(world.observe)(states), axis=-1),
        )
        at = carry.iteration * config.worlds % config.capacity
        buffer = jax.tree.map(
            lambda old, new: jax.lax.dynamic_update_slice(old, new, (at, 0)),
            carry.buffer,
            transition,
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
        after = tuple(split(transition.next_observation, spec.observation_sizes))
        intended = explore(learner.online.actors, after, intend_key, config.noise, warm)
        carry = Carry(learner, buffer, states, carry.iteration + 1, key)
        return carry, Experience(transition, rewards, intended)

    return jax.lax.scan(iterate, carry, None, length=iterations)


def episodes(experience: Experience, spec: Spec) -> Trajectories:
    """Whole episodes out of (iterations, worlds, ...), in the order in which they ended."""

    def cut(x: Array) -> np.ndarray:  # (episodes, horizon, ...)
        episodes = np.asarray(x).reshape(-1, spec.horizon, *x.shape[1:]).swapaxes(1, 2)
        return episodes.reshape(-1, *episodes.shape[2:])

    observation, action, _, after = map(cut, experience.transition)
    intended = cut(experience.intended)
    observation = np.concatenate([observation, after[:, -1:]], axis=1)
    action = np.concatenate([action, intended[:, -1:]], axis=1)
    return _trajectories(spec, observation, action, cut(experience.rewards))


def _trajectories(
    spec: Spec, observation: np.ndarray, action: np.ndarray, rewards: np.ndarray, states: Any = None
) -> Trajectories:
    """Joint arrays (episodes, T + 1, ...) with actions in [-1, 1], as the agents' own."""
    low, high = np.concatenate(spec.action_low), np.concatenate(spec.action_high)
    scaled = low + (action + 1) / 2 * (high - low)

    def part(x: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
        pieces = np.split(x, np.cumsum(sizes)[:-1], axis=-1)
        return tuple(np.ascontiguousarray(piece, np.float32) for piece in pieces)

    return Trajectories(
        observations=part(observation, spec.observation_sizes),
        actions=part(scaled, spec.action_sizes),
        rewards=rewards,
        states=np.zeros((*observation.shape[:2], 0), np.float32) if states is None else states,
        terminated=np.zeros(len(observation), bool),
    )


def train_in_host_world(
    world: Any, config: Config, seed: int, report: int
) -> Iterator[tuple[Learner, list[Trajectories]]]:
    """The same learner where the host steps the world.

    Yields the learner and the episodes finished since the last time, every `report` steps.
    """
    spec = world.spec
    key, reset_key, learner_key = jax.random.split(jax.random.key(seed), 3)
    learner = init(learner_key, spec, config)
    actors = _on_host(learner)
    rng = np.random.default_rng(seed)
    observed, acted = sum(spec.observation_sizes), sum(spec.action_sizes)
    empty = lambda size: np.zeros((config.capacity, size), np.float32)  # noqa: E731
    buffer = Transition(empty(observed), empty(acted), empty(len(config.teams)), empty(observed))
    low, high = np.concatenate(spec.action_low), np.concatenate(spec.action_high)
    cuts = np.cumsum(spec.action_sizes)[:-1]
    finished: list[Trajectories] = []
    episode: tuple[list[np.ndarray], ...] = ()  # observations, actions, rewards, states
    state, steps, rounds = None, 0, 0

    def choose(observations: tuple[np.ndarray, ...]) -> np.ndarray:
        if steps < config.warmup:
            return rng.uniform(-1, 1, acted).astype(np.float32)
        # NumPy, because dispatching a compiled program costs more than this small product.
        action = np.concatenate(
            [_squashed(a, o) for a, o in zip(actors, observations, strict=True)]
        )
        noise = config.noise * rng.standard_normal(acted)
        return np.clip(action + noise, -1, 1).astype(np.float32)

    while True:
        if state is None:
            state = world.reset(jax.random.fold_in(reset_key, steps))
            episode = ([], [], [], [])
        observation, action = np.concatenate(world.observe(state)), choose(world.observe(state))
        for rows, value in zip(
            episode[0:2] + episode[3:], (observation, action, state.state), strict=True
        ):
            rows.append(value)
        if state.truncated:
            finished.append(_trajectories(spec, *(np.stack(rows)[None] for rows in episode)))
            state = None
            continue
        state, rewards = world.step(state, np.split(low + (action + 1) / 2 * (high - low), cuts))
        episode[2].append(rewards)
        reward = np.array([np.mean(rewards[list(team)]) for team in config.teams])
        after = np.concatenate(world.observe(state))
        for column, value in zip(buffer, (observation, action, reward, after), strict=True):
            column[steps % config.capacity] = value
        steps += 1
        if steps >= config.warmup and steps % config.worlds == 0:
            filled = min(steps, config.capacity)
            sampled = rng.integers(filled, size=(config.updates, config.batch))
            batches = Transition(*(column[sampled] for column in buffer))
            rounds += 1
            learner = _updates(spec, learner, batches, jax.random.fold_in(key, rounds), config)
            actors = _on_host(learner)
        if steps % report == 0:
            yield learner, finished
            finished = []


def to_policy(actors: tuple[MLP, ...], spec: Spec, name: str, noise: float = 0.0) -> Policy:
    """The actors as a policy; with `noise` as a behaviour that makes data."""
    noisy = tuple(
        MLP(a.mean, a.std, a.weights, a.biases, a.low, a.high, noise=noise) for a in actors
    )
    return Policy(noisy, name=name, agents=spec.agents)


def split(joint: Array, sizes: tuple[int, ...]) -> list[Array]:
    """A joint vector cut into the agents' parts."""
    return jnp.split(joint, np.cumsum(sizes)[:-1], axis=-1)


def _on_host(learner: Learner) -> tuple[MLP, ...]:
    return jax.tree.map(np.array, learner.online.actors)


def _squashed(actor: MLP, observation: np.ndarray) -> np.ndarray:
    """`MLP.squashed` in NumPy, for an actor whose input statistics are trivial."""
    x = observation
    for weight, bias in zip(actor.weights[:-1], actor.biases[:-1], strict=True):
        x = np.maximum(x @ weight + bias, 0)
    return np.tanh(x @ actor.weights[-1] + actor.biases[-1])


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
