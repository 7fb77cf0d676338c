"""How two agents' actions lie in a narrow slice of a dataset's states: what figure 1 shows."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spacql.data import Dataset

SIZE = 300  # states in a slice
CENTRES = 400  # slices that are looked at
LEAST_DEVIATION = 0.25  # of both actions: what hardly varies shows nothing
MOST_AT_BOUNDS = 0.1  # share of actions at the bounds, where a band would be cut off


@dataclass(frozen=True)
class Slice:
    """Actions of two agents at the logged states nearest to one of them, each agent's along the
    direction in which they are most correlated (the first canonical pair)."""

    actions: np.ndarray  # (SIZE, 2)
    agents: tuple[str, str]
    correlation: float

    def beside(self, first: float, width: float = 0.1) -> tuple[float, float]:
        """The range that holds 90 % of the second action where the first is about `first`."""
        near = np.abs(self.actions[:, 0] - first) <= width
        return _middle(self.actions[near, 1])

    @property
    def range(self) -> tuple[float, float]:
        """The range that holds 90 % of the second action."""
        return _middle(self.actions[:, 1])


def _middle(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.05, 0.95])
    return float(low), float(high)


def slices(dataset: Dataset, *, seed: int = 0, centres: int = CENTRES) -> list[Slice]:
    """The slices around random states, for every two agents whose actions vary there."""
    rng = np.random.default_rng(seed)
    rows = dataset.transition_rows()
    x, actions = whitened(dataset.joint_observations[rows]), dataset.joint_actions[rows]
    spec = dataset.spec
    ends = np.cumsum(spec.action_sizes)[:-1]
    squares, size = np.sum(x**2, axis=1), min(SIZE, len(x))
    found = []
    for centre in rng.choice(len(x), min(centres, len(x)), replace=False):
        near = np.argpartition(squares - 2 * x @ x[centre], size - 1)[:size]
        by_agent = np.split(np.asarray(actions[near], np.float64), ends, axis=1)
        for i, j in combinations(range(spec.n_agents), 2):
            correlation, first, second = canonical_pair(by_agent[i], by_agent[j])
            pair = np.stack([by_agent[i] @ first, by_agent[j] @ second], axis=1)
            bound = np.mean(np.abs(np.hstack([by_agent[i], by_agent[j]])) > 0.98)
            if pair.std(axis=0).min() >= LEAST_DEVIATION and bound <= MOST_AT_BOUNDS:
                found.append(Slice(pair, (spec.agents[i], spec.agents[j]), correlation))
    return found


def whitened(observations: np.ndarray) -> np.ndarray:
    """Uncorrelated coordinates of equal size, so that what all agents see counts once."""
    x = np.asarray(observations, np.float32)
    x = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    kept = values > 1e-4 * values[-1]
    return x @ (vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32)


def canonical_pair(a: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The largest correlation of directions in a (rows, p) and in b (rows, q), and the two
    directions, of length one."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale_a, scale_b = (_inverse_root(x.T @ x / len(x)) for x in (a, b))
    left, values, right = np.linalg.svd(scale_a @ (a.T @ b / len(a)) @ scale_b)
    first, second = scale_a @ left[:, 0], scale_b @ right[0]
    return float(values[0]), first / np.linalg.norm(first), second / np.linalg.norm(second)


def _inverse_root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(np.maximum(values, 1e-9)) @ vectors.T


def tightest(found: list[Slice]) -> Slice:
    return max(found, key=lambda s: s.correlation)


def about(found: list[Slice], correlation: float) -> Slice:
    """The slice whose correlation is nearest to a given one."""
    return min(found, key=lambda s: abs(s.correlation - correlation))
