"""Training one seed: what a round sees, resuming to the bit, and stopping with a sentence."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from training_toy import TINY, toy_dataset

from spacql.algorithms import settings
from spacql.commands.train import Options, parse
from spacql.data import load_dataset, save_dataset
from spacql.errors import InputError, TrainingError
from spacql.files import read_json, write_json
from spacql.runs import configure, describe, every, open_folder, run_folder, train
from spacql.training.loop import Schedule, chunk_length, sampled
from spacql.training.metrics import MetricsFile, read_metrics


def test_rows_depend_on_seed_and_round_alone() -> None:
    config = configure("spacql", toy_dataset(), TINY)
    rows = np.arange(50)
    np.testing.assert_array_equal(sampled(rows, 1, 7, config), sampled(rows, 1, 7, config))
    assert (sampled(rows, 1, 7, config) != sampled(rows, 1, 8, config)).any()
    assert (sampled(rows, 1, 7, config) != sampled(rows, 2, 7, config)).any()
    assert sampled(rows, 0, 0, config).shape == (config.updates, config.batch_size)


@pytest.mark.parametrize(("rounds", "expected"), [(2000, 10), (20, 10), (37, 1), (6, 6)])
def test_chunks_end_where_something_happens(rounds, expected) -> None:
    schedule = Schedule(every(rounds, 20), every(rounds, 20))
    assert chunk_length(rounds, schedule) == expected


def test_metrics_after_a_checkpoint_are_dropped(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"round": 1}\n{"round": 2}\n{"round": 3}\n{"rou')
    MetricsFile(path, after=2).close()
    assert [row["round"] for row in read_metrics(path)] == [1, 2]


def test_a_run_killed_in_the_middle_resumes_to_identical_bits(tmp_path: Path) -> None:
    data = tmp_path / "data"
    save_dataset(toy_dataset(), data)
    dataset = load_dataset(data)
    config = configure("spacql", dataset, {**TINY, "rounds": 400})
    described = describe("spacql", config, dataset, 0, data=str(data)) | {"checkpoint_every": 20}
    for name in ("whole", "killed"):
        open_folder(tmp_path / name, described, resume=False)
    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "spacql.runs", str(killed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if json.loads(line)["round"] >= 30:  # between the checkpoints of rounds 20 and 40
            os.kill(process.pid, signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    assert not (killed / "result.json").exists()
    run_folder(killed, dataset)
    run_folder(tmp_path / "whole", dataset)
    for file in ("metrics.jsonl", "policy.safetensors", "policy.json"):
        assert (killed / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    assert len(read_metrics(killed / "metrics.jsonl")) == 400
    assert len(list((killed / "checkpoints").iterdir())) <= 3


def test_a_non_finite_loss_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = train("spacql", toy_dataset(), out=folder, **TINY)
    assert first.score is None
    assert "no task 'toy'" in first.result["note"]
    longer = {**TINY, "rounds": 60}
    broken = toy_dataset()
    broken.team_reward[3::7] = np.nan
    described = read_json(folder / "run.json")
    described["config"]["rounds"] = 60
    write_json(folder / "run.json", described)
    with pytest.raises(
        TrainingError, match=r"Not finite at round 21: .*td_error.*round 20 is kept"
    ):
        run_folder(folder, broken)
    assert [row["round"] for row in read_metrics(folder / "metrics.jsonl")] == list(range(1, 21))
    assert train("spacql", toy_dataset(), out=folder, resume=True, **longer).result["rounds"] == 60


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    described = describe("spacql", configure("spacql", toy_dataset(), TINY), toy_dataset(), 0)
    open_folder(tmp_path / "run", described, resume=False)
    with pytest.raises(InputError, match="--resume"):
        open_folder(tmp_path / "run", described, resume=False)
    other = describe(
        "spacql", configure("spacql", toy_dataset(), {**TINY, "alpha": 9.0}), toy_dataset(), 0
    )
    with pytest.raises(InputError, match="another alpha"):
        open_folder(tmp_path / "run", other, resume=True)
    other = describe("spacql", configure("spacql", toy_dataset(), TINY), toy_dataset(seed=1), 0)
    with pytest.raises(InputError, match="another dataset"):
        open_folder(tmp_path / "run", other, resume=True)


def test_wrong_hyperparameters_are_refused() -> None:
    with pytest.raises(InputError, match="no hyperparameter 'alhpa'"):
        configure("spacql", toy_dataset(), {"alhpa": 1.0})
    with pytest.raises(InputError, match=r"discount is 1\.0"):
        configure("spacql", toy_dataset(), {"discount": 1.0})
    with pytest.raises(InputError, match="no algorithm 'sarsa'"):
        configure("sarsa", toy_dataset(), {})


def test_settings_belong_to_the_dataset_s_name() -> None:
    data = toy_dataset()
    data.info["name"] = "world-expert"
    config = configure("cfcql", data, {"rounds": 3})
    of_task = settings.TASKS["world"]
    assert config.alpha == settings.ALPHA["world"]["expert"]
    assert (config.batch_size, config.penalty_every) == (1024, of_task["penalty_every"])
    assert (config.learning_rate, config.rounds) == (of_task["learning_rate"], 3)
    assert configure("bc", data, {}).batch_size == settings.BASELINE["batch_size"]


def test_alpha_follows_the_penalty_the_same_way_by_call_and_by_command() -> None:
    data = toy_dataset()
    data.info["name"] = "spread-random"
    by_form = settings.ALPHA["spread"]["random"], settings.POLICY_ALPHA["spread"]["random"]
    assert by_form[0] != by_form[1]
    for form, alpha in zip(("log-sum-exp", "policy"), by_form, strict=True):
        assert configure("cfcql", data, {"penalty": form}).alpha == alpha
        words = ["--data", "spread-random", "--penalty", form]
        assert parse("train", "cfcql", words, Options)[1].alpha == alpha
        assert parse("train", "cfcql", [*words, "--alpha", "7"], Options)[1].alpha == 7
