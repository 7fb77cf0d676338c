"""A tiny team to test with, and the paper's formulas in plain loops over NumPy numbers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from spacql.algorithms import spacql
from spacql.algorithms.learner import State
from spacql.algorithms.transitions import Transitions, transitions
from spacql.data import Dataset


def tiny_dataset(*, episodes: int = 6, final_action: bool = True, states: bool = False) -> Dataset:
    """Agents with 3 and 2 observations, 1 and 2 actions; the second acts within [0, 4]."""
    rng = np.random.default_rng(0)
    logs = []
    for number in range(episodes):
        steps = 4 + number % 2
        rows = steps + 1 if final_action else steps
        log = {
            "observations": [rng.normal(size=(steps + 1, size)) for size in (3, 2)],
            "actions": [rng.uniform(-1, 1, (rows, 1)), rng.uniform(0, 4, (rows, 2))],
            "rewards": rng.normal(2.0, 3.0, (steps, 2)),
            "terminated": number == 1,
        }
        if states:
            log["states"] = rng.normal(size=(steps + 1, 4))
        logs.append(log)
    return Dataset.from_episodes(
        logs, agents=("left", "right"), action_low=[-1.0, 0.0], action_high=[1.0, 4.0]
    )


@cache
def setting(*, seed: int = 3) -> tuple[State, Transitions]:
    """A fresh state of two critics, and 24 transitions, one of them terminal."""
    data = tiny_dataset()
    config = spacql.Config(critics=2, hidden=(8, 6))
    init = partial(spacql.init, spec=data.spec, config=config, statistics=data.statistics())
    state = jax.jit(init)(quick_key(seed))
    convert = jax.jit(lambda batch: transitions(data.spec, state.scale, batch))
    return state, convert(data.batch(data.transition_rows()[:24]))


@cache
def unequal_setting() -> tuple[State, Transitions]:
    """A state whose target networks differ from the online ones, and 24 transitions."""
    state, t = setting()
    others, _ = setting(seed=4)
    critics = replace(state.critics, target=others.critics.online)
    actors = replace(state.actors, target=others.actors.online)
    return replace(state, critics=critics, actors=actors), t


def quick_key(seed: int) -> jax.Array:
    """A key whose numbers compile fast."""
    return jax.random.key(seed, impl="rbg")


def plain(tree: Any) -> Any:
    """NumPy arrays: loops over numbers are slow on JAX's."""
    return jax.tree.map(np.asarray, tree)


def q(critics: Any, j: int, s: np.ndarray, a: np.ndarray) -> float:
    """Critic j at one state (S,) and joint action (n, d), as one concatenated network."""
    weight = lambda x: np.asarray(x[j], np.float64)  # noqa: E731
    inputs = np.concatenate([s, np.ravel(a)])
    action_weight = weight(critics.action_weight)
    first = np.concatenate(
        [weight(critics.state_weight), action_weight.reshape(a.size, action_weight.shape[-1])]
    )
    h = np.maximum(inputs @ first + weight(critics.biases[0]), 0)
    for w, b in zip(critics.weights, critics.biases[1:], strict=True):
        h = np.maximum(h @ weight(w) + weight(b), 0)
    return float(h @ weight(critics.last_weight) + weight(critics.last_bias))


def replaced(logged: np.ndarray, policy: np.ndarray, agents: Sequence[int]) -> np.ndarray:
    a = logged.copy()
    for i in agents:
        a[i] = policy[i]
    return a


def least(critics: Any, s: np.ndarray, a: np.ndarray) -> float:
    """min_j Q_j."""
    return min(q(critics, j, s, a) for j in range(len(critics.last_bias)))


def deviation(critics: Any, s: np.ndarray, a: np.ndarray) -> float:
    values = [q(critics, j, s, a) for j in range(len(critics.last_bias))]
    mean = sum(values) / len(values)
    return float(np.sqrt(sum((value - mean) ** 2 for value in values) / len(values)))
