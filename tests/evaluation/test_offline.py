import numpy as np
import pytest
from worlds_toy import log, pushing, true_return

import spacql
from spacql.errors import InputError
from spacql.evaluation import distance, fqe, heldout, model
from spacql.evaluation.intervals import Interval, interval
from spacql.evaluation.offline import WIDER, Evaluator, bound, choose, discounted_returns, wider

MODEL = model.Config(members=3, hidden=(32, 32), steps=600, batch_size=64)
FQE = fqe.Config(critics=2, hidden=(32, 32), steps=600, batch_size=64, learning_rate=0.003)


@pytest.fixture(scope="module")
def evaluator():
    return Evaluator(log(200), model_config=MODEL, fqe_config=FQE)


def test_held_out_episodes_are_disjoint_and_the_same_for_the_same_seed():
    dataset = log(30)
    first, again, other = (heldout.split(dataset, 0.2, seed) for seed in (0, 0, 1))
    assert len(first.heldout) == 6
    assert not set(first.heldout) & set(first.training)
    np.testing.assert_array_equal(first.heldout, again.heldout)
    assert set(first.heldout) != set(other.heldout)


def test_the_dataset_of_some_episodes_holds_just_those():
    dataset = log(12)
    part = heldout.of_episodes(dataset, np.array([3, 7]))
    np.testing.assert_array_equal(part.returns, dataset.returns[[3, 7]])
    rows = slice(dataset.starts[7], dataset.starts[8])
    np.testing.assert_array_equal(
        part.joint_observations[part.starts[1] :], dataset.joint_observations[rows]
    )


def test_too_short_a_log_is_refused():
    with pytest.raises(InputError, match="at least 10"):
        heldout.split(log(9))


def test_the_interval_holds_episodes_and_members():
    same = interval(np.zeros((3, 50)))
    assert same.low == same.mean == same.high == 0
    episodes = np.random.default_rng(0).normal(size=(1, 50))
    narrow, wide = interval(episodes), interval(episodes + np.array([[-5.0], [0], [5]]))
    assert narrow.low < narrow.mean < narrow.high
    assert wide.low < narrow.low
    assert wide.high > narrow.high


def test_the_model_foretells_the_return_of_policies_unlike_the_log(evaluator):
    for strength in (3.0, 0.0):
        policy = pushing(strength)
        found = evaluator.evaluate(policy).estimate
        assert abs(found.mean - true_return(policy)) < 2.0
    # Pushed beyond all that the log has seen, the model stays at the log's edge.
    assert evaluator.evaluate(pushing(-3.0)).estimate.mean < evaluator.log.mean - 5


@pytest.mark.slow
def test_every_estimator_ranks_good_above_bad(evaluator):
    good, bad = (
        evaluator.evaluate(pushing(strength), ("model", "fqe", "plain-fqe"))
        for strength in (3.0, -3.0)
    )
    for name in ("model", "fqe", "plain-fqe"):
        assert good.estimates[name].mean > bad.estimates[name].mean + 1
        assert good.discounted[name].mean > bad.discounted[name].mean


def test_distance_says_which_agent_leaves_the_log(evaluator):
    still, extreme = (evaluator.evaluate(pushing(s)) for s in (0.0, 100.0))
    for agent in ("a", "b"):
        assert still.distance[agent] < 0.5 < extreme.distance[agent]
    assert set(still.outside) == {"a", "b"}


def test_evaluations_are_json_and_name_what_the_log_returned(evaluator):
    from json import dumps

    found = evaluator.evaluate(pushing(1.0))
    assert dumps(found.to_json())
    assert found.log.low < found.log.mean < found.log.high
    assert found.trust is not None
    assert found.trust.correlation > 0.9


def test_a_policy_of_other_agents_is_refused(evaluator):
    other = spacql.Policy(pushing(1.0).actors[::-1], agents=("a", "b"))
    with pytest.raises(InputError, match="actor of a sees 1"):
        evaluator.evaluate(other)
    with pytest.raises(InputError, match="no estimator 'magic'"):
        evaluator.evaluate(pushing(1.0), ("magic",))


def test_choices_are_by_the_bound_before_intervals_were_calibrated():
    x = Interval(10.0, 8.0, 12.0)
    assert wider(x, 3.0) == Interval(10.0, 4.0, 16.0)
    assert bound(wider(x, WIDER["model"]), "model") == pytest.approx(8.0)
    assert bound(x, "fqe") == 8.0


def test_nothing_is_chosen_that_promises_less_than_the_clone():
    found = {"bc": Interval(10.0, 2.0, 18.0), "narrow": Interval(9.0, 8.9, 9.1)}
    assert choose(found, "fqe") == "bc"
    found["better"] = Interval(11.0, 4.0, 18.0)
    assert choose(found, "fqe") == "better"
    del found["bc"]
    assert choose(found, "fqe") == "narrow"


def test_no_return_is_expected_that_the_rewards_do_not_allow(evaluator):
    reward = evaluator.dataset.team_reward[evaluator.dataset.transition_rows()].max()
    for strength in (3.0, 0.0):
        found = evaluator.evaluate(pushing(strength)).estimate
        assert found.low <= found.mean <= found.high <= evaluator.horizon * reward + 1e-6


def test_discounted_returns_are_those_of_transitions():
    dataset = log(3)
    found = discounted_returns(dataset, 0.9)
    rows = slice(dataset.starts[1], dataset.starts[2] - 1)
    reward = dataset.team_reward[rows]
    assert found[1] == pytest.approx(float((reward * 0.9 ** np.arange(len(reward))).sum()))
    np.testing.assert_allclose(discounted_returns(dataset, 1.0), dataset.team_returns, rtol=1e-5)


def test_the_behaviour_itself_is_expected_to_return_what_the_log_did(evaluator):
    itself = distance.behaviour(evaluator.densities, evaluator.dataset.spec)
    assert evaluator.evaluate(itself).estimate.mean == pytest.approx(evaluator.log.mean, abs=0.1)
