"""The named datasets, few transitions of each."""

import functools
import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

from spacql.data import behaviours, cache, collect, load_dataset, save_dataset
from spacql.errors import DataError, InputError
from spacql.files import write_json
from spacql.worlds.world import default_prey

PARTICLE = [name for name in collect.NAMES if not name.startswith("halfcheetah")]
SIZE = 2500  # transitions: one compiled rollout per task and kind of policy


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dataset by name and seed, made once and not to be changed."""

    @functools.cache
    def make(name: str, seed: int = 0) -> Path:
        folder = tmp_path_factory.mktemp("made") / "d"
        collect.make_dataset(name, folder, seed=seed, transitions=SIZE)
        return folder

    return make


def fingerprint(folder: Path) -> dict[str, str]:
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


def test_there_are_sixteen_names():
    assert len(set(collect.NAMES)) == 16


@pytest.mark.parametrize("name", [n for n in PARTICLE if not n.endswith("replay")])
def test_a_particle_dataset_has_the_size_and_provenance_asked_for(name, made):
    dataset = load_dataset(made(name, seed=1), verify=True)
    task = name.split("-")[0]
    assert dataset.n_transitions == SIZE
    assert len(dataset.target_rows()) == SIZE  # the final action is known everywhere
    assert dataset.spec.task == task
    assert dataset.info["seed"] == 1
    assert dataset.info["reference"]["expert"] == behaviours.record(task)["expert"]
    assert dataset.spec.prey == ("" if task == "spread" else f"{task}-prey-2")


def test_the_same_command_gives_the_same_bytes_and_another_seed_other_ones(made, tmp_path):
    collect.make_dataset("spread-medium", tmp_path / "again", seed=1, transitions=SIZE)
    first = fingerprint(made("spread-medium", seed=1))
    assert first == fingerprint(tmp_path / "again")
    assert first["actions.npy"] != fingerprint(made("spread-medium", seed=101))["actions.npy"]


@pytest.mark.parametrize("task", ["spread", "tag", "world"])
def test_better_qualities_have_higher_returns(task, made):
    returns = [
        load_dataset(made(f"{task}-{quality}", seed=1)).returns.mean()
        for quality in ("random", "medium", "expert")
    ]
    assert returns[0] < returns[1] < returns[2]


@pytest.mark.parametrize("task", ["spread", "tag", "world", "halfcheetah"])
def test_shipped_behaviours_are_at_their_levels(task):
    record, recipe = behaviours.record(task), behaviours.RECIPES[task]
    for entry in record["seeds"]:
        assert abs(entry["medium"]["score"] - recipe.medium) <= behaviours.TOLERANCE


@pytest.mark.parametrize(("task", "published"), [("spread", 517), ("tag", 186), ("world", 80)])
def test_every_expert_reaches_the_published_return(task, published):
    assert all(s["expert"]["return"] >= published for s in behaviours.record(task)["seeds"])


def test_the_mediums_of_halfcheetah_are_steady():
    assert all(s["medium"]["std"] < 450 for s in behaviours.record("halfcheetah")["seeds"])


def test_a_dataset_of_tag_carries_its_prey_and_a_copy_does_too(made, tmp_path):
    dataset = load_dataset(made("tag-random", seed=1), verify=True)
    assert eqx.tree_equal(dataset.prey.actors, default_prey("tag").actors)
    save_dataset(dataset, tmp_path / "copy")
    assert fingerprint(made("tag-random", seed=1)) == fingerprint(tmp_path / "copy")


def test_a_damaged_prey_is_refused(made, tmp_path):
    shutil.copytree(made("tag-random", seed=1), tmp_path / "d")
    weights = tmp_path / "d" / "prey.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(DataError, match="prey"):
        load_dataset(tmp_path / "d")


@pytest.fixture(scope="module")
def replays(tmp_path_factory):
    """Replays of a short training: seed 0 twice, and the one for development."""
    record, recipe = behaviours.record("spread"), behaviours.RECIPES["spread"]
    small = replace(recipe, config=replace(recipe.config, hidden=16, batch=64))
    record["seeds"][0]["replay"] |= {"snapshot": 2, "steps": 16_000}
    folders = [tmp_path_factory.mktemp("replays") / "d" for _ in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(behaviours, "record", lambda task, folder=None: record)
        patch.setitem(behaviours.RECIPES, "spread", small)
        for folder, seed in zip(folders, (0, 0, 100), strict=True):
            collect.make_dataset("spread-medium-replay", folder, seed=seed, transitions=8000)
    return folders


def test_a_replay_is_the_beginning_of_a_training_and_repeats(replays):
    dataset = load_dataset(replays[0])
    assert fingerprint(replays[0]) == fingerprint(replays[1])
    assert dataset.n_transitions == 8000
    # It begins with uniform actions and goes on with those of a policy.
    first, last = np.split(dataset.joint_actions, 2)
    assert abs(first[: 26 * 20].std() - 3**-0.5) < 0.03
    assert abs(last.std() - 3**-0.5) > 0.03


def test_a_development_replay_is_another_training(replays):
    mine, other = load_dataset(replays[0]), load_dataset(replays[2])
    assert mine.n_transitions == other.n_transitions
    assert not (mine.joint_observations == other.joint_observations).all(axis=1).any()


def test_more_replay_than_experience_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="was medium"):
        collect.make_dataset("spread-medium-replay", tmp_path / "d", transitions=10**8)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("field", ["episodes", "prey"])
def test_behaviours_whose_record_lacks_a_field_are_refused_by_its_name(field, tmp_path):
    told = {k: v for k, v in behaviours.record("spread").items() if k != field}
    write_json(tmp_path / "behaviours" / "spread.json", told)
    with pytest.raises(InputError, match=rf"spread\.json.*`{field}`"):
        collect.make_dataset("spread-random", tmp_path / "d", transitions=25, folder=tmp_path)


@pytest.mark.parametrize(("steps", "sentence"), [(0, ">= 1"), (24, "before it had played")])
def test_a_replay_of_no_episode_is_refused(steps, sentence, tmp_path):
    told = behaviours.record("spread")
    told["seeds"][0]["replay"]["steps"] = steps
    write_json(tmp_path / "behaviours" / "spread.json", told)
    with pytest.raises(InputError, match=sentence):
        collect.make_dataset("spread-medium-replay", tmp_path / "d", folder=tmp_path)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("seed", [-1, 5, 99, 105])
def test_seeds_without_a_behaviour_are_refused(seed, tmp_path):
    with pytest.raises(InputError, match="0 to 4"):
        collect.make_dataset("spread-random", tmp_path / "d", seed=seed)


@pytest.mark.parametrize("quality", ["random", "medium"])
def test_development_data_has_the_same_behaviour_in_other_episodes(quality, made):
    mine, other = (load_dataset(made(f"spread-{quality}", seed)) for seed in (1, 101))
    assert mine.info["behaviour"] == other.info["behaviour"]
    assert not (mine.joint_observations == other.joint_observations).all(axis=1).any()
    assert abs(mine.returns.mean() - other.returns.mean()) < 20


def test_a_run_seed_from_a_hundred_on_uses_a_dataset_for_development(tmp_path, monkeypatch):
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "SIZE", SIZE)
    assert cache.resolve("spread-random", seed=107).info["seed"] == 102


def test_the_cache_makes_a_dataset_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "SIZE", SIZE)
    first = cache.resolve("spread-random", seed=2)
    made = cache.place("spread-random", 2).stat().st_mtime_ns
    second = cache.resolve("spread-random", seed=2)
    assert first.identity == second.identity
    assert cache.place("spread-random", 2).stat().st_mtime_ns == made
    assert cache.resolve(cache.place("spread-random", 2)).identity == first.identity
    assert cache.resolve("spread-random", seed=7).info["seed"] == 2  # there are five


def test_a_misspelt_name_and_a_wrong_folder_get_different_sentences(tmp_path):
    with pytest.raises(InputError, match="There is no dataset 'spread-rnd'"):
        cache.resolve("spread-rnd")
    with pytest.raises(InputError, match="no dataset folder"):
        cache.resolve(tmp_path)


@pytest.mark.slow
def test_halfcheetah_data_has_the_global_state(tmp_path):
    collect.make_dataset("halfcheetah-medium", tmp_path / "d", transitions=2000, workers=2)
    dataset = load_dataset(tmp_path / "d")
    assert dataset.states.shape == (2002, 17)
    assert dataset.returns.mean() > 500
