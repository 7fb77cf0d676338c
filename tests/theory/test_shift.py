import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_strategies import correlated_problems, problems, weights

from spacql.theory import shift
from spacql.theory.counterexamples import always, mostly_zero
from spacql.theory.decmdp import occupancy, product, replace
from spacql.theory.generators import comonotone
from spacql.theory.named import departure, formation
from spacql.theory.operators import k_eff, mixture

quick = settings(max_examples=60, deadline=None)


@quick
@given(problems())
def test_bounds_on_the_shift_stand_in_order(problem):
    mdp, pi, mu, subset = problem
    linear = shift.linear_divergence(mdp, pi, mu, subset)
    sharp = shift.coupled_divergence(mdp, pi, mu, subset)
    behaviour = product(mu)
    replaced = replace(behaviour, pi, subset, mdp.actions)
    joint = shift.joint_divergence(mdp, replaced, behaviour)
    assert sharp.holds
    assert joint.holds
    assert max(sharp.right, joint.right) <= linear.right + 1e-9
    assert sharp.right < 1.0


@quick
@given(problems())
def test_shift_over_actions_is_bounded_by_the_longer_horizon(problem):
    assert shift.joint_occupancy_divergence(*problem).holds


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("gamma", [0.1, 0.9, 0.99])
def test_departure_attains_the_sharp_bound(k, gamma):
    check = shift.coupled_divergence(
        departure(5, gamma), mostly_zero(5, 0.2), always(*[0] * 5), range(k)
    )
    assert check.left == pytest.approx(check.right, rel=1e-9)


def test_linear_bound_is_tight_for_small_deviations():
    for k in (1, 4, 8):
        check = shift.linear_divergence(
            departure(8, 0.9), mostly_zero(8, 1e-5), always(*[0] * 8), range(k)
        )
        assert check.left / check.right > 0.999


def test_shift_is_zero_when_nobody_deviates():
    mu = mostly_zero(3, 0.3)
    check = shift.linear_divergence(departure(3), mu, mu, (0, 1, 2))
    assert check.right == 0.0
    assert check.left < 1e-12


@quick
@given(problems())
def test_density_ratio_multiplies_over_agents(problem):
    _, pi, mu, subset = problem
    positive = [0.5 * m + 0.5 / m.shape[1] for m in mu]
    assert shift.density_ratio_product(pi, positive, subset).holds


@quick
@given(correlated_problems())
def test_lemmas_for_correlated_behaviour(problem):
    mdp, pi, mu, subset = problem
    assert shift.correlated_divergence(mdp, pi, mu, subset).holds
    assert shift.logged_divergence(mdp, pi, mu, subset).holds
    assert shift.broken_correlation_range(mu, subset, mdp.actions).holds
    assert shift.correlation_range(mu, mdp.actions).holds


def test_without_replacement_logged_actions_do_not_shift_but_their_marginals_do():
    mdp, mu = formation(3), comonotone(mostly_zero(3, 0.3))
    pi = mostly_zero(3, 0.3)
    assert shift.logged_divergence(mdp, pi, mu, ()).left == pytest.approx(0.0, abs=1e-12)
    assert shift.correlated_divergence(mdp, pi, mu, ()).left > 0.5


def test_kappa_is_needed_where_nobody_deviates_but_correlation_breaks():
    mdp, own = formation(4), mostly_zero(4, 1e-4)
    for lemma in (shift.correlated_divergence, shift.logged_divergence):
        check = lemma(mdp, own, comonotone(own), (0,))
        assert check.left / check.right > 0.99


@quick
@given(problems(), st.data())
def test_mixture_bound_with_largest_and_with_mean_k_eff(problem, data):
    mdp, pi, mu, _ = problem
    w = data.draw(weights(len(mdp.d0), mdp.n))
    largest = shift.mixture_divergence(mdp, pi, mu, w)
    mean = shift.mean_mixture_divergence(mdp, pi, mu, w)
    assert mean.holds
    assert mean.right <= largest.right + 1e-12


def test_mixture_bound_grows_with_k_eff_and_meets_the_linear_one_at_both_ends():
    mdp, pi, mu = departure(4, 0.9), mostly_zero(4, 0.01), always(*[0] * 4)
    bounds = [
        shift.mixture_divergence(mdp, pi, mu, np.tile(np.eye(4)[k - 1], (2, 1))).right
        for k in (1, 2, 3, 4)
    ]
    assert bounds[0] == pytest.approx(shift.linear_divergence(mdp, pi, mu, (0,)).right)
    assert bounds[3] == pytest.approx(shift.linear_divergence(mdp, pi, mu, range(4)).right)
    assert bounds == sorted(bounds)


@quick
@given(problems(), st.data())
def test_mixture_bound_with_mean_k_eff_under_the_mixture_and_with_deviations_per_state(
    problem, data
):
    mdp, pi, mu, _ = problem
    w = data.draw(weights(len(mdp.d0), mdp.n))
    left = shift.mixture_divergence(mdp, pi, mu, w).left
    per_state = shift.deviations(pi, mu)
    d_w = occupancy(mdp, mixture(product(mu), pi, w, mdp.actions))
    bar = per_state.max(0).mean()
    assert left <= shift.horizon(mdp) * (d_w @ k_eff(w)) * bar + 1e-9
    assert left <= shift.horizon(mdp) * (k_eff(w) * per_state.mean(1)).max() + 1e-9
