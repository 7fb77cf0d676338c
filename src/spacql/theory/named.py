"""Small Dec-MDPs with a name: two from the literature, and those where a bound is tight."""

from collections.abc import Callable
from itertools import product as tuples

import numpy as np

from spacql.theory.decmdp import Array, DecMDP


def departure(n: int = 3, gamma: float = 0.9, reward: tuple[float, float] = (1.0, -1.0)) -> DecMDP:
    """Home and away. At home, one agent that plays 1 is enough to leave; away is for ever.

    For a behaviour that always plays 0 the sharp form of Lemma 1 is an equality here, and Lemma 1
    itself is tight to first order in the deviations.
    """
    return _leave_when(np.arange(2**n) > 0, n, gamma, reward)


def formation(n: int = 3, gamma: float = 0.9, reward: tuple[float, float] = (1.0, -1.0)) -> DecMDP:
    """Home and away, but home is left when the agents do not all play the same.

    Correlated behaviour stays for ever; the product of its marginals leaves.
    """
    a = np.arange(2**n)
    return _leave_when((a != 0) & (a != 2**n - 1), n, gamma, reward)


def _leave_when(leaves: np.ndarray, n: int, gamma: float, reward: tuple[float, float]) -> DecMDP:
    P = np.zeros((2, 2**n, 2))
    P[0, np.arange(2**n), leaves.astype(int)] = 1.0
    P[1, :, 1] = 1.0
    R = np.repeat(np.array(reward)[:, None], 2**n, axis=1)
    return DecMDP(P, R, np.array([1.0, 0.0]), gamma, (2,) * n)


def fork(left: Array, actions: tuple[int, ...], gamma: float = 0.5) -> DecMDP:
    """One choice: joint action a leads to the left state with probability left[a], else to the
    right; both are for ever. The occupancy differs by gamma times the difference of that choice."""
    A = len(left)
    P = np.zeros((3, A, 3))
    P[0, :, 1], P[0, :, 2] = left, 1.0 - left
    P[1, :, 1] = P[2, :, 2] = 1.0
    R = np.repeat(np.array([0.0, 1.0, -1.0])[:, None], A, axis=1)
    return DecMDP(P, R, np.array([1.0, 0.0, 0.0]), gamma, actions)


def two_worlds(n: int = 2, gamma: float = 0.9) -> DecMDP:
    """A good state and a bad one, neither ever left: the Lipschitz constant is attained."""
    P = np.repeat(np.eye(2)[:, None, :], 2**n, axis=1)
    R = np.repeat(np.array([1.0, -1.0])[:, None], 2**n, axis=1)
    return DecMDP(P, R, np.array([0.5, 0.5]), gamma, (2,) * n)


def climbing(gamma: float = 0.9) -> DecMDP:
    """The climbing game (Claus and Boutilier 1998), repeated; payoffs divided by 30."""
    payoff = np.array([[11.0, -30.0, 0.0], [-30.0, 7.0, 6.0], [0.0, 0.0, 5.0]]) / 30.0
    return DecMDP(np.ones((1, 9, 1)), payoff.reshape(1, 9), np.ones(1), gamma, (3, 3))


def broadcast(gamma: float = 0.9) -> DecMDP:
    """The broadcast channel (Hansen, Bernstein and Zilberstein 2004): two buffers that fill with
    probability 0.9 and 0.1; a message goes through, for reward one, if it is sent alone."""
    fill = (0.9, 0.1)
    states = list(tuples((0, 1), repeat=2))
    P, R = np.zeros((4, 4, 4)), np.zeros((4, 4))
    for x, buffers in enumerate(states):
        for a, sends in enumerate(tuples((0, 1), repeat=2)):
            tried = [b * c for b, c in zip(buffers, sends, strict=True)]
            alone = sum(tried) == 1
            R[x, a] = float(alone)
            left = [b - t * alone for b, t in zip(buffers, tried, strict=True)]
            for y, after in enumerate(states):
                full = [1.0 if b else f for b, f in zip(left, fill, strict=True)]
                P[x, a, y] = np.prod(
                    [f if z else 1.0 - f for f, z in zip(full, after, strict=True)]
                )
    return DecMDP(P, R, np.array([0.0, 0.0, 0.0, 1.0]), gamma, (2, 2))


def meeting(n: int = 2, cells: int = 3, gamma: float = 0.9, slip: float = 0.1) -> DecMDP:
    """Agents on a line move left, stay or move right, and earn one while all share a cell."""
    move = np.zeros((cells, 3, cells))
    for x in range(cells):
        for a, step in enumerate((-1, 0, 1)):
            move[x, a, min(max(x + step, 0), cells - 1)] += 1.0 - slip
            move[x, a, x] += slip
    P = move
    for _ in range(n - 1):
        P = np.einsum("xay,ubv->xuabyv", P, move)
        P = P.reshape(np.prod(P.shape[:2]), np.prod(P.shape[2:4]), -1)
    together = np.array([len(set(x)) == 1 for x in tuples(range(cells), repeat=n)], dtype=float)
    d0 = np.zeros(cells**n)
    d0[cells - 1] = 1.0  # the last agent at the right end, all others at the left end
    return DecMDP(P, np.repeat(together[:, None], 3**n, axis=1), d0, gamma, (3,) * n)


NAMED: dict[str, Callable[[], DecMDP]] = {
    "departure": departure,
    "formation": formation,
    "two_worlds": two_worlds,
    "climbing": climbing,
    "broadcast": broadcast,
    "meeting": meeting,
}
