"""`spacql bench update`: what it counts, and that what it compares does the same work."""

import json
import subprocess

import jax
import numpy as np
import pytest

from spacql.algorithms import plcql
from spacql.algorithms.spacql import Config
from spacql.commands import bench_update

TINY = {"batch_size": 8, "hidden": (4, 4), "critics": 2, "penalty_agents": "all", "samples": 3}


@pytest.mark.slow
def test_the_naive_version_takes_the_same_step():
    # Without bootstrap and penalty no random number is left, and both must agree.
    values = {**TINY, "discount": 0.0, "alpha": 0.0}
    update, arguments, _ = bench_update._setting("spacql", 2, values)
    naive, same, _ = bench_update._setting("naive", 2, values)
    critics = update(*arguments)[0].critics.online
    naive_critics = naive(*same)[0]
    for ours, theirs in zip(jax.tree.leaves(critics), jax.tree.leaves(naive_critics), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_operations_are_counted_as_by_hand():
    config = Config(**{**TINY, "batch_size": 1, "critics": 1})
    # Two agents with observations of 5 and actions of 2: s is 10 wide, 4 and 4 hidden units.
    later = 2 * 4 * 4 + 2 * 4
    rows = 1 + 2 * 3  # the logged action, and three samples for each of two agents
    first = 2 * (10 + 4) * 4 + rows * 2 * 2 * 4
    target = 2 * (2 * 10 * 4 + 2 * (2 * 4 * 4 + later))
    acting = 3 * 2 * 2 * (5 * 4 + 4 * 4 + 4 * 2)
    expected = 2 * first + 3 * rows * later + target + acting
    assert bench_update._flop(config, 2, 5, sets=2) == expected


def test_one_agent_a_transition_and_the_policy_penalty_are_cheaper():
    def flop(**values):
        return bench_update._flop(Config(**values), 3, 18, sets=3)

    everything = flop(penalty_agents="all")
    assert flop() < 0.5 * everything
    assert flop(penalty_agents="all", penalty="policy") < everything / 3


def test_one_set_of_one_ensemble_is_cheaper_than_all_of_both_and_a_bandit_costs_little():
    mixture = bench_update._flop(Config(), 12, 72, sets=12)
    one = bench_update._flop(Config(), 12, 72, sets=1, ensembles=1)
    chosen = bench_update._flop(plcql.Config(), 12, 72, sets=1, ensembles=1)
    assert one < chosen < mixture
    assert chosen < 1.5 * one


def test_the_table_shows_what_the_process_measured(monkeypatch, capsys):
    case = {"case": "(x)", "ms": 12.34, "gflops": 50.0, "share": 0.5, "compile_s": 3.0}
    measured = json.dumps({"peak": 100.0, "cases": [case]})

    def run(command, **_):
        return subprocess.CompletedProcess(command, 0, stdout=f"noise\n{measured}\n")

    monkeypatch.setattr(subprocess, "run", run)
    bench_update.bench_update()
    title, row = capsys.readouterr().out.splitlines()
    assert "peak 100 GFLOP/s" in title
    assert row.split() == ["(x)", "12.3", "50", "50", "%", "3.0"]
