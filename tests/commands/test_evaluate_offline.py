"""`spacql evaluate --offline` and `spacql fit`: what they say, with small models."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from worlds_toy import log, pushing

from spacql.algorithms.settings import configure
from spacql.cli import main
from spacql.commands.fit import show
from spacql.data import load_dataset, save_dataset
from spacql.evaluation import model, offline
from spacql.files import write_json
from spacql.fitting import pipeline  # noqa: F401  before anything is replaced
from spacql.runs import describe


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """A log and a policy, and a model that is quickly learnt."""
    small = model.Config(members=2, hidden=(16,), steps=100, batch_size=32)
    monkeypatch.setattr(offline.model, "Config", lambda: small)
    monkeypatch.setattr(offline.distances, "STEPS", 50)
    made, make = {}, offline.Evaluator
    monkeypatch.setattr(  # a log's model is learnt once
        offline, "Evaluator", lambda log, **given: made.setdefault(log.identity, make(log, **given))
    )
    save_dataset(log(40), tmp_path / "log")
    pushing(1.0).save(tmp_path / "team" / "policy")
    return tmp_path


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(x) for x in arguments])
    return end.value.code


def test_a_policy_is_judged_by_a_log(placed, capsys):
    arguments = ("evaluate", placed / "team", "--offline", "--data", placed / "log")
    assert run(*arguments) == 0
    said = capsys.readouterr().out
    assert "held-out episodes" in said
    assert "optimistic" not in said, "nobody knows what it was trained on"
    assert "model      return" in said
    assert "b: " in said
    assert run(*arguments, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["estimates"]["model"]["low"] < found["estimates"]["model"]["high"]


def of_run(placed, name, data):
    """A run folder with a policy, trained on the log in some place."""
    dataset = load_dataset(placed / "log")
    folder = placed / name / "seed-0"
    write_json(folder / "run.json", describe("bc", configure("bc", "", {}), dataset, 0, data=data))
    pushing(1.0).save(folder / "policy")
    return folder


def test_what_the_log_of_the_training_says_is_kept_and_another_log_is_refused(placed, capsys):
    folder = of_run(placed, "run", str(placed / "log"))
    assert run("evaluate", folder, "--offline") == 0
    first = json.loads((folder / "offline.json").read_text())
    said = capsys.readouterr().out
    assert "held-out episodes" not in said
    assert "was trained on these episodes, so the estimate is optimistic; spacql fit" in said
    assert run("evaluate", folder, "--offline", "--data", placed / "log") == 0
    assert json.loads((folder / "offline.json").read_text()) == first

    save_dataset(log(30), placed / "other")
    folder = of_run(placed, "moved", str(placed / "other"))
    capsys.readouterr()
    assert run("evaluate", folder, "--offline") == 2
    said = capsys.readouterr().err
    for name in ("log", "other"):
        assert load_dataset(placed / name).identity[:8] in said
    assert run("evaluate", folder, "--offline", "--data", placed / "other") == 0
    assert not (folder / "offline.json").exists()


def test_a_run_of_a_log_without_a_simulator_is_told_to_ask_the_log(placed, capsys):
    folder = of_run(placed, "run", str(placed / "log"))
    assert run("evaluate", folder) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "No simulator is known for" in said
    assert "evaluate RUN --offline" in said
    assert "Tasks:" not in said


def test_names_of_agents_are_shown_as_they_are(capsys):
    agents = ("arm[left]", "a[/b]")
    away = dict.fromkeys(agents, 0.0)
    row = {"label": "bc", "mean": 1.0, "low": 0.0, "high": 2.0, "distance": away, "training": {},
           "truth": None}  # fmt: skip
    show({"table": [row], "chosen": "bc", "log": row, "failed": {}, "words": "Done."})
    said = " ".join(capsys.readouterr().out.split())
    for agent in agents:
        assert agent in said


def test_mistakes_are_answered_with_a_sentence(placed, capsys):
    for arguments, sentence in (
        (("evaluate", placed / "team", "--offline"), "give --data LOG"),
        (("evaluate", placed / "team"), "Ask a log: --offline"),
        (("evaluate", placed / "nothing", "--offline"), "no trained policy"),
        (("fit", "--data", placed / "log", "--out", placed / "log"), "holds no fit"),
        (("fit", "--data", placed / "log", "--out", placed / "x", "--quick", "--thorough"),
         "Choose one"),
        (("fit", "--data", placed / "log", "--out", placed / "x", "--heldout", "1.5"),
         "between 0 and 1"),
        (("fit", "--data", placed / "log", "--out", placed / "x", "--estimator", "magic"),
         "no estimator 'magic'"),
    ):  # fmt: skip
        assert run(*arguments) == 2, arguments
        assert sentence in capsys.readouterr().err
