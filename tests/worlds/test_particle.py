"""The particle worlds against recordings of the published ones, and their physics' properties."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.errors import InputError
from spacql.worlds import State, make

RECORDINGS = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("task", ["spread", "tag", "world"])
@pytest.mark.parametrize("batched", ["vmap", "last axis"])
def test_every_recorded_step_is_replayed(task, batched):
    world = make(task, prey=None)
    with np.load(RECORDINGS / f"simple_{task}.npz", allow_pickle=False) as record:
        position, velocity = record["agent_pos"], record["agent_vel"]  # (12, 26, agents, 2)
        landmarks = np.repeat(record["landmark_pos"][:, None], 25, axis=1)
        actions, seen, rewards = record["actions"], record["obs"], record["rew"]

    def columns(x):  # (12, 25, ...) to (300, ...), every recorded step by itself
        return jnp.asarray(x.reshape(-1, *x.shape[2:]), jnp.float32)

    state = State(columns(position[:, :-1]), columns(velocity[:, :-1]), columns(landmarks))
    joint = columns(actions)
    if batched == "vmap":
        step, observe = jax.vmap(world.step), jax.vmap(world.observe)
    else:
        step, observe = world.step, world.observe
        state, joint = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (state, joint))
    after, rewarded = jax.jit(step)(state, joint)
    before_seen, after_seen = jax.jit(observe)(state), jax.jit(observe)(after)
    if batched == "last axis":
        after, rewarded, before_seen, after_seen = jax.tree.map(
            lambda x: jnp.moveaxis(x, -1, 0), (after, rewarded, before_seen, after_seen)
        )
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(after.position, columns(position[:, 1:]), **close)
    np.testing.assert_allclose(after.velocity, columns(velocity[:, 1:]), **close)
    np.testing.assert_allclose(np.concatenate(before_seen, 1), columns(seen[:, :-1]), **close)
    np.testing.assert_allclose(np.concatenate(after_seen, 1), columns(seen[:, 1:]), **close)
    np.testing.assert_allclose(rewarded, columns(rewards), **close)


def test_recordings_contain_contacts():
    """Otherwise the replay would say nothing about the contact force."""
    with np.load(RECORDINGS / "simple_spread.npz", allow_pickle=False) as record:
        position = record["agent_pos"]
    distance = np.linalg.norm(position[..., :, None, :] - position[..., None, :, :], axis=-1)
    apart = distance[..., *np.triu_indices(3, 1)]
    assert (apart < 0.3).sum() > 50


def test_speed_is_capped_in_a_chase_and_not_in_spread():
    for task, caps in (("tag", [1.0] * 3 + [1.3]), ("spread", [1.4 * 2**0.5] * 3)):
        world = make(task, prey=None)
        n = world.spec.n_agents
        far = jnp.arange(2.0 * n).reshape(n, 2) * 5
        state = State(far, jnp.zeros((n, 2)), world.reset(jax.random.key(0)).landmarks + 99)
        step = jax.jit(world.step)
        for _ in range(25):
            state, _ = step(state, jnp.full((n, 2), 0.7))
        speed = np.linalg.norm(state.velocity, axis=1)
        np.testing.assert_allclose(speed, caps, rtol=1e-2)


def test_contact_pushes_apart_equally_and_its_gradient_is_finite():
    world = make("spread")
    position = jnp.array([[0.0, 0.0], [0.1, 0.0], [3.0, 3.0]])
    state = State(position, jnp.zeros((3, 2)), jnp.ones((3, 2)))

    def after(position):
        start = State(position, state.velocity, state.landmarks)
        return world.step(start, jnp.zeros((3, 2)))[0].velocity

    velocity = jax.jit(after)(position)
    assert velocity[0, 0] < 0 < velocity[1, 0]
    np.testing.assert_allclose(velocity[0], -velocity[1], atol=1e-5)
    np.testing.assert_allclose(velocity[2], 0, atol=1e-6)
    assert np.isfinite(jax.jit(jax.jacobian(after))(position)).all()


@pytest.mark.parametrize(
    ("actions", "sentence"),
    [
        (np.zeros((2, 2)), "got actions for 2 agents; this world has 3"),
        (np.zeros((3, 3)), r"action of agent_0 has shape \(3,\); expected \(2,\)"),
        ([np.zeros(2), np.zeros(1), np.zeros(2)], "action of agent_1 has shape"),
        (np.full((3, 2), np.nan), "agent_0 holds NaN or infinity"),
        ([np.zeros(2), np.zeros(2), np.array([0, np.inf])], "agent_2 holds NaN or infinity"),
        (np.full((3, 2), 1.5), "leaves its bounds"),
    ],
)
def test_wrong_actions_are_refused_with_a_sentence(actions, sentence):
    world = make("spread")
    with pytest.raises(InputError, match=sentence):
        world.step(world.reset(jax.random.key(0)), actions)


def test_actions_of_wrong_shape_are_refused_inside_jit_too():
    world = make("spread")
    with pytest.raises(InputError, match="got actions for 4 agents"):
        jax.jit(world.step)(world.reset(jax.random.key(0)), jnp.zeros((4, 2)))
