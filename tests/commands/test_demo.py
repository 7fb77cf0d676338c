"""The demo, shortened."""

import pytest

from spacql.algorithms.settings import SETTINGS
from spacql.commands.demo import demo
from spacql.data import collect
from spacql.errors import InputError
from spacql.files import read_json, write_json
from spacql.policies import Policy
from spacql.runs import locked


def test_the_demo_leaves_a_policy_and_a_report_and_can_be_run_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(collect, "SIZE", 2500)
    small = {"batch_size": 32, "hidden": (8, 8), "critics": 2, "updates": 1, "penalty_every": 1}
    monkeypatch.setitem(SETTINGS, ("spread-random", "spacql"), small)
    for _ in range(2):
        demo(tmp_path / "demo", rounds=1)
        said = capsys.readouterr().out
        assert "Score" in said
        assert "interval" in said
        assert "One seed: its score moves" in said
    assert len(Policy.load(tmp_path / "demo").actors) == 3
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "What the team does" in page
    assert "<canvas" in page
    assert "report.html" in said
    with locked(tmp_path / "demo"), pytest.raises(InputError, match="Another process is training"):
        demo(tmp_path / "demo", rounds=1)
    assert (tmp_path / "demo" / "report.html").exists()
    run = read_json(tmp_path / "demo" / "run.json")
    for other in ({"algorithm": "cfcql"}, {"config": run["config"] | {"batch_size": 64}}):
        write_json(tmp_path / "demo" / "run.json", run | other)
        with pytest.raises(InputError, match="something else"):
            demo(tmp_path / "demo", rounds=1)
    assert (tmp_path / "demo" / "report.html").exists(), "somebody's own run is kept"


def test_the_demo_does_not_touch_a_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="something else"):
        demo(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
