"""`spacql train`: what a user meets. One tiny training with two seeds."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from training_toy import toy_dataset

from spacql.cli import main
from spacql.commands.train import Options, data_place, train_seeds
from spacql.data import save_dataset
from spacql.errors import InputError
from spacql.experiments.executors import Event, Local

FLAGS = ["--rounds", "4", "--batch-size", "8", "--hidden", "4", "4", "--updates", "1"]


@pytest.fixture
def data(tmp_path) -> str:
    save_dataset(toy_dataset(), tmp_path / "data")
    return str(tmp_path / "data")


def spacql(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return stop.value.code


def test_seeds_are_trained_listed_and_not_overwritten(data, tmp_path, capsys) -> None:
    out = str(tmp_path / "run")
    words = ["train", "bc", "--data", data, "--seeds", "0", "1", "--out", out, *FLAGS]
    assert spacql(*words, "--json", "--quiet") == 0
    said = capsys.readouterr()
    assert said.err == ""
    seeds = json.loads(said.out)["seeds"]
    assert [entry["folder"] for entry in seeds] == [f"{out}/seed-0", f"{out}/seed-1"]
    assert all(
        "No simulator is known for 'toy'" in entry["note"] and not entry["error"] for entry in seeds
    )
    assert (tmp_path / "run" / "seed-1" / "policy.safetensors").exists()
    assert spacql(*words) == 2
    assert "--resume" in capsys.readouterr().err
    assert spacql(*words, "--resume", "--batch-size", "16") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("another batch_size (8, not 16): give the same --batch-size, or") == 1
    assert spacql("runs", str(tmp_path), "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(r["state"], r["round"], r["rounds"]) for r in listed] == [("finished", 4, 4)] * 2


def answer(monkeypatch, *events) -> None:
    def execute(self, runs, report):
        for run, event in zip(runs, events, strict=True):
            if event is KeyboardInterrupt:
                raise KeyboardInterrupt
            report(run, event)

    monkeypatch.setattr(Local, "execute", execute)


def test_one_seed_fails_and_the_other_finishes(data, tmp_path, monkeypatch, capsys) -> None:
    evaluation = {"score": 61.23, "return": {"mean": 300.0, "std": 1.0}}
    done = Event("done", record={"evaluation": evaluation, "seconds": 3.0})
    answer(monkeypatch, Event("failed", error="no good"), done)
    assert spacql("train", "bc", "--data", data, "--seeds", "0", "1", "--out", str(tmp_path)) == 1
    said = capsys.readouterr()
    assert "seed 0: failed: no good" in said.err
    assert "seed 0: failed. no good" in said.out
    assert "seed 1: score 61.2, return 300.0, 3 s" in said.out


def test_ctrl_c_says_what_is_kept_and_the_command_that_goes_on(
    data, tmp_path, monkeypatch, capsys
) -> None:
    answer(monkeypatch, KeyboardInterrupt)
    words = ("train", "bc", "--data", data, "--out", str(tmp_path / "a b"))
    assert spacql(*words) == 130
    said = capsys.readouterr().err
    assert "0 of 1 runs have ended" in said
    assert f"To go on: spacql train bc --data {data} --out '{tmp_path}/a b' --resume\n" in said


def test_help_shows_the_values_that_the_run_would_get(capsys) -> None:
    def shown(*words: str) -> str:
        assert spacql("train", "cfcql", *words, "--help") == 0
        text = capsys.readouterr().out
        [line] = [line for line in text.splitlines() if "--alpha " in line]
        return text[text.index(line) :].split("default:")[1].split(")")[0].strip(" │\n")

    assert shown() == "0.5"
    assert shown("--data", "tag-medium") == "0.1"
    assert shown("--data", "spread-random", "--penalty", "policy") == "0.1"


def test_help_lists_algorithms(capsys) -> None:
    assert spacql("train", "--help") == 0
    assert "icql-qs" in capsys.readouterr().out


def test_mistakes_are_answered_with_what_was_meant(capsys, tmp_path) -> None:
    assert spacql("train", "spacl", "--data", "spread-random") == 2
    assert "Did you mean 'spacql'?" in capsys.readouterr().err
    assert spacql("train", "bc", "--data", "spred-random", "--out", str(tmp_path / "x")) == 2
    assert "Did you mean 'spread-random'?" in capsys.readouterr().err
    assert spacql("train", "bc", "--data", "spread-random", "--rounds", "0") == 2
    assert "rounds is 0" in capsys.readouterr().err
    with pytest.raises(InputError, match="seed"):
        train_seeds("bc", None, Options("spread-random", seeds=(0, 0)))


def test_a_run_s_folder_of_a_dataset_s_name_is_not_taken_for_the_data(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spread-random" / "seed-0").mkdir(parents=True)
    assert data_place("spread-random") == "spread-random"
    save_dataset(toy_dataset(), tmp_path / "data")
    assert data_place("data") == str(tmp_path / "data")


def test_a_logger_that_is_not_installed_leaves_no_folder(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    out = tmp_path / "run"
    assert spacql("train", "bc", "--data", data, "--out", str(out), "--loggers", "wandb") == 2
    assert "pip install 'spacql[loggers]'" in capsys.readouterr().err
    assert not out.exists()
