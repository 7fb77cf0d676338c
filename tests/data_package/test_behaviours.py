"""Training and choosing behaviours, with tiny networks and few steps."""

from dataclasses import replace

import numpy as np
import pytest

from spacql.data import behaviours
from spacql.policies import Policy
from spacql.worlds import make


def nothing(amount: float = 1, text: str = "") -> None:
    pass


@pytest.fixture
def tiny(monkeypatch):
    recipe = behaviours.RECIPES["spread"]
    config = replace(
        recipe.config, iterations=100, worlds=4, warmup=25, capacity=512, batch=16, hidden=8
    )
    recipe = replace(recipe, config=config, snapshot=50, expert=np.inf, episodes=8)
    monkeypatch.setitem(behaviours.RECIPES, "spread", replace(recipe, final_episodes=8))
    monkeypatch.setattr(behaviours, "SEEDS", range(2))


def test_training_leaves_snapshots_and_choosing_ships_two_levels_a_seed(tiny, tmp_path):
    for seed in range(2):
        behaviours.train("spread", seed, tmp_path / f"spread-{seed}", nothing)
    summary = behaviours.choose("spread", tmp_path)
    shipped = {p.name for p in (tmp_path / "behaviours").glob("*.safetensors")}
    expected = {f"spread-{level}-{s}.safetensors" for level in ("medium", "expert") for s in (0, 1)}
    assert shipped == expected
    assert len(summary["seeds"]) == 2
    assert [row[0] for row in summary["seeds"][0]["curve"]] == [200, 400]
    policy = Policy.load(tmp_path / "behaviours" / "spread-expert-1")
    assert policy.name == "spread-expert-1"
    assert policy.actors[0].noise == behaviours.RECIPES["spread"].config.noise


def test_a_finished_training_is_not_run_again(tiny, tmp_path):
    behaviours.train("spread", 0, tmp_path, nothing)
    before = (tmp_path / "2.safetensors").stat().st_mtime_ns
    behaviours.train("spread", 0, tmp_path, nothing)
    assert (tmp_path / "2.safetensors").stat().st_mtime_ns == before


def order(curve, **recipe):
    rows = [{"snapshot": k, "return": r} for k, r in enumerate(curve, start=1)]
    recipe = replace(behaviours.RECIPES["spread"], **recipe)
    return [row["snapshot"] for row in behaviours.expert_order(rows, recipe)]


def test_the_expert_is_the_first_at_the_level_else_the_best():
    assert order([1.0, 5.0, 9.0, 7.0], expert=5.0)[0] == 2
    assert order([1.0, 5.0, 9.0, 7.0], expert=np.inf) == [3, 4, 2, 1]


def test_one_lucky_snapshot_is_no_expert_where_several_must_have_settled():
    assert order([1.0, 9.0, 1.0, 6.0, 7.0], expert=6.0, settled=2)[0] == 5


def test_trials_put_the_steadier_snapshot_first(tiny, tmp_path, monkeypatch):
    recipe = replace(behaviours.RECIPES["spread"], trials=2)
    monkeypatch.setitem(behaviours.RECIPES, "spread", recipe)
    monkeypatch.setattr(behaviours, "SEEDS", range(1))
    behaviours.train("spread", 0, tmp_path / "spread-0", nothing)
    unsteady, steady = np.array([400.0, 0.0]), np.array([200.0, 200.0])

    def returns(world, policy, key, episodes):
        if "snapshot" not in policy.name:
            return np.zeros((2, 3))
        steady_one = "snapshot-1" in policy.name
        return np.repeat((steady if steady_one else unsteady)[:, None], 3, axis=1)

    monkeypatch.setattr(behaviours, "rollout", returns)
    chosen = behaviours.choose("spread", tmp_path)["seeds"][0]
    assert chosen["expert"]["snapshot"] == 1


def test_the_experience_is_that_of_the_training(tiny):
    world, recipe = make("spread"), behaviours.RECIPES["spread"]
    parts = list(behaviours.training(world, recipe, 0))
    again = list(behaviours.training(world, recipe, 0))
    assert len(parts) == 2
    for (_, [experience]), (_, [repeated]) in zip(parts, again, strict=True):
        assert experience.rewards.shape == (8, 25, 3)
        assert (experience.observations[2] == repeated.observations[2]).all()
