import sys
import warnings

import jax
import numpy as np
import pytest

from spacql.errors import InputError, MissingExtra
from spacql.policies import uniform
from spacql.worlds import make, rollout

pytest.importorskip("pettingzoo")
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv
from pettingzoo.test import parallel_api_test, parallel_seed_test

from spacql.worlds.pettingzoo import from_pettingzoo, to_pettingzoo

KEY = jax.random.key(0)


class Uneven(ParallelEnv):
    """Two agents of different sizes; `leaves` says who goes at step 5, and how."""

    metadata = {"name": "uneven"}  # noqa: RUF012

    def __init__(self, leaves=None, action_space=None):
        self.possible_agents = ["small", "large"]
        self.leaves = leaves
        low, high = np.array([[0.0], [-2.0]]), np.array([[1.0], [3.0]])
        self.observation_spaces = {"small": Box(-9, 9, (2,)), "large": Box(-9, 9, (2, 3))}
        self.action_spaces = {
            "small": action_space or Box(-1, 1, (1,)),
            "large": Box(low.astype(np.float32), high.astype(np.float32)),
        }

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    def seen(self):
        return {"small": np.full(2, self.steps), "large": np.full((2, 3), self.start)}

    def reset(self, seed=None, options=None):
        self.agents, self.steps = self.possible_agents[:], 0
        self.start = np.random.default_rng(seed).uniform()
        return self.seen(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert actions["large"].shape == (2, 1)
        self.steps += 1
        now = self.steps == 5 and self.leaves
        ends = [dict.fromkeys(self.agents, False) for _ in range(2)]
        observations = self.seen()
        if now:
            agent, how = self.leaves
            ends[how == "truncated"][agent] = True
            self.agents = [a for a in self.agents if a != agent]
            del observations[agent]
        rewards = {"small": 1.0, "large": float(actions["large"].sum())}
        return observations, rewards, *ends, {}


def test_agents_of_different_sizes_act_and_are_recorded():
    world = from_pettingzoo(Uneven(), horizon=7)
    assert world.spec.task == "uneven"
    assert world.spec.agents == ("small", "large")
    assert world.spec.observation_sizes == (2, 6)
    assert world.spec.action_low == ((-1.0,), (0.0, -2.0))
    assert world.spec.action_high == ((1.0,), (1.0, 3.0))
    parts = rollout(world, uniform(world.spec), KEY, 2, trajectories=True)
    for part in parts:
        assert [o.shape for o in part.observations] == [(1, 8, 2), (1, 8, 6)]
        assert [a.shape for a in part.actions] == [(1, 8, 1), (1, 8, 2)]
        np.testing.assert_allclose(part.rewards[0, :, 1], part.actions[1][0, :-1].sum(1), rtol=1e-5)
        np.testing.assert_array_equal(part.observations[0][0, :, 0], range(8))
        assert not part.terminated[0]
    assert parts[0].observations[1][0, 0, 0] != parts[1].observations[1][0, 0, 0]  # other seeds


@pytest.mark.parametrize("how", ["terminated", "truncated"])
def test_the_episode_ends_with_the_first_agent_that_leaves(how):
    world = from_pettingzoo(Uneven(leaves=("small", how)), horizon=7)
    (part,) = rollout(world, uniform(world.spec), KEY, 1, trajectories=True)
    assert part.rewards.shape == (1, 5, 2)
    assert part.terminated[0] == (how == "terminated")


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (Discrete(5), "action space of small is Discrete.* not a Box"),
        (Box(-np.inf, np.inf, (1,)), "actions of small have no finite bounds"),
        (Box(0, 4, (1,), np.int64), "actions of small are whole numbers"),
    ],
)
def test_actions_that_are_no_bounded_box_are_refused(space, sentence):
    with pytest.raises(InputError, match=sentence):
        from_pettingzoo(Uneven(action_space=space), horizon=7)


def test_what_is_no_parallel_environment_is_refused_with_a_sentence():
    tag = pytest.importorskip("mpe2.simple_tag_v3")
    with pytest.raises(InputError, match=r"simple_tag_v3 act in turn.*parallel_env"):
        from_pettingzoo(tag.env(continuous_actions=True))
    for thing in (3.14, {}, object()):
        with pytest.raises(InputError, match="is no PettingZoo ParallelEnv"):
            from_pettingzoo(thing, horizon=7)

    class Old(Uneven):
        def reset(self):
            return super().reset()[0]

    with pytest.raises(InputError, match="cannot be reset as a ParallelEnv is"):
        from_pettingzoo(Old(), horizon=7)


def test_an_environment_of_unknown_length_needs_a_horizon():
    with pytest.raises(InputError, match="give `horizon`"):
        from_pettingzoo(Uneven())


def test_mpe2_can_be_played_and_its_own_length_is_taken():
    simple_tag_v3 = pytest.importorskip("mpe2.simple_tag_v3")
    env = simple_tag_v3.parallel_env(continuous_actions=True, max_cycles=6)
    world = from_pettingzoo(env)
    assert world.spec.horizon == 6
    assert len(set(world.spec.observation_sizes)) == 2  # the prey sees less
    assert world.spec.state_size == sum(world.spec.observation_sizes)
    parts = rollout(world, uniform(world.spec), KEY, 3, trajectories=True)
    again = rollout(world, uniform(world.spec), KEY, 3, trajectories=True)
    jax.tree.map(np.testing.assert_array_equal, parts, again)
    assert [part.rewards.shape for part in parts] == [(1, 6, 4)] * 3
    assert not any(part.terminated[0] for part in parts)


WORLDS = {
    "spread": make("spread"),
    "tag": make("tag", prey="flee"),
    "whole world": make("world", prey=None),
}


@pytest.mark.parametrize("name", WORLDS)
def test_our_worlds_pass_pettingzoos_own_tests(name, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        parallel_api_test(to_pettingzoo(WORLDS[name]), num_cycles=60)
        parallel_seed_test(lambda: to_pettingzoo(WORLDS[name]), num_cycles=30)


def test_our_environment_steps_like_its_world_and_is_truncated_at_the_horizon():
    world = WORLDS["spread"]
    env = to_pettingzoo(world, render_mode="rgb_array")
    observations, _ = env.reset(seed=3)
    rng = np.random.default_rng(0)
    state = env.unwrapped._history[-1]
    step = jax.jit(world.step)
    for number in range(25):
        actions = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
        named = dict(zip(env.agents, actions, strict=True))
        observations, rewards, terminations, truncations, _ = env.step(named)
        state, wanted = step(state, actions)
        np.testing.assert_allclose(list(rewards.values()), wanted, rtol=1e-4)
        assert not any(terminations.values())
        assert all(truncations.values()) == (number == 24)
    np.testing.assert_allclose(env.state(), np.concatenate(list(observations.values())))
    assert env.agents == []
    assert env.render().dtype == np.uint8
    with pytest.raises(InputError, match="call reset first"):
        env.step(named)


def test_there_and_back_is_the_same_kind_of_world():
    world = from_pettingzoo(to_pettingzoo(WORLDS["spread"]), horizon=25)
    returns = rollout(world, uniform(world.spec), KEY, 2)
    assert returns.shape == (2, 3)
    assert world.spec.observation_sizes == WORLDS["spread"].spec.observation_sizes


def test_wrong_requests_are_refused_with_a_sentence():
    env = to_pettingzoo(WORLDS["spread"])
    with pytest.raises(InputError, match="no state yet; call reset first"):
        env.state()
    env.reset(seed=0)
    with pytest.raises(InputError, match="no action for agent_1, agent_2"):
        env.step({"agent_0": np.zeros(2)})
    with pytest.raises(InputError, match="no render mode 'human'"):
        to_pettingzoo(WORLDS["spread"], render_mode="human")
    with pytest.raises(InputError, match="Only the particle worlds"):
        to_pettingzoo(from_pettingzoo(Uneven(), horizon=7))


def test_without_pettingzoo_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "spacql.worlds.pettingzoo")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtra, match=r"pip install 'spacql\[pettingzoo\]'"):
        import spacql.worlds.pettingzoo  # noqa: F401
