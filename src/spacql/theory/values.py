"""What a shift costs in value: the paper's value-error theorems and the Lipschitz constant.

In all of them V^pi = E_{d^pi, pi}[Q^pi] and V-hat^pi = E_{d^pi, pi}[Q-hat], as in the paper's proof
(a mean over the whole occupancy, not over the initial states).
"""

import numpy as np

from spacql.theory.check import Check
from spacql.theory.decmdp import (
    Array,
    DecMDP,
    Policies,
    joint_occupancy,
    marginals,
    occupancy,
    optimal_q,
    product,
    q_values,
)
from spacql.theory.operators import k_eff, mixture
from spacql.theory.shift import deviations, excess_correlation


def span(Q: Array) -> float:
    """The Lipschitz constant under the 0-1 metric."""
    return float(Q.max() - Q.min())


def lipschitz(mdp: DecMDP) -> Check:
    """Q* is 2 / (1 - gamma)-Lipschitz under the 0-1 metric."""
    return Check(span(optimal_q(mdp)), 2.0 / (1.0 - mdp.gamma))


def mixing_lipschitz(mdp: DecMDP) -> Check:
    """Q* is 2 / (1 - gamma tau)-Lipschitz, tau the largest TV between two rows of P.

    From span(Q) <= span(R) + gamma tau span(V). Where every action leads to much the same next
    state (tau near zero) the constant is near 2, however long the horizon.
    """
    rows = mdp.P.reshape(-1, mdp.P.shape[-1])
    tau = max(float(0.5 * np.abs(rows - row).sum(-1).max()) for row in rows)
    return Check(
        span(optimal_q(mdp)), 2.0 / (1.0 - mdp.gamma * tau), trivial=2.0 / (1.0 - mdp.gamma)
    )


def value_error_terms(mdp: DecMDP, policy: Array, Q_hat: Array) -> tuple[float, float, float]:
    """|V - V-hat|, eps_Subopt = |Q^pi - Q*|_inf and eps_FQI = |Q* - Q-hat|_inf."""
    Q_pi, Q_star = q_values(mdp, policy), optimal_q(mdp)
    error = abs(float((joint_occupancy(mdp, policy) * (Q_pi - Q_hat)).sum()))
    return error, float(np.abs(Q_pi - Q_star).max()), float(np.abs(Q_star - Q_hat).max())


def shift_cost(gamma: float) -> float:
    """The constant before the deviations in all three theorems: 4 gamma / (1 - gamma)^2."""
    return 4.0 * gamma / (1.0 - gamma) ** 2


def repaired_cost(gamma: float) -> float:
    """The same over states and actions: 4 / (1 - gamma)^2."""
    return 4.0 / (1.0 - gamma) ** 2


def value_error(mdp: DecMDP, pi: Policies, mu: Array, Q_hat: Array) -> Check:
    """Theorem 1, and Theorem 2 where mu is correlated: |V - V-hat| <= eps_Subopt + eps_FQI
    + 4 gamma / (1 - gamma)^2 (sum_i TV(pi_i, mu_i) + kappa), with kappa = 0 in Theorem 1."""
    error, subopt, fqi = value_error_terms(mdp, product(pi), Q_hat)
    total = float(deviations(pi, marginals(mu, mdp.actions)).max(0).sum())
    total += excess_correlation(mu, mdp.actions)
    return Check(error, subopt + fqi + shift_cost(mdp.gamma) * total, trivial=subopt + fqi)


def value_error_two_terms(mdp: DecMDP, pi: Policies, Q_hat: Array) -> Check:
    """The theorem without its last term: |V - V-hat| <= |Q^pi - Q-hat|_inf <= eps_Subopt + eps_FQI.

    It needs neither the behaviour nor the Lipschitz assumption; the shift term adds nothing.
    """
    error, subopt, fqi = value_error_terms(mdp, product(pi), Q_hat)
    return Check(error, subopt + fqi, trivial=2.0 / (1.0 - mdp.gamma))


def spacql_value_error(mdp: DecMDP, pi: Policies, mu: Policies, w: Array, Q_hat: Array) -> Check:
    """The SPaCQL theorem: ... + 4 gamma / (1 - gamma)^2 E_{s ~ d^pi}[k_eff(s)] mean_i TV."""
    policy = product(pi)
    error, subopt, fqi = value_error_terms(mdp, policy, Q_hat)
    mean = float(occupancy(mdp, policy) @ k_eff(w))
    last = shift_cost(mdp.gamma) * mean * float(deviations(pi, mu).max(0).mean())
    return Check(error, subopt + fqi + last, trivial=subopt + fqi)


def error_on_data(mdp: DecMDP, mu: Array, Q_hat: Array) -> float:
    """|E_{d^mu, mu}[Q* - Q-hat]|: the error that the data see, instead of its supremum."""
    return abs(float((joint_occupancy(mdp, mu) * (optimal_q(mdp) - Q_hat)).sum()))


def value_error_from_data(mdp: DecMDP, pi: Policies, mu: Array, Q_hat: Array) -> Check:
    """Theorems 1 and 2 repaired: |V - V-hat| <= eps_Subopt + |E_{d^mu, mu}[Q* - Q-hat]|
    + 4 / (1 - gamma)^2 (sum_i TV(pi_i, mu_i) + kappa).

    The error is measured on the data, so that the last term carries it over to pi; it is moved
    over states *and* actions, hence no gamma in the constant. Q-hat must be 2 / (1 - gamma)-
    Lipschitz. Trivial is what Theorem 1 gives with no shift term at all.
    """
    error, subopt, fqi = value_error_terms(mdp, product(pi), Q_hat)
    total = float(deviations(pi, marginals(mu, mdp.actions)).max(0).sum())
    total += excess_correlation(mu, mdp.actions)
    right = subopt + error_on_data(mdp, mu, Q_hat) + repaired_cost(mdp.gamma) * total
    return Check(error, right, trivial=subopt + fqi)


def spacql_value_error_from_data(
    mdp: DecMDP, pi: Policies, mu: Policies, w: Array, Q_hat: Array
) -> Check:
    """The SPaCQL theorem repaired, for the value of the *mixture* pi^w and with sup_s k_eff(s):
    the mixture bound says nothing of pi itself (`counterexamples.spacql_error_of_pi`)."""
    behaviour = product(mu)
    policy = mixture(behaviour, pi, w, mdp.actions)
    error, subopt, fqi = value_error_terms(mdp, policy, Q_hat)
    bar = float(deviations(pi, mu).max(0).mean())
    last = repaired_cost(mdp.gamma) * float(k_eff(w).max()) * bar
    right = subopt + error_on_data(mdp, behaviour, Q_hat) + last
    return Check(error, right, trivial=subopt + fqi)
