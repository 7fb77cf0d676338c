"""Executing planned runs: resuming, failing, and one tiny training from plan to store."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import pytest
from experiments_toy import run_folder

from spacql.data import collect
from spacql.errors import InputError
from spacql.experiments import executors
from spacql.experiments.executors import Local
from spacql.experiments.plans import PlannedRun, configured, make_plan
from spacql.training.seeds import Job

TINY = {"rounds": 2, "batch_size": 16, "hidden": (8, 8), "critics": 2, "updates": 1, "samples": 2}


def test_finished_folders_are_reported_without_a_process(tmp_path, monkeypatch) -> None:
    [run] = make_plan("table1", only=("spread-random", "cfcql"), seeds=(0,)).runs()
    folder = run_folder(tmp_path / run.name, config=asdict(run.config))
    monkeypatch.setattr(executors, "run_jobs", None)
    told = []
    Local(tmp_path).execute([run], lambda run, event: told.append(event))
    assert told == [{"kind": "done", "folder": folder}]


def test_failed_and_diverged_runs_are_reported_and_the_others_are_done(
    tmp_path, monkeypatch
) -> None:
    codes = {
        "icql-qs": 'print(\'{"error": "a sentence"}\'); exit(2)',
        "cfcql": 'print(\'{"error": "Not finite at round 3: u."}\'); exit(2)',
        "macql": 'print(\'{"round": 1, "score": 3.5}\'); print(\'{"done": true}\')',
    }
    runs = make_plan("table2", only=("spread-random", *codes), seeds=(0,)).runs()
    monkeypatch.setattr(
        Local, "command", lambda self, run, folder: [sys.executable, "-c", codes[run.algorithm]]
    )
    told = []
    Local(tmp_path, workers=1).execute(runs, lambda run, e: told.append((run.algorithm, e)))
    folders = {run.algorithm: tmp_path / run.name for run in runs}
    broke = {"folder": folders["cfcql"], "error": "Not finite at round 3: u."}
    assert told == [
        ("icql-qs", {"kind": "failed", "error": "a sentence"}),
        ("cfcql", {"kind": "diverged", **broke}),
        ("macql", {"kind": "progress", "round": 1, "score": 3.5}),
        ("macql", {"kind": "done", "folder": folders["macql"]}),
    ]


def test_a_worker_ends_when_its_reproduction_was_killed() -> None:
    child = "from spacql.experiments.executors import _end_with_parent as end\nimport time\n"
    child += "end(); print('ready', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.kill()
    started = time.monotonic()
    assert process.stdout.read() == "", "the pipe closes when the worker is gone"
    assert time.monotonic() - started < 30


def test_a_folder_is_trained_in_by_one_process(tmp_path) -> None:
    held = executors._lock(tmp_path / "seed-0")
    with pytest.raises(InputError, match="Another process"):
        executors._lock(tmp_path / "seed-0")
    held.close()
    executors._lock(tmp_path / "seed-0").close()


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """spread-random of 100 episodes in a cache of its own."""
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path / "cache"))
    from spacql.data.cache import place

    collect.make_dataset("spread-random", place("spread-random", 0), transitions=2500)


def test_an_interrupted_run_goes_on_to_its_end(tmp_path, small_data) -> None:
    """Killed after its first checkpoint, it continues from there."""
    config = configured("cfcql", "spread-random", {**TINY, "rounds": 30})
    run = PlannedRun("cfcql", "spread-random", 0, config)
    local = Local(tmp_path / "runs", workers=1)
    folder = tmp_path / "runs" / run.name
    process = subprocess.Popen(local.command(run, folder), stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if json.loads(line).get("round", 0) >= 10:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.wait()
    assert not (folder / "result.json").exists()
    told: list[dict] = []
    local.execute([run], lambda run, event: told.append(dict(event)))
    assert told[-1] == {"kind": "done", "folder": folder}
    first = next(event["round"] for event in told if event["kind"] == "progress")
    assert first > 10, "it did not begin anew"


def test_a_job_is_a_command_that_names_everything() -> None:
    [run] = make_plan("table1", only=("spread-random", "cfcql"), seeds=(0,)).runs()
    job = Job("x", Local(executors.Path("runs")).command(run, executors.Path("runs/x")))
    what = json.loads(job.command[-1])
    assert what["config"]["rounds"] == run.config.rounds
    assert (what["algorithm"], what["dataset"], what["seed"]) == ("cfcql", "spread-random", 0)
