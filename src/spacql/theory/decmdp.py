"""Finite Dec-MDPs, joint policies, and their exact occupancies and values.

A joint action is one index in `0..A-1`, the flattened (C order) tuple of the agents' actions. A
joint policy is an array `(S, A)`; agent i's policy is `(S, A_i)`. Solves are dense and in double
precision, so the sizes meant here are tens of states and a few hundred joint actions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from spacql.errors import InputError

Array = NDArray[np.float64]
Policies = Sequence[Array]  # one (S, A_i) per agent


@dataclass(frozen=True)
class DecMDP:
    """The tuple <S, {A_i}, P, R, n, gamma> with its initial distribution; |R| <= 1."""

    P: Array  # (S, A, S)
    R: Array  # (S, A)
    d0: Array  # (S,)
    gamma: float
    actions: tuple[int, ...]  # |A_i| for every agent

    def __post_init__(self) -> None:
        shape = (len(self.d0), prod(self.actions))
        if self.P.shape != (*shape, shape[0]) or self.R.shape != shape:
            raise InputError(
                f"A Dec-MDP with {shape[0]} states and {shape[1]} joint actions needs P of shape "
                f"{(*shape, shape[0])} and R of shape {shape}, not {self.P.shape} and "
                f"{self.R.shape}."
            )
        if not 0.0 <= self.gamma < 1.0:
            raise InputError(f"The discount must lie in [0, 1), not {self.gamma}.")
        if not (_is_distribution(self.P) and _is_distribution(self.d0)):
            raise InputError("Rows of P and d0 must be probabilities: not negative, with sum one.")
        if not np.all(np.abs(self.R) <= 1.0 + 1e-12):
            raise InputError("Rewards must lie in [-1, 1]; the paper's constants assume it.")

    @property
    def n(self) -> int:
        return len(self.actions)


def _is_distribution(p: Array) -> bool:
    return bool(np.all(p >= -1e-12) and np.allclose(p.sum(-1), 1.0, atol=1e-9))


# --- joint policies ---------------------------------------------------------------------------


def product(policies: Policies) -> Array:
    """The joint policy of agents that act independently given the state. (S, A)"""
    joint = policies[0]
    for p in policies[1:]:
        joint = (joint[:, :, None] * p[:, None, :]).reshape(len(joint), -1)
    return joint


def marginals(mu: Array, actions: tuple[int, ...]) -> tuple[Array, ...]:
    """Every agent's own policy mu_i(a_i | s) under a joint policy. n arrays (S, A_i)"""
    table = mu.reshape(-1, *actions)
    agents = range(len(actions))
    return tuple(table.sum(axis=tuple(j + 1 for j in agents if j != i)) for i in agents)


def replace(mu: Array, pi: Policies, subset: Sequence[int], actions: tuple[int, ...]) -> Array:
    """The policy of partial action replacement: agents in `subset` draw from pi, the others keep
    their logged actions. (S, A)

    The logged actions are kept *together*, as the algorithms keep them. For a factorised mu this
    is the paper's mixed policy pi^(S); for a correlated mu the paper's pi^(S) also breaks the
    correlation between the agents that are not replaced: `replace(product(marginals(mu)), ...)`.
    """
    table = mu.reshape(-1, *actions)
    for i in subset:
        shape = [len(table)] + [m if j == i else 1 for j, m in enumerate(actions)]
        table = table.sum(axis=i + 1, keepdims=True) * pi[i].reshape(shape)
    return table.reshape(mu.shape)


def replace_k(mu: Array, pi: Policies, k: int, actions: tuple[int, ...]) -> Array:
    """pi^(k): k agents, chosen uniformly at random, are replaced (the target of T^(k)). (S, A)"""
    subsets = list(combinations(range(len(actions)), k))
    total = np.zeros_like(mu)
    for subset in subsets:
        total += replace(mu, pi, subset, actions)
    return total / len(subsets)


def tv(p: Array, q: Array) -> Array:
    """Total variation over the last axis; also W_1 under the 0-1 metric."""
    return np.asarray(0.5 * np.abs(p - q).sum(-1))


def sup_tv(p: Array, q: Array) -> float:
    """The paper's TV between two kernels: the largest over states."""
    return float(tv(p, q).max())


# --- exact solutions --------------------------------------------------------------------------


def kernel(mdp: DecMDP, policy: Array) -> Array:
    """P^phi(s' | s). (S, S)"""
    return np.einsum("sa,sat->st", policy, mdp.P)


def occupancy(mdp: DecMDP, policy: Array) -> Array:
    """d^phi over states, from d = (1 - gamma) d_0 + gamma d P^phi. (S,)"""
    A = np.eye(len(mdp.d0)) - mdp.gamma * kernel(mdp, policy).T
    return np.asarray(np.linalg.solve(A, (1.0 - mdp.gamma) * mdp.d0), dtype=np.float64)


def joint_occupancy(mdp: DecMDP, policy: Array) -> Array:
    """rho^phi(s, a) = d^phi(s) phi(a | s), over states and joint actions. (S, A)"""
    return occupancy(mdp, policy)[:, None] * policy


def backup(mdp: DecMDP, policy: Array, Q: Array) -> Array:
    """One Bellman backup that looks at next actions of `policy`. (S, A)"""
    return mdp.R + mdp.gamma * mdp.P @ (policy * Q).sum(-1)


def q_values(mdp: DecMDP, policy: Array) -> Array:
    """Q^phi, by one linear solve for V^phi. (S, A)"""
    A = np.eye(len(mdp.d0)) - mdp.gamma * kernel(mdp, policy)
    V = np.linalg.solve(A, (policy * mdp.R).sum(-1))
    return mdp.R + mdp.gamma * mdp.P @ V


def greedy(Q: Array) -> Array:
    """The deterministic joint policy that is greedy for Q. (S, A)"""
    return np.eye(Q.shape[1])[Q.argmax(-1)]


def optimal_q(mdp: DecMDP) -> Array:
    """Q* over joint (centralised) policies, by policy iteration: exact after few solves. (S, A)"""
    Q = q_values(mdp, greedy(mdp.R))
    while True:
        improved = q_values(mdp, greedy(Q))
        # The values rise at every step until they stand still; ties may change the policy forever.
        if (improved - Q).max() <= 1e-12 / (1.0 - mdp.gamma):
            return improved
        Q = improved


def value_iteration(mdp: DecMDP, error: float = 1e-10) -> Array:
    """Q* again, by iterating the optimality operator until within `error` of it. (S, A)"""
    Q = np.zeros_like(mdp.R)
    while True:
        improved = mdp.R + mdp.gamma * mdp.P @ Q.max(-1)
        if np.abs(improved - Q).max() * mdp.gamma <= error * (1.0 - mdp.gamma):
            return improved
        Q = improved
