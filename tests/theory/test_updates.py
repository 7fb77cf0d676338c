import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_strategies import correlated_problems, problems, weights

from spacql.theory import updates
from spacql.theory.decmdp import backup, joint_occupancy, product, replace, replace_k
from spacql.theory.generators import sample_batch
from spacql.theory.operators import (
    drawn_mixture,
    ensemble_weights,
    inverse_weights,
    k_eff,
    mixture,
    soft_partial,
)

quick = settings(max_examples=40, deadline=None)


@quick
@given(correlated_problems(), st.integers(0, 100), st.data())
def test_individual_partial_and_soft_operators_contract(problem, seed, data):
    mdp, pi, mu, _ = problem
    rng = np.random.default_rng(seed)
    Q, other = rng.normal(size=(2, *mdp.R.shape))
    w = data.draw(weights(len(mdp.d0), mdp.n))
    for policy in (
        replace(mu, pi, (0,), mdp.actions),
        replace_k(mu, pi, mdp.n, mdp.actions),
        mixture(mu, pi, w, mdp.actions),
    ):
        assert updates.contraction(mdp, policy, Q, other).holds
        shifted = updates.contraction(mdp, policy, Q, Q + 1.0)
        assert shifted.left == pytest.approx(shifted.right)  # where gamma is attained


@quick
@given(correlated_problems(), st.integers(0, 100), st.data())
def test_soft_operator_with_minimum_over_members_contracts_for_fixed_weights(problem, seed, data):
    mdp, pi, mu, _ = problem
    Q, other = np.random.default_rng(seed).normal(size=(2, 3, *mdp.R.shape))
    w = data.draw(weights(len(mdp.d0), mdp.n))
    assert updates.ensemble_contraction([mdp] * 3, mu, pi, Q, other, w).holds


@quick
@given(correlated_problems())
def test_average_of_individual_operators_is_the_partial_operator_of_one_agent(problem):
    mdp, pi, mu, _ = problem
    Q = np.random.default_rng(0).normal(size=mdp.R.shape)
    T = [backup(mdp, replace(mu, pi, (i,), mdp.actions), Q) for i in range(mdp.n)]
    one = backup(mdp, replace_k(mu, pi, 1, mdp.actions), Q)
    np.testing.assert_allclose(np.mean(T, axis=0), one, atol=1e-12)


@quick
@given(correlated_problems(), st.integers(0, 100))
def test_soft_operator_with_all_weight_on_n_is_the_joint_action_backup(problem, seed):
    mdp, pi, mu, _ = problem
    Q = np.random.default_rng(seed).normal(size=mdp.R.shape)
    w = np.tile(np.eye(mdp.n)[-1], (len(mdp.d0), 1))
    np.testing.assert_allclose(
        soft_partial([mdp], mu, pi, Q[None], w)[0], backup(mdp, product(pi), Q), atol=1e-12
    )


def test_weights_favour_the_smaller_uncertainty_and_sum_to_one():
    w = inverse_weights(np.array([[0.1, 0.2, 0.4]]))
    np.testing.assert_allclose(w, [[4 / 7, 2 / 7, 1 / 7]])
    assert k_eff(w)[0] == pytest.approx(11 / 7)


def test_ensemble_weights_follow_the_spread_at_the_target_actions():
    pi = [np.array([[0.0, 1.0]])] * 2
    mu = np.eye(4)[[0]]
    Q = np.zeros((2, 1, 4))
    Q[:, 0, 1:3] = np.array([[-1.0], [1.0]])  # one agent replaced: spread 1
    Q[:, 0, 3] = [-3.0, 3.0]  # both replaced: spread 3
    np.testing.assert_allclose(ensemble_weights(Q, mu, pi, (2, 2)), [[0.75, 0.25]])


@quick
@given(problems(max_agents=2))
def test_weights_that_ignore_the_drawn_actions_give_the_plain_mixture(problem):
    mdp, pi, mu, _ = problem
    behaviour = product(mu)
    policy, effective = drawn_mixture(behaviour, pi, np.ones_like(behaviour), mdp.actions)
    equal = np.full((len(behaviour), mdp.n), 1.0 / mdp.n)
    np.testing.assert_allclose(policy, mixture(behaviour, pi, equal, mdp.actions), atol=1e-9)
    np.testing.assert_allclose(effective, k_eff(equal))


@quick
@given(problems(), st.integers(0, 100))
def test_icql_qs_follows_the_gradient_of_the_centralised_loss(problem, seed):
    mdp, pi, mu, _ = problem
    rng = np.random.default_rng(seed)
    features, theta = rng.normal(size=(*mdp.R.shape, 3)), rng.normal(size=3)
    assert updates.gradient_equivalence(mdp, pi, mu, features, theta).left < 1e-12
    batch = sample_batch(rng, mdp, pi, product(mu), size=8)
    check = updates.batch_gradient_equivalence(batch, mdp.gamma, mdp.actions, features, theta)
    assert check.left < 1e-12


def test_gradients_differ_when_agents_do_not_share_the_batch():
    x = two_agents()
    batches = [sample_batch(x.rng, x.mdp, x.pi, product(x.mu), size=8) for _ in "ab"]

    def own(i, theta):  # agent i's loss on its own batch
        b = batches[i]
        y = target(x, b, i)
        return 0.5 * ((np.tanh(x.features[b.s, b.a] @ theta) - y) ** 2).mean()

    def shared(theta):
        b = batches[0]
        y = (target(x, b, 0) + target(x, b, 1)) / 2
        return 0.5 * ((np.tanh(x.features[b.s, b.a] @ theta) - y) ** 2).mean()

    individual = updates.gradient(lambda th: (own(0, th) + own(1, th)) / 2, x.theta)
    assert np.abs(individual - updates.gradient(shared, x.theta)).max() > 1e-3


def test_losses_differ_by_half_the_variance_of_the_targets_over_agents():
    x = two_agents()
    mu, Q = product(x.mu), np.tanh(x.features @ x.theta)
    T = np.stack([backup(x.mdp, replace(mu, x.pi, (i,), x.mdp.actions), Q) for i in range(2)])
    rho = joint_occupancy(x.mdp, mu)
    individual = 0.5 * (rho * ((Q - T) ** 2).mean(0)).sum()
    centralised = 0.5 * (rho * (Q - T.mean(0)) ** 2).sum()
    assert individual - centralised == pytest.approx(0.5 * (rho * T.var(0)).sum())
    assert individual - centralised > 1e-4


def test_gradients_differ_when_they_also_flow_through_the_targets():
    x = two_agents()
    mu = product(x.mu)
    rho = joint_occupancy(x.mdp, mu)
    policies = [replace(mu, x.pi, (i,), x.mdp.actions) for i in range(2)]

    def targets(Q):
        V = [(p * Q).sum(-1) for p in policies]
        return np.stack([x.mdp.R + x.mdp.gamma * (x.mdp.P @ v) for v in V])

    def individual(theta):
        Q = np.tanh(x.features @ theta)
        return 0.5 * (rho * ((Q - targets(Q)) ** 2).mean(0)).sum()

    def centralised(theta):
        Q = np.tanh(x.features @ theta)
        return 0.5 * (rho * (Q - targets(Q).mean(0)) ** 2).sum()

    difference = updates.gradient(individual, x.theta) - updates.gradient(centralised, x.theta)
    assert np.abs(difference).max() > 1e-4


def test_complex_step_is_the_gradient():
    theta = np.array([0.3, -0.7])
    found = updates.gradient(lambda th: np.tanh(th[0]) * th[1] ** 2, theta)
    np.testing.assert_allclose(found, [0.49 / np.cosh(0.3) ** 2, -1.4 * np.tanh(0.3)], rtol=1e-14)


class two_agents:
    """Two agents in the broadcast channel, with random policies and a nonlinear Q."""

    def __init__(self):
        from spacql.theory.generators import named_instance

        self.rng = np.random.default_rng(1)
        x = named_instance(self.rng, "broadcast")
        self.mdp, self.pi, self.mu = x.mdp, x.pi, x.mu
        self.features, self.theta = x.features, x.theta


def target(x, batch, i):
    a = batch.a_next.copy()
    a[:, i] = batch.a_pi[:, i]
    joint = np.ravel_multi_index(tuple(a.T), x.mdp.actions)
    return batch.r + x.mdp.gamma * np.tanh(x.features[batch.s_next, joint] @ x.theta)
