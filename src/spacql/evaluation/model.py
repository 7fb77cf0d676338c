"""Evaluation by a learnt model of the world: an ensemble that predicts the next joint observation
and the team reward, trained once on a log, in which any number of policies are then tried.

Every member imagines whole episodes by itself, from the first observations of held-out episodes,
so that what members disagree about adds up as it would in truth. Beyond the ranges of the log a
network's word means nothing: what is imagined is kept within them, and from the step on that would
leave them, every further one is worth no more than a poor one of the log.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from spacql.algorithms.ensemble import each, standardised, uniform_arrays
from spacql.algorithms.transitions import unit_actions
from spacql.data import Dataset
from spacql.policies import Policy
from spacql.spec import Spec

CHUNK = 100  # steps per compiled call
LINEAR_ROWS = 20_000  # that the affine maps are found from
LEAST_LEFT = 1e-3  # of a column's deviation: what is smaller is rounding
POOR = 0.05  # quantile of the log's rewards: what a step is worth where nothing is known
MARGIN = 0.05  # of a column's range, beyond which nothing is imagined


@dataclass(frozen=True)
class Config:
    members: int = 4
    hidden: tuple[int, ...] = (256, 256)
    steps: int = 5000
    batch_size: int = 256
    learning_rate: float = 0.002  # Adam, falling to nothing along a cosine


class Scale(eqx.Module):
    """Statistics of the log that the networks' units rest on."""

    mean: Array  # (S,) of the observations of all agents side by side, and the state behind them
    std: Array
    change: Array  # (S,) deviation of the change from row to row
    low: Array  # (S,) what is imagined stays within
    high: Array
    reward_mean: Array
    reward_std: Array
    reward_low: Array
    reward_high: Array
    reward_poor: Array  # its quantile POOR


class Network(eqx.Module):
    """An affine map, found once by least squares, and an ensemble for what it leaves over.

    Physics is mostly linear: what moves goes on moving. What a network need not learn it gets
    right to the last digit, and errors that small do not grow over an episode.
    """

    linear: Array  # (in + 1, out)
    left_over: Array  # (out,) deviation of what the affine map leaves
    weights: tuple[Array, ...]  # (J, in, out) each
    biases: tuple[Array, ...]  # (J, out)


class Model(eqx.Module):
    change: Network  # (x, a) to the change of x
    reward: Network  # `seen` to the reward, and the logit of the task's end if logs have ends
    scale: Scale
    spec: Spec = eqx.field(static=True)
    terminals: bool = eqx.field(static=True)  # whether the log has any


class Imagined(NamedTuple):
    returns: np.ndarray  # (J, E) undiscounted
    discounted: np.ndarray  # (J, E)


def scale_of(dataset: Dataset, rows: np.ndarray) -> Scale:
    x, following = joined(dataset, rows), joined(dataset, rows + 1)
    change = following - x
    reward = dataset.team_reward[rows]
    # Final observations begin no transition, and lie in the log all the same.
    low = np.minimum(x.min(axis=0), following.min(axis=0))
    high = np.maximum(x.max(axis=0), following.max(axis=0))
    room = MARGIN * (high - low)

    def safe(std: np.ndarray) -> np.ndarray:
        return np.where(std > 1e-6, std, 1.0)

    of_x = (x.mean(axis=0), safe(x.std(axis=0)), safe(change.std(axis=0)), low - room, high + room)
    poor = np.quantile(reward, POOR)
    of_reward = (reward.mean(), safe(reward.std()), reward.min(), reward.max(), poor)
    return Scale(*(jnp.asarray(number, jnp.float32) for number in of_x + of_reward))


def joined(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Joint observations, and behind them the global state if there is one."""
    seen = dataset.joint_observations[rows]
    return seen if dataset.states is None else np.concatenate([seen, dataset.states[rows]], axis=1)


def predict(model: Model, x: Array, a: Array, known: Array) -> tuple[Array, Array, Array, Array]:
    """Every member's next x, reward, probability to go on, and whether all that is imagined still
    lies within the ranges of the log, as `known` says of it so far: x (J, B, S), a (J, B, n, d)."""
    scale = model.scale
    inputs = jnp.concatenate([(x - scale.mean) / scale.std, a.reshape(*a.shape[:2], -1)], axis=-1)
    following = x + ensemble(model.change, inputs) * scale.change
    constant = scale.high - scale.low < 1e-6  # a network never says quite the same
    within = (following >= scale.low) & (following <= scale.high)
    inside = jnp.all(within | constant, axis=-1)
    following = jnp.clip(following, scale.low, scale.high)
    out = ensemble(model.reward, seen(model, inputs, following))
    reward = out[..., 0] * scale.reward_std + scale.reward_mean
    reward = jnp.clip(reward, scale.reward_low, scale.reward_high)
    goes_on = 1 - jax.nn.sigmoid(out[..., 1]) if model.terminals else jnp.ones_like(reward)
    # Where the task ends, what follows is nowhere, and need not lie within anything.
    credited = known * (1 - goes_on * (1 - inside))
    reward = credited * reward + (1 - credited) * scale.reward_poor
    return following, reward, goes_on, known * inside


def seen(model: Model, inputs: Array, following: Array) -> Array:
    """What the network of reward and end sees: (x, a, x'), but for logs with ends (x, a) alone. The
    x' of an end is often not logged, and never imagined."""
    if model.terminals:
        return inputs
    standard = (following - model.scale.mean) / model.scale.std
    return jnp.concatenate([inputs, standard], axis=-1)


def ensemble(network: Network, inputs: Array) -> Array:
    """All members, each at its own inputs (J, B, in)."""
    learned = each(lambda one: forward(*one), (network.weights, network.biases, inputs))
    return affine(network.linear, inputs) + learned * network.left_over


def affine(linear: Array, inputs: Array) -> Array:
    return inputs @ linear[:-1] + linear[-1]


def forward(weights: tuple[Array, ...], biases: tuple[Array, ...], x: Array) -> Array:
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        x = jax.nn.relu(standardised(x @ weight + bias))
    return x @ weights[-1] + biases[-1]


def learn(
    dataset: Dataset,
    rows: np.ndarray,
    config: Config,
    seed: int = 0,
    report: Callable[[float], None] = lambda share: None,
) -> Model:
    """Train on the transitions that begin at `rows`. Members see different batches."""
    random = np.random.default_rng(seed)
    scale, terminals = scale_of(dataset, rows), bool(dataset.is_terminal(rows).any())
    # Targets are made before the networks, by a model that has none.
    nothing = Network(jnp.zeros(()), jnp.zeros(()), (), ())
    model = Model(nothing, nothing, scale, dataset.spec, terminals)
    some = random.choice(rows, min(len(rows), LINEAR_ROWS), replace=False)
    first, second, change, paid, ended = examples(model, batch_of(dataset, np.sort(some)))
    outcome = jnp.stack([paid, ended], axis=-1)[:, : 1 + terminals]
    keys = jax.random.split(jax.random.key(seed))
    going = np.asarray(ended) == 0  # what follows the end of the task is never used
    model = eqx.tree_at(lambda m: (m.change, m.reward), model, (
        init_network(keys[0], first[going], change[going], config, linear=change.shape[1]),
        init_network(keys[1], second, outcome, config, linear=1),
    ))  # fmt: skip
    parameters = learning(model)
    optimiser = optax.adam(optax.cosine_decay_schedule(config.learning_rate, config.steps))
    state = optimiser.init(parameters)
    steps = jax.jit(partial(train_steps, optimiser=optimiser), donate_argnums=(0, 1))
    for start in range(0, config.steps, CHUNK):
        count = min(CHUNK, config.steps - start)
        # One draw for each member: (count, J, B)
        drawn = rows[random.integers(0, len(rows), (count, config.members, config.batch_size))]
        parameters, state = steps(parameters, state, model, batch_of(dataset, drawn))
        report((start + count) / config.steps)
    return eqx.tree_at(learning, model, parameters)


def learning(model: Model) -> Any:
    return (model.change.weights, model.change.biases, model.reward.weights, model.reward.biases)


def init_network(
    key: Array, inputs: Array, outputs: Array, config: Config, *, linear: int
) -> Network:
    """A fresh ensemble over the affine map of the first `linear` outputs; the others have none."""
    x = np.concatenate([np.asarray(inputs, np.float64), np.ones((len(inputs), 1))], axis=1)
    y = np.asarray(outputs, np.float64)
    ridge = 1e-6 * len(x) * np.eye(x.shape[1])
    solved = np.linalg.solve(x.T @ x + ridge, x.T @ y)
    solved[:, linear:] = 0
    left = np.std(y - x @ solved, axis=0)
    left = np.maximum(left, LEAST_LEFT)
    left[linear:] = 1
    widths = (inputs.shape[1], *config.hidden, outputs.shape[1])
    shapes = [
        ((config.members, *shape), i) for i, o in pairwise(widths) for shape in ((i, o), (o,))
    ]
    arrays = uniform_arrays(key, shapes)
    arrays[-2:] = [0.1 * array for array in arrays[-2:]]
    numbers = (jnp.asarray(solved, jnp.float32), jnp.asarray(left, jnp.float32))
    return Network(*numbers, tuple(arrays[::2]), tuple(arrays[1::2]))


def examples(model: Model, batch: Any) -> tuple[Array, Array, Array, Array, Array]:
    """Inputs of both networks, and what they should say: change, reward, end; in their units."""
    x, actions, reward, following, terminal = batch
    scale = model.scale
    a = joint_unit(model.spec, actions).reshape(len(x), -1)
    first = jnp.concatenate([(x - scale.mean) / scale.std, a], axis=-1)
    second = seen(model, first, following)
    paid = (reward - scale.reward_mean) / scale.reward_std
    return first, second, (following - x) / scale.change, paid, terminal


def batch_of(dataset: Dataset, rows: np.ndarray) -> Any:
    flat = rows.ravel()
    parts = (joined(dataset, flat), dataset.joint_actions[flat], dataset.team_reward[flat],
             joined(dataset, flat + 1), dataset.is_terminal(flat).astype(np.float32))  # fmt: skip
    return tuple(part.reshape(*rows.shape, *part.shape[1:]) for part in parts)


def train_steps(
    parameters: Any, state: Any, model: Model, batch: Any, *, optimiser: Any
) -> tuple[Any, Any]:
    def loss_of(parameters: Any, batch: Any) -> Array:
        """Of one member, in units of what the affine maps leave over."""
        first, second, change, paid, ended = examples(model, batch)
        of_change, of_reward = model.change, model.reward
        wanted = (change - affine(of_change.linear, first)) / of_change.left_over
        error = jnp.mean((forward(parameters[0], parameters[1], first) - wanted) ** 2, axis=-1)
        out = forward(parameters[2], parameters[3], second)
        missing = (paid - affine(of_reward.linear, second)[:, 0]) / of_reward.left_over[0]
        loss = jnp.mean(error * (1 - ended)) + jnp.mean((out[:, 0] - missing) ** 2)
        if model.terminals:
            loss += jnp.mean(optax.sigmoid_binary_cross_entropy(out[:, 1], ended))
        return loss

    def one(carry: Any, batch: Any) -> Any:
        parameters, state = carry
        gradients = each(lambda member: jax.grad(loss_of)(*member), (parameters, batch))
        updates, state = optimiser.update(gradients, state)
        return (optax.apply_updates(parameters, updates), state), None

    carry, _ = jax.lax.scan(one, (parameters, state), batch)
    return carry


def joint_unit(spec: Spec, actions: Array) -> Array:
    """Joint actions (..., sum of sizes) as (..., n, d) in [-1, 1]."""
    return unit_actions(spec, jnp.split(actions, np.cumsum(spec.action_sizes)[:-1], axis=-1))


def imagine(
    model: Model,
    policy: Policy,
    start: np.ndarray,
    steps: np.ndarray,
    discount: float,
    seed: int = 0,
) -> Imagined:
    """Episodes of a policy, from x (E, S) and of at most `steps` (E,), as every member imagines
    them."""
    anonymous = Policy(policy.actors)  # another name is no reason to compile again
    x, limit, longest = jnp.asarray(start), jnp.asarray(steps), int(steps.max())
    found = _imagine(model, anonymous, x, limit, jax.random.key(seed), longest, discount)
    return Imagined(*(np.asarray(x, np.float64) for x in found))


@eqx.filter_jit
def _imagine(
    model: Model,
    policy: Policy,
    start: Array,
    limit: Array,
    key: Array,
    longest: int,
    discount: float,
) -> tuple[Array, Array]:
    spec, members = model.spec, len(model.change.weights[0])
    cuts = np.cumsum(spec.observation_sizes)

    def step(carry: Any, t: Array) -> Any:
        x, alive, known, total, discounted = carry
        observed = jnp.split(x, cuts, axis=-1)[: spec.n_agents]
        a = unit_actions(spec, policy(observed, jax.random.fold_in(key, t)))
        x, reward, goes_on, known = predict(model, x, a, known)
        alive = alive * (t < limit)
        total = total + alive * reward
        discounted = discounted + alive * reward * discount**t
        return (x, alive * goes_on, known, total, discounted), None

    x = jnp.broadcast_to(start, (members, *start.shape))
    nothing = jnp.zeros(x.shape[:2])
    carry = (x, nothing + 1, nothing + 1, nothing, nothing)
    (*_, total, discounted), _ = jax.lax.scan(step, carry, jnp.arange(longest))
    return total, discounted


def replay(model: Model, dataset: Dataset, episodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Imagined and true returns of held-out episodes when the logged actions are played again.

    How well they agree says how far the model can be trusted where the log acts.
    """
    lengths = np.diff(dataset.starts)[episodes] - 1
    longest = int(lengths.max())
    rows = dataset.starts[:-1][episodes, None] + np.minimum(
        np.arange(longest), lengths[:, None] - 1
    )
    played = dataset.joint_actions[rows.ravel()].reshape(*rows.shape, -1)
    here = (np.arange(longest) < lengths[:, None]).astype(np.float32)
    start = joined(dataset, dataset.starts[:-1][episodes])
    found = _replay(model, jnp.asarray(start), jnp.asarray(played.swapaxes(0, 1)),
                    jnp.asarray(here.T))  # fmt: skip
    return np.asarray(found, np.float64), dataset.team_returns[episodes]


@eqx.filter_jit
def _replay(model: Model, start: Array, played: Array, here: Array) -> Array:
    members = len(model.change.weights[0])

    def step(carry: Any, inputs: Any) -> Any:
        x, known, total = carry
        actions, counts = inputs
        a = joint_unit(model.spec, actions)
        x, reward, _, known = predict(model, x, jnp.broadcast_to(a, (members, *a.shape)), known)
        return (x, known, total + counts * reward), None

    x = jnp.broadcast_to(start, (members, *start.shape))
    nothing = jnp.zeros(x.shape[:2])
    (*_, total), _ = jax.lax.scan(step, (x, nothing + 1, nothing), (played, here))
    return total
