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
    summary = behaviours.choose("spread", tmp_path, tmp_path / "out")
    shipped = {p.name for p in (tmp_path / "out" / "behaviours").glob("*.safetensors")}
    expected = {f"spread-{level}-{s}.safetensors" for level in ("medium", "expert") for s in (0, 1)}
    assert shipped == expected
    assert len(summary["seeds"]) == 2
    assert [row[0] for row in summary["seeds"][0]["curve"]] == [200, 400]
    policy = Policy.load(tmp_path / "out" / "behaviours" / "spread-expert-1")
    assert policy.name == "spread-expert-1"
    assert policy.actors[0].noise == behaviours.RECIPES["spread"].config.noise


def test_a_finished_training_is_not_run_again(tiny, tmp_path):
    behaviours.train("spread", 0, tmp_path, nothing)
    before = (tmp_path / "2.safetensors").stat().st_mtime_ns
    behaviours.train("spread", 0, tmp_path, nothing)
    assert (tmp_path / "2.safetensors").stat().st_mtime_ns == before


def test_the_expert_is_the_first_at_the_level_else_the_best():
    curve = [{"snapshot": k, "return": r} for k, r in enumerate([1.0, 5.0, 9.0, 7.0])]
    order = [row["snapshot"] for row in behaviours._expert_order(curve, 5.0)]
    assert order[0] == 1
    order = [row["snapshot"] for row in behaviours._expert_order(curve, np.inf)]
    assert order == [2, 3, 1, 0]


def test_lived_episodes_are_those_of_the_training(tiny):
    world, recipe = make("spread"), behaviours.RECIPES["spread"]
    parts = list(behaviours.training(world, recipe, 0))
    again = list(behaviours.training(world, recipe, 0))
    assert len(parts) == 2
    for (_, [lived]), (_, [relived]) in zip(parts, again, strict=True):
        assert lived.rewards.shape == (8, 25, 3)
        assert (lived.observations[2] == relived.observations[2]).all()
