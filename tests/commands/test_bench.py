import importlib.util
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from training_toy import toy_dataset

from spacql.commands import bench
from spacql.commands.bench import LABELS, bench_worlds
from spacql.commands.bench_data import bench_data
from spacql.data import save_dataset
from spacql.errors import InputError, MissingExtra


def check_ratio(printed):
    speeds = printed["steps_per_second"]
    assert set(speeds) == set(LABELS)
    assert printed["ratio"] == pytest.approx(speeds["trajectories"] / speeds["mpe2"])


def test_the_ratio_is_that_of_the_printed_speeds(capsys, monkeypatch):
    pytest.importorskip("mpe2")
    speeds = {"returns": 900.0, "trajectories": 300.0, "mpe2": 2.0}
    monkeypatch.setattr(bench, "_in_fresh_process", lambda kind, steps: speeds[kind])
    bench_worlds(json=True)
    check_ratio(json.loads(capsys.readouterr().out))


@pytest.mark.slow
def test_every_kind_is_measured_in_a_process_of_its_own(capsys):
    pytest.importorskip("mpe2")
    bench_worlds(steps=1, mpe2_steps=30, json=True)
    check_ratio(json.loads(capsys.readouterr().out))


def test_no_steps_and_no_mpe2_are_refused_with_a_sentence(monkeypatch):
    with pytest.raises(InputError, match="whole number from 1"):
        bench_worlds(steps=0)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'spacql\[dev\]'"):
        bench_worlds()


def test_a_dataset_is_measured_in_a_process_of_its_own(tmp_path, capsys):
    save_dataset(toy_dataset(), tmp_path / "data")
    bench_data(tmp_path / "data", json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["transitions"] == toy_dataset().n_transitions
    assert found["batch_ms"] > 0
    bench_data(tmp_path / "data")
    assert f"load {found['transitions']} transitions" in capsys.readouterr().out
    with pytest.raises(InputError, match="nowhere"):
        bench_data(tmp_path / "nowhere")
