"""Worlds of other packages, found by the entry-point group `spacql.worlds`."""

from pathlib import Path

import jax
import pytest

from spacql.errors import InputError
from spacql.policies import uniform
from spacql.worlds import is_slow, make, rollout

MODULE = '''
import numpy as np
from spacql.spec import Spec, unit_box
from spacql.worlds import HostState


class Corridor:
    """Two agents on a line; the reward is how near they are to each other."""

    spec = Spec("corridor", ("a", "b"), (2, 2), horizon=5, **unit_box((1, 1)))

    def reset(self, key):
        return self.seen(np.array([-1.0, 1.0]))

    def step(self, state, actions):
        at = state.observations[0] + 0.1 * np.concatenate(actions)
        return self.seen(at), np.full(2, -abs(at[0] - at[1]), np.float32)

    def observe(self, state):
        return state.observations

    def seen(self, at):
        return HostState((at.astype(np.float32),) * 2, np.zeros(0, np.float32))


class Renamed(Corridor):
    pass


def half():
    return object()
'''
ENTRIES = """[spacql.worlds]
corridor = corridor_world:Corridor
alley = corridor_world:Renamed
half = corridor_world:half
gone = corridor_world:Gone
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with worlds."""
    (tmp_path / "corridor_world.py").write_text(MODULE)
    (tmp_path / "corridor_world-1.0.dist-info").mkdir()
    (tmp_path / "corridor_world-1.0.dist-info" / "METADATA").write_text("Name: corridor-world\n")
    (tmp_path / "corridor_world-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_world_of_another_package_is_made_by_its_name(package) -> None:
    world = make("corridor")
    assert rollout(world, uniform(world.spec), jax.random.key(0), 3).shape == (3, 2)
    assert is_slow("corridor")
    assert not is_slow("spread")


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        ("coridor", r"no task 'coridor'. Did you mean 'corridor'\?.*spread, tag.*corridor"),
        (
            "half",
            r"'half' \(corridor_world:half\) is no World: it lacks spec, reset",
        ),
        ("gone", "'gone'.* cannot be made: .*Gone"),
        ("alley", "'alley'.* says that its task is 'corridor'"),
    ],
)
def test_what_is_wrong_with_a_world_is_said(package, task, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        make(task)
