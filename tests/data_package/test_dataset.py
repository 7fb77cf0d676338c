import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacql.errors import DataError

from .toy import build

episodes = st.lists(
    st.tuples(st.integers(1, 6), st.booleans(), st.booleans()), min_size=1, max_size=5
)


@given(episodes)
def test_rows_are_split_into_transitions_and_final_rows(episodes):
    lengths, terminated, known = zip(*episodes, strict=True)
    dataset = build(lengths, terminated=terminated, known=known)
    assert dataset.n_transitions == sum(lengths) == len(dataset.transition_rows())
    assert not np.isin(dataset.starts[1:] - 1, dataset.transition_rows()).any()


@given(episodes)
def test_a_row_is_no_target_exactly_when_its_next_action_is_needed_and_unknown(episodes):
    lengths, terminated, known = zip(*episodes, strict=True)
    dataset = build(lengths, terminated=terminated, known=known)
    expected, row = [], 0
    for length, ends, knows in episodes:
        expected += [row + t for t in range(length) if t < length - 1 or ends or knows]
        row += length + 1
    assert dataset.target_rows().tolist() == expected


@given(episodes)
def test_a_batch_pairs_each_row_with_the_next_of_its_own_episode(episodes):
    lengths, terminated, known = zip(*episodes, strict=True)
    dataset = build(lengths, terminated=terminated, known=known, state_size=2)
    rows = dataset.transition_rows()
    batch = dataset.batch(rows)
    for number, row in enumerate(rows):
        episode = int(np.searchsorted(dataset.starts, row, side="right")) - 1
        last = row == dataset.starts[episode + 1] - 2
        for agent in range(2):
            here, there = dataset.observations[agent][row], dataset.observations[agent][row + 1]
            assert (batch.observations[agent][number] == here).all()
            assert (batch.next_observations[agent][number] == there).all()
            assert (batch.next_actions[agent][number] == dataset.actions[agent][row + 1]).all()
        assert batch.terminal[number] == (last and terminated[episode])
        targets = not last or known[episode] or terminated[episode]
        assert (row in dataset.target_rows()) == targets
        assert (batch.next_state[number] == dataset.states[row + 1]).all()
    assert (dataset.is_terminal(rows) == (batch.terminal > 0)).all()


def test_a_final_row_cannot_be_sampled():
    with pytest.raises(DataError, match="Row 3 ends an episode"):
        build((3, 5)).batch(np.array([0, 3]))


def test_returns_are_sums_over_each_episode():
    dataset = build((3, 5, 2))
    for number, (start, end) in enumerate(zip(dataset.starts, dataset.starts[1:], strict=False)):
        rewards = dataset.rewards[start : end - 1].astype(np.float64)
        np.testing.assert_allclose(dataset.returns[number], rewards.sum(axis=0), rtol=1e-6)
        np.testing.assert_allclose(dataset.team_returns[number], rewards.mean(1).sum(), rtol=1e-6)


def test_statistics_are_those_of_numpy_and_constant_columns_get_deviation_one():
    dataset = build((9, 30), state_size=3)
    dataset.joint_observations[:, 2] = 7.0
    statistics = dataset.statistics()
    for agent, observations in enumerate(dataset.observations):
        np.testing.assert_allclose(
            statistics.observation_mean[agent], observations.mean(axis=0), rtol=1e-5
        )
        std = observations.std(axis=0)
        np.testing.assert_allclose(
            statistics.observation_std[agent], np.where(std < 1e-6, 1, std), rtol=1e-5
        )
    rewards = dataset.team_reward[dataset.transition_rows()]
    assert statistics.team_reward_mean == pytest.approx(rewards.mean(), rel=1e-5)
    assert statistics.team_reward_std == pytest.approx(rewards.std(), rel=1e-5)
    np.testing.assert_allclose(statistics.state_std, dataset.states.std(axis=0), rtol=1e-5)
    assert statistics.observation_std[0][2] == 1.0


def test_identity_depends_on_every_array_and_nothing_else():
    first, second = build(), build()
    second.info["name"] = "another"
    assert first.identity == second.identity
    changed = build()
    changed.joint_actions[4, 0] += 1e-3
    assert changed.identity != first.identity


def test_offsets_that_do_not_fit_are_refused():
    dataset = build((3, 5))
    with pytest.raises(DataError, match="starts must begin with 0"):
        type(dataset)(**{**dataset.__dict__, "starts": np.array([0, 9, 10])})
    with pytest.raises(DataError, match="rewards has shape"):
        type(dataset)(**{**dataset.__dict__, "rewards": dataset.rewards[:-1]})


def test_its_repr_is_one_line_that_says_what_it_is():
    assert repr(build((2, 3))) == "Dataset('toy', 2 agents, 2 episodes, 5 transitions)"
