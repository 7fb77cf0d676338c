import jax
import numpy as np
import pytest

from spacql.errors import InputError
from spacql.policies import uniform
from spacql.worlds import make, rollout
from spacql.worlds.rollout import episode_chunks

KEY = jax.random.key(0)
world = make("spread")
policy = uniform(world.spec)


@pytest.fixture
def small_chunks(monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["spacql.worlds.rollout"], "CHUNK", 64)


def test_an_episode_depends_on_the_key_and_its_number_alone(small_chunks):
    long, short = rollout(world, policy, KEY, 150), rollout(world, policy, KEY, 100)
    assert long.shape == (150, 3)
    np.testing.assert_array_equal(long[:100], short)
    assert len(np.unique(long[:, 0])) == 150
    assert (rollout(world, policy, jax.random.key(1), 100) != short).all()
    # Chunks of another size are another program, which may round otherwise.
    np.testing.assert_allclose(rollout(world, policy, KEY, 40), short[:40], rtol=1e-4)


def test_memory_stays_bounded_by_chunks(small_chunks):
    sizes = [len(part) for part in episode_chunks(world, policy, KEY, 150, trajectories=False)]
    assert sizes == [64, 64, 22]


def test_trajectories_and_returns_tell_the_same_story(small_chunks):
    told = []
    parts = rollout(world, policy, KEY, 100, trajectories=True, progress=told.append)
    assert told == [64, 36]
    returns = np.concatenate([part.returns for part in parts])
    np.testing.assert_allclose(returns, rollout(world, policy, KEY, 100), rtol=1e-5)


def test_a_trajectory_replays_in_its_world(small_chunks):
    part = rollout(world, policy, KEY, 64, trajectories=True)[0]
    assert part.rewards.shape == (64, 25, 3)
    assert [o.shape for o in part.observations] == [(64, 26, 18)] * 3
    assert [a.shape for a in part.actions] == [(64, 26, 2)] * 3
    assert not part.terminated.any()
    start, _ = jax.random.split(jax.random.fold_in(KEY, 5))
    state = world.reset(start)
    step = jax.jit(world.step)
    for t in range(25):
        for agent, seen in enumerate(world.observe(state)):
            np.testing.assert_allclose(part.observations[agent][5, t], seen, atol=1e-4)
        state, rewards = step(state, np.stack([a[5, t] for a in part.actions]))
        np.testing.assert_allclose(part.rewards[5, t], rewards, rtol=1e-3, atol=1e-3)


def test_a_policy_for_other_agents_and_no_episodes_are_refused():
    with pytest.raises(InputError, match="does not fit the world 'spread'"):
        rollout(world, uniform(make("tag", prey="flee").spec), KEY, 1)
    with pytest.raises(InputError, match="at least 1"):
        rollout(world, policy, KEY, 0)
