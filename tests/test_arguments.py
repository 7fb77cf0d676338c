"""Arguments that cannot work: one sentence, code 2, and nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spacql import arguments, cli
from spacql.data import Dataset, save_dataset
from spacql.errors import InputError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, place = np.random.default_rng(0), tmp_path_factory.mktemp("data") / "toy"
    episodes = [
        {
            "observations": [rng.normal(size=(6, 3))] * 3,
            "actions": [rng.uniform(-1, 1, (6, 2))] * 3,
            "rewards": rng.normal(size=(5, 3)),
        }
        for _ in range(3)
    ]
    save_dataset(Dataset.from_episodes(episodes, info={"name": "../../../escaped"}), place)
    return place


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("train spacql --data DATA --workers -1", "--workers is -1"),
        ("train spacql --data DATA --seeds -1", "A seed is -1"),
        ("train spacql --data DATA --seeds 99999999999999999999", "A seed is 9999"),
        ("train spacql --data DATA --seeds 0 0", "Every seed must be given once"),
        ("train spacql --data DATA --seeds", "at least one seed"),
        ("train spacql --data DATA --replaced 4", "of 3 agents, 1 to 3 can be replaced"),
        ("train spacql --data DATA --episodes -3", "--episodes is -3"),
        ("train spacql --data DATA --batch-size 100000000 --updates 100", "of memory are free"),
        ("train spacql --data DATA --out FILE", "is a file; a folder is expected"),
        (f"train spacql --data DATA --out {'x' * 300}", "cannot be written"),
        ("train spacql --data DATA --alpha nan", "alpha is nan"),
        ("train spacql --data DATA --hidden 0", "each has 1 to"),
        ("train spacql --data DATA --hidden", "at least one layer"),
        ("train spacql --data DATA --policy-samples -1", "policy_samples is -1"),
        ("train spacql --data DATA --actor-learning-rate -1", "actor_learning_rate is -1"),
        ("train spacql --data DATA --target-rate 5", "target_rate is 5"),
        ("tune spacql --data DATA --vary replaced --values 7", "replaced is 7"),
        ("reproduce table1 --stored --out .", "--out . is a folder"),
        ("reproduce claims --only spread", "leave out --only"),
        ("reproduce table1 --against bc", "--against is for pairs"),
        ("train spacql --data DATA --out EMPTY", "One of the arguments is empty"),
        ("tune spacql --data DATA --alphas inf", "alphas must be finite numbers"),
        ("tune spacql --data DATA --seeds 1 1", "Every seed must be given once"),
        ("evaluate DATA --seed -1", "--seed is -1"),
        ("data make spread-random --workers -1 --out new", "--workers is -1"),
        ("data inspect DATA --seed -1", "--seed is -1"),
        ("bench update --repeats 0", "--repeats is 0"),
        ("reproduce table1 --stored --results nowhere", "no stored runs in nowhere"),
        ("reproduce claims --results nowhere", "no stored runs in nowhere"),
        ("reproduce table1 --seeds 0 0", "Every seed must be given once"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    words: str, sentence: str, data: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    places = {"DATA": str(data), "FILE": "file", "EMPTY": ""}
    with pytest.raises(SystemExit) as end:
        cli.main([places.get(word, word) for word in words.split()])
    said = capsys.readouterr().err
    assert end.value.code == 2, said
    assert said.startswith("spacql: ")
    assert sentence in said
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_from_a_dataset_is_one_part_of_a_path(data: Path) -> None:
    from spacql.data import load_dataset
    from spacql.runs import dataset_name, default_folder

    folder = default_folder("bc", dataset_name(load_dataset(data)))
    assert folder.parent == Path("runs")
    assert ".." not in folder.parts


def test_places_are_checked_where_they_are(tmp_path: Path) -> None:
    arguments.place(tmp_path / "a" / "b")
    arguments.place(None)
    with pytest.raises(InputError, match="cannot be written"):
        arguments.place(Path("a\0b"))


def test_a_terminal_without_greek_letters_gets_question_marks(data: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spacql", "data", "inspect", str(data)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"?" in done.stdout
