import numpy as np
import pytest

from spacql.theory import counterexamples as fails
from spacql.theory import shift
from spacql.theory.battery import READINGS
from spacql.theory.decmdp import product
from spacql.theory.operators import drawn_mixture, soft_partial


@pytest.mark.parametrize("reading", READINGS, ids=lambda r: r.name)
def test_every_failing_reading_has_a_witness_that_breaks_it(reading):
    check = reading.witness()
    assert check.left > 1.05 * check.right


def test_values_can_move_where_no_state_distribution_does():
    assert fails.witness_proof_step().right == 0.0


def test_one_replaced_agent_has_equal_linear_and_joint_bounds():
    check = fails.linear_beats_joint(fails.mostly_zero(3, 0.4), fails.always(0, 0, 0), (1,))
    assert check.left == pytest.approx(check.right)


def test_kappa_for_logged_actions_fails_below_a_discount_of_one_half_only():
    # The fork's shift is gamma kappa_S, and kappa_S < 2 kappa.
    assert not fails.witness_lemma2_for_logged(p=0.01, gamma=0.49).holds
    assert fails.witness_lemma2_for_logged(p=0.01, gamma=0.5).holds


def test_iteration_with_ensemble_weights_has_two_attracting_fixed_points():
    models, mu, pi = fails.two_beliefs()
    low, high = fails.two_fixed_points()
    for Q in (low, high):
        np.testing.assert_allclose(soft_partial(models, mu, pi, Q), Q, atol=1e-12)
        nudged = Q + 1e-3 * np.random.default_rng(0).normal(size=Q.shape)
        nudged[:, 1] = 0.0  # the last state is terminal
        for _ in range(500):
            nudged = soft_partial(models, mu, pi, nudged)
        np.testing.assert_allclose(nudged, Q, atol=1e-9)
    assert np.abs(high - low).max() > 0.2


def test_fixed_weights_bring_the_two_fixed_points_together():
    models, mu, pi = fails.two_beliefs()
    w = np.full((2, 2), 0.5)
    low, high = fails.two_fixed_points()
    for _ in range(500):
        low, high = (soft_partial(models, mu, pi, Q, w) for Q in (low, high))
    np.testing.assert_allclose(low, high, atol=1e-12)


def test_iteration_with_ensemble_weights_can_fail_to_settle():
    assert fails.restless() > 1.0


def test_two_close_ensembles_can_be_thrown_apart_without_limit():
    for gap in (1e-3, 1e-6):
        assert fails.largest_expansion(gap).left > 1.5


def test_weights_from_drawn_actions_are_harmless_when_unseen_actions_are_uncertain():
    n, eps = 2, 0.01
    mu, pi = product(fails.always(0, 0)), fails.mostly_zero(n, eps)
    u = np.full((2, 4), 1.0)
    u[:, 0] = 1e-6
    policy, effective = drawn_mixture(mu, pi, u, (2, 2))
    assert shift.tv(policy, mu).max() < 0.1 * effective.max() * eps
