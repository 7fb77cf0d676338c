"""`spacql data make`, `data table` and `data curves` as functions."""

import json

import pytest

from spacql.commands.make import data_make, data_prey_report
from spacql.commands.table import data_curves, data_table
from spacql.data import behaviours, collect, load_dataset
from spacql.errors import InputError


def test_make_says_where_how_much_and_how_good(tmp_path, capsys):
    data_make("tag-random", out=tmp_path / "d", transitions=2500)
    said = capsys.readouterr().out
    assert str(tmp_path / "d") in said
    assert "2,500 transitions in 100 episodes" in said
    assert load_dataset(tmp_path / "d", verify=True).info["name"] == "tag-random"


def test_make_into_an_existing_folder_is_refused_and_changes_nothing(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("x")
    with pytest.raises(InputError, match="exists already"):
        data_make("tag-random", out=tmp_path / "d", transitions=500)
    assert [f.name for f in (tmp_path / "d").iterdir()] == ["mine"]


def test_make_fills_the_cache_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "SIZE", 2500)
    data_make("spread-random")
    data_make("spread-random")
    assert "is there already" in capsys.readouterr().out


def test_the_cache_takes_no_other_sizes(tmp_path, monkeypatch):
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="--out"):
        data_make("spread-random", transitions=500)
    assert list(tmp_path.iterdir()) == []


def test_the_table_measures_each_dataset_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(collect, "NAMES", ("spread-random", "spread-expert"))
    arguments = {"tasks": ("spread",), "seeds": (0, 1), "transitions": 2500}
    data_table(results=tmp_path / "r.json", **arguments)
    table = capsys.readouterr().out
    assert "| spread-random | 2 | 2,500 |" in table
    assert "159.6 ± 60.5" in table
    kept = json.loads((tmp_path / "r.json").read_text())
    assert set(kept) == {f"{n}/{s}/2500" for n in collect.NAMES for s in (0, 1)}
    assert abs(kept["spread-expert/0/2500"]["score"] - 100) < 15
    kept["spread-random/0/2500"]["return"] = 1e6  # what is kept is used, not measured again
    (tmp_path / "r.json").write_text(json.dumps(kept))
    data_table(results=tmp_path / "r.json", json=True, **arguments)
    assert json.loads(capsys.readouterr().out)["spread-random/0/2500"]["return"] == 1e6


def test_curves_are_drawn(tmp_path, monkeypatch):
    spread = behaviours.record("spread")
    monkeypatch.setattr(behaviours, "record", lambda task, folder=None: spread)
    data_curves(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 20_000


def test_behaviours_that_are_damaged_are_refused_by_the_field(tmp_path):
    (tmp_path / "behaviours").mkdir()
    (tmp_path / "behaviours" / "spread.json").write_text("{}")
    with pytest.raises(InputError, match=r"spread\.json.*random"):
        data_make("spread-medium", out=tmp_path / "d", transitions=500, behaviours=tmp_path)
    assert not (tmp_path / "d").exists()


def test_a_report_on_no_episodes_is_refused():
    for episodes in (0, -1):
        with pytest.raises(InputError, match="--episodes"):
            data_prey_report("tag", episodes=episodes)
