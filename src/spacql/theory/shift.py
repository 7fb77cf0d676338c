"""How far partial replacement moves the occupancy: the paper's lemmas, and sharper ones.

`mu` is a tuple of the agents' own policies where behaviour is factorised (Assumption 1), and a
joint array (S, A) where it may be correlated.
"""

from collections.abc import Sequence

import numpy as np

from spacql.theory.check import Check
from spacql.theory.decmdp import (
    Array,
    DecMDP,
    Policies,
    joint_occupancy,
    marginals,
    occupancy,
    product,
    replace,
    sup_tv,
    tv,
)
from spacql.theory.operators import k_eff, mixture


def deviations(pi: Policies, mu: Policies) -> Array:
    """TV(pi_i(. | s), mu_i(. | s)) for every state and agent. (S, n)"""
    return np.stack([tv(p, m) for p, m in zip(pi, mu, strict=True)], axis=-1)


def total_deviation(pi: Policies, mu: Policies, subset: Sequence[int]) -> float:
    """sum_{i in S} TV(pi_i, mu_i), each TV its largest over states."""
    return float(deviations(pi, mu).max(0)[list(subset)].sum())


def horizon(mdp: DecMDP) -> float:
    """gamma / (1 - gamma): by how much a per-step difference grows in the occupancy."""
    return mdp.gamma / (1.0 - mdp.gamma)


def shift(mdp: DecMDP, policy: Array, mu: Array) -> float:
    """W_1(d^policy, d^mu) over states."""
    return float(tv(occupancy(mdp, policy), occupancy(mdp, mu)))


# --- factorised behaviour ---------------------------------------------------------------------


def linear_divergence(mdp: DecMDP, pi: Policies, mu: Policies, subset: Sequence[int]) -> Check:
    """Lemma 1: W_1(d^(S), d^(0)) <= gamma / (1 - gamma) sum_{i in S} TV(pi_i, mu_i)."""
    behaviour = product(mu)
    left = shift(mdp, replace(behaviour, pi, subset, mdp.actions), behaviour)
    return Check(left, horizon(mdp) * total_deviation(pi, mu, subset), trivial=1.0)


def joint_divergence(mdp: DecMDP, policy: Array, mu: Array) -> Check:
    """The usual bound through the joint policies: gamma / (1 - gamma) TV(policy, mu).

    It needs no factorisation, and is never above Lemma 1: TV of products is at most the sum.
    """
    return Check(shift(mdp, policy, mu), horizon(mdp) * sup_tv(policy, mu), trivial=1.0)


def coupled_divergence(mdp: DecMDP, pi: Policies, mu: Policies, subset: Sequence[int]) -> Check:
    """The sharp form of Lemma 1: gamma delta / (1 - gamma + gamma delta) with
    delta = 1 - prod_{i in S} (1 - TV(pi_i, mu_i)).

    Couple each agent's two actions maximally; the two trajectories part at a step with probability
    at most delta, so that TV(d_t, d'_t) <= 1 - (1 - delta)^t, and the discounted sum is the bound.
    It is below one and below Lemma 1, and `named.departure` attains it.
    """
    behaviour = product(mu)
    left = shift(mdp, replace(behaviour, pi, subset, mdp.actions), behaviour)
    delta = 1.0 - np.prod(1.0 - deviations(pi, mu).max(0)[list(subset)])
    return Check(left, float(coupling_bound(mdp.gamma, delta)), trivial=1.0)


def coupling_bound(gamma: float, delta: float) -> float:
    return gamma * delta / (1.0 - gamma + gamma * delta)


def joint_occupancy_divergence(
    mdp: DecMDP, pi: Policies, mu: Policies, subset: Sequence[int]
) -> Check:
    """Over states *and actions* the policies' own distance is added, and gamma / (1 - gamma) + 1
    gives W_1(rho^(S), rho^(0)) <= 1 / (1 - gamma) sum_{i in S} TV(pi_i, mu_i)."""
    behaviour = product(mu)
    rho = joint_occupancy(mdp, replace(behaviour, pi, subset, mdp.actions))
    left = float(tv(rho.ravel(), joint_occupancy(mdp, behaviour).ravel()))
    return Check(left, total_deviation(pi, mu, subset) / (1.0 - mdp.gamma), trivial=1.0)


def density_ratio_product(pi: Policies, mu: Policies, subset: Sequence[int]) -> Check:
    """What does grow exponentially in k: 1 + chi2(pi^(S) | mu) = prod_{i in S} (1 + chi2_i).

    The second moment of pi^(S) / mu, which multiplies the variance of estimates from data.
    """
    behaviour = product(mu)
    replaced = replace(behaviour, pi, subset, tuple(m.shape[1] for m in mu))
    joint = _second_moment(replaced, behaviour)
    parts = np.ones(len(behaviour))
    for i in subset:
        parts = parts * _second_moment(pi[i], mu[i])
    return Check(float(np.abs(joint / parts - 1.0).max()), 0.0)


def _second_moment(p: Array, q: Array) -> Array:
    return np.divide(p**2, q, out=np.zeros_like(p), where=p > 0).sum(-1)


# --- correlated behaviour ---------------------------------------------------------------------


def excess_correlation(mu: Array, actions: tuple[int, ...]) -> float:
    """kappa, the maximal excess correlation: sup_s TV(mu, product of its marginals)."""
    return sup_tv(mu, product(marginals(mu, actions)))


def broken_correlation(mu: Array, subset: Sequence[int], actions: tuple[int, ...]) -> float:
    """kappa_S = sup_s TV(mu, prod_{i in S} mu_i x mu_{-S}): the correlation that replacing the
    agents of S breaks, when the others keep their logged actions together."""
    return sup_tv(mu, replace(mu, marginals(mu, actions), subset, actions))


def correlation_range(mu: Array, actions: tuple[int, ...]) -> Check:
    """kappa <= sqrt(1 - exp(-C)), C the total correlation in nats (Bretagnolle and Huber): it is
    zero for independent agents, and stays below one."""
    independent = product(marginals(mu, actions))
    ratio = np.divide(mu, independent, out=np.ones_like(mu), where=mu > 0)
    C = (mu * np.log(ratio)).sum(-1).max()
    return Check(excess_correlation(mu, actions), float(np.sqrt(-np.expm1(-max(C, 0.0)))), 1.0)


def correlated_divergence(mdp: DecMDP, pi: Policies, mu: Array, subset: Sequence[int]) -> Check:
    """Lemma 2: W_1(d^(S), d^mu) <= gamma / (1 - gamma) (sum_{i in S} TV(pi_i, mu_i) + kappa).

    As stated: pi^(S) is a product of pi_i and of *marginals* mu_j, also for the agents that keep
    their behaviour, and so d^(0) is not d^mu.
    """
    own = marginals(mu, mdp.actions)
    left = shift(mdp, replace(product(own), pi, subset, mdp.actions), mu)
    per_step = total_deviation(pi, own, subset) + excess_correlation(mu, mdp.actions)
    return Check(left, horizon(mdp) * per_step, trivial=1.0)


def logged_divergence(mdp: DecMDP, pi: Policies, mu: Array, subset: Sequence[int]) -> Check:
    """Lemma 2 for what the algorithms do, with kappa_S for kappa: the agents outside S keep their
    logged actions, correlation included."""
    left = shift(mdp, replace(mu, pi, subset, mdp.actions), mu)
    per_step = total_deviation(pi, marginals(mu, mdp.actions), subset)
    per_step += broken_correlation(mu, subset, mdp.actions)
    return Check(left, horizon(mdp) * per_step, trivial=1.0)


def broken_correlation_range(mu: Array, subset: Sequence[int], actions: tuple[int, ...]) -> Check:
    """kappa_S <= 2 kappa: through the product of all marginals, where a marginal of mu is no
    further from its product than mu. `generators.lookout` comes as close to 2 as one likes."""
    return Check(
        broken_correlation(mu, subset, actions), 2.0 * excess_correlation(mu, actions), trivial=1.0
    )


# --- the mixture of SPaCQL --------------------------------------------------------------------


def mixture_divergence(mdp: DecMDP, pi: Policies, mu: Policies, w: Array) -> Check:
    """W_1(d^w, d^mu) <= gamma / (1 - gamma) sup_s k_eff(s) * mean_i TV(pi_i, mu_i).

    A random k-subset holds agent i with probability k / n, so TV(pi^w, mu) at s is at most
    sum_k w_k(s) k / n sum_i TV_i(s) = k_eff(s) mean_i TV_i(s). The TV in the mean are suprema.
    """
    left, bar = _mixture_shift(mdp, pi, mu, w)
    return Check(left, horizon(mdp) * float(k_eff(w).max()) * bar, trivial=1.0)


def mean_mixture_divergence(mdp: DecMDP, pi: Policies, mu: Policies, w: Array) -> Check:
    """The same with E_{s ~ d^mu}[k_eff(s)] for sup_s k_eff(s): tighter, and measured on the data.

    d^w - d^mu = gamma d^mu (P^w - P^mu) (I - gamma P^w)^{-1}; E under d^w holds likewise, but
    E under d^pi, as the paper's last theorem has it, does not (`counterexamples.mixture_under_pi`).
    """
    left, bar = _mixture_shift(mdp, pi, mu, w)
    mean = float(occupancy(mdp, product(mu)) @ k_eff(w))
    return Check(left, horizon(mdp) * mean * bar, trivial=1.0)


def _mixture_shift(mdp: DecMDP, pi: Policies, mu: Policies, w: Array) -> tuple[float, float]:
    behaviour = product(mu)
    left = shift(mdp, mixture(behaviour, pi, w, mdp.actions), behaviour)
    return left, float(deviations(pi, mu).max(0).mean())
