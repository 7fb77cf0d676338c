"""`spacql bench train`: what it counts, and how its parts are put together."""

import json
import os
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import pytest

from spacql.commands import bench_train
from spacql.errors import InputError


def test_products_are_counted_with_their_loops() -> None:
    def program(a, b):  # (2, 3) and (3, 5)
        once = a @ b

        def step(total, row):
            return total + row @ b, jnp.sum(jax.jit(lambda x: x @ b.T)(once))

        return jax.lax.scan(step, jnp.zeros(5), jnp.ones((7, 3)))

    found = jax.make_jaxpr(program)(jnp.ones((2, 3)), jnp.ones((3, 5)))
    by_hand = 2 * 2 * 3 * 5 + 7 * (2 * 3 * 5 + 2 * 2 * 5 * 3)
    assert bench_train.products(found.jaxpr) == by_hand


def test_a_clock_keeps_what_first_calls_take_apart() -> None:
    clock = bench_train.Clock()
    clock.calls["update"] = [10.0, 2.0, 1.0, 3.0]
    assert (clock.usual("update"), clock.first("update")) == (1.0, 9.0)
    assert clock.timed("add", lambda a, b: a + b)(2, b=3) == 5
    assert len(clock.calls["add"]) == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux")
def test_the_processors_time_of_children_counts() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)  # fmt: skip
    child.stdout.readline()
    mine = time.process_time()
    assert bench_train.processor() - mine >= 0.25
    assert bench_train.seconds_of(child.pid) >= 0.25
    child.communicate(b"\n")
    assert bench_train.seconds_of(child.pid) == 0


CASE = {"algorithm": "cfcql", "dataset": "spread-random", "rounds": 500, "ms_update": 5.25,
        "ms_critics": 4.5, "ms_actors": 3.75, "of_peak": 0.7, "peak": 90.0, "first_round": None,
        "seconds": 120.0, "share": {"update": 0.9, "gather": 0.05, "evaluate": 0.02, "save": 0.01,
                                    "compile": 0.01, "start": 0.01}}  # fmt: skip


def test_the_tables_show_shares_and_fit_a_terminal(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    def run(command, **_):
        assert command[3:6] == ["cfcql", "spread-random", "0"]
        return subprocess.CompletedProcess(command, 0, stdout=json.dumps(CASE), stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    bench_train.bench_train(algorithms=("cfcql",), tasks=("spread",))
    said = capsys.readouterr().out.splitlines()
    assert max(map(len, said)) <= 80
    rows = [line.split() for line in said if line.startswith("spread cfcql")]
    assert rows[0][2:] == ["5.25", "4.50", "3.75", "70%", "–"]
    assert rows[1][2:] == ["2.0", "90", "5", "2", "1", "1", "1", "9"]


def test_what_cannot_be_measured_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="multiple of ten"):
        bench_train.bench_train(rounds=45)
    with pytest.raises(InputError, match="cfcq"):
        bench_train.bench_train(algorithms=("cfcq",))
