import json
import subprocess

import pytest

from spacql.commands import bench_sampling
from spacql.errors import InputError


def test_more_steps_cost_more():
    network, sampled = (bench_sampling._actor(steps, 1) for steps in (0, 10))
    times = [bench_sampling._microseconds(actor, 1000, 2) for actor in (network, sampled)]
    assert times[0] < times[1]


def test_the_table_shows_what_the_process_measured(monkeypatch, capsys):
    measured = json.dumps({"an actor": [1234.5, 6.7]})

    def run(command, **_):
        return subprocess.CompletedProcess(command, 0, stdout=f"noise\n{measured}\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    bench_sampling.bench_sampling()
    _, row = capsys.readouterr().out.splitlines()
    assert row.split() == ["an", "actor", "1,234.5", "6.7"]
    with pytest.raises(InputError, match="at least 1"):
        bench_sampling.bench_sampling(repeats=0)
