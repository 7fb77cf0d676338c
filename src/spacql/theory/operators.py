"""The paper's Bellman operators on tables, and the weights that mix them.

With enough data, "(s', a') from the dataset" means s' ~ P(. | s, a) and a' ~ mu(. | s'), so every
operator here is an ordinary Bellman backup under some joint policy of the next action:
T_i under pi^({i}), T^(k) under pi^(k), T^SP under the mixture of the pi^(k).
"""

from collections.abc import Sequence
from itertools import product as tuples

import numpy as np

from spacql.theory.decmdp import Array, DecMDP, Policies, replace_k


def mixture(mu: Array, pi: Policies, w: Array, actions: tuple[int, ...]) -> Array:
    """pi^w = sum_k w_k(s) pi^(k): the next-action policy of T^SP. w is (S, n). (S, A)"""
    policy = np.zeros_like(mu)
    for k in range(1, len(actions) + 1):
        policy += w[:, k - 1, None] * replace_k(mu, pi, k, actions)
    return policy


def k_eff(w: Array) -> Array:
    """The effective number of replaced agents, sum_k w_k k. (S,)"""
    return w @ np.arange(1.0, w.shape[-1] + 1.0)


def inverse_weights(u: Array, floor: float = 1e-12) -> Array:
    """w_k = (1 / u_k) / sum_k (1 / u_k) over the last axis; the floor keeps a zero u_k finite."""
    inverse = 1.0 / (u + floor)
    return inverse / inverse.sum(-1, keepdims=True)


def ensemble_weights(Q: Array, mu: Array, pi: Policies, actions: tuple[int, ...]) -> Array:
    """SPaCQL's weights at every state, from an ensemble of tables Q (J, S, A). (S, n)

    u_k(s) is the root of the mean over a^(k) of Var_j Q_j(s, a^(k)), eq. (std_Q).
    """
    variance = Q.var(axis=0)  # (S, A)
    targets = [replace_k(mu, pi, k, actions) for k in range(1, len(actions) + 1)]
    u = np.sqrt(np.stack([(p * variance).sum(-1) for p in targets], axis=-1))  # (S, n)
    return inverse_weights(u)


def soft_partial(
    models: Sequence[DecMDP], mu: Array, pi: Policies, Q: Array, w: Array | None = None
) -> Array:
    """T^SP on an ensemble Q (J, S, A), with the minimum over members in the target. (J, S, A)

    Member j backs up through its own model, as members do that see different resamples of the
    data. With `w` given (S, n) the weights are fixed; without, they follow from Q.
    """
    actions = models[0].actions
    if w is None:
        w = ensemble_weights(Q, mu, pi, actions)
    V = (mixture(mu, pi, w, actions) * Q.min(axis=0)).sum(-1)  # (S,)
    return np.stack([m.R + m.gamma * m.P @ V for m in models])


def drawn_mixture(
    mu: Array, pi: Policies, u: Array, actions: tuple[int, ...]
) -> tuple[Array, Array]:
    """The mixture of Algorithm 1, whose weights depend on the drawn actions and not on s' alone.

    For each logged a', every k draws its own a'^(k); then k has weight 1 / u(s', a'^(k)). Returns
    the distribution of the joint action that the target looks at (S, A), and the mean of
    sum_k w_k k (S,). The sum runs over all A^n draws: small problems only.
    """
    n, A = len(actions), mu.shape[1]
    policy, effective = np.zeros_like(mu), np.zeros(len(mu))
    for logged in range(A):
        at = np.zeros_like(mu)
        at[:, logged] = 1.0
        # (n, S, A): the distribution of a'^(k) given the logged joint action
        given = np.stack([replace_k(at, pi, k, actions) for k in range(1, n + 1)])
        for draw in tuples(range(A), repeat=n):
            p = mu[:, logged] * np.prod([given[k, :, a] for k, a in enumerate(draw)], axis=0)
            w = inverse_weights(u[:, list(draw)])  # (S, n)
            for k, a in enumerate(draw):
                policy[:, a] += p * w[:, k]
            effective += p * k_eff(w)
    return policy, effective
