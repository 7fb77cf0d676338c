"""`spacql data record` with functions and environments that do not work as they should."""

import subprocess
import sys

import pytest

from spacql.commands.record import data_record
from spacql.data import load_dataset
from spacql.errors import InputError, SpacqlError

pytest.importorskip("pettingzoo")
pytest.importorskip("mpe2")

MINE = """
import numpy as np
from gymnasium.spaces import Box
from mpe2 import simple_speaker_listener_v4 as world
from pettingzoo.utils.wrappers import BaseParallelWrapper

SIZES = {"speaker_0": 3, "listener_0": 5}

class Anew(BaseParallelWrapper):
    def action_space(self, agent):
        return Box(0, 1, (SIZES[agent],), np.float32)

def make():
    return Anew(world.parallel_env(continuous_actions=True, max_cycles=4))

def turns():
    return world.env(continuous_actions=True)

def needs(cycles):
    return make()

def nothing():
    return None

def one(seen):
    return {"listener_0": np.zeros(5)}

steps = 0

def breaks(seen):
    global steps
    steps += 1
    value = np.nan if steps == 7 else 0.5
    return {agent: np.full(size, value, np.float32) for agent, size in SIZES.items()}

def interrupted(seen):
    import os, signal, time

    global steps
    steps += 1
    if steps == 10:  # in the third episode
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    return {agent: np.full(size, 0.5, np.float32) for agent, size in SIZES.items()}
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    (tmp_path / "my_record.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("my_record", None)


def test_the_seed_determines_uniform_actions_even_if_spaces_are_made_anew(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        data_record("my_record:make", out=tmp_path / name, episodes=2, seed=seed)
    first, same, other = (load_dataset(tmp_path / name) for name in "abc")
    assert first.identity == same.identity
    assert (first.joint_actions[0] != other.joint_actions[0]).all()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ("math:pi", "math:pi is a float; expected a function"),
        ("my_record:needs", r"cannot be called as needs\(\): missing a required argument"),
        ("my_record:nothing", "is no PettingZoo ParallelEnv"),
        ("my_record:turns", "act in turn"),
        (":make", "should be MODULE:FUNCTION"),
    ],
)
def test_what_makes_no_environment_is_refused_with_a_sentence(environment, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        data_record(environment, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("math:pi", "expected a function"),
        ("my_record:make", r"cannot be called as make\(observations\)"),
        ("my_record:one", "there is no action of speaker_0"),
    ],
)
def test_what_does_not_act_for_all_is_refused_with_a_sentence(act, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        data_record("my_record:make", out=tmp_path / "out", act=act)
    assert not (tmp_path / "out").exists()


def test_episodes_before_a_mistake_are_written(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(SpacqlError, match=r"holds NaN.*What was recorded before is in .*out"):
        data_record("my_record:make", out=out, act="my_record:breaks", episodes=5)
    assert load_dataset(out).n_transitions == 6


def test_episodes_before_ctrl_c_are_written(tmp_path):
    command = "data record my_record:make --act my_record:interrupted --out out --episodes 5"
    words = [sys.executable, "-m", "spacql", *command.split()]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 130
    assert "interrupted. Kept in out: 2 of 5 episodes.\n" in done.stderr
    assert load_dataset(tmp_path / "out").n_transitions == 8
