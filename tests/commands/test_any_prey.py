"""Tag against a prey of one's own: the commands of docs/published-arena.md, with a small prey."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.data_package.test_torch_prey import FakeTensor, FakeTorch, state_dict

from spacql.cli import main
from spacql.data import behaviours, load_dataset
from spacql.policies import Policy


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
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(saved))
    (tmp_path / "prey.pt").write_bytes(b"x")
    assert run("data", "prey", tmp_path / "prey.pt", "--out", tmp_path / "prey") == 0
    return tmp_path / "prey"


def test_four_commands_make_the_published_arena(tiny, published, tmp_path, capsys):
    small = ("--transitions", 500)
    for words in (
        ("data", "make", "tag-random", "--prey", published, "--out", tmp_path / "random", *small),
        ("data", "behaviours", "tag", "--prey", published, "--out", tmp_path / "b"),
        ("data", "make", "tag-expert", "--prey", published, "--behaviours", tmp_path / "b",
         "--out", tmp_path / "expert", *small),
    ):  # fmt: skip
        assert run(*words) == 0
    for quality in ("random", "expert"):
        dataset = load_dataset(tmp_path / quality, verify=True)
        assert dataset.spec.prey == "published"
        assert dataset.info["reference"]["random"] == -4.1
        assert dataset.info["reference"]["expert"] == 185.6
        (action,) = dataset.prey.act([np.ones(14)])
        (same,) = Policy.load(published).act([np.ones(14)])
        assert (action == same).all()

    # Training, evaluation and the picture use the prey that the data carries.
    out = tmp_path / "run"
    run("train", "bc", "--data", tmp_path / "random", "--seeds", 0, "--rounds", 2, "--out", out,
        "--episodes", 20)  # fmt: skip
    result = json.loads((out / "seed-0" / "result.json").read_text())
    assert result["evaluation"]["prey"] == "published"
    assert result["evaluation"]["reference"]["expert"] == 185.6
    capsys.readouterr()
    code = run("evaluate", out, "--episodes", 20, "--json", "--gif", tmp_path / "x.gif")
    assert code == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["prey"] == "published"
    assert found["score"] is not None
    assert (tmp_path / "x.gif").stat().st_size > 10_000


def test_a_replay_against_another_prey_comes_from_its_behaviours_training(tiny, tmp_path):
    prey = tmp_path / "mine"
    Policy(behaviours.prey_of("tag").actors[:1], name="mine", agents=("prey",)).save(
        prey
    )  # the package's own under another name
    assert run("data", "behaviours", "tag", "--prey", prey, "--out", tmp_path / "b") == 0
    words = ("data", "make", "tag-medium-replay", "--behaviours", tmp_path / "b")
    assert run(*words, "--out", tmp_path / "replay") == 0
    dataset = load_dataset(tmp_path / "replay")
    assert dataset.prey.name == "mine"
    record = behaviours.record("tag", tmp_path / "b")
    assert dataset.info["reference"]["expert"] == record["expert"]


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


def test_trainings_against_different_preys_do_not_mix(tiny, published, tmp_path, capsys):
    assert run("data", "behaviours", "tag", "--out", tmp_path / "b") == 0
    capsys.readouterr()
    assert run("data", "behaviours", "tag", "--prey", published, "--out", tmp_path / "b") == 2
    assert "another prey" in capsys.readouterr().err


def test_the_report_shows_a_prey_beside_the_published_one(published, capsys):
    assert run("data", "prey-report", published, "--episodes", 50) == 0
    shown = capsys.readouterr().out
    assert "| tag | published | published |" in shown
    assert "129.7 ± 62.9" in shown
    assert run("data", "prey-report", published, "--episodes", 50, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["task"] == "tag"
    assert set(report["statistics"]) == set(report["published"])
