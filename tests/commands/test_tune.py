"""`spacql tune`: the grid, what it keeps, and the mistakes of a user. No training: workers are
replaced by a function that knows the best alpha."""

import json

import pytest

from spacql.cli import main
from spacql.commands import train


@pytest.fixture
def trained(monkeypatch):
    """What would have been trained: (config, options), with scores that peak at alpha 0.5."""
    calls = []

    def train_seeds(algorithm, config, options):
        calls.append((config, options))
        score = 100 - 40 * abs(config.alpha - 0.5)
        return [
            {"seed": seed, "score": score + seed % 2, "error": "", "note": ""}
            for seed in options.seeds
        ]

    monkeypatch.setattr(train, "train_seeds", train_seeds)
    return calls


def tune(*arguments):
    with pytest.raises(SystemExit) as end:
        main(["tune", *arguments])
    return end.value.code


def test_the_best_mean_wins_and_is_written_with_everything_that_was_tried(
    trained, tmp_path, capsys
):
    out = tmp_path / "sweep"
    alphas = ["0.1", "0.5", "2.5"]
    assert tune("cfcql", "--data", "spread-random", "--alphas", *alphas, "--out", str(out)) == 0
    table = capsys.readouterr().out
    assert table.splitlines()[-2:] == [
        "0.5     100.5   100.0 101.0  best",
        "2.5     20.5    20.0 21.0",
    ]
    written = json.loads((out / "tune.json").read_text())
    assert written["best"] == 0.5
    assert [entry["alpha"] for entry in written["alphas"]] == [0.1, 0.5, 2.5]
    assert written["seeds"] == [100, 101]
    assert (out / "alpha.png").stat().st_size > 5000


def test_trials_are_short_resumable_and_apart_by_alpha(trained, tmp_path):
    out = tmp_path / "sweep"
    tune("cfcql", "--data", "spread-random", "--alphas", "0.1", "1.0", "--rounds", "400",
         "--out", str(out))  # fmt: skip
    assert [config.rounds for config, _ in trained] == [100, 100]
    assert all(options.resume for _, options in trained)
    assert [options.out.name for _, options in trained] == ["alpha-0.1", "alpha-1"]


def test_a_failed_seed_is_named_and_the_others_count(monkeypatch, tmp_path, capsys):
    def train_seeds(algorithm, config, options):
        return [
            {"seed": 100, "score": 50.0, "error": "", "note": ""},
            {"seed": 101, "score": None, "error": "Not finite", "note": ""},
        ]

    monkeypatch.setattr(train, "train_seeds", train_seeds)
    out = tmp_path / "sweep"
    assert tune("cfcql", "--data", "spread-random", "--alphas", "1", "--out", str(out), "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["alphas"] == [{"alpha": 1.0, "scores": [50.0], "mean": 50.0, "failed": [101]}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bc", "--data", "spread-random"], "bc has no alpha to tune"),
        (["nosuch", "--data", "spread-random"], "There is no algorithm 'nosuch'"),
        (["cfcql", "--data", "spread-random", "--share", "0"], "share must be above 0"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(arguments, sentence, capsys):
    assert tune(*arguments) != 0
    assert sentence in capsys.readouterr().err


def test_data_without_a_world_cannot_be_tuned_by_score(monkeypatch, tmp_path, capsys):
    def train_seeds(algorithm, config, options):
        return [{"seed": 100, "score": None, "error": "", "note": "Not evaluated: no world."}]

    monkeypatch.setattr(train, "train_seeds", train_seeds)
    assert tune("cfcql", "--data", "spread-random", "--out", str(tmp_path / "sweep")) != 0
    assert "nothing to tune by" in capsys.readouterr().err
