"""Worker processes: one that dies is reported, and the others go on."""

import os
import sys
from pathlib import Path

from training_toy import TINY, toy_dataset

from spacql.commands.train import Options, main, train_seeds
from spacql.data import save_dataset
from spacql.runs import configure
from spacql.training.seeds import Job, run_jobs


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_worker_that_dies_is_reported_while_the_others_go_on() -> None:
    say = "print('{\"done\": true}')"
    jobs = [
        Job("killed", python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")),
        Job("raises", python("raise ValueError('no good')")),
        Job("explains", python('print(\'{"error": "a sentence"}\'); exit(2)')),
        Job("well", python(say)),
        Job("well too", python(say)),
    ]
    failed = []
    run_jobs(jobs, 1, on_failure=lambda job: failed.append(job.name))
    assert failed == ["killed", "raises", "explains"]
    assert "killed by signal 9" in jobs[0].error
    assert "no good" in jobs[1].error
    assert jobs[2].error == "a sentence"
    assert jobs[3].events == jobs[4].events == [{"done": True}]


def test_workers_are_single_threaded_and_have_a_core() -> None:
    names = ("XLA_FLAGS", "SPACQL_CORE")
    code = f"import os, json; print(json.dumps({{k: os.environ[k] for k in {names}}}))"
    jobs = [Job("one", python(code)), Job("two", python(code))]
    run_jobs(jobs, 2)
    for job in jobs:
        assert "--xla_cpu_multi_thread_eigen=false" in job.events[0]["XLA_FLAGS"]
        assert int(job.events[0]["SPACQL_CORE"]) in os.sched_getaffinity(0)


def test_one_seed_fails_and_the_other_finishes(tmp_path: Path, monkeypatch, capsys) -> None:
    data = tmp_path / "data"
    save_dataset(toy_dataset(), data)
    config = configure("spacql", toy_dataset(), TINY)
    out = tmp_path / "run"
    options = Options(str(data), seeds=(0, 1), out=out, workers=1)
    monkeypatch.setattr("spacql.runs.describe", _without_data_for_seed_0())
    results = train_seeds("spacql", config, options)
    assert "/nowhere/at/all" in results[0]["error"]
    assert results[1]["error"] == ""
    assert (out / "seed-1" / "policy.safetensors").exists()
    assert "seed 0 failed" in capsys.readouterr().err


def _without_data_for_seed_0():
    from spacql.runs import describe

    def changed(algorithm, config, dataset, seed, **rest):
        described = describe(algorithm, config, dataset, seed, **rest)
        return described if seed else described | {"data": "/nowhere/at/all"}

    return changed


def test_train_command_lists_algorithms_and_hyperparameters(capsys) -> None:
    assert main(["--help"]) == 0
    assert "icql-qs" in capsys.readouterr().out
