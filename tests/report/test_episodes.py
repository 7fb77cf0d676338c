"""What the page draws of a team is what the world did."""

import json

import numpy as np
import pytest
from report_toy import write_run

from spacql.data import Dataset, save_dataset
from spacql.report.episodes import beside_the_log, departure, moving
from spacql.report.source import gather
from spacql.report.teams import teams
from spacql.runs import train


def team_of(folder):
    ((team,), _) = teams(gather([folder]))
    return team


@pytest.mark.parametrize(
    ("task", "looks"),
    [
        ("spread", ["landmark"] * 3),
        ("world", ["obstacle", "food", "food", "forest", "forest"]),
    ],
)
def test_an_episode_has_everybody_at_every_step_and_all_landmarks(tmp_path, task, looks):
    write_run(tmp_path / "a", dataset=f"{task}-random", task=task)
    film = moving(team_of(tmp_path))
    assert [mark["look"] for mark in film["landmarks"]] == looks
    assert [agent["prey"] for agent in film["agents"]][-1] is (task == "world")
    first = film["episodes"][0]
    assert np.shape(first["position"]) == (26, len(film["agents"]), 2)
    assert np.shape(first["landmarks"]) == (len(looks), 2)
    assert len(first["reward"]) == 26
    assert np.abs(first["position"]).max() < film["extent"]
    json.dumps(film, allow_nan=False)


def test_a_world_that_is_not_here_cannot_be_drawn(tmp_path):
    write_run(tmp_path / "a", task="elsewhere")
    assert moving(team_of(tmp_path)) is None


@pytest.fixture(scope="module")
def own_log(tmp_path_factory):
    """A policy that was cloned from a log of two agents, of whom one always does the same."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    episodes = [
        {
            "observations": [rng.normal(size=(9, 3)), rng.normal(size=(9, 2))],
            "actions": [np.full((8, 1), 0.5), rng.uniform(-1, 1, (8, 1))],
            "rewards": rng.normal(size=8),
        }
        for _ in range(20)
    ]
    save_dataset(Dataset.from_episodes(episodes, task="mine"), folder / "mine")
    train("bc", folder / "mine", out=folder / "run", rounds=60, batch_size=32, hidden=(8,))
    return folder / "run"


def test_the_distance_from_the_log_is_small_for_an_agent_that_can_be_cloned(own_log):
    (first, one, _), (second, other, spread) = departure(team_of(own_log))
    assert (first, second) == ("agent_0", "agent_1")
    assert one < 0.2 < other
    assert spread == pytest.approx(3**-0.5, abs=0.05)  # of uniform actions


def test_logged_actions_stand_beside_those_of_the_policy(own_log):
    head, rows = beside_the_log(team_of(own_log))
    assert head == ["step", "agent_0: log", "agent_0: policy", "agent_1: log", "agent_1: policy",
                    "team reward in the log"]  # fmt: skip
    assert len(rows) == 8
    assert rows[0][1] == "0.50"
    assert abs(float(rows[0][2]) - 0.5) < 0.3


def test_a_log_that_changed_is_not_taken_for_the_one_that_was_learnt_from(own_log, tmp_path):
    path = own_log / "run.json"
    run = json.loads(path.read_text())
    changed = run | {"dataset": run["dataset"] | {"identity": "0" * 64}}
    path.write_text(json.dumps(changed))
    assert departure(team_of(own_log)) is None
    path.write_text(json.dumps(run))
