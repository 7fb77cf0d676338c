"""`spacql evaluate --offline` and `spacql fit`: what they say, with small models."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from worlds_toy import log, pushing

from spacql.cli import main
from spacql.data import save_dataset
from spacql.evaluation import model, offline
from spacql.fitting import pipeline  # noqa: F401  before anything is replaced


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
    assert "the log returned" in said
    assert "model      return" in said
    assert "b: " in said
    assert run(*arguments, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["estimates"]["model"]["low"] < found["estimates"]["model"]["high"]


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
