"""The optional loggers, fed the rows of metrics.jsonl."""

import sys

import pytest

from spacql.errors import InputError, MissingExtra
from spacql.training.metrics import Loggers, check_loggers


def test_tensorboard_gets_a_curve_a_quantity(tmp_path):
    log = Loggers(("tensorboard",), tmp_path, {})
    log.write([{"round": 1, "td_error": 2.0, "w": [0.25, 0.75], "score": None}])
    log.close()
    [events] = (tmp_path / "tensorboard").iterdir()
    written = events.read_bytes()
    assert all(name in written for name in (b"td_error", b"w_1", b"w_2"))
    assert b"score" not in written


def test_an_unknown_logger_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="tensorbord"):
        Loggers(("tensorbord",), tmp_path, {})


def test_a_logger_that_is_not_installed_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtra, match="loggers"):
        Loggers(("wandb",), tmp_path, {})
    with pytest.raises(MissingExtra, match="Weights & Biases logger"):
        check_loggers(("wandb",))
