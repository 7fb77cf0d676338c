import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spacql.commands.bench_executors import _measure, bench_executors
from spacql.commands.bench_train import seconds_of
from spacql.errors import InputError
from spacql.experiments.executors import Event


class Fake:
    """An executor that reports what it was given, from a thread of its own."""

    def __init__(self, event: Event):
        self.event = event

    def execute(self, runs, report) -> None:
        def each() -> None:
            for run in runs:
                report(run, Event("progress"))
                report(run, self.event)

        thread = threading.Thread(target=each)
        thread.start()
        thread.join()


def test_what_a_run_costs_is_its_training_and_the_rest() -> None:
    found = _measure(Fake(Event("done", record={"seconds": 3.0})), ["a", "b"], 2)
    assert found["training"] == 3.0
    assert found["clock"] == pytest.approx(found["training"] + found["beside"])
    assert 0 <= found["clock"] < 1
    with pytest.raises(InputError, match="its end: no good"):
        _measure(Fake(Event("failed", error="no good")), ["a"], 1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_processors_time_is_that_of_all_descendants() -> None:
    burn = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.5: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    before = seconds_of(os.getpid())
    with subprocess.Popen([sys.executable, "-c", child + "; input()"], stdin=-1, stdout=-1) as one:
        deadline = time.monotonic() + 60
        while seconds_of(os.getpid()) < before + 0.5 and time.monotonic() < deadline:
            time.sleep(0.1)
        alive = seconds_of(os.getpid()) - before
        one.communicate(b"\n")
    assert alive >= 0.5
    assert seconds_of(os.getpid()) - before >= 0.5


def test_numbers_that_measure_nothing_are_refused() -> None:
    for numbers in ({"runs": 3}, {"rounds": 0}, {"workers": 0}):
        with pytest.raises(InputError, match="multiple of the workers"):
            bench_executors(**numbers)


@pytest.mark.slow
def test_both_executors_are_measured(capsys) -> None:
    pytest.importorskip("ray")
    bench_executors(runs=1, workers=1, algorithm="bc", rounds=10, transitions=2500, json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["local"]["training"] > 0
    assert found["ray"]["training"] > 0
    if Path("/proc/self/stat").exists():
        assert found["local"]["processor"] > 0.5
        assert found["ray"]["processor"] > 0.5
