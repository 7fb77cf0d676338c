import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacql.errors import InputError
from spacql.policies import uniform
from spacql.worlds import State, make, rollout


def test_uniform_actions_return_what_is_published():
    world = make("spread")
    returns = rollout(world, uniform(world.spec), jax.random.key(0), 4000).mean(axis=1)
    assert returns.mean() == pytest.approx(160, abs=3)
    assert returns.std() == pytest.approx(60.5, abs=3)


@pytest.mark.parametrize("n", [2, 4, 10])
def test_any_number_of_agents_makes_a_world_of_that_size(n):
    world = make("spread", n=n)
    assert make(f"spread{n}") == world
    state = world.reset(jax.random.key(0))
    state, rewards = jax.jit(world.step)(state, jnp.zeros((n, 2)))
    assert state.position.shape == state.landmarks.shape == (n, 2)
    assert rewards.shape == (n,)
    seen = jax.jit(world.observe)(state)
    assert tuple(len(o) for o in seen) == world.spec.observation_sizes == (6 * n,) * n


def test_more_than_three_agents_start_in_a_wider_area():
    keys = jax.random.split(jax.random.key(0), 200)
    for n, extent in ((3, 1), (4, 2)):
        starts = jax.jit(jax.vmap(make("spread", n=n).reset))(keys)
        for places in (starts.position, starts.landmarks):
            assert 0.95 * extent < np.abs(places).max() <= extent


compiled = jax.jit(make("spread").reward)


def reward(position, landmarks):
    state = State(jnp.array(position), jnp.zeros((3, 2)), jnp.array(landmarks))
    return np.asarray(compiled(state))


def test_covering_all_landmarks_is_worth_ten_each_and_an_overlap_costs_both_five():
    marks = [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    np.testing.assert_allclose(reward(marks, marks), 30)
    # A third agent that crowds the second leaves its own landmark, a unit away, to be worth less.
    crowded = [[-1.0, 0.0], [0.0, 1.0], [0.0, 1.1]]
    away = min(np.hypot(1, 1), np.hypot(1, 1.1))
    np.testing.assert_allclose(
        reward(crowded, marks), 20 + 1 / away - np.array([0, 5, 5]), rtol=1e-5
    )


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(3)), st.integers(0, 2**31 - 1))
def test_rewards_follow_the_agents_when_they_change_places(order, seed):
    places, marks = np.random.default_rng(seed).uniform(-1, 1, (2, 3, 2))
    np.testing.assert_allclose(
        reward(places[order], marks), reward(places, marks)[order], rtol=1e-5
    )


@pytest.mark.parametrize("n", [0, 1, 11])
def test_a_number_of_agents_out_of_range_is_refused(n):
    with pytest.raises(InputError, match=f"2 to 10 agents, not {n}"):
        make("spread", n=n)
    with pytest.raises(InputError, match=f"2 to 10 agents, not {n}"):
        make(f"spread{n}")
