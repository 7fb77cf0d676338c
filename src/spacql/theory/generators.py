"""Random Dec-MDPs, behaviours and everything else that a statement needs.

Most instances are generic, and generic instances are far from every bound: they would let a wrong
constant pass. So a part of them comes from families where the bounds are close to tight.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from spacql.errors import InputError
from spacql.theory.decmdp import (
    Array,
    DecMDP,
    joint_occupancy,
    marginals,
    optimal_q,
    product,
    q_values,
)
from spacql.theory.named import NAMED, departure, formation, two_worlds
from spacql.theory.updates import Batch

Rng = np.random.Generator


def random_decmdp(
    rng: Rng,
    *,
    states: int,
    actions: tuple[int, ...],
    gamma: float,
    sparsity: float = 0.0,
) -> DecMDP:
    """Transitions uniform on the simplex, rewards uniform in [-1, 1].

    `sparsity` is the share of next states that a (state, joint action) cannot reach; at one,
    transitions are deterministic.
    """
    if not 0.0 <= sparsity <= 1.0:
        raise InputError(f"Sparsity is a share between 0 and 1, not {sparsity}.")
    A = prod(actions)
    P = rng.exponential(size=(states, A, states))
    reachable = max(1, round((1.0 - sparsity) * states))
    order = rng.random(P.shape).argsort(-1).argsort(-1)
    P[order >= reachable] = 0.0
    P /= P.sum(-1, keepdims=True)
    R = rng.uniform(-1.0, 1.0, (states, A))
    return DecMDP(P, R, rng.dirichlet(np.ones(states)), gamma, actions)


def random_policies(rng: Rng, mdp: DecMDP, concentration: float = 1.0) -> tuple[Array, ...]:
    """One Dirichlet policy per agent; a small concentration makes them nearly deterministic."""
    # A gamma draw of a very small concentration underflows to zero everywhere; the offset mends it.
    draws = [rng.gamma(concentration, size=(len(mdp.d0), m)) + 1e-12 for m in mdp.actions]
    return tuple(d / d.sum(-1, keepdims=True) for d in draws)


def comonotone(mu: tuple[Array, ...]) -> Array:
    """The fully correlated behaviour with the given marginals: one uniform draw decides for all
    agents, each through its own quantile function. (S, A)"""
    actions = tuple(m.shape[1] for m in mu)
    joint = np.zeros((len(mu[0]), prod(actions)))
    for s in range(len(joint)):
        cdfs = [np.cumsum(m[s])[:-1] for m in mu]
        cuts = np.sort(np.concatenate([[0.0, 1.0], *cdfs]).clip(0.0, 1.0))
        middle = 0.5 * (cuts[1:] + cuts[:-1])
        a = tuple(np.searchsorted(cdf, middle) for cdf in cdfs)
        np.add.at(joint[s], np.ravel_multi_index(a, actions), np.diff(cuts))
    return joint


def correlated(mu: tuple[Array, ...], dial: float) -> Array:
    """Behaviour from independent (dial 0) to fully correlated (dial 1), marginals unchanged.

    kappa grows in proportion to the dial. (S, A)
    """
    if not 0.0 <= dial <= 1.0:
        raise InputError(f"The correlation dial goes from 0 to 1, not {dial}.")
    return (1.0 - dial) * product(mu) + dial * comonotone(mu)


def lookout(p: float, states: int = 1) -> Array:
    """Behaviour of three agents: agent 1 gives a signal with probability p; then the other two play
    the same, and otherwise they are independent. kappa = p / 2, and breaking agent 1 off from the
    others costs kappa_S = p (1 - p), nearly twice as much. (S, 8)"""
    independent, together = np.full(4, 0.25), np.array([0.5, 0.0, 0.0, 0.5])
    return np.tile(np.concatenate([(1.0 - p) * independent, p * together]), (states, 1))


@dataclass(frozen=True)
class Instance:
    """One drawing of everything that the statements quantify over."""

    mdp: DecMDP
    pi: tuple[Array, ...]  # learned policies, (S, A_i) each
    mu: tuple[Array, ...]  # factorised behaviour
    mu_joint: Array  # (S, A) correlated behaviour
    subset: tuple[int, ...]  # the replaced agents S
    w: Array  # (S, n) weights of the mixture
    Q_hat: Array  # (S, A) the learned function, 2 / (1 - gamma)-Lipschitz
    Q: Array  # (J, S, A) an ensemble
    Q_other: Array  # (J, S, A) another
    features: Array  # (S, A, p)
    theta: Array  # (p,)
    batch: Batch


def random_instance(rng: Rng) -> Instance:
    """An instance of a random family and size: up to 4 agents, 6 states and 27 joint actions
    (named ones a little more)."""
    family = rng.choice(
        ["random", "departure", "formation", "lookout", "two worlds", "named"],
        p=[0.5, 0.2, 0.13, 0.05, 0.05, 0.07],
    )
    gamma = float(rng.choice([rng.uniform(0.0, 0.95), 0.9, 0.99]))
    n = int(rng.choice([1, 2, 3, 4], p=[0.1, 0.3, 0.3, 0.3]))
    if family == "departure":
        reward = ((1.0, -1.0), (1.0, 1.0), (0.0, 0.0))[rng.integers(3)]
        mdp = departure(n, gamma, reward)
        mu, pi = _binary(n, 0.0), _binary(n, 10.0 ** rng.uniform(-4.0, 0.0))
    elif family == "formation":
        mdp = formation(n, gamma)
        mu = _binary(n, 10.0 ** rng.uniform(-4.0, -0.3))
        pi = mu if rng.random() < 0.5 else _binary(n, rng.random())
    elif family == "lookout":
        mdp = random_decmdp(rng, states=3, actions=(2, 2, 2), gamma=gamma, sparsity=1.0)
        mu_joint = lookout(10.0 ** rng.uniform(-3.0, -0.3), states=3)
        mu = pi = marginals(mu_joint, mdp.actions)
        return complete(rng, mdp, pi, mu, mu_joint)
    elif family == "named":
        return named_instance(rng, str(rng.choice(list(NAMED))))
    else:
        if family == "random":
            actions = tuple(int(m) for m in rng.integers(2, 4 if n < 4 else 3, size=n))
            states = int(rng.integers(1, 7))
            sparsity = float(rng.random())
            mdp = random_decmdp(rng, states=states, actions=actions, gamma=gamma, sparsity=sparsity)
        else:
            mdp = two_worlds(n, gamma)
        mu, pi = _random_pair(rng, mdp)
    return complete(rng, mdp, pi, mu, _random_correlated(rng, mu, fully=family == "formation"))


def named_instance(rng: Rng, name: str) -> Instance:
    """A named Dec-MDP with random policies."""
    if name not in NAMED:
        raise InputError(f"There is no Dec-MDP {name!r}. Choose one of: {', '.join(NAMED)}.")
    mdp = NAMED[name]()
    mu, pi = _random_pair(rng, mdp)
    return complete(rng, mdp, pi, mu, _random_correlated(rng, mu, fully=False))


def complete(
    rng: Rng, mdp: DecMDP, pi: tuple[Array, ...], mu: tuple[Array, ...], mu_joint: Array
) -> Instance:
    """Draw the rest of an instance: subset, weights, tables, features and a batch."""
    n, (S, A) = mdp.n, mdp.R.shape
    size = 0 if rng.random() < 0.05 else int(rng.integers(1, n + 1))
    # Members that nearly agree are where weights from the ensemble turn at the least change.
    spread = rng.choice([1.0, 0.01])
    Q = (rng.normal(size=(S, A)) + spread * rng.normal(size=(3, S, A))) / (1.0 - mdp.gamma)
    # A constant difference is where contraction is an equality.
    constant, varied = rng.choice([0.0, 0.1, 1.0], size=2)
    other = Q + spread * (constant * rng.normal() + varied * rng.normal(size=Q.shape))
    return Instance(
        mdp,
        pi,
        mu,
        mu_joint,
        tuple(sorted(rng.permutation(n)[:size].tolist())),
        _random_weights(rng, S, n),
        _random_q_hat(rng, mdp, pi, mu),
        Q,
        other,
        rng.normal(size=(S, A, 4)),
        rng.normal(size=4),
        sample_batch(rng, mdp, pi, product(mu), size=16),
    )


def sample_batch(rng: Rng, mdp: DecMDP, pi: tuple[Array, ...], mu: Array, size: int) -> Batch:
    """Transitions of behaviour mu, i.i.d. from its occupancy, with the next logged action."""
    A = mdp.R.shape[1]
    sa = _draw(rng, np.tile(joint_occupancy(mdp, mu).ravel(), (size, 1)))
    s, a = sa // A, sa % A
    s_next = _draw(rng, mdp.P[s, a])
    a_next = np.stack(np.unravel_index(_draw(rng, mu[s_next]), mdp.actions), axis=-1)
    a_pi = np.stack([_draw(rng, p[s_next]) for p in pi], axis=-1)
    return Batch(s, a, mdp.R[s, a], s_next, a_next, a_pi)


def _draw(rng: Rng, p: Array) -> np.ndarray:
    """One index from every row of p."""
    cdf = p.cumsum(-1)
    return (rng.random((len(p), 1)) * cdf[:, -1:] > cdf).sum(-1)


def _binary(n: int, p: float) -> tuple[Array, ...]:
    """n agents that play 1 with probability p in both of two states."""
    return tuple(np.array([[1.0 - p, p]] * 2) for _ in range(n))


def _random_pair(rng: Rng, mdp: DecMDP) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Behaviour and learned policies, from nearly the same to nothing in common."""
    mu, other = (random_policies(rng, mdp, float(rng.choice([0.05, 0.5, 5.0]))) for _ in "mp")
    dial = rng.choice([rng.random(), 0.01, 1.0])
    return mu, tuple((1.0 - dial) * m + dial * o for m, o in zip(mu, other, strict=True))


def _random_correlated(rng: Rng, mu: tuple[Array, ...], fully: bool) -> Array:
    if fully or rng.random() < 0.6:
        return correlated(mu, 1.0 if fully else rng.random())
    joint = product(mu)
    return rng.dirichlet(np.ones(joint.shape[1]), size=len(joint))


def _random_weights(rng: Rng, S: int, n: int) -> Array:
    if rng.random() < 0.3:
        return np.eye(n)[rng.integers(n, size=S)]
    return rng.dirichlet(np.ones(n), size=S)


def _random_q_hat(rng: Rng, mdp: DecMDP, pi: tuple[Array, ...], mu: tuple[Array, ...]) -> Array:
    """A learned function: nearly right, arbitrary, or right on the data and wrong elsewhere."""
    top = 1.0 / (1.0 - mdp.gamma)
    Q_star = optimal_q(mdp)
    kind = rng.integers(4)
    if kind == 0:
        Q_hat = Q_star + rng.choice([0.01, 0.3]) * top * rng.normal(size=Q_star.shape)
    elif kind == 1:
        Q_hat = top * rng.uniform(-1.0, 1.0, Q_star.shape)
    elif kind == 2:
        Q_hat = np.where(joint_occupancy(mdp, product(mu)) > 0.01, Q_star, -top)
    else:
        Q_hat = q_values(mdp, product(pi)) - rng.random() * top
    return np.clip(Q_hat, -top, top)
