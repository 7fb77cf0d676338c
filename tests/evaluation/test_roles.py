"""Who does what in a team."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from experiments_toy import run_folder

from spacql.cli import main
from spacql.commands.roles import teams
from spacql.errors import InputError
from spacql.evaluation import roles as module
from spacql.evaluation.roles import Roles, pursuit, roles
from spacql.files import read_json, write_json
from spacql.policies import Policy, init_mlp
from spacql.worlds import make


def test_landmarks_are_counted_by_who_is_nearest_to_which() -> None:
    places = np.array([[1.0, 0], [0, 1], [-1, 0]])  # landmarks, seen from the middle
    seen = np.zeros((4, 2, 3, 18))  # episodes, steps, agents
    for episode, at in enumerate([(0, 1, 2), (0, 1, 2), (0, 0, 2), (1, 1, 1)]):
        for agent, landmark in enumerate(at):
            seen[episode, -1, agent, 4:10] = (places - places[landmark]).ravel()
    found = module._landmarks(seen)
    assert found["landmarks"] == (0.25, 0.25, 0.5)
    assert found["favourites"] == (0.75, 0.75, 0.75)


def test_a_pursuit_is_near_the_prey_and_one_that_stays_away_is_not() -> None:
    near, apart = (roles(pursuit("tag", away), "tag", episodes=64) for away in (0, 1))
    assert near.distances[2] < apart.distances[2], "the farthest of the three"
    assert list(near.distances) == sorted(near.distances)
    assert near.at_bound > 0.4
    assert near.same == 0
    assert near.touches >= 0


def test_actions_that_are_always_the_same_are_counted() -> None:
    spec = make("spread").spec

    class Still(module.Pursue):
        def __call__(self, observation, key=None):
            return 0 * observation[..., :2] + np.array([1.0, 0.5])

    still = Policy((Still(18, 0, np.ones(())),) * 3, name="still", agents=spec.agents)
    found = roles(still, "spread", episodes=64)
    assert (found.same, found.coordinates, found.at_bound) == (6, 6, 0.5)
    assert sum(found.landmarks) == pytest.approx(1)


def test_a_team_is_looked_at_against_the_prey_of_its_data(tmp_path) -> None:
    actor = init_mlp(jax.random.key(0), 14, (-1.0,) * 2, (1.0,) * 2, hidden=(4,))
    slow = Policy((actor,), name="slow", agents=("prey",))
    spec = make("tag", prey=slow).spec
    folder = run_folder(tmp_path / "run")
    run = read_json(folder / "run.json")
    run["dataset"]["reference"] = {"random": 0.0, "expert": 50.0, "prey": "slow"}
    write_json(folder / "run.json", run | {"spec": spec.to_json()})
    team = init_mlp(jax.random.key(1), 16, (-1.0,) * 2, (1.0,) * 2, hidden=(4,))
    Policy((team,) * 3, name="team", agents=spec.agents).save(folder / "policy")
    with pytest.raises(InputError, match="which it does not carry"):
        list(teams(str(tmp_path)))
    slow.save(folder / "prey")
    [found] = teams(str(tmp_path))
    assert (found.world.spec.prey, found.scale.expert) == ("slow", 50.0)
    pursuers = pursuit("tag", 0)
    usual = roles(pursuers, "tag", episodes=64)
    here = roles(pursuers, "tag", episodes=64, world=found.world, scale=found.scale)
    assert here.touches > usual.touches, "it does not flee"
    assert here.score > 2 * usual.score, "by its own reference"


def test_other_tasks_have_no_roles() -> None:
    with pytest.raises(InputError, match="spread, tag, world"):
        roles(None, "halfcheetah")


def test_the_command_has_a_line_per_team(monkeypatch, capsys) -> None:
    shares = {"landmarks": (0.0, 0.25, 0.75), "favourites": (0.9, 0.8, 0.7)}
    monkeypatch.setattr(
        module, "roles", lambda policy, task, episodes, **_: Roles(50.0, 0.1, 2, 6, **shares)
    )

    def spacql(*words: str) -> str:
        with pytest.raises(SystemExit):
            main(["roles", *words])
        said = capsys.readouterr()
        return said.out + said.err

    said = spacql("spread")
    assert said.count("spread-expert, seed") == 5
    assert "0 % 25 % 75 %" in said
    assert "2 of 6" in said
    found = json.loads(spacql("spread", "--json"))
    assert found[0]["landmarks"] == [0.0, 0.25, 0.75]
    assert "Did you mean 'spread'?" in spacql("spraed")
    assert "Which runs" in spacql()
