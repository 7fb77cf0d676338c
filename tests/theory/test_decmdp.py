from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from theory_strategies import correlated_problems, decmdps, problems

from spacql.errors import InputError
from spacql.theory.decmdp import (
    DecMDP,
    backup,
    joint_occupancy,
    kernel,
    marginals,
    occupancy,
    optimal_q,
    product,
    q_values,
    replace,
    replace_k,
    value_iteration,
)
from spacql.theory.named import NAMED, broadcast, climbing, departure, meeting

quick = settings(max_examples=40, deadline=None)


@quick
@given(problems())
def test_occupancy_is_the_discounted_sum_of_state_distributions(problem):
    mdp, pi, _, _ = problem
    policy = product(pi)
    d, state, discount = np.zeros(len(mdp.d0)), mdp.d0, 1.0 - mdp.gamma
    for _ in range(2500):
        d, state, discount = d + discount * state, state @ kernel(mdp, policy), discount * mdp.gamma
    np.testing.assert_allclose(occupancy(mdp, policy), d, atol=1e-9)
    assert joint_occupancy(mdp, policy).sum() == pytest.approx(1.0)


@quick
@given(problems())
def test_q_values_are_the_fixed_point_of_their_backup(problem):
    mdp, pi, _, _ = problem
    Q = q_values(mdp, product(pi))
    np.testing.assert_allclose(backup(mdp, product(pi), Q), Q, atol=1e-9)


@quick
@given(decmdps(max_agents=2))
def test_policy_iteration_agrees_with_value_iteration(mdp):
    np.testing.assert_allclose(optimal_q(mdp), value_iteration(mdp), atol=1e-8)


@quick
@given(problems())
def test_no_policy_beats_the_optimal_values(problem):
    mdp, pi, _, _ = problem
    assert np.all(q_values(mdp, product(pi)) <= optimal_q(mdp) + 1e-9)


@quick
@given(problems())
def test_replacement_of_factorised_behaviour_is_the_papers_mixed_policy(problem):
    mdp, pi, mu, subset = problem
    mixed = product([pi[i] if i in subset else mu[i] for i in range(mdp.n)])
    np.testing.assert_allclose(replace(product(mu), pi, subset, mdp.actions), mixed, atol=1e-12)


@quick
@given(correlated_problems())
def test_replacement_leaves_the_joint_law_of_the_other_agents(problem):
    mdp, pi, mu, subset = problem
    replaced = replace(mu, pi, subset, mdp.actions).reshape(-1, *mdp.actions)
    axes = tuple(i + 1 for i in subset)
    np.testing.assert_allclose(
        replaced.sum(axes), mu.reshape(-1, *mdp.actions).sum(axes), atol=1e-12
    )
    own = marginals(replaced.reshape(mu.shape), mdp.actions)
    for i in subset:
        np.testing.assert_allclose(own[i], pi[i], atol=1e-12)


@quick
@given(correlated_problems())
def test_replacing_all_agents_gives_the_learned_policy_and_none_the_behaviour(problem):
    mdp, pi, mu, _ = problem
    np.testing.assert_allclose(replace_k(mu, pi, mdp.n, mdp.actions), product(pi), atol=1e-12)
    np.testing.assert_allclose(replace_k(mu, pi, 0, mdp.actions), mu, atol=1e-12)


def test_replace_k_differs_from_a_certain_logged_action_in_exactly_k_places():
    n, actions = 4, (2, 2, 2, 2)
    mu = np.eye(16)[[0]]
    pi = [np.array([[0.0, 1.0]])] * n
    for k in range(n + 1):
        found = {
            tuple(i for i in range(n) if a >> (n - 1 - i) & 1)
            for a in np.flatnonzero(replace_k(mu, pi, k, actions)[0])
        }
        assert found == set(combinations(range(n), k))


@pytest.mark.parametrize("name", NAMED)
def test_named_decmdps_are_solvable_and_bounded(name):
    mdp = NAMED[name]()
    assert np.abs(optimal_q(mdp)).max() <= 1.0 / (1.0 - mdp.gamma) + 1e-9


def test_climbing_game_is_best_at_the_joint_action_of_payoff_eleven():
    mdp = climbing(gamma=0.5)
    assert optimal_q(mdp).argmax() == 0
    assert optimal_q(mdp).max() == pytest.approx(11 / 30 / 0.5)


def test_broadcast_channel_is_best_when_the_busy_agent_sends():
    Q = optimal_q(broadcast())
    assert Q[3].argmax() == 2  # both full: agent 1, whose buffer refills, sends alone
    assert Q[1].argmax() == 1  # only agent 2 is full


def test_agents_on_a_line_meet():
    mdp = meeting(n=2, cells=3, slip=0.0, gamma=0.9)
    # From the two ends they need one step to the middle, and stay together from then on.
    assert optimal_q(mdp)[2].max() == pytest.approx(0.9 / 0.1)


def test_departure_is_left_by_one_deviating_agent():
    mdp = departure(n=3)
    assert mdp.P[0, 0, 0] == 1.0
    assert np.all(mdp.P[0, 1:, 1] == 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gamma": 1.0}, "discount"),
        ({"R": np.full((2, 8), 1.5)}, "Rewards"),
        ({"R": np.zeros((2, 7))}, "shape"),
        ({"d0": np.array([0.5, 0.6])}, "probabilities"),
    ],
)
def test_a_wrong_decmdp_is_refused_with_a_reason(change, words):
    mdp = departure(n=3)
    fields = {name: getattr(mdp, name) for name in ("P", "R", "d0", "gamma", "actions")}
    with pytest.raises(InputError, match=words):
        DecMDP(**{**fields, **change})
