"""The numbers behind the pictures, and the single numbers that the documentation quotes."""

from dataclasses import dataclass

import numpy as np

from spacql.theory import counterexamples as fails
from spacql.theory.decmdp import (
    Array,
    DecMDP,
    joint_occupancy,
    occupancy,
    product,
    q_values,
    replace,
    replace_k,
)
from spacql.theory.generators import (
    comonotone,
    correlated,
    lookout,
    random_decmdp,
    random_policies,
)
from spacql.theory.named import departure, formation
from spacql.theory.operators import inverse_weights
from spacql.theory.shift import (
    broken_correlation,
    correlated_divergence,
    coupled_divergence,
    excess_correlation,
    joint_divergence,
    linear_divergence,
    logged_divergence,
    shift,
)

Rng = np.random.Generator


# --- occupancy shift against k ----------------------------------------------------------------


@dataclass(frozen=True)
class FactorisedCurves:
    """All (n + 1,), for k = 0..n replaced agents, but `generic`, which is (draws, n + 1)."""

    linear: Array  # Lemma 1
    joint: Array  # through the joint TV of the k-replaced policy
    sharp: Array  # by coupling
    worst: Array  # exact shift in `departure`
    generic: Array  # exact shift in random Dec-MDPs, with the same TV of every agent


@dataclass(frozen=True)
class CorrelatedCurves:
    """All (n + 1,), in `formation` under fully correlated behaviour."""

    lemma: Array  # Lemma 2, with kappa
    logged_bound: Array  # with kappa_S for the actions as logged
    joint: Array  # through the joint TV, for the actions as logged
    product_exact: Array  # exact shift of the paper's d^(S), marginals multiplied
    logged_exact: Array  # exact shift when the others keep their logged actions
    kappa: float


def factorised_curves(
    n: int = 8, gamma: float = 0.8, eps: float = 0.03, draws: int = 20, seed: int = 0
) -> FactorisedCurves:
    """Every agent deviates by TV = eps in every state; agents 1..k are replaced."""
    home, mu, pi = departure(n, gamma), fails.always(*[0] * n), fails.mostly_zero(n, eps)
    subsets = [range(k) for k in range(n + 1)]
    linear = [linear_divergence(home, pi, mu, S) for S in subsets]
    sharp = [coupled_divergence(home, pi, mu, S) for S in subsets]
    behaviour = product(mu)
    joint = [
        joint_divergence(home, replace(behaviour, pi, S, home.actions), behaviour) for S in subsets
    ]
    rng = np.random.default_rng(seed)
    generic = np.zeros((draws, n + 1))
    for row in generic:
        mdp = random_decmdp(rng, states=5, actions=(2,) * n, gamma=gamma, sparsity=0.6)
        some = [0.5 * eps + (1.0 - eps) * p for p in random_policies(rng, mdp)]
        moved = [p + eps * np.array([-1.0, 1.0]) * _away_from_edge(p, eps) for p in some]
        behaviour = product(some)
        row[:] = [shift(mdp, replace(behaviour, moved, S, mdp.actions), behaviour) for S in subsets]
    return FactorisedCurves(
        np.array([c.right for c in linear]),
        np.array([c.right for c in joint]),
        np.array([c.right for c in sharp]),
        np.array([c.left for c in linear]),
        generic,
    )


def _away_from_edge(p: Array, eps: float) -> Array:
    """+1 where action 1 can gain eps, else -1. (S, 1)"""
    return np.where(p[:, 1:] + eps <= 1.0, 1.0, -1.0)


def correlated_curves(
    n: int = 8, gamma: float = 0.8, p: float = 0.02, eps: float = 0.02
) -> CorrelatedCurves:
    """All agents play 1 together with probability p, else all 0; each pi_i plays 1 with p + eps."""
    mdp, own, pi = formation(n, gamma), fails.mostly_zero(n, p), fails.mostly_zero(n, p + eps)
    mu = comonotone(own)
    subsets = [range(k) for k in range(n + 1)]
    lemma = [correlated_divergence(mdp, pi, mu, S) for S in subsets]
    logged = [logged_divergence(mdp, pi, mu, S) for S in subsets]
    joint = [joint_divergence(mdp, replace(mu, pi, S, mdp.actions), mu) for S in subsets]
    return CorrelatedCurves(
        np.array([c.right for c in lemma]),
        np.array([c.right for c in logged]),
        np.array([c.right for c in joint]),
        np.array([c.left for c in lemma]),
        np.array([c.left for c in logged]),
        excess_correlation(mu, mdp.actions),
    )


# --- error of the target under a tabular ensemble ---------------------------------------------


@dataclass(frozen=True)
class EnsembleCurves:
    """All (datasets, n), for k = 1..n."""

    error: Array  # root mean square of Q_j - Q over members, states and drawn a^(k)
    u: Array  # the ensemble's own spread, u_k
    unseen: Array  # share of drawn (s', a^(k)) that the dataset does not hold

    @property
    def w(self) -> Array:
        """SPaCQL's weights from the mean u_k. (n,)"""
        return inverse_weights(self.u.mean(0))


def ensemble_curves(
    dial: float,
    n: int = 6,
    gamma: float = 0.8,
    transitions: int = 1000,
    members: int = 10,
    datasets: int = 20,
    seed: int = 0,
) -> EnsembleCurves:
    """Each dataset: a random Dec-MDP of four states, behaviour that plays 1 with probability 0.2
    (correlated by `dial`) and policies that play 1 with probability 0.95. Each member: a table
    fitted by T^(k) to a bootstrap resample; entries that it never sees keep their random initial
    value, as a network's output does where no data correct it.
    """
    error, u, unseen = (np.zeros((datasets, n)) for _ in range(3))
    for d in range(datasets):
        rng = np.random.default_rng([seed, d])
        mdp = random_decmdp(rng, states=4, actions=(2,) * n, gamma=gamma, sparsity=0.5)
        mu = correlated(fails.mostly_zero(n, 0.2, states=4), dial)
        pi = fails.mostly_zero(n, 0.95, states=4)
        d_mu = occupancy(mdp, mu)
        counts = _sample_counts(rng, mdp, mu, transitions)  # (S, A, S)
        probability = counts.ravel() / transitions
        draws = rng.multinomial(transitions, probability, size=members)
        resamples = draws.reshape(members, *counts.shape).astype(float)
        initial = rng.normal(size=(members, *mdp.R.shape))
        for k in range(1, n + 1):
            target = replace_k(mu, pi, k, mdp.actions)
            Q = np.stack(
                [_fit(mdp, c, target, q0) for c, q0 in zip(resamples, initial, strict=True)]
            )  # (J, S, A)
            weight = d_mu[:, None] * target  # (S, A): the distribution of (s', a^(k))
            truth = q_values(mdp, target)  # the fixed point of T^(k)
            error[d, k - 1] = np.sqrt((weight * ((Q - truth) ** 2).mean(0)).sum())
            u[d, k - 1] = np.sqrt((weight * Q.var(0)).sum())
            unseen[d, k - 1] = weight[counts.sum(-1) == 0].sum()
    return EnsembleCurves(error, u, unseen)


def _sample_counts(rng: Rng, mdp: DecMDP, mu: Array, transitions: int) -> Array:
    """How often each (s, a, s') was logged, i.i.d. from the occupancy of mu. (S, A, S)"""
    p = joint_occupancy(mdp, mu)[..., None] * mdp.P
    return rng.multinomial(transitions, p.ravel() / p.sum()).reshape(p.shape).astype(float)


def _fit(mdp: DecMDP, counts: Array, target: Array, initial: Array) -> Array:
    """The fixed point of T^(k) on the counted data, where unseen entries stay as they began."""
    N = counts.sum(-1)  # (S, A)
    seen = N > 0
    P = counts / np.maximum(N, 1.0)[..., None]  # zero rows where unseen
    known = np.where(seen, mdp.R, initial)
    A = np.eye(len(N)) - mdp.gamma * np.einsum("sa,sat->st", target, P)
    V = np.linalg.solve(A, (target * known).sum(-1))
    return known + mdp.gamma * P @ V


# --- single numbers ---------------------------------------------------------------------------


def numbers() -> dict[str, float]:
    """What the documentation quotes beside the battery."""
    found: dict[str, float] = {}
    for gamma in (0.9, 0.95, 0.99):
        found[f"Lemma 1 vacuous from sum of TVs, gamma {gamma}"] = (1.0 - gamma) / gamma
    for n in (2, 3, 4, 8):
        fair = [np.full((1, 2), 0.5)] * n
        found[f"kappa, {n} agents that always agree"] = excess_correlation(
            comonotone(tuple(fair)), (2,) * n
        )
    for p in (0.1, 0.001):
        mu, actions = lookout(p), (2, 2, 2)
        ratio = broken_correlation(mu, (0,), actions) / excess_correlation(mu, actions)
        found[f"kappa_S / kappa, lookout with p {p}"] = ratio
    models, mu, pi = fails.two_beliefs()
    for start, Q in zip((0, 1), fails.two_fixed_points(), strict=True):
        V = fails.target_value(Q, mu, pi, models[0].actions)
        found[f"V(s_0) of T^SP, ensemble weights, started from {start}"] = float(V[0])
    found["range of a V(s_0) that never settles"] = fails.restless()
    expansion = fails.largest_expansion()
    found["T^SP moves apart two ensembles, factor"] = (
        models[0].gamma * expansion.left / expansion.right
    )
    for name, dial in (("independent", 0.0), ("correlated", 0.9)):
        curves = ensemble_curves(dial)
        for k in (1, curves.u.shape[1]):
            column = k - 1
            found[f"target error, {name}, k = {k}"] = float(curves.error[:, column].mean())
            found[f"unseen share, {name}, k = {k}"] = float(curves.unseen[:, column].mean())
            found[f"weight w_k, {name}, k = {k}"] = float(curves.w[column])
    return found
