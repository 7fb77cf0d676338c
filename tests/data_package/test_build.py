import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacql.data import Dataset
from spacql.errors import DataError

from .toy import build as toy


def flat(rows=10, ends=(4, 9), seed=0):
    """Flat logs of two unlike agents."""
    rng = np.random.default_rng(seed)
    timeouts = np.zeros(rows, bool)
    timeouts[list(ends)] = True
    return {
        "observations": {"a": rng.normal(size=(rows, 3)), "b": rng.normal(size=(rows, 2))},
        "actions": {"a": rng.uniform(-1, 1, (rows, 2)), "b": rng.uniform(-1, 1, (rows, 1))},
        "rewards": {"a": rng.normal(size=rows), "b": rng.normal(size=rows)},
        "timeouts": timeouts,
    }


def parts_of(dataset):
    """A dataset taken apart: flat arrays, next values and episodes as a user would bring them."""
    rows = dataset.transition_rows()
    batch = dataset.batch(rows)
    ends = np.isin(rows, dataset.starts[1:] - 2)
    episode_of = np.searchsorted(dataset.starts, rows, side="right") - 1
    terminals = ends & dataset.terminated[episode_of]
    return {
        "observations": list(batch.observations),
        "actions": list(batch.actions),
        "rewards": batch.rewards,
        "terminals": terminals,
        "timeouts": ends & ~terminals,
        "next_observations": list(batch.next_observations),
        "states": batch.state,
        "next_states": batch.next_state,
    }, list(batch.next_actions)


def assert_equal_arrays(first, second):
    for (name, x), (_, y) in zip(first.arrays(), second.arrays(), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([0, 3]),
)
def test_arrays_taken_from_a_dataset_give_it_back(episodes, known, state_size):
    if not known and not any(length > 1 or ends for length, ends in episodes):
        episodes = [*episodes, (2, False)]
    lengths, terminated = zip(*episodes, strict=True)
    original = toy(
        lengths, terminated=terminated, known=(known,) * len(lengths), state_size=state_size
    )
    arrays, next_actions = parts_of(original)
    again = Dataset.from_arrays(**arrays, next_actions=next_actions if known else None)
    assert_equal_arrays(original, again)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([0, 3]),
)
def test_episodes_taken_from_a_dataset_give_it_back(episodes, known, state_size):
    if not known and not any(length > 1 or ends for length, ends in episodes):
        episodes = [*episodes, (2, False)]
    lengths, terminated = zip(*episodes, strict=True)
    original = toy(
        lengths, terminated=terminated, known=(known,) * len(lengths), state_size=state_size
    )
    cut = list(zip(original.starts[:-1], original.starts[1:], strict=True))
    brought = [
        {
            "observations": [x[start:end] for x in original.observations],
            "actions": [x[start : end if known else end - 1] for x in original.actions],
            "rewards": original.rewards[start : end - 1],
            "terminated": ends,
            **({"states": original.states[start:end]} if state_size else {}),
        }
        for (start, end), ends in zip(cut, terminated, strict=True)
    ]
    assert_equal_arrays(original, Dataset.from_episodes(brought))


def test_without_next_observations_the_last_row_of_a_time_limit_becomes_the_final_one():
    arrays = flat()
    dataset = Dataset.from_arrays(**arrays)
    assert dataset.n_transitions == 8
    assert dataset.starts.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(
        dataset.observations[0], arrays["observations"]["a"].astype(np.float32)
    )
    assert dataset.final_action_known.all()
    assert len(dataset.target_rows()) == 8
    assert (dataset.rewards[[4, 9]] == 0).all()


def test_without_next_observations_a_terminal_row_stays_a_transition():
    arrays = flat()
    dataset = Dataset.from_arrays(**{**arrays, "terminals": arrays["timeouts"], "timeouts": None})
    assert dataset.n_transitions == 10
    assert np.flatnonzero(dataset.is_terminal(np.arange(dataset.n_rows))).tolist() == [4, 10]
    assert (dataset.observations[0][5] == dataset.observations[0][4]).all()


def test_the_three_ways_to_bring_agents_are_one():
    rng = np.random.default_rng(0)
    observations, actions = rng.normal(size=(6, 2, 3)), rng.uniform(-1, 1, (6, 2, 2))
    rewards, timeouts = rng.normal(size=(6, 2)), np.arange(6) % 3 == 2
    stacked = Dataset.from_arrays(observations, actions, rewards, timeouts=timeouts)
    listed = Dataset.from_arrays(
        [observations[:, 0], observations[:, 1]],
        [actions[:, 0], actions[:, 1]],
        [rewards[:, 0], rewards[:, 1]],
        timeouts=timeouts,
    )
    named = Dataset.from_arrays(
        {"x": observations[:, 0], "y": observations[:, 1]},
        {"y": actions[:, 1], "x": actions[:, 0]},
        {"x": rewards[:, 0], "y": rewards[:, 1]},
        timeouts=timeouts,
    )
    assert stacked.identity == listed.identity == named.identity
    assert named.spec.agents == ("x", "y")
    assert stacked.spec.agents == ("agent_0", "agent_1")


def test_a_shared_reward_is_everyones_and_a_team_reward_of_its_own_is_kept():
    arrays = flat()
    shared = arrays["rewards"]["a"]
    dataset = Dataset.from_arrays(**{**arrays, "rewards": shared}, team_reward=10 * shared)
    rows = dataset.transition_rows()
    np.testing.assert_allclose(dataset.rewards[rows, 0], dataset.rewards[rows, 1])
    np.testing.assert_allclose(dataset.team_reward[rows], 10 * dataset.rewards[rows, 0], rtol=1e-6)


def test_rows_after_the_last_mark_are_kept_as_an_episode_that_time_ended():
    dataset = Dataset.from_arrays(**flat(ends=(4,)))
    assert dataset.n_episodes == 2
    assert not dataset.terminated.any()


def changed(field, agent, row, value, **more):
    arrays = flat()
    arrays[field][agent][row] = value
    return {**arrays, **more}


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (changed("observations", "b", 7, np.nan), r"observations of 'b' holds NaN at row 7"),
        (changed("rewards", "a", 3, -np.inf), r"rewards of 'a' holds infinity at row 3 \(1 row"),
        (changed("actions", "a", 2, np.nan), r"actions of 'a' holds NaN at row 2, column 0"),
        (changed("observations", "a", 1, 1e300), r"observations of 'a' holds infinity at row 1"),
        (
            changed("actions", "b", slice(5, 7), 1.5),
            r"actions of 'b' at row 5, column 0 is 1.5, outside \[-1, 1\] \(2 rows.*'clip'.*'resc",
        ),
        ({**flat(), "team_reward": np.full(10, np.nan)}, r"team_reward holds NaN at row 0"),
        ({**flat(), "states": np.full((10, 2), np.inf)}, r"states holds infinity at row 0"),
        (
            {**flat(), "rewards": {"a": np.zeros(10), "b": np.zeros(9)}},
            r"rewards of 'b' has 9 rows",
        ),
        ({**flat(), "team_reward": np.zeros(3)}, r"team_reward has 3 rows"),
        ({**flat(), "timeouts": np.zeros(9)}, r"timeouts has shape \(9,\)"),
        ({**flat(), "timeouts": None}, r"no complete episode.*Mark the last row"),
        ({**flat(), "timeouts": np.zeros(10)}, r"no complete episode"),
        ({**flat(), "rewards": {"a": np.zeros(10)}}, r"rewards has no entry for agent 'b'"),
        (
            {**flat(), "rewards": np.zeros((10, 3))},
            r"rewards has shape \(10, 3\); expected \(rows,\) for the team, or \(rows, 2\)",
        ),
        ({**flat(), "rewards": [np.zeros(10)]}, r"rewards has 1 entry; there are 2 agents"),
        ({**flat(), "rewards": "many"}, r"rewards holds <U4, not numbers"),
        ({**flat(), "observations": np.zeros((10, 5))}, r"observations has shape \(10, 5\)"),
        ({**flat(), "observations": [np.zeros((10, 5))]}, r"only one agent \(agent_0\)"),
        (
            {**flat(), "actions": {"a": np.zeros((10, 2)), "b": np.zeros(10, int)}},
            r"actions of 'b' has shape \(10,\); expected \(rows, size\).*a\[:, None\]",
        ),
        (
            {**flat(), "actions": {"a": np.zeros((10, 2)), "b": np.zeros((10, 1), int)}},
            r"actions of 'b' are of type int64: discrete",
        ),
        ({**flat(), "actions": [np.full((10, 1), "x")] * 2}, r"actions of 'a' holds <U1"),
        ({**flat(), "action_low": [-1, [-1, -1]]}, r"action_low of 'b'"),
        ({**flat(), "action_low": 1, "action_high": -1}, r"bounds of 'a' are no range"),
        ({**flat(), "action_high": np.inf}, r"bounds of 'a' are no range"),
        ({**flat(), "bounds": "fold"}, r"bounds is 'fold'"),
        ({**flat(ends=range(10))}, r"each has one row"),
        (
            {**flat(ends=range(10)), "next_observations": flat()["observations"]},
            r"Next actions are missing everywhere",
        ),
        (
            {**flat(), "next_observations": flat(seed=1)["observations"]},
            r"next_observations of 'a' at row 0 is not what row 1 holds \(8 such rows\).*timeouts",
        ),
    ],
)
def test_wrong_arrays_are_refused_with_a_sentence(arrays, sentence):
    with pytest.raises(DataError, match=f"(?s){sentence}"):
        Dataset.from_arrays(**arrays)


def test_bad_values_in_what_followed_an_episode_are_found_too():
    arrays, next_actions = parts_of(toy((3, 4)))
    next_actions[0][6] = 2.0
    with pytest.raises(DataError, match=r"actions of 'agent_0' at the step that follows row 6"):
        Dataset.from_arrays(**arrays, next_actions=next_actions)


def test_clipping_and_rescaling_bring_actions_within_the_bounds_and_say_so():
    arrays = flat()
    arrays["actions"]["a"] *= 3
    clipped = Dataset.from_arrays(**arrays, bounds="clip")
    np.testing.assert_allclose(clipped.actions[0], np.clip(arrays["actions"]["a"], -1, 1))
    assert list(clipped.info["actions"]["clip"]) == ["a"]
    scaled = Dataset.from_arrays(**arrays, bounds="rescale")
    own = np.clip(scaled.actions[0], -1, 1)  # in the log's own units
    np.testing.assert_allclose(own, clipped.actions[0])
    np.testing.assert_allclose(scaled.spec.action_low[0], arrays["actions"]["a"].min(axis=0))
    np.testing.assert_allclose(scaled.spec.action_high[0], arrays["actions"]["a"].max(axis=0))
    assert list(scaled.info["actions"]["rescale"]) == ["a", "b"]


def test_a_coordinate_that_never_moves_is_rescaled_to_the_middle():
    arrays = flat()
    arrays["actions"]["b"][:] = 7.0
    scaled = Dataset.from_arrays(**arrays, bounds="rescale")
    low, high = scaled.spec.action_low[1], scaled.spec.action_high[1]
    assert all((a + b) / 2 == 7 and a < b for a, b in zip(low, high, strict=True))


def episode(steps=3, extra=1, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "observations": rng.normal(size=(steps + extra, 2, 3)),
        "actions": rng.uniform(-1, 1, (steps, 2, 2)),
        "rewards": rng.normal(size=(steps, 2)),
    }


@pytest.mark.parametrize(
    ("episodes", "sentence"),
    [
        ([], "no complete episode"),
        ([episode(), 3], "Episode 1: expected a mapping, found a int"),
        ([episode(), {"observations": 0}], "Episode 1: no 'actions'"),
        ([{**episode(), "reward": 0}], "Episode 0: unknown key 'reward'"),
        ([episode(), episode(extra=0)], "Episode 1: its observations differ in shape"),
        (
            [episode(), {**episode(), "rewards": np.zeros((2, 2))}],
            "Episode 1: rewards has 2 rows and observations of 'agent_0' has 4",
        ),
        ([episode(), {**episode(), "rewards": [0.0, np.nan, 0.0]}], "NaN at row 1 of episode 1"),
        ([{**episode(), "states": np.zeros((3, 2))}], "Episode 0: states and observations"),
        (
            [{**episode(), "terminated": np.zeros(3, bool)}],
            r"Episode 0: terminated has shape \(3,\); expected one True or False an episode",
        ),
        (
            [{**episode(), "rewards": np.zeros((3, 1))}],
            r"Episode 0: rewards has shape \(3, 1\); expected \(rows,\) for the team",
        ),
        ([episode(1)], "Next actions are missing.*one more row of actions in from_episodes"),
    ],
)
def test_wrong_episodes_are_refused_with_a_sentence_that_names_the_episode(episodes, sentence):
    with pytest.raises(DataError, match=sentence):
        Dataset.from_episodes(episodes)


def test_a_final_observation_with_nan_is_named_by_its_row_in_its_episode():
    second = episode()
    second["observations"][3, 1, 2] = np.nan
    with pytest.raises(
        DataError, match="observations of 'agent_1' holds NaN at row 3 of episode 1"
    ):
        Dataset.from_episodes([episode(), second])


def test_a_team_of_unlike_lengths_and_a_shared_reward_is_read():
    dataset = Dataset.from_episodes(
        [{**episode(5), "rewards": [1.0] * 5}, {**episode(2), "rewards": [2.0] * 2}]
    )
    assert dataset.returns.tolist() == [[5, 5], [4, 4]]
    assert dataset.spec.horizon == 5
    assert len(dataset.target_rows()) == 5


def test_too_few_rewards_are_not_blamed_on_the_actions():
    episode = {
        "observations": [np.zeros((6, 2)), np.zeros((6, 3))],
        "actions": [np.zeros((5, 1)), np.zeros((5, 1))],
        "rewards": np.zeros(3),
    }
    with pytest.raises(DataError, match="Episode 0: rewards has 3 rows and observations of"):
        Dataset.from_episodes([episode])


def test_a_dataset_says_how_many_last_steps_were_left_out_for_want_of_what_followed():
    cut = [episode(extra=0, seed=seed) for seed in range(3)]
    ended = {**episode(extra=0), "terminated": True}
    assert Dataset.from_episodes([*cut, ended]).info["last_steps_left_out"] == 3
    assert Dataset.from_arrays(**flat()).info["last_steps_left_out"] == 2
    assert "last_steps_left_out" not in Dataset.from_episodes([episode()]).info
    assert "last_steps_left_out" not in Dataset.from_episodes([ended]).info
