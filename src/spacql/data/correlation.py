"""How correlated the agents' actions are once the state is known.

The paper's excess correlation is kappa = sup_s TV(mu(.|s), prod_i mu_i(.|s)). A supremum over
states cannot be estimated from a log; its mean over the logged states can. That mean is the total
variation between real rows (s, a_1 .. a_n) and rows whose agents acted independently given s, and
the best classifier between the two is right with probability 1/2 + TV/2. So:

1. On one half of the rows, regress on the state: every agent's action, the size of its scatter,
   and the products of two agents' deviations. On the other half, take what is left of each
   action, in units of its scatter.
2. Cut the second half into cells of like prediction. Within a cell, shift the agents' parts
   against each other: each agent's values stay what they were, only their company changes.
3. Train a classifier between real and shifted rows on half of the cells. On the other half,
   2 * accuracy - 1 estimates the total variation.

**Bias.** Downwards: a classifier is never the best one, so weak or intricate dependence is
understated, and perfectly copied actions come out near 0.95 rather than 1. Upwards: what the
regression misses varies with the state in all agents at once and looks like agreement; that
matters where the behaviour is nearly deterministic (`explained` near 1 tells).
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from spacql.data.dataset import Dataset

ROWS = 80_000  # at most so many transitions are looked at
LEAST_ROWS = 1_000  # fewer say nothing
CELL = 16  # rows in a cell
GROUPS = 8  # groups of like states, for the largest value
WIDTH, BATCH, RATE = 128, 512, 2e-3
EPOCHS, LEAST_STEPS = 15, 700  # of training


@dataclass(frozen=True)
class ExcessCorrelation:
    """The estimate. `kappa` is the mean over states, `largest` over groups of like states."""

    kappa: float
    standard_error: float
    largest: float  # of GROUPS groups, lower end of its 95 % interval
    pairwise: tuple[tuple[float, ...], ...]  # (n, n) largest |correlation| of what is left
    explained: tuple[float, ...]  # per agent: share of its action's variance due to the state
    rows: int


def excess_correlation(dataset: Dataset, *, seed: int = 0) -> ExcessCorrelation | None:
    """Estimate the excess correlation of the behaviour that made a dataset.

    None if the dataset has too few transitions for that.
    """
    rows = dataset.transition_rows()
    if len(rows) < LEAST_ROWS:
        return None
    chosen = np.sort(np.random.default_rng(seed).permutation(rows)[:ROWS])
    state = (dataset.joint_observations if dataset.states is None else dataset.states)[chosen]
    sizes = dataset.spec.action_sizes
    return from_samples(state, dataset.joint_actions[chosen], sizes, seed=seed)


def from_samples(
    state: np.ndarray, actions: np.ndarray, sizes: tuple[int, ...], *, seed: int = 0
) -> ExcessCorrelation:
    """The same from states (rows, size) and joint actions (rows, sum of sizes)."""
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(len(state))
    state, actions = _standard(state)[mixed], _standard(actions)[mixed]
    half = len(state) // 2
    agent_of = np.repeat(np.arange(len(sizes)), sizes)  # (columns,)
    first, second = np.nonzero(agent_of[:, None] < agent_of[None, :])  # columns of two agents
    keys = jax.random.split(jax.random.key(seed), 4)

    # Everything is regressed on the first half and used on the second.
    mean = _apply(_fit(keys[0], state[:half], actions[:half], _squares), state)
    left = actions - mean
    scatter = _fit(keys[1], state[:half], np.log(left[:half] ** 2 + 1e-4), _squares)
    log_scale = _apply(scatter, state) / 2
    unit = np.clip(left / np.exp(log_scale), -10, 10)
    products = np.clip(unit[:, first] * unit[:, second], -10, 10)
    agreement = _apply(_fit(keys[2], state[:half], products[:half], _squares), state)
    predicted = np.concatenate([mean, log_scale, agreement], axis=1)[half:]
    actions, left, unit = actions[half:], left[half:], unit[half:]

    cells = rng.permuted(_cells(predicted), axis=1)  # (cells, CELL) row numbers
    real = unit[cells]  # (cells, CELL, columns)
    apart = np.stack(
        [np.roll(real[..., column], agent, axis=1) for column, agent in enumerate(agent_of)],
        axis=-1,
    )
    # Both classes are told the cell and not the row, or else one agent's part alone could give
    # a shifted row away.
    centre = np.broadcast_to(
        predicted[cells].mean(axis=1, keepdims=True), (*cells.shape, predicted.shape[1])
    )

    def features(part: np.ndarray, which: np.ndarray) -> np.ndarray:
        flat = part[which].reshape(-1, part.shape[-1])
        where = centre[which].reshape(len(flat), -1)
        return np.concatenate([flat, flat[:, first] * flat[:, second], where], axis=1)

    # Neighbouring cells are dealt alternately, so that both halves see all states.
    train = np.arange(len(cells)) % 2 == 0
    inputs = np.concatenate([features(real, train), features(apart, train)])
    shift, scale = inputs.mean(axis=0), inputs.std(axis=0) + 1e-6
    label = np.repeat([1.0, 0.0], len(inputs) // 2)[:, None]
    judge = _fit(keys[3], (inputs - shift) / scale, label, _logistic)
    yes = _apply(judge, (features(real, ~train) - shift) / scale) > 0
    no = _apply(judge, (features(apart, ~train) - shift) / scale) <= 0
    right = (yes[:, 0].astype(float) + no[:, 0]) / 2  # (test rows,) of 0, 1/2, 1

    kappa, error = _excess(right)
    groups = [_excess(part) for part in np.array_split(right, GROUPS)]
    return ExcessCorrelation(
        kappa=max(kappa, 0.0),
        standard_error=error,
        largest=max(0.0, *(value - 1.96 * deviation for value, deviation in groups)),
        pairwise=_pairwise(unit, agent_of),
        explained=tuple(
            max(
                0.0,
                float(
                    1 - left[:, agent_of == i].var() / max(actions[:, agent_of == i].var(), 1e-9)
                ),
            )
            for i in range(len(sizes))
        ),
        rows=len(mixed),
    )


def _excess(right: np.ndarray) -> tuple[float, float]:
    """2 * accuracy - 1 and its standard error."""
    return float(2 * right.mean() - 1), float(2 * right.std() / np.sqrt(len(right)))


def _standard(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, np.float32)
    std = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(std > 1e-6, std, 1)


def _cells(points: np.ndarray) -> np.ndarray:
    """Cut points into cells of CELL rows each, by halving along the widest column."""
    depth = max(int(np.log2(len(points) / CELL)), 0)
    cells = np.arange(CELL * 2**depth)[None]
    for _ in range(depth):
        inside = points[cells]  # (cells, rows, columns)
        widest = inside.std(axis=1).argmax(axis=1)
        along = np.take_along_axis(inside, widest[:, None, None], axis=2)[..., 0]
        cells = np.take_along_axis(cells, along.argsort(axis=1, kind="stable"), axis=1)
        cells = cells.reshape(2 * len(cells), -1)
    return cells


def _pairwise(unit: np.ndarray, agent_of: np.ndarray) -> tuple[tuple[float, ...], ...]:
    moving = unit.std(axis=0) > 1e-6
    correlation = np.zeros((len(agent_of), len(agent_of)))
    correlation[np.ix_(moving, moving)] = np.corrcoef(unit[:, moving], rowvar=False)
    agents = range(agent_of.max() + 1)
    return tuple(
        tuple(
            float(np.abs(correlation[np.ix_(agent_of == i, agent_of == j)]).max())
            if i != j
            else 1.0
            for j in agents
        )
        for i in agents
    )


def _squares(output: Array, target: Array) -> Array:
    return jnp.mean((output - target) ** 2)


def _logistic(output: Array, target: Array) -> Array:
    return jnp.mean(optax.sigmoid_binary_cross_entropy(output, target))


def _network(parameters: Any, x: Array) -> Array:
    for weight, bias in parameters[:-1]:
        x = jax.nn.silu(x @ weight + bias)
    weight, bias = parameters[-1]
    return x @ weight + bias


def _fit(key: Array, inputs: np.ndarray, targets: np.ndarray, loss: Any) -> Any:
    """A network of two hidden layers, trained by Adam with a falling rate."""
    widths = (inputs.shape[1], WIDTH, WIDTH, targets.shape[1])
    start, steps = jax.random.split(key)
    parameters = [
        (jax.random.normal(k, (a, b)) * a**-0.5, jnp.zeros(b))
        for k, a, b in zip(jax.random.split(start, 3), widths[:-1], widths[1:], strict=True)
    ]
    return _train(steps, parameters, jnp.asarray(inputs), jnp.asarray(targets), loss)


@jax.jit(static_argnames="loss")
def _train(key: Array, parameters: Any, inputs: Array, targets: Array, loss: Any) -> Any:
    count = max(LEAST_STEPS, EPOCHS * len(inputs) // BATCH)
    optimiser = optax.adamw(optax.cosine_decay_schedule(RATE, count), weight_decay=1e-3)

    def step(carry: Any, key: Array) -> tuple[Any, None]:
        parameters, state = carry
        rows = jax.random.randint(key, (BATCH,), 0, len(inputs))
        gradient = jax.grad(lambda p: loss(_network(p, inputs[rows]), targets[rows]))(parameters)
        updates, state = optimiser.update(gradient, state, parameters)
        return (optax.apply_updates(parameters, updates), state), None

    (parameters, _), _ = jax.lax.scan(
        step, (parameters, optimiser.init(parameters)), jax.random.split(key, count)
    )
    return parameters


def _apply(parameters: Any, inputs: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(_network)(parameters, jnp.asarray(inputs)))
