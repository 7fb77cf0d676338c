"""Readings of the paper that fail, each with a small instance that shows it.

Every reading is a function like the statements'; every witness returns the reading's check on one
hand-made instance, where `left > right`.
"""

from collections.abc import Sequence
from dataclasses import replace as with_fields

import numpy as np

from spacql.theory import operators
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
    replace,
    sup_tv,
)
from spacql.theory.generators import lookout
from spacql.theory.named import departure, fork
from spacql.theory.shift import (
    deviations,
    excess_correlation,
    horizon,
    joint_occupancy_divergence,
    logged_divergence,
    mixture_divergence,
    shift,
    total_deviation,
)
from spacql.theory.updates import ensemble_contraction
from spacql.theory.values import (
    error_on_data,
    repaired_cost,
    shift_cost,
    value_error_from_data,
    value_error_terms,
)


def always(*plays: int, states: int = 2) -> tuple[Array, ...]:
    """Agents with two actions, of which each always plays one."""
    return tuple(np.tile(np.eye(2)[a], (states, 1)) for a in plays)


def mostly_zero(n: int, eps: float, states: int = 2) -> tuple[Array, ...]:
    """n agents that play 1 with probability eps in every state."""
    return tuple(np.tile([1.0 - eps, eps], (states, 1)) for _ in range(n))


# --- states are not states and actions --------------------------------------------------------


def lemma1_over_actions(mdp: DecMDP, pi: Policies, mu: Policies, subset: Sequence[int]) -> Check:
    """Lemma 1 with its constant gamma / (1 - gamma), read over states and actions."""
    check = joint_occupancy_divergence(mdp, pi, mu, subset)
    return Check(check.left, mdp.gamma * check.right, trivial=1.0)


def proof_step(mdp: DecMDP, pi: Policies, mu: Array, Q_hat: Array) -> Check:
    """The step in the proof of Theorem 1: |E_{d^pi,pi}[f] - E_{d^mu,mu}[f]| <=
    4 / (1 - gamma) W_1(d^pi, d^mu), with f = Q* - Q-hat and d the occupancy of Lemma 1."""
    policy = product(pi)
    f = optimal_q(mdp) - Q_hat
    change = joint_occupancy(mdp, policy) - joint_occupancy(mdp, mu)
    left = abs(float((change * f).sum()))
    return Check(left, 4.0 / (1.0 - mdp.gamma) * shift(mdp, policy, mu))


def value_error_paper_constant(mdp: DecMDP, pi: Policies, mu: Array, Q_hat: Array) -> Check:
    """The repaired Theorem 1 with the paper's 4 gamma / (1 - gamma)^2."""
    check = value_error_from_data(mdp, pi, mu, Q_hat)
    total = float(deviations(pi, marginals(mu, mdp.actions)).max(0).sum())
    total += excess_correlation(mu, mdp.actions)
    lost = repaired_cost(mdp.gamma) - shift_cost(mdp.gamma)
    return Check(check.left, check.right - lost * total)


def one_state(gamma: float = 0.1) -> tuple[DecMDP, Policies, Policies, Array]:
    """One state, one agent, reward one; Q-hat is right where behaviour acts, and wrong where the
    learned policy does. No state distribution can ever shift here."""
    mdp = DecMDP(np.ones((1, 2, 1)), np.ones((1, 2)), np.ones(1), gamma, (2,))
    top = 1.0 / (1.0 - gamma)
    return mdp, always(1, states=1), always(0, states=1), np.array([[top, -top]])


def witness_lemma1_over_actions() -> Check:
    mdp, pi, mu, _ = one_state()
    return lemma1_over_actions(mdp, pi, mu, (0,))


def witness_proof_step() -> Check:
    mdp, pi, mu, Q_hat = one_state()
    return proof_step(mdp, pi, product(mu), Q_hat)


def witness_value_error_paper_constant() -> Check:
    mdp, pi, mu, Q_hat = one_state()
    return value_error_paper_constant(mdp, pi, product(mu), Q_hat)


# --- the joint total variation is not worse ---------------------------------------------------


def linear_beats_joint(pi: Policies, mu: Policies, subset: Sequence[int]) -> Check:
    """The Remark after Theorem 1, read of several agents: sum_{i in S} TV(pi_i, mu_i) improves on
    TV(pi^(S), mu).

    For one agent, of which the paper says it strictly, the two are equal; for more the joint one
    is the smaller.
    """
    behaviour = product(mu)
    joint = sup_tv(replace(behaviour, pi, subset, tuple(m.shape[1] for m in mu)), behaviour)
    return Check(total_deviation(pi, mu, subset), joint)


def witness_linear_beats_joint() -> Check:
    return linear_beats_joint(mostly_zero(2, 0.5), always(0, 0), (0, 1))


# --- kappa for the logged actions -------------------------------------------------------------


def lemma2_for_logged(mdp: DecMDP, pi: Policies, mu: Array, subset: Sequence[int]) -> Check:
    """Lemma 2 with kappa, for agents outside S that keep their logged actions together."""
    left = logged_divergence(mdp, pi, mu, subset).left
    per_step = total_deviation(pi, marginals(mu, mdp.actions), subset)
    per_step += excess_correlation(mu, mdp.actions)
    return Check(left, horizon(mdp) * per_step, trivial=1.0)


def witness_lemma2_for_logged(p: float = 0.1, gamma: float = 0.2) -> Check:
    """Agent 1 is "replaced" by its own marginal, so that all of the shift is broken correlation."""
    mu = lookout(p, states=3)
    own = marginals(mu, (2, 2, 2))
    gains = replace(mu, own, (0,), (2, 2, 2))[0] > mu[0]
    mdp = fork(gains.astype(float), (2, 2, 2), gamma)
    return lemma2_for_logged(mdp, own, mu, (0,))


# --- k_eff ------------------------------------------------------------------------------------


def mixture_under_pi(mdp: DecMDP, pi: Policies, mu: Policies, w: Array) -> Check:
    """The mixture bound with E_{s ~ d^pi}[k_eff(s)], the mean of the paper's last theorem."""
    left = mixture_divergence(mdp, pi, mu, w).left
    mean = float(occupancy(mdp, product(pi)) @ operators.k_eff(w))
    return Check(left, horizon(mdp) * mean * float(deviations(pi, mu).max(0).mean()), trivial=1.0)


def witness_mixture_under_pi(n: int = 8, k: int = 3, gamma: float = 0.99) -> Check:
    """`departure`, with k agents replaced at home and one away: pi leaves home sooner than the
    mixture does, and then sees only the small k_eff."""
    eps = 0.9 / n * (1.0 - gamma) / gamma
    w = np.stack([np.eye(n)[k - 1], np.eye(n)[0]])
    return mixture_under_pi(departure(n, gamma), mostly_zero(n, eps), always(*[0] * n), w)


def mixture_drawn(mdp: DecMDP, pi: Policies, mu: Policies, u: Array) -> Check:
    """The mixture bound for Algorithm 1, whose weights depend on the drawn actions. u is (S, A)."""
    behaviour = product(mu)
    policy, effective = operators.drawn_mixture(behaviour, pi, u, mdp.actions)
    bar = float(deviations(pi, mu).max(0).mean())
    return Check(
        shift(mdp, policy, behaviour), horizon(mdp) * float(effective.max()) * bar, trivial=1.0
    )


def witness_mixture_drawn(eps: float = 0.01, gamma: float = 0.2) -> Check:
    """An ensemble that agrees on unseen actions and disagrees on the logged one: of the draws for
    k = 1 and k = 2 the one that deviates gets the weight, so that three draws can leave home."""
    u = np.full((2, 4), 1e-6)
    u[:, 0] = 1.0
    return mixture_drawn(departure(2, gamma), mostly_zero(2, eps), always(0, 0), u)


def spacql_error_of_pi(mdp: DecMDP, pi: Policies, mu: Policies, w: Array, Q_hat: Array) -> Check:
    """The SPaCQL theorem with its error measured on the data, and for the value of pi, in which
    all agents are replaced, as the paper's left side has it."""
    behaviour = product(mu)
    error, subopt, fqi = value_error_terms(mdp, product(pi), Q_hat)
    bar = float(deviations(pi, mu).max(0).mean())
    last = repaired_cost(mdp.gamma) * float(operators.k_eff(w).max()) * bar
    return Check(error, subopt + error_on_data(mdp, behaviour, Q_hat) + last, trivial=subopt + fqi)


def witness_spacql_error_of_pi(n: int = 8, eps: float = 1e-3, gamma: float = 0.5) -> Check:
    """No rewards, so that every policy is optimal; Q-hat is right on the data and too high off
    them; all weight on k = 1. pi shifts n times as far as k_eff = 1 says."""
    mdp = departure(n, gamma, reward=(0.0, 0.0))
    Q_hat = np.full(mdp.R.shape, 1.0 / (1.0 - gamma))
    Q_hat[0, 0] = 0.0
    w = np.tile(np.eye(n)[0], (2, 1))
    return spacql_error_of_pi(mdp, mostly_zero(n, eps), always(*[0] * n), w, Q_hat)


# --- weights that depend on Q -----------------------------------------------------------------


def two_beliefs(
    gamma: float = 0.9, low: float = 0.65, cost: float = 0.02
) -> tuple[list[DecMDP], Array, Policies]:
    """Two members with different resamples of the same data, on which T^SP has two fixed points.

    Behaviour plays (0, 0), the learned policies (1, 1). One replaced agent ends the episode (state
    1, no reward) for a reward of 1 in one member's data and of `low` in the other's. Two replaced
    agents pay `cost`, and then the first member's data say that play goes on, the second's that it
    ends: the members disagree about k = 2 as much as they think the play is worth. If they think it
    worth much, k = 1 has the weight, and it is worth much. If nothing, k = 2, and it is not.
    """
    P = np.zeros((2, 4, 2))
    P[:, :, 1] = 1.0
    R = np.array([[0.0, low, low, -cost], [0.0] * 4])
    ends = DecMDP(P, R, np.array([1.0, 0.0]), gamma, (2, 2))
    P_on, R_on = P.copy(), R.copy()
    P_on[0, 3] = [1.0, 0.0]
    R_on[0, 1:3] = 1.0
    return [with_fields(ends, P=P_on, R=R_on), ends], product(always(0, 0)), always(1, 1)


def iterate(
    models: Sequence[DecMDP], mu: Array, pi: Policies, start: float, steps: int = 300
) -> Array:
    """T^SP with ensemble weights, applied again and again to an ensemble that agrees on `start` in
    the first state and on zero elsewhere. (J, S, A)"""
    Q = np.zeros((len(models), *models[0].R.shape))
    Q[:, 0] = start
    for _ in range(steps):
        Q = operators.soft_partial(models, mu, pi, Q)
    return Q


def two_fixed_points() -> tuple[Array, Array]:
    """Where `two_beliefs` ends, started from zero and from one. (J, S, A) each"""
    models, mu, pi = two_beliefs()
    return iterate(models, mu, pi, 0.0), iterate(models, mu, pi, 1.0)


def target_value(Q: Array, mu: Array, pi: Policies, actions: tuple[int, ...]) -> Array:
    """sum_k w_k E min_j Q_j(s, a^(k)), the value that T^SP bootstraps from. (S,)"""
    w = operators.ensemble_weights(Q, mu, pi, actions)
    return np.asarray((operators.mixture(mu, pi, w, actions) * Q.min(axis=0)).sum(-1))


def restless(steps: int = 300, window: int = 200) -> float:
    """The same Dec-MDP with other rewards, where the iteration settles nowhere. Returns the range
    of V(s_0) over a window of iterations that begins after `steps` of them."""
    models, mu, pi = two_beliefs(low=0.8, cost=1.0)
    Q = iterate(models, mu, pi, 0.0, steps)
    V = []
    for _ in range(window):
        Q = operators.soft_partial(models, mu, pi, Q)
        V.append(float(target_value(Q, mu, pi, (2, 2))[0]))
    return max(V) - min(V)


def witness_ensemble_weights() -> Check:
    """A contraction would bring the two fixed points closer; T^SP leaves both where they are."""
    models, mu, pi = two_beliefs()
    return ensemble_contraction(models, mu, pi, *two_fixed_points(), w=None)


def largest_expansion(gap: float = 1e-6) -> Check:
    """Two ensembles `gap` apart whose images are not: where u_k is near zero, the weights jump."""
    models, mu, pi = two_beliefs()
    Q = np.zeros((2, 2, 4))
    Q[:, 0, 1:3], Q[:, 0, 3] = 1.0, -1.0  # k = 1 looks good, k = 2 bad
    sure_of_1, sure_of_2 = Q.copy(), Q.copy()
    sure_of_1[0, 0, 3] += gap
    sure_of_2[0, 0, 1:3] += gap
    return ensemble_contraction(models, mu, pi, sure_of_1, sure_of_2, w=None)
