import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_strategies import problems

from spacql.errors import InputError
from spacql.theory.decmdp import marginals, product
from spacql.theory.generators import (
    comonotone,
    correlated,
    lookout,
    named_instance,
    random_decmdp,
    random_instance,
    sample_batch,
)
from spacql.theory.shift import broken_correlation, excess_correlation

quick = settings(max_examples=40, deadline=None)


@quick
@given(problems(), st.floats(0.0, 1.0))
def test_the_dial_leaves_every_agents_own_policy_unchanged(problem, dial):
    mdp, _, mu, _ = problem
    for own, m in zip(marginals(correlated(mu, dial), mdp.actions), mu, strict=True):
        np.testing.assert_allclose(own, m, atol=1e-12)


@quick
@given(problems(), st.floats(0.0, 1.0))
def test_kappa_is_proportional_to_the_dial(problem, dial):
    mdp, _, mu, _ = problem
    full = excess_correlation(comonotone(mu), mdp.actions)
    assert excess_correlation(correlated(mu, dial), mdp.actions) == pytest.approx(
        dial * full, abs=1e-12
    )


def test_fully_correlated_agents_with_equal_policies_always_agree():
    mu = (np.array([[0.3, 0.7]]),) * 3
    np.testing.assert_allclose(comonotone(mu)[0], [0.3, 0, 0, 0, 0, 0, 0, 0.7], atol=1e-12)


def test_kappa_of_agents_that_agree_grows_towards_one_with_their_number():
    for n in range(2, 9):
        mu = (np.full((1, 2), 0.5),) * n
        assert excess_correlation(comonotone(mu), (2,) * n) == pytest.approx(1 - 2.0 ** (1 - n))


def test_a_replay_of_two_factorised_policies_is_correlated():
    n = 4
    first, second = np.eye(2**n)[[0]], np.eye(2**n)[[-1]]  # each a product of certain actions
    assert excess_correlation(0.5 * (first + second), (2,) * n) == pytest.approx(1 - 2.0 ** (1 - n))


@pytest.mark.parametrize("p", [0.5, 0.1, 0.001])
def test_lookout_has_the_correlations_that_it_claims(p):
    assert excess_correlation(lookout(p), (2, 2, 2)) == pytest.approx(p / 2)
    assert broken_correlation(lookout(p), (0,), (2, 2, 2)) == pytest.approx(p * (1 - p))


@quick
@given(st.floats(0.0, 1.0), st.integers(1, 8))
def test_sparsity_is_the_share_of_unreachable_states(sparsity, states):
    mdp = random_decmdp(
        np.random.default_rng(0), states=states, actions=(2, 2), gamma=0.9, sparsity=sparsity
    )
    assert np.all((mdp.P > 0).sum(-1) == max(1, round((1 - sparsity) * states)))


def test_the_same_seed_gives_the_same_instance():
    a, b = (random_instance(np.random.default_rng([3, 5])) for _ in range(2))
    np.testing.assert_array_equal(a.mdp.P, b.mdp.P)
    np.testing.assert_array_equal(a.Q_hat, b.Q_hat)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**16))
def test_an_instance_keeps_the_assumptions_of_the_theorems(seed):
    x = random_instance(np.random.default_rng(seed))
    assert np.ptp(x.Q_hat) <= 2.0 / (1.0 - x.mdp.gamma) + 1e-9
    for policy in (*x.pi, *x.mu, x.mu_joint, x.w):
        assert np.all(policy >= 0)
        np.testing.assert_allclose(policy.sum(-1), 1.0)


def test_batches_follow_the_behaviour():
    rng = np.random.default_rng(0)
    x = named_instance(rng, "broadcast")
    mu = product(x.mu)
    batch = sample_batch(rng, x.mdp, x.pi, mu, size=200_000)
    seen = np.bincount(batch.a[batch.s == 3], minlength=4) / (batch.s == 3).sum()
    np.testing.assert_allclose(seen, mu[3], atol=0.01)
    np.testing.assert_array_equal(batch.r, x.mdp.R[batch.s, batch.a])


def test_wrong_requests_are_refused_with_a_reason():
    mu = (np.full((1, 2), 0.5),) * 2
    with pytest.raises(InputError, match="dial"):
        correlated(mu, 1.5)
    with pytest.raises(InputError, match="broadcast"):
        named_instance(np.random.default_rng(0), "unheard of")
    with pytest.raises(InputError, match="Sparsity"):
        random_decmdp(np.random.default_rng(0), states=2, actions=(2,), gamma=0.9, sparsity=-1.0)
