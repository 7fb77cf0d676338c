import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_strategies import correlated_problems, decmdps, problems, weights

from spacql.theory import values
from spacql.theory.decmdp import product
from spacql.theory.named import two_worlds

quick = settings(max_examples=40, deadline=None)


def learned(mdp, seed):
    """Any 2 / (1 - gamma)-Lipschitz function."""
    return np.random.default_rng(seed).uniform(-1, 1, mdp.R.shape) / (1 - mdp.gamma)


@quick
@given(correlated_problems(), st.integers(0, 100))
def test_value_error_theorems_hold_and_say_no_more_than_their_first_two_terms(problem, seed):
    mdp, pi, mu, _ = problem
    Q_hat = learned(mdp, seed)
    theorem = values.value_error(mdp, pi, mu, Q_hat)
    two_terms = values.value_error_two_terms(mdp, pi, Q_hat)
    assert two_terms.holds
    assert theorem.vacuous
    assert theorem.right >= two_terms.right


@quick
@given(problems(), st.integers(0, 100), st.data())
def test_spacql_theorem_says_no_more_than_its_first_two_terms(problem, seed, data):
    mdp, pi, mu, _ = problem
    w = data.draw(weights(len(mdp.d0), mdp.n))
    check = values.spacql_value_error(mdp, pi, mu, w, learned(mdp, seed))
    assert check.holds
    assert check.vacuous


@quick
@given(correlated_problems(), st.integers(0, 100))
def test_error_on_the_data_carries_over_with_the_repaired_constant(problem, seed):
    mdp, pi, mu, _ = problem
    assert values.value_error_from_data(mdp, pi, mu, learned(mdp, seed)).holds


@quick
@given(problems(), st.integers(0, 100), st.data())
def test_error_on_the_data_carries_over_to_the_mixture(problem, seed, data):
    mdp, pi, mu, _ = problem
    w = data.draw(weights(len(mdp.d0), mdp.n))
    assert values.spacql_value_error_from_data(mdp, pi, mu, w, learned(mdp, seed)).holds


@quick
@given(problems(), st.integers(0, 100))
def test_repaired_theorem_is_the_error_on_the_data_when_pi_is_the_behaviour(problem, seed):
    mdp, _, mu, _ = problem
    Q_hat = learned(mdp, seed)
    check = values.value_error_from_data(mdp, mu, product(mu), Q_hat)
    _, subopt, _ = values.value_error_terms(mdp, product(mu), Q_hat)
    assert check.right == pytest.approx(
        subopt + values.error_on_data(mdp, product(mu), Q_hat), abs=1e-6
    )


@quick
@given(decmdps())
def test_optimal_values_are_lipschitz_with_both_constants(mdp):
    plain, mixing = values.lipschitz(mdp), values.mixing_lipschitz(mdp)
    assert mixing.holds
    assert mixing.right <= plain.right + 1e-9


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.99])
def test_two_worlds_attain_the_lipschitz_constant(gamma):
    check = values.lipschitz(two_worlds(gamma=gamma))
    assert check.left == pytest.approx(check.right)
