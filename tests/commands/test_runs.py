"""`spacql runs`: the states that a run folder can be in."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from experiments_toy import run_folder

from spacql.commands.runs import runs
from spacql.errors import InputError
from spacql.runs import locked


def test_every_state_is_told_from_what_lies_in_the_folder(tmp_path, capsys) -> None:
    run_folder(tmp_path / "a" / "seed-0")
    stopped = run_folder(tmp_path / "a" / "seed-1", done=False)
    (stopped / "checkpoints").mkdir()
    (stopped / "checkpoints" / "00000030.checkpoint").touch()
    run_folder(tmp_path / "a" / "seed-2", diverged="Not finite.")
    run_folder(tmp_path / "b" / "seed-0", done=False)
    with locked(tmp_path / "b" / "seed-0"):
        runs(tmp_path, json=True)
    found = json.loads(capsys.readouterr().out)
    assert [run["state"] for run in found] == ["finished", "stopped", "diverged", "running"]
    assert [run["score"] for run in found] == [50.0, *[pytest.approx(40 / 3)] * 3]
    assert [run["round"] for run in found] == [40, 30, 40, 40]  # what is stopped goes on from there
    assert {run["rounds"] for run in found} == {40}
    assert all("T" in run["when"] for run in found)
    runs(tmp_path)
    said = capsys.readouterr().out
    assert "\na/seed-0" in said
    assert "4 runs" in said
    assert "1 finished, 1 diverged, 2 stopped" in said
    assert " 0/40" in said  # of b, now that nobody holds it: it has no checkpoint


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path) -> None:
    with pytest.raises(InputError, match="no folder"):
        runs(tmp_path / "nowhere")
