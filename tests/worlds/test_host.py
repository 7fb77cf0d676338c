"""Episodes outside JAX, in HalfCheetah and in a small world of our own."""

import os
import sys
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.errors import InputError, SpacqlError
from spacql.policies import Policy, init_mlp, uniform
from spacql.spec import Spec, unit_box
from spacql.worlds import HostState, make, rollout
from spacql.worlds.host import check_actions, seed_of

KEY = jax.random.key(0)


@dataclass
class Walk:
    """One agent walks on a line; the world ends when it has left [-1, 1]. Picklable."""

    horizon: int = 30
    place: float = 0.0
    spec: Spec = field(init=False)

    def __post_init__(self):
        self.spec = Spec("walk", ("walker",), (1,), **unit_box((1,)), horizon=self.horizon)

    def reset(self, key):
        self.place = np.random.default_rng(seed_of(key)).uniform(-0.5, 0.5)
        return self.seen()

    def step(self, state, actions):
        self.place += 0.2 * float(check_actions(self.spec, actions)[0][0])
        return self.seen(), np.array([abs(self.place)], np.float32)

    def observe(self, state):
        return state.observations

    def seen(self):
        seen = np.array([self.place], np.float32)
        return HostState((seen,), np.zeros(0, np.float32), terminated=abs(self.place) > 1)


class Unpicklable(Walk):
    def __reduce__(self):
        raise TypeError("not this one")


class Deadly(Walk):
    """Ends its process, as one does that has no memory left."""

    def step(self, state, actions):
        os._exit(3)


class Stroll(Walk):
    """The same walk; where the walker is, is in the state alone."""

    at_once = 4

    def step(self, state, actions):
        self.place = float(state.observations[0][0])
        return super().step(state, actions)


def walker():
    return init_mlp(KEY, 1, (-1.0,), (1.0,), hidden=(4,))


def test_an_episode_ends_when_the_world_terminates_or_at_the_horizon():
    world = Walk()
    lazy = replace(walker(), weights=(jnp.zeros((1, 4)), jnp.zeros((4, 1))))
    (still,) = rollout(world, Policy((lazy,)), KEY, 1, trajectories=True)
    assert still.rewards.shape == (1, 30, 1)
    assert not still.terminated[0]
    parts = rollout(world, uniform(world.spec), KEY, 20, trajectories=True)
    ended = [part for part in parts if part.terminated[0]]
    assert 0 < len(ended) < 20
    for part in ended:
        steps = part.rewards.shape[1]
        assert part.rewards[0, -1, 0] > 1 >= part.rewards[0, :-1, 0].max(initial=0)
        assert part.observations[0].shape == (1, steps + 1, 1)
        assert part.actions[0].shape == (1, steps + 1, 1)


def test_several_processes_give_the_episodes_of_one_bit_for_bit():
    world = Walk()
    policy = Policy((replace(walker(), noise=0.3),), agents=("walker",))
    alone = rollout(world, policy, KEY, 7, trajectories=True)
    shared = rollout(world, policy, KEY, 7, trajectories=True, workers=2)
    jax.tree.map(np.testing.assert_array_equal, alone, shared)


def test_episodes_that_are_stepped_in_turn_depend_on_their_number_alone():
    world = Stroll()
    policy = Policy((replace(walker(), noise=0.9),), agents=("walker",))
    many = rollout(world, policy, KEY, 11, trajectories=True)
    assert len({part.rewards.shape[1] for part in many}) > 2  # some end before their neighbours
    for count, workers in ((1, 1), (6, 1), (11, 2)):
        some = rollout(world, policy, KEY, count, trajectories=True, workers=workers)
        jax.tree.map(np.testing.assert_array_equal, many[:count], some)


def test_a_world_that_cannot_be_copied_is_refused_for_several_processes_alone():
    world = Unpicklable()
    assert rollout(world, uniform(world.spec), KEY, 2).shape == (2, 1)
    with pytest.raises(InputError, match="cannot be copied to other processes"):
        rollout(world, uniform(world.spec), KEY, 2, workers=2)


@pytest.fixture(scope="module")
def cheetah():
    pytest.importorskip("gymnasium_robotics")
    return make("halfcheetah")


def test_halfcheetah_is_gymnasium_robotics_own(cheetah):
    from gymnasium_robotics import mamujoco_v1

    theirs = mamujoco_v1.parallel_env("HalfCheetah", "2x3", agent_obsk=0)
    observations, _ = theirs.reset(seed=seed_of(KEY))
    state = cheetah.reset(KEY)
    rng = np.random.default_rng(0)
    for _ in range(20):
        for agent, seen in zip(cheetah.spec.agents, cheetah.observe(state), strict=True):
            np.testing.assert_allclose(seen, observations[agent], rtol=1e-6)
        np.testing.assert_allclose(state.state, theirs.state(), rtol=1e-6)
        actions = rng.uniform(-1, 1, (2, 3)).astype(np.float32)
        observations, rewards, *_ = theirs.step(
            dict(zip(cheetah.spec.agents, actions, strict=True))
        )
        state, ours = cheetah.step(state, actions)
        np.testing.assert_allclose(ours, list(rewards.values()), rtol=1e-6)


def test_halfcheetah_episodes_repeat_and_last_a_thousand_steps(cheetah):
    policy = uniform(cheetah.spec)
    first = rollout(cheetah, policy, KEY, 2, trajectories=True)
    (again,) = rollout(cheetah, policy, KEY, 1, trajectories=True)
    jax.tree.map(np.testing.assert_array_equal, first[0], again)
    assert first[1].rewards.shape == (1, 1000, 2)
    assert first[1].states.shape == (1, 1001, 17)
    assert not first[1].terminated[0]
    np.testing.assert_array_equal(first[1].rewards[..., 0], first[1].rewards[..., 1])
    assert -600 < first[1].returns[0, 0] < 0


def test_any_states_of_halfcheetah_may_be_stepped_alone_or_together(cheetah):
    rng = np.random.default_rng(0)
    plan = rng.uniform(-1, 1, (2, 40, 2, 3)).astype(np.float32)

    def alone(number):
        state, seen = cheetah.reset(jax.random.key(number)), []
        for actions in plan[number]:
            state, rewards = cheetah.step(state, actions)
            seen.append(np.append(state.state, rewards))
        return np.stack(seen)

    states = [cheetah.reset(jax.random.key(number)) for number in range(2)]
    together = []
    for step in range(40):
        moved = cheetah.step_all(states, plan[:, step].reshape(2, 6))
        states = [state for state, _ in moved]
        together.append([np.append(state.state, rewards) for state, rewards in moved])
    np.testing.assert_array_equal(np.stack(together, axis=1), [alone(0), alone(1)])


def test_halfcheetah_writes_nothing_to_the_terminal_or_the_folder(tmp_path, monkeypatch, capfd):
    pytest.importorskip("gymnasium_robotics")
    monkeypatch.chdir(tmp_path)
    make("halfcheetah")
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("actions", "sentence"),
    [
        ([np.zeros(3)], "got actions for 1 agents; this world has 2"),
        ([np.zeros(3), np.zeros(2)], "agent_1 has shape"),
        ([np.full(3, np.nan), np.zeros(3)], "agent_0 holds NaN"),
        ([np.zeros(3), np.full(3, 2.0)], "agent_1, .* leaves its bounds"),
    ],
)
def test_wrong_actions_are_refused_by_halfcheetah(cheetah, actions, sentence):
    with pytest.raises(InputError, match=sentence):
        cheetah.step(cheetah.reset(KEY), actions)


def test_a_worker_that_dies_is_an_error_with_a_sentence():
    world = Deadly()
    with pytest.raises(SpacqlError, match="A process that ran episodes died"):
        rollout(world, uniform(world.spec), KEY, 4, workers=2)


def test_a_world_of_the_script_itself_cannot_be_copied_and_says_so(monkeypatch):
    monkeypatch.setattr(Stroll, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Stroll", Stroll, raising=False)
    with pytest.raises(InputError, match="define the world in a module"):
        rollout(Stroll(), uniform(Stroll().spec), KEY, 9, workers=2)
