import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.worlds import State, make
from spacql.worlds.chase import boundary_cost

FAR = [[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5]]


def state(world, prey, landmarks=None):
    count = len(world.looks)
    marks = jnp.full((count, 2), 0.85) if landmarks is None else jnp.array(landmarks)
    return State(jnp.array([*FAR, prey]), jnp.zeros((4, 2)), marks)


@eqx.filter_jit
def observe(world, state):
    return world.observe(state)


def rewards(world, state):
    return np.asarray(_rewards(world, state))


@eqx.filter_jit
def _rewards(world, state):
    return world.reward(state)


@pytest.mark.parametrize(("task", "touch"), [("tag", 10), ("world", 5)])
def test_predators_share_the_reward_and_a_touch_pays(task, touch):
    world = make(task, prey=None)
    near = rewards(world, state(world, [0.5, 0.5]))
    apart = rewards(world, state(world, [0.0, 0.0]))
    assert near[0] == near[1] == near[2]
    np.testing.assert_allclose(near[0], touch - 0.2, rtol=1e-5)
    np.testing.assert_allclose(apart[0], -0.3 * np.hypot(0.5, 0.5), rtol=1e-5)


def test_the_prey_loses_in_tag_what_the_predators_win_while_it_stays_inside():
    world = make("tag", prey=None)
    for prey in ([0.5, 0.5], [0.0, 0.1]):
        won = rewards(world, state(world, prey))
        np.testing.assert_allclose(won[-1], -won[0], rtol=1e-6)


def test_the_boundary_costs_nothing_inside_and_at_most_ten():
    x = jnp.array([0.0, 0.89, 0.95, 1.0, 1.5, 9.0])
    np.testing.assert_allclose(boundary_cost(x), [0, 0, 0.5, 1, np.e, 10], rtol=1e-4)


def test_food_pays_the_prey_of_world_and_nobody_else():
    world = make("world", prey=None)
    marks = [[0.8, 0.8], [0.0, 0.0], [-0.8, -0.8], [0.8, -0.8], [-0.8, 0.8]]
    fed = rewards(world, state(world, [0.0, 0.0], marks))
    marks[1] = [0.0, 0.5]
    hungry = rewards(world, state(world, [0.0, 0.0], marks))
    np.testing.assert_allclose(fed[-1] - hungry[-1], 2 - 0.05 * 0.5, rtol=1e-4)
    np.testing.assert_array_equal(fed[:3], hungry[:3])


def test_forest_flags_say_who_stands_in_which_forest():
    world = make("world", prey=None)
    marks = [[0.8, 0.8], [0.0, 0.0], [-0.8, -0.8], [0.5, 0.5], [-0.5, 0.5]]
    seen = observe(world, state(world, [0.0, -0.9], marks))
    flags = [np.asarray(o[-2:]).tolist() for o in seen]
    assert flags == [[1, -1], [-1, 1], [-1, -1], [-1, -1]]


@pytest.mark.parametrize(
    ("task", "sizes"), [("tag", (16,) * 3 + (14,)), ("world", (24,) * 3 + (22,))]
)
def test_observations_have_the_published_sizes(task, sizes):
    world = make(task, prey=None)
    assert world.spec.observation_sizes == sizes
    assert tuple(len(o) for o in observe(world, state(world, [0.0, 0.0]))) == sizes
