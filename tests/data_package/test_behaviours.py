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


@pytest.mark.slow
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


def test_a_slowed_policy_does_a_part_of_the_same_with_the_same_noise():
    policy = behaviours.behaviour("spread", "expert", 0)
    slow = behaviours.scale(policy, 0.5)
    quiet = [
        Policy(tuple(replace(a, noise=0.0) for a in p.actors), agents=p.agents)
        for p in (policy, slow)
    ]
    observations = [np.linspace(-1, 1, 18)] * 3
    fast, half = (p.act(observations) for p in quiet)
    np.testing.assert_allclose(np.stack(half), 0.5 * np.stack(fast), atol=1e-6)
    for actor in slow.actors:  # half of the range, so twice as much in its units
        assert actor.noise == 2 * policy.actors[0].noise


def test_the_factor_of_a_slowed_expert_is_the_one_nearest_to_the_wanted_score(
    tmp_path, monkeypatch
):
    recipe = replace(behaviours.RECIPES["spread"], medium=40, factors=(0.3, 0.4, 0.5))
    policy = behaviours.behaviour("spread", "expert", 0)

    def returns(world, slow, key, episodes):  # unsteady at 0.4, where the mean is right
        factor = slow.actors[0].high[0]
        spread = 50 if factor == 0.4 else 5
        return np.repeat([[100 * factor - spread], [100 * factor + spread]], 3, axis=1)

    monkeypatch.setattr(behaviours, "rollout", returns)
    expert = {"snapshot": 7, "steps": 1, "return": 100.0, "std": 1.0}
    policy.save(tmp_path / "7")
    candidates = behaviours.Candidates(0, tmp_path, [expert], make("spread"), recipe)
    row = behaviours.slowed(candidates, expert, lambda value: value)
    assert row["factor"] in (0.3, 0.5)
    assert row["snapshot"] == 7
    assert row["score"] == row["return"] == pytest.approx(100 * row["factor"])
