import numpy as np
import pytest
from worlds_toy import log, play, pushing, true_return

import spacql
from spacql.errors import InputError
from spacql.evaluation import distance, fqe, heldout, model
from spacql.evaluation.intervals import Interval, interval, kept
from spacql.evaluation.offline import (
    WIDER,
    Evaluator,
    at_most,
    bound,
    choose,
    discounted_returns,
    wider,
)

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


def test_the_dataset_of_some_episodes_is_not_taken_for_the_whole(tmp_path):
    spacql.save_dataset(log(12), tmp_path / "log")
    whole = spacql.load_dataset(tmp_path / "log")
    part = heldout.of_episodes(whole, np.array([3, 7]))
    assert part.identity != whole.identity
    rewards = part.team_reward[part.transition_rows()]
    assert part.statistics().team_reward_mean == pytest.approx(float(rewards.mean()))


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
    assert wider(x, 3.0) == Interval(10.0, 4.0, 16.0, bound=8.0)
    assert bound(wider(x, WIDER["model"]), "model") == 8.0
    assert bound(wider(x, WIDER["model"])._replace(bound=None), "model") == pytest.approx(8.0)
    assert bound(x, "fqe") == 8.0


def test_what_is_possible_cuts_off_the_bound_and_does_not_move_it():
    best, other = (
        at_most(wider(x, WIDER["model"]), 20.0)
        for x in (Interval(100.0, 40.0, 160.0), Interval(18.0, 15.0, 21.0))
    )
    assert best == Interval(20.0, -260.0, 20.0, bound=20.0)
    assert bound(other, "model") == 15.0
    assert choose({"best": best, "other": other}, "model") == "best"


def test_a_kept_interval_has_its_bound_and_one_from_before_has_none():
    x = Interval(10.0, 4.0, 16.0, bound=8.0)
    assert kept(x._asdict(), "here") == x
    assert kept({"mean": 10.0, "low": 4.0, "high": 16.0}, "here").bound is None
    with pytest.raises(InputError, match="here, field bound"):
        kept(x._asdict() | {"bound": "high"}, "here")


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


def unequal(lengths, ended=()):
    """The toy's log with its episodes cut to these lengths; some of them by the task itself."""
    whole = log(len(lengths))
    episodes = []
    for number, length in enumerate(lengths):
        rows = slice(whole.starts[number], whole.starts[number] + length + 1)
        episodes.append(
            {
                "observations": [x[rows] for x in whole.observations],
                "actions": [x[rows] for x in whole.actions],
                "rewards": whole.team_reward[rows][:-1],
                "terminated": number in ended,
            }
        )
    return spacql.Dataset.from_episodes(
        episodes, agents=("a", "b"), action_low=[-1.0, -2.0], action_high=[1.0, 2.0], task="toy"
    )


def test_an_episode_that_time_cut_short_is_as_short_for_another_policy(evaluator):
    start = model.joined(evaluator.dataset, evaluator.start[:3])
    for steps in ([2, 5, 9], [2, 2, 2]):
        found = model.imagine(evaluator.model, pushing(1.0), start, np.array(steps), 0.9)
        alone = [
            model.imagine(evaluator.model, pushing(1.0), start, np.full(3, k), 0.9) for k in steps
        ]
        for e in range(3):
            np.testing.assert_allclose(found.returns[:, e], alone[e].returns[:, e], rtol=1e-5)
            np.testing.assert_allclose(found.discounted[:, e], alone[e].discounted[:, e], rtol=1e-5)
    lengths = [3, 4] * 14 + [9, 10]
    mixed = Evaluator(unequal(lengths, ended=(0, 5)), model_config=MODEL, share=0.5)
    for episode, steps in zip(mixed.episodes, mixed.steps, strict=True):
        assert steps == (10 if episode in (0, 5) else lengths[episode])
    assert mixed.horizon == 10


def test_returns_of_a_log_with_few_long_episodes_are_not_those_of_long_ones():
    evaluator = Evaluator(unequal([2] * 198 + [10, 10]), model_config=MODEL)
    policy = pushing(3.0)
    paid = play(lambda x: policy.act([x, x[:, :1]]), 500, seed=5, noise=0.0)[3]
    found = evaluator.evaluate(policy).estimate
    assert found.mean == pytest.approx(paid[:, :2].sum(axis=1).mean(), abs=0.5)


def test_the_episodes_that_an_estimate_starts_from_are_drawn_from_the_whole_log():
    many = np.arange(5000)
    some = heldout.some(many, 2000, seed=3)
    assert len(set(some.tolist())) == 2000
    assert abs(some.mean() - many.mean()) < 150
    np.testing.assert_array_equal(some, heldout.some(many, 2000, seed=3))
    np.testing.assert_array_equal(heldout.some(many[:50], 2000), many[:50])


def test_fitted_q_knows_that_nothing_is_paid_after_the_end():
    rewards = [-1.0, -2.0, -1.5]
    random = np.random.default_rng(0)
    episodes = [
        {"observations": [random.normal(size=(3, 1))] * 2, "terminated": True,
         "actions": [random.uniform(-1, 1, (2, 1))] * 2, "rewards": random.choice(rewards, 2)}
        for _ in range(60)
    ]  # fmt: skip
    dataset = spacql.Dataset.from_episodes(episodes, task="short")
    config = fqe.Config(critics=2, hidden=(32, 32), steps=600, batch_size=64, learning_rate=0.003,
                        discount=0.95)  # fmt: skip
    rows = dataset.target_rows()
    critics = fqe.fit(dataset, dataset.transition_rows(), None, config)
    found = fqe.values(critics, dataset, None, rows, config).mean()
    assert found == pytest.approx(np.mean(rewards) * 1.95, abs=0.6)


def test_fitted_q_takes_every_episode_to_be_as_long_as_it_is(monkeypatch):
    """A gain of 1 a step is a discounted value of 1 / (1 - gamma) of what is only cut."""
    lengths = [2, 8] * 15
    evaluator = Evaluator(unequal(lengths), fqe_config=FQE)
    monkeypatch.setattr(fqe, "fit", lambda dataset, rows, policy, *_: policy)
    worth = 1 / (1 - evaluator.discount)
    monkeypatch.setattr(
        fqe, "values", lambda policy, *_: np.full((2, len(evaluator.start)), bool(policy) * worth)
    )
    whole, _ = evaluator._by_fqe(pushing(1.0), True)
    gained = np.mean([lengths[episode] for episode in evaluator.episodes])
    assert whole.mean == pytest.approx(evaluator.log.mean + gained)


def test_the_same_agents_in_another_order_are_refused(evaluator):
    policy = pushing(1.0)
    swapped = spacql.Policy(policy.actors, agents=("b", "a"))
    with pytest.raises(InputError, match="acts for b, a, in this order"):
        evaluator.evaluate(swapped)
    with pytest.raises(InputError, match="at least one estimator"):
        evaluator.evaluate(policy, ())


def test_short_episodes_of_costs_are_not_held_to_the_longest_ones_best():
    evaluator = Evaluator(unequal([2] * 38 + [10, 10]), model_config=MODEL)
    best = evaluator.dataset.team_reward[evaluator.dataset.transition_rows()].max()
    assert evaluator.highest == pytest.approx(float(best * evaluator.steps.mean()))
    assert evaluator.highest > evaluator.log.mean


def test_returns_that_are_all_the_same_correlate_with_nothing():
    evaluator = Evaluator(log(20))
    imagined = np.array([[1.0, 2.0, 4.0]])
    for true, expected in (([2.0, 4.0, 8.0], 1.0), ([0.3, 0.3, 0.3 + 1e-9], None)):
        evaluator.__dict__["replayed"] = (imagined, np.array(true))
        evaluator.__dict__.pop("trust", None)
        found = evaluator.trust.correlation
        assert found == (expected if expected is None else pytest.approx(expected))
