"""Tag against a prey of one's own: the commands of docs/published-arena.md, with a small prey."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import spacql
from spacql.cli import main
from spacql.commands.data import data_prey
from spacql.data import behaviours, collect, load_dataset, prey
from spacql.policies import Policy

from .test_torch_prey import FakeTensor, FakeTorch, state_dict


def run(*words):
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


@pytest.fixture
def tiny(monkeypatch):
    config = replace(
        behaviours.PARTICLE, iterations=100, worlds=4, warmup=25, capacity=512, batch=16, hidden=8
    )
    recipe = replace(
        behaviours.RECIPES["tag"], config=config, snapshot=50, episodes=8, final_episodes=8
    )
    monkeypatch.setitem(behaviours.RECIPES, "tag", recipe)
    monkeypatch.setattr(behaviours, "SEEDS", range(1))


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A PyTorch file as the published one is made, converted."""
    tensors = {key: FakeTensor(value) for key, value in state_dict(seed=7).items()}
    saved = {"agent_params": [{"policy": {}}, {"policy": tensors}]}
    (tmp_path / "prey.pt").write_bytes(b"x")
    with monkeypatch.context() as patch:  # as a function: tyro, too, would find the fake torch
        patch.setitem(sys.modules, "torch", FakeTorch(saved))
        data_prey(tmp_path / "prey.pt", out=tmp_path / "prey")
    return tmp_path / "prey"


SMALL = ("--transitions", 500)


def check_arena(folder, published):
    """The data is that of the published prey, and carries it."""
    dataset = load_dataset(folder, verify=True)
    assert dataset.spec.prey == "published"
    assert dataset.info["reference"]["random"] == -4.1
    assert dataset.info["reference"]["expert"] == 185.6
    (action,) = dataset.prey.act([np.ones(14)])
    (same,) = Policy.load(published).act([np.ones(14)])
    assert (action == same).all()


def test_training_and_evaluation_use_the_prey_that_the_data_carries(published, tmp_path, capsys):
    folder = tmp_path / "random"
    assert run("data", "make", "tag-random", "--prey", published, "--out", folder, *SMALL) == 0
    check_arena(folder, published)
    out = tmp_path / "run" / "seed-0"
    trained = spacql.train("bc", folder, out=out, rounds=2, episodes=8)
    assert trained.result["evaluation"]["prey"] == "published"
    assert trained.result["evaluation"]["reference"]["expert"] == 185.6
    capsys.readouterr()
    words = ("evaluate", out.parent, "--episodes", 8, "--json", "--gif", tmp_path / "x.gif")
    assert run(*words) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["prey"] == "published"
    assert found["score"] is not None
    assert (tmp_path / "x.gif").stat().st_size > 10_000


@pytest.mark.slow
def test_behaviours_are_trained_against_a_prey_and_make_its_data(tiny, published, tmp_path):
    made = ("--behaviours", tmp_path / "b", "--out")
    for words in (
        ("data", "behaviours", "tag", "--prey", published, "--out", tmp_path / "b"),
        ("data", "make", "tag-expert", "--prey", published, *made, tmp_path / "expert", *SMALL),
        # A replay, too, and with the behaviours' own prey if none is named.
        ("data", "make", "tag-medium-replay", *made, tmp_path / "replay"),
    ):
        assert run(*words) == 0
    check_arena(tmp_path / "expert", published)
    assert load_dataset(tmp_path / "replay").prey.name == "published"


def test_preys_that_do_not_belong_are_refused_with_a_sentence(tiny, published, tmp_path, capsys):
    for words, said in (
        (("make", "tag-expert", "--prey", published, "--out", tmp_path / "x"), "--behaviours DIR"),
        (("make", "tag-random", "--prey", published), "--out"),
        (("make", "world-random", "--prey", published, "--out", tmp_path / "x"), "sees 22"),
        (("make", "spread-random", "--prey", published, "--out", tmp_path / "x"), "no prey in"),
        (("make", "tag-expert", "--behaviours", tmp_path, "--out", tmp_path / "x"), "tag-prey"),
        (("behaviours", "spread", "--prey", published, "--out", tmp_path / "x"), "no prey in"),
    ):
        assert run("data", *words) == 2
        message = capsys.readouterr().err
        assert said in message
        assert message.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_trainings_against_different_preys_do_not_mix(published, tmp_path, capsys):
    behaviours.prey_of("tag").save(tmp_path / "b" / "tag-prey")  # trained against ours
    assert run("data", "behaviours", "tag", "--prey", published, "--out", tmp_path / "b") == 2
    assert "another prey" in capsys.readouterr().err
    words = ("make", "tag-expert", "--prey", published, "--behaviours", tmp_path / "b")
    assert run("data", *words, "--out", tmp_path / "x") == 2
    assert "another prey" in capsys.readouterr().err


def test_measured_reference_scores_belong_to_any_prey_but_the_published(published):
    record = {"random": {"return": 1.0}, "expert": 9.0, "episodes": 8, "prey": "mine"}
    theirs = Policy.load(published)
    mine = Policy(theirs.actors, name="mine", agents=theirs.agents)
    assert collect._reference("tag", record, theirs)["expert"] == 185.6
    assert collect._reference("tag", record, mine)["expert"] == 9.0
    assert collect._reference("tag", None, mine) is None


def test_the_report_shows_a_prey_beside_the_published_one(published, capsys, monkeypatch):
    monkeypatch.setattr(
        prey, "statistics", lambda task, *_, **__: prey.published_statistics()[task]
    )
    assert run("data", "prey-report", published) == 0
    shown = capsys.readouterr().out
    assert "| tag | published | published |" in shown
    assert "| 129.7 ± 62.9 | 129.7 ± 62.9 |" in shown
    assert "within the tolerance" in shown
    assert run("data", "prey-report", published, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["task"] == "tag"
    assert report["statistics"] == report["published"]
