from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.policies import MLP, Flee, Uniform, from_unit, init_mlp

KEY = jax.random.key(0)
LOW, HIGH = (-1.0, 0.0), (1.0, 4.0)


def test_uniform_actions_fill_their_bounds():
    actor = Uniform(5, LOW, HIGH)
    actions = np.asarray(actor(jnp.zeros((4000, 5)), KEY))
    assert actions.shape == (4000, 2)
    np.testing.assert_allclose(actions.min(0), LOW, atol=0.01)
    np.testing.assert_allclose(actions.max(0), HIGH, atol=0.01)
    np.testing.assert_allclose(actions.mean(0), [0, 2], atol=0.1)


def test_the_unit_box_maps_onto_the_bounds():
    corners = jnp.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(from_unit(corners, LOW, HIGH), [[-1, 0], [0, 2], [1, 4]])


def test_a_network_standardises_its_input_and_stays_within_bounds():
    plain = init_mlp(KEY, 3, LOW, HIGH, hidden=(8,))
    mean, std = jnp.array([1.0, 2.0, 3.0]), jnp.array([10.0, 1.0, 0.1])
    shifted = replace(plain, mean=mean, std=std)
    x = jax.random.normal(KEY, (50, 3))
    np.testing.assert_allclose(plain(x, KEY), shifted(x * std + mean, KEY), rtol=1e-3, atol=1e-3)
    large = replace(plain, weights=tuple(100 * w for w in plain.weights))
    actions = large(x, KEY)
    assert (actions >= jnp.array(LOW)).all()
    assert (actions <= jnp.array(HIGH)).all()


def test_a_fresh_network_does_not_saturate():
    for seed in range(5):
        actor = init_mlp(jax.random.key(seed), 18, (-1.0,), (1.0,))
        assert np.abs(actor.squashed(jax.random.normal(KEY, (100, 18)))).max() < 0.5


def test_noise_is_added_in_units_of_half_the_range_and_clipped():
    still = init_mlp(KEY, 3, LOW, HIGH, hidden=(8,))
    noisy = replace(still, noise=0.1)
    x = jnp.zeros((4000, 3))
    difference = np.asarray(noisy(x, KEY) - still(x, KEY))
    np.testing.assert_allclose(difference.std(0), [0.1, 0.2], rtol=0.1)
    wild = np.asarray(replace(still, noise=50.0)(x, KEY))
    assert wild.min(0).tolist() == list(LOW)
    assert wild.max(0).tolist() == list(HIGH)


@pytest.mark.parametrize("batch", [(), (7,)])
def test_every_kind_takes_one_observation_or_a_batch(batch):
    for actor in (
        Uniform(14, LOW, HIGH),
        init_mlp(KEY, 14, LOW, HIGH),
        Flee(14, (8, 14), LOW, HIGH),
    ):
        assert actor.observation_size == 14
        assert actor(jnp.zeros((*batch, 14)), KEY).shape == (*batch, 2)


def test_the_scripted_prey_runs_from_a_near_predator_and_back_from_the_border():
    actor = Flee(14, (8, 14), (-1.0, -1.0), (1.0, 1.0))
    far = [50.0, 50.0] * 2
    hunted = jnp.array([0.0] * 8 + [0.2, 0.0] + far)
    assert actor(hunted, KEY)[0] < -0.9
    outside = jnp.array([0.0, 0.0, 1.5, 0.0] + [0.0] * 4 + [50.0, 50.0] + far)
    assert actor(outside, KEY)[0] < -0.9


def test_networks_are_modules_whose_arrays_are_their_leaves():
    actor = init_mlp(KEY, 3, LOW, HIGH, hidden=(8,))
    assert isinstance(actor, MLP)
    assert len(jax.tree.leaves(actor)) == 2 + 2 * 2
