from dataclasses import replace

import numpy as np

from spacql.data.advice import advice, notices

from .toy import build


def test_an_ordinary_log_has_no_notices():
    assert notices(build((5,) * 20)) == []


def test_one_hot_and_whole_actions_and_constant_rewards_are_named():
    dataset = build((5,) * 20)
    actions = dataset.joint_actions.copy()
    random = np.random.default_rng(0)
    actions[:, :2] = np.eye(2)[random.integers(0, 2, len(actions))]
    actions[:, 2] = random.integers(-1, 2, len(actions))
    paid = (dataset.team_reward != 0).astype(np.float32)
    said = " ".join(notices(replace(dataset, joint_actions=actions, team_reward=paid)))
    assert "actions of agent0 are one-hot" in said
    assert "actions of agent1 are whole numbers (3 different)" in said
    assert "Every reward is 1" in said


def test_a_coordinate_that_never_moves_is_named():
    dataset = build((5,) * 20)
    actions = dataset.joint_actions.copy()
    actions[:, 1] = 0.5
    assert notices(replace(dataset, joint_actions=actions)) == [
        "agent0 never changes column 1 of its action."
    ]


def test_the_advice_is_one_line_that_ends_with_a_command():
    dataset = build((5,) * 60)
    said = advice(dataset, [0.01, 0.02], 0.0, "mine")
    assert said.endswith("Next: spacql fit --data mine --out mine-fit")
    assert "acts broadly" in said
    assert "acts narrowly" in advice(dataset, [0.9, 0.9], 0.4, "mine")
    assert "act in concert" in advice(dataset, [0.9, 0.9], 0.4, "mine")
    assert "few" in advice(build((5,) * 20), [], None, "mine")
    assert "spacql train bc" in advice(build((5,) * 5), [], None, "mine")
