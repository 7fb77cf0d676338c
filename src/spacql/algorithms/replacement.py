"""Partial action replacement: which agents leave the logged joint action, and how far to trust it.

The target of a critic looks at joint actions `a'^(k)` in which k agents act by their policies and
the others as logged. Algorithms differ in the sets they replace and in the weight of each:

    CFCQL, MACQL   all agents                     weight 1
    ICQL-QS        each agent alone               weight 1/n each
    SPaCQL         a random set of k, k = 1..n    weight w_k, by the ensemble's disagreement
    PLCQL          a random set of one k          weight 1; k is chosen by a bandit that sees s'
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array


def all_agents(batch: int, n: int) -> Array:
    """The one set that replaces everybody, as a mask (B, 1, n)."""
    return jnp.ones((batch, 1, n), bool)


def each_agent(batch: int, n: int) -> Array:
    """The n sets that replace one agent, as masks (B, n, n)."""
    return jnp.broadcast_to(jnp.eye(n, dtype=bool), (batch, n, n))


def random_sets(key: Array, batch: int, n: int, sizes: Sequence[int] | Array) -> Array:
    """For every transition and every k in `sizes` a uniformly random set of exactly k agents.

    `sizes` are K numbers for all transitions, or (B, K).

    Masks (B, K, n): agent i is in the set if its random number is among the k smallest. Ranks are
    counted by comparing pairs, which vectorises where a sort would not; the index breaks ties.
    """
    count = jnp.asarray(sizes)
    draw = jax.random.uniform(key, (batch, count.shape[-1], n))
    mine, other = draw[..., :, None], draw[..., None, :]
    earlier = jnp.tril(jnp.ones((n, n), bool), -1)  # [i, j]: j comes before i
    rank = jnp.sum((other < mine) | ((other == mine) & earlier), axis=-1)  # (B, K, n)
    return rank < count[..., None]


def replace(sets: Array, logged: Array, policy: Array) -> Array:
    """The joint actions a'^(k): `policy` (B, n, d) inside the sets (B, K, n), else `logged`."""
    return jnp.where(sets[..., None], policy[:, None], logged[:, None])  # (B, K, n, d)


def uncertainty(q: Array) -> Array:
    """u_k: the standard deviation over the ensemble, from q (J, B, K) to (B, K)."""
    return jnp.std(q, axis=0)


def weights(u_k: Array, floor: float = 1e-6) -> Array:
    """w_k = (1 / u_k) / sum_k (1 / u_k), per transition, (B, K).

    `floor` is added to every u_k, so that critics that agree everywhere give equal weights.
    """
    trust = 1 / (u_k + floor)
    return trust / jnp.sum(trust, axis=-1, keepdims=True)


def mixture(w_k: Array, q_target: Array) -> Array:
    """sum_k w_k min_j Q_j(s', a'^(k)): from w_k (B, K) and q_target (J, B, K) to (B,)."""
    return jnp.sum(w_k * jnp.min(q_target, axis=0), axis=-1)


def effective_agents(w_k: Array, sets: Array) -> Array:
    """k_eff = sum_k k w_k: how many agents deviate in the target, on average over the batch."""
    return jnp.mean(jnp.sum(w_k * jnp.sum(sets, axis=-1), axis=-1))
