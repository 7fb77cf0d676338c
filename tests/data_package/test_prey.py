"""What a prey is like, and how one is chosen."""

from dataclasses import replace

import jax
import pytest

from spacql.data import prey
from spacql.errors import InputError
from spacql.policies import MLP, Policy, init_mlp
from spacql.worlds import make
from spacql.worlds.world import default_prey, flee

TAG = make("tag", prey=None)


def lazy(strength: float) -> Policy:
    """The shipped prey with a part of its force."""
    actor = default_prey("tag").actors[0]
    bounds = (-strength,) * 2, (strength,) * 2
    slow = MLP(actor.mean, actor.std, actor.weights, actor.biases, *bounds)
    return Policy((slow,), name="lazy", agents=("prey",))


def test_straight_pursuit_pays_against_a_prey_that_stays_and_more_so_by_more_hunters():
    found = prey.statistics("tag", lazy(0.0), episodes=500)
    returns = [found[team]["return"] for team in ("uniform", "one", "two", "three")]
    assert returns == sorted(returns)
    assert found["speed"] < 0.1
    assert abs(found["outward"] - 2 / 3) < 0.05  # the larger of two uniform coordinates


def test_a_prey_that_flees_is_faster_and_costs_the_predators_their_touches():
    stays = prey.statistics("tag", lazy(0.0), episodes=500)
    flees = prey.statistics("tag", flee(TAG), episodes=500)
    assert flees["speed"] > 0.5
    assert flees["three"]["return"] < 0.1 * stays["three"]["return"]


@pytest.mark.parametrize("task", ["tag", "world"])
def test_the_shipped_prey_is_like_the_published_one(task):
    found = prey.statistics(task, default_prey(task), episodes=4000, seed=5)
    assert prey.unlikeness(task, found) <= 1


def test_unlikeness_is_the_furthest_statistic_in_units_of_its_tolerance():
    published = prey.published_statistics()["tag"]
    assert prey.unlikeness("tag", published) == 0
    faster = {**published, "speed": published["speed"] * 1.15}
    assert prey.unlikeness("tag", faster) == pytest.approx(1)
    shy = {**published, "uniform": {"return": published["uniform"]["return"] - 10}}
    assert prey.unlikeness("tag", shy) == pytest.approx(2)  # 5 points are tolerated


def test_the_task_of_a_prey_is_known_by_what_it_sees():
    assert prey.task_of(default_prey("tag")) == "tag"
    assert prey.task_of(default_prey("world")) == "world"
    stranger = Policy((init_mlp(jax.random.key(0), 3, (-1.0,), (1.0,)),), name="stranger")
    with pytest.raises(InputError, match="'stranger' is no prey"):
        prey.task_of(stranger)


@pytest.mark.slow
def test_training_keeps_snapshots_and_saves_the_one_most_like_the_published(tmp_path, monkeypatch):
    recipe = prey.RECIPES["tag"]
    config = replace(
        recipe.config, iterations=50, worlds=4, warmup=5, capacity=512, batch=16, hidden=8
    )
    tiny = replace(recipe, config=config, snapshot=25, seeds=(0, 1), episodes=100)
    monkeypatch.setitem(prey.RECIPES, "tag", tiny)
    rows = list(prey.train("tag", tmp_path, lambda amount, text="": None))
    assert [(seed, iteration) for seed, iteration, _ in rows] == [
        (0, 25),
        (0, 50),
        (1, 25),
        (1, 50),
    ]
    seed, iteration, _ = min(rows, key=lambda row: prey.unlikeness("tag", row[2]))
    chosen = (tmp_path / "tag-prey.safetensors").read_bytes()
    kept = tmp_path / f"tag-prey-{seed}" / f"{iteration}.safetensors"
    assert chosen == kept.read_bytes()
    assert Policy.load(tmp_path / "tag-prey").name == "tag-prey-2"
