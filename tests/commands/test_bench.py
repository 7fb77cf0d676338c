import importlib.util
import json

import pytest

from spacql.commands.bench import LABELS, bench_worlds
from spacql.errors import InputError, MissingExtra


def test_the_ratio_is_that_of_the_printed_speeds(capsys):
    pytest.importorskip("mpe2")
    bench_worlds(steps=1, mpe2_steps=30, json=True)
    printed = json.loads(capsys.readouterr().out)
    speeds = printed["steps_per_second"]
    assert set(speeds) == set(LABELS)
    assert printed["ratio"] == pytest.approx(speeds["trajectories"] / speeds["mpe2"])


def test_no_steps_and_no_mpe2_are_refused_with_a_sentence(monkeypatch):
    with pytest.raises(InputError, match="at least 1"):
        bench_worlds(steps=0)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'spacql\[dev\]'"):
        bench_worlds()
