"""`spacql tune`: the grid, what it keeps, and the mistakes of a user. No training: the executor is
replaced by a function that knows the best alpha."""

import json
import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from training_toy import toy_dataset

from spacql.algorithms.settings import configure
from spacql.cli import main
from spacql.commands.tune import _parsed
from spacql.data import save_dataset
from spacql.errors import InputError
from spacql.experiments.executors import Event, Local, PlannedRun
from spacql.experiments.store import digest


def score(run: PlannedRun) -> Event:
    """Scores peak at alpha 0.5."""
    found = 100 - 40 * abs(run.config.alpha - 0.5) + run.seed % 2
    return Event("done", record={"evaluation": {"score": found}, "seconds": 1.0})


@pytest.fixture
def trained(monkeypatch):
    """What would have been trained, in one call: the runs."""
    calls = []

    def execute(self, runs, report):
        calls.append([(self.folder, run) for run in runs])
        for run in reversed(runs):
            report(run, score(run))

    monkeypatch.setattr(Local, "execute", execute)
    return calls


@pytest.fixture
def data(tmp_path) -> str:
    save_dataset(toy_dataset(), tmp_path / "toy")
    return str(tmp_path / "toy")


def tune(*arguments):
    with pytest.raises(SystemExit) as end:
        main(["tune", *arguments])
    return end.value.code


def test_the_best_mean_wins_and_is_written_with_everything_that_was_tried(
    trained, data, tmp_path, capsys
):
    out = tmp_path / "sweep"
    alphas = ["0.1", "0.5", "2.5"]
    assert tune("cfcql", "--data", data, "--alphas", *alphas, "--out", str(out)) == 0
    table = capsys.readouterr().out
    assert table.splitlines()[-2:] == [
        "0.5     100.5   100.0 101.0  best",
        "2.5     20.5    20.0 21.0",
    ]
    written = json.loads((out / "tune.json").read_text())
    assert written["best"] == 0.5
    assert [entry["value"] for entry in written["values"]] == [0.1, 0.5, 2.5]
    assert written["seeds"] == [100, 101]
    assert written["folder"] is True
    assert (out / "alpha.png").stat().st_size > 5000


def test_all_trials_are_executed_in_one_go_short_and_apart(trained, data, tmp_path):
    out = tmp_path / "sweep"
    tune("cfcql", "--data", data, "--alphas", "0.1", "1.0", "--rounds", "400", "--out", str(out))
    [runs] = trained
    assert [run.config.rounds for _, run in runs] == [100] * 4
    assert [str(folder / run.place) for folder, run in runs] == [
        f"{out}/alpha-{alpha}-{digest(asdict(run.config))}/seed-{seed}"
        for (alpha, seed), (_, run) in zip(product(("0.1", "1"), (100, 101)), runs, strict=True)
    ]
    assert len({run.place for _, run in runs}) == 4


@pytest.mark.parametrize("algorithm", ["spacql", "aspac"])
def test_without_a_grid_the_algorithms_own_alpha_is_in_the_middle(
    trained, data, tmp_path, algorithm
):
    tune(algorithm, "--data", data, "--seeds", "100", "--out", str(tmp_path / "sweep"))
    alphas = [run.config.alpha for _, run in trained[0]]
    own = configure(algorithm, data).alpha
    assert len(alphas) == 7
    assert sorted(alphas) == alphas
    np.testing.assert_allclose([alphas[0], alphas[3], alphas[-1]], [own / 10, own, own * 10])


@pytest.mark.parametrize(
    ("end", "more"),
    [
        (Event("failed", error="killed"), {"crashed": [101]}),  # which is not done
        (Event("diverged", record={"evaluation": None, "seconds": 0.0, "diverged": "Not finite"}),
         {}),
    ],
)  # fmt: skip
def test_a_failed_seed_is_named_and_the_others_count(
    monkeypatch, data, tmp_path, capsys, end, more
):
    def execute(self, runs, report):
        for run in runs:
            report(run, end if run.seed == 101 else score(run))

    monkeypatch.setattr(Local, "execute", execute)
    out = tmp_path / "sweep"
    assert tune("cfcql", "--data", data, "--alphas", "0.5", "--out", str(out), "--json") == 1
    result = json.loads(capsys.readouterr().out)
    entry = {"value": 0.5, "scores": [100.0], "mean": 100.0, "failed": [101]}
    assert result["values"] == [entry | more]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bc", "--data", "spread-random"], "bc has no alpha to tune. Choose another: --vary NAME"),
        (["td3bc", "--data", "spread-random"], "Its own strength is q_weight: --vary q_weight"),
        (["nosuch", "--data", "spread-random"], "There is no algorithm 'nosuch'"),
        (["cfcql", "--data", "spread-random", "--share", "0"], "share must be above 0"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(arguments, sentence, capsys):
    assert tune(*arguments) != 0
    assert sentence in capsys.readouterr().err


def without_a_world(monkeypatch):
    """Trainings that end without a score, and a log that speaks for the smaller values."""
    note = Event("done", record={"evaluation": None, "seconds": 1.0, "note": "Not evaluated."})
    monkeypatch.setattr(
        Local, "execute", lambda self, runs, report: [report(run, note) for run in runs]
    )
    monkeypatch.setattr(
        "spacql.commands.tune.estimated",
        lambda places, options: {run: -run.config.updates - run.seed % 2 for run in places},
    )


def test_data_without_a_world_is_tuned_by_what_the_log_says(monkeypatch, data, tmp_path, capsys):
    without_a_world(monkeypatch)
    out = tmp_path / "sweep"
    arguments = ["--vary", "updates", "--values", "1", "5", "2"]
    assert tune("cfcql", "--data", data, "--out", str(out), *arguments) == 0
    said = capsys.readouterr().out
    assert "Without a simulator" in said
    written = json.loads((out / "tune.json").read_text())
    assert written["hyperparameter"] == "updates"
    assert [entry["value"] for entry in written["values"]] == [1, 5, 2]
    assert written["best"] == 1
    assert (out / "updates.png").exists()


def test_any_hyperparameter_is_read_in_its_own_type(trained, data, tmp_path, monkeypatch):
    without_a_world(monkeypatch)
    out = tmp_path / "sweep"
    assert tune("bc", "--data", data, "--vary", "hidden", "--values", "8", "16,16",
                "--out", str(out)) == 0  # fmt: skip
    written = json.loads((out / "tune.json").read_text())
    assert [entry["value"] for entry in written["values"]] == [[8], [16, 16]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--vary", "alfa", "--values", "1"], "no hyperparameter 'alfa' to tune. Did you mean"),
        (["--vary", "updates"], "Give the values of updates"),
        (["--vary", "updates", "--values", "many"], "'many' is no value of updates"),
    ],
)
def test_wrong_sweeps_are_answered_with_a_sentence(arguments, sentence, data, capsys):
    assert tune("cfcql", "--data", data, *arguments) != 0
    assert sentence in capsys.readouterr().err


def test_truth_values_are_words_and_every_value_is_checked_first(trained, data, capsys, tmp_path):
    assert [_parsed("detach_q", text, False) for text in ("true", "False")] == [True, False]
    with pytest.raises(InputError, match="'0' is no value of detach_q"):
        _parsed("detach_q", "0", False)
    out = tmp_path / "sweep"
    for value, sentence in (("1.5", "discount is 1.5"), ("nan", "discount is nan")):
        arguments = ["--vary", "discount", "--values", "0.9", value, "--out", str(out)]
        assert tune("cfcql", "--data", data, *arguments) != 0
        assert sentence in capsys.readouterr().err
    assert not out.exists()
