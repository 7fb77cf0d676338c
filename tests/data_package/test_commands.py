"""`spacql data import`, `export`, `inspect`, `fetch` as a user calls them."""

import json

import pytest

from spacql.cli import main
from spacql.data import load_dataset, save_dataset

from .toy import build


def run(*words):
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


@pytest.mark.parametrize(
    ("format", "name"), [("omar", "files"), ("vault", "x.vlt"), ("npz", "x.npz")]
)
def test_a_dataset_goes_out_and_comes_back(tmp_path, capsys, format, name):
    original = build(terminated=(True,) * 3)
    save_dataset(original, tmp_path / "first")
    assert run("data", "export", format, tmp_path / "first", "--out", tmp_path / name) == 0
    assert "10 transitions in 3 episodes of 2 agents" in capsys.readouterr().out
    code = run("data", "import", format, tmp_path / name, "--out", tmp_path / "again", "--json")
    assert code == 0
    (summary,) = json.loads(capsys.readouterr().out)
    assert summary["transitions"] == 10
    again = load_dataset(tmp_path / "again", verify=True)
    assert (again.returns == original.returns).all()


def test_mistakes_end_with_code_2_and_one_line(tmp_path, capsys):
    for words in (
        ("data", "import", "npz", tmp_path / "none.npz", "--out", tmp_path / "x"),
        ("data", "export", "npz", tmp_path / "none", "--out", tmp_path / "x.npz"),
        ("data", "fetch", "omar/chess", "--out", tmp_path / "x"),
        ("data", "inspect", tmp_path / "none"),
        ("data", "inspect", tmp_path / "none", "--figure", "picture.gif"),
    ):
        assert run(*words) == 2
        message = capsys.readouterr().err
        assert message.startswith("spacql: ")
        assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_inspect_prints_a_table_json_and_a_picture(rough_correlation, tmp_path, capsys):
    save_dataset(build((25,) * 40), tmp_path / "toy")
    assert run("data", "inspect", tmp_path / "toy", "--figure", tmp_path / "x.png") == 0
    shown = capsys.readouterr().out
    assert "excess correlation" in shown
    assert "partial" in shown
    assert (tmp_path / "x.png").stat().st_size > 10_000
    save_dataset(build((5,) * 40), tmp_path / "small")
    assert run("data", "inspect", tmp_path / "small", "--json") == 0
    assert json.loads(capsys.readouterr().out)["transitions"] == 200
