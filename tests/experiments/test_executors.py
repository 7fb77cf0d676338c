"""Executing planned runs: resuming, failing, and one tiny training from plan to record."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from experiments_toy import run_folder

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from training_toy import TINY, toy_dataset

from spacql.algorithms.settings import configure
from spacql.data import cache, save_dataset
from spacql.errors import Diverged, InputError
from spacql.experiments import executors, worker
from spacql.experiments.executors import Event, Local, PlannedRun, finished_before
from spacql.experiments.paper import make_plan
from spacql.experiments.store import summary
from spacql.runs import locked
from spacql.training.metrics import read_metrics


def one_run() -> PlannedRun:
    [run] = make_plan("table1", only=("spread-random", "cfcql"), seeds=(0,)).runs()
    return run


def workers_do(monkeypatch: pytest.MonkeyPatch, codes: dict[str, str]) -> None:
    """Replace the worker of each algorithm by a few lines of Python."""
    start = "import json, os, sys, time\ndef say(**event): print(json.dumps(event), flush=True)\n"
    monkeypatch.setattr(
        Local, "command", lambda self, run: [sys.executable, "-c", start + codes[run.algorithm]]
    )


def planned(*algorithms: str) -> list[PlannedRun]:
    return make_plan("table2", only=("spread-random", *algorithms), seeds=(0,)).runs()


def test_finished_folders_are_reported_without_a_process(tmp_path, monkeypatch) -> None:
    run = one_run()
    folder = run_folder(tmp_path / run.place, config=asdict(run.config))
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path / "cache"))  # without the data
    monkeypatch.setattr(executors.subprocess, "Popen", None)
    told = []
    Local(tmp_path).execute([run], lambda run, event: told.append(event))
    assert told == [Event("done", record=summary(folder))]


def test_every_run_ends_with_one_event_whatever_its_process_does(tmp_path, monkeypatch) -> None:
    codes = {
        "spacql": "os.kill(os.getpid(), 9)",
        "icql-qs": "say(kind='failed', error='a sentence')",
        "cfcql": "say(kind='diverged', record={'diverged': 'at 3'})",
        "macql": "print('noise'); say(kind='progress', round=1, score=3.5)\n"
        "say(kind='done', record={'seed': 0})",
        "omar": "raise ValueError('no good')",
    }
    workers_do(monkeypatch, codes)
    told = []
    Local(tmp_path, workers=1).execute(
        planned(*codes), lambda run, event: told.append((run.algorithm, event))
    )
    killed, *between, raised = told
    assert killed[1].kind == raised[1].kind == "failed"
    assert "killed by signal 9" in killed[1].error
    assert "no good" in raised[1].error
    assert between == [
        ("icql-qs", Event("failed", error="a sentence")),
        ("cfcql", Event("diverged", record={"diverged": "at 3"})),
        ("macql", Event("progress", round=1, score=3.5)),
        ("macql", Event("done", record={"seed": 0})),
    ]


def test_workers_are_single_threaded_bound_to_no_core_and_know_their_parent(
    tmp_path, monkeypatch
) -> None:
    say = "from spacql.threads import cores\nfound = {'cores': cores()}\n"
    say += "found |= {k: os.environ[k] for k in ('XLA_FLAGS', 'SPACQL_PARENT')}\n"
    say += "say(kind='done', record=found)"
    workers_do(monkeypatch, {"cfcql": say, "macql": say})
    told = []
    Local(tmp_path, workers=2).execute(
        planned("cfcql", "macql"), lambda run, event: told.append(event.record)
    )
    assert len(told) == 2
    for environment in told:
        assert "--xla_cpu_multi_thread_eigen=false" in environment["XLA_FLAGS"]
        assert environment["SPACQL_PARENT"] == str(os.getpid())
        assert environment["cores"] == executors.cores(), "another command may need one"


def test_an_interrupt_ends_the_workers_and_reports_no_failure(tmp_path, monkeypatch) -> None:
    code = "say(kind='progress', round=os.getpid()); time.sleep(60)"
    workers_do(monkeypatch, {"cfcql": code, "macql": code})
    told: list[Event] = []

    def report(run: PlannedRun, event: Event) -> None:
        told.append(event)
        os.kill(os.getpid(), signal.SIGINT)  # Ctrl-C

    # Tests that were started in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Local(tmp_path, workers=1).execute(planned("cfcql", "macql"), report)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [event.kind for event in told] == ["progress"]
    with pytest.raises(ProcessLookupError):
        os.kill(told[0].round, 0)


def test_a_worker_ends_when_its_parent_was_killed() -> None:
    child = "from spacql.experiments.worker import end_with_parent as end\nimport time\n"
    child += "end(); print('ready', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.kill()
    started = time.monotonic()
    assert process.stdout.read() == "", "the pipe closes when the worker is gone"
    assert time.monotonic() - started < 30


def test_a_worker_ends_when_its_parent_was_killed_before_it_could_look() -> None:
    child = "from spacql.experiments.worker import end_with_parent as end\nimport time\n"
    child += "end(); time.sleep(60)"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    environment = os.environ | {"SPACQL_PARENT": str(gone.pid)}
    started = time.monotonic()
    assert subprocess.run([sys.executable, "-c", child], env=environment).returncode == 1
    assert time.monotonic() - started < 30


def test_a_folder_is_trained_in_by_one_process(tmp_path) -> None:
    with locked(tmp_path / "seed-0"):
        with pytest.raises(InputError, match="Another process"), locked(tmp_path / "seed-0"):
            pass
        told: list[Event] = []
        worker.work(one_run(), tmp_path / "seed-0", told.append)
        assert [(event.kind, event.error.split(" is")[0]) for event in told] == [
            ("failed", "Another process")
        ]
    with locked(tmp_path / "seed-0"):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"), locked(tmp_path / "file" / "seed-0"):
        pass


def test_a_planned_run_is_the_same_after_a_way_through_json() -> None:
    run = one_run()
    named = PlannedRun("cfcql", "/some/folder", 3, run.config, "seed-3", 7, ("tensorboard",))
    for one in (run, named):
        assert PlannedRun.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert named.place == "seed-3"
    assert run.place.startswith("spread-random/cfcql-")


def toy_run(tmp_path: Path, **values: object) -> PlannedRun:
    """A tiny training on a dataset of no known world."""
    save_dataset(toy_dataset(), tmp_path / "data")
    config = configure("spacql", overrides={**TINY, **values})
    return PlannedRun("spacql", str(tmp_path / "data"), 0, config, "seed-0")


def test_a_diverged_training_is_an_event_with_a_record(tmp_path, monkeypatch) -> None:
    def diverge(*_, **__):
        raise Diverged("Not finite.")

    monkeypatch.setattr("spacql.training.loop.fit", diverge)
    told: list[Event] = []
    worker.work(toy_run(tmp_path), tmp_path / "run", told.append)
    begun, event = told
    assert begun.kind == "progress"
    assert event.kind == "diverged"
    assert (event.record["diverged"], event.record["evaluation"]) == ("Not finite.", None)
    assert event.record["seconds"] > 0
    assert str(tmp_path) not in json.dumps(event.record), "a record names no place of a machine"


def test_a_run_killed_in_the_middle_resumes_to_identical_bits_also_from_the_checkpoint_before(
    tmp_path,
) -> None:
    run = toy_run(tmp_path, rounds=400)
    local = Local(tmp_path / "killed", workers=1)
    killed = tmp_path / "killed" / "seed-0"
    process = subprocess.Popen(local.command(run), stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if json.loads(line)["round"] >= 50:  # between the checkpoints of rounds 40 and 60
            os.kill(process.pid, signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    assert not (killed / "result.json").exists()
    newest = max((killed / "checkpoints").glob("*.checkpoint"))
    newest.write_bytes(newest.read_bytes()[:100])
    told: list[Event] = []
    local.execute([run], lambda run, event: told.append(event))
    assert told[0].round == 0
    assert told[1].kind == "note"
    assert f"{newest} is damaged" in told[1].note
    assert f"set aside as damaged-{newest.name}" in told[1].note
    assert told[2].round > 20, "it did not begin anew"
    assert told[-1] == Event("done", record=summary(killed))
    assert "No simulator is known for 'toy'" in told[-1].record["note"]
    worker.work(run, tmp_path / "whole", lambda event: None)
    for file in ("metrics.jsonl", "policy.safetensors", "policy.json"):
        assert (killed / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    assert len(read_metrics(killed / "metrics.jsonl")) == 400
    assert len(list((killed / "checkpoints").glob("[0-9]*"))) <= 3


def test_another_run_in_the_folder_is_no_answer(tmp_path) -> None:
    """Same place, another question: length, setting, algorithm, seed, data."""
    run = PlannedRun("bc", "toy", 3, configure("bc", "toy", {"rounds": 40}), "place")
    folder = run_folder(tmp_path / "place", algorithm="bc", dataset="toy", seed=3,
                        config=asdict(run.config))  # fmt: skip
    assert finished_before(run, folder).kind == "done"
    for change in (
        {"config": replace(run.config, rounds=80)},
        {"config": replace(run.config, gradient_clip=9.0)},
        {"algorithm": "cfcql", "config": configure("cfcql", "toy", {"rounds": 40})},
        {"seed": 4},
        {"dataset": "other"},
    ):
        assert finished_before(replace(run, **change), folder) is None
    assert finished_before(run, tmp_path / "nothing") is None
    (folder / "result.json").write_text("{")
    damaged = finished_before(run, folder)
    assert damaged.kind == "failed"
    assert "not valid JSON" in damaged.error


def test_a_run_on_data_that_was_replaced_since_is_no_answer(tmp_path) -> None:
    run = toy_run(tmp_path)
    data, other = toy_dataset(), toy_dataset(seed=1)
    folder = run_folder(tmp_path / "seed-0", algorithm="spacql", dataset=run.dataset,
                        config=asdict(run.config), identity=data.identity)  # fmt: skip
    assert finished_before(run, folder).kind == "done"
    shutil.rmtree(run.dataset)
    assert finished_before(run, folder).kind == "done", "data that is gone says nothing"
    save_dataset(other, run.dataset)
    assert finished_before(run, folder) is None
    told: list[Event] = []
    worker.work(run, folder, told.append)
    assert [event.kind for event in told] == ["failed"]
    assert "was trained on another dataset; it cannot continue. Begin anew" in told[0].error


def test_a_run_that_is_to_be_compared_is_not_trained_on_other_data(tmp_path) -> None:
    run = replace(toy_run(tmp_path), data_identity="another")
    told: list[Event] = []
    worker.work(run, tmp_path / "seed-0", told.append)
    assert [event.kind for event in told] == ["failed"]
    assert "This machine makes other data" in told[0].error
    assert not (tmp_path / "seed-0" / "run.json").exists()


def test_named_data_is_compared_where_it_is_kept_and_never_made(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path / "cache"))
    run = replace(one_run(), seed=5)  # which trains on dataset 0
    folder = run_folder(tmp_path / "run", seed=5, config=asdict(run.config))
    assert finished_before(run, folder).kind == "done"
    assert not (tmp_path / "cache").exists()
    save_dataset(toy_dataset(), cache.place(run.dataset, 0))
    assert finished_before(run, folder) is None


def test_a_process_that_dies_leaves_its_words_in_the_folder(tmp_path, monkeypatch) -> None:
    run = PlannedRun("bc", "toy", 0, configure("bc", "toy", {"rounds": 40}), "place")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "run.json").write_text("{}")
    code = "import sys; print('ValueError: the thing itself', file=sys.stderr); "
    code += "print('For simplicity, many more words.', file=sys.stderr); sys.exit(1)"
    monkeypatch.setattr(Local, "command", lambda self, run: [sys.executable, "-c", code])
    events = []
    Local(tmp_path, 1).execute([run], lambda run, event: events.append(event))
    [event] = events
    assert event.kind == "failed"
    assert "ended with code 1. ValueError: the thing itself (all of it is in" in event.error
    assert "many more words" in (tmp_path / "place" / "error.txt").read_text()
