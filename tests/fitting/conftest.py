import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))

import pytest

from spacql.evaluation import distance


@pytest.fixture(autouse=True)
def quickly_learnt(monkeypatch):
    """The density of the log's behaviour: a toy's is simple."""
    monkeypatch.setattr(distance, "STEPS", 300)
