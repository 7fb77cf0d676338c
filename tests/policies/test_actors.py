from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.policies import MLP, Flee, Uniform, from_unit, init_mlp

KEY = jax.random.key(0)
LOW, HIGH = (-1.0, 0.0), (1.0, 4.0)
act = eqx.filter_jit(lambda actor, x: actor(x, KEY))


def network(*sizes, seed=0, low=LOW, high=HIGH):
    """With `sizes` of its input and its hidden layers, if not the usual ones."""
    hidden = {"hidden": sizes[1:]} if sizes[1:] else {}
    make = lambda key: init_mlp(key, sizes[0], low, high, **hidden)  # noqa: E731
    return jax.jit(make)(jax.random.key(seed, impl="rbg"))


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
    plain = network(3, 8)
    mean, std = jnp.array([1.0, 2.0, 3.0]), jnp.array([10.0, 1.0, 0.1])
    shifted = replace(plain, mean=mean, std=std)
    x = jax.random.normal(KEY, (50, 3))
    np.testing.assert_allclose(act(plain, x), act(shifted, x * std + mean), rtol=1e-3, atol=1e-3)
    large = replace(plain, weights=tuple(100 * w for w in plain.weights))
    actions = act(large, x)
    assert (actions >= jnp.array(LOW)).all()
    assert (actions <= jnp.array(HIGH)).all()


def test_a_fresh_network_does_not_saturate():
    @jax.jit
    def largest(key):
        actor = init_mlp(key, 18, (-1.0,), (1.0,))
        return jnp.abs(actor.squashed(jax.random.normal(KEY, (100, 18)))).max()

    for seed in range(5):
        assert largest(jax.random.key(seed)) < 0.5


def test_noise_is_added_in_units_of_half_the_range_and_clipped():
    still = network(3, 8)
    noisy = replace(still, noise=0.1)
    x = jnp.zeros((4000, 3))
    difference = np.asarray(act(noisy, x) - act(still, x))
    np.testing.assert_allclose(difference.std(0), [0.1, 0.2], rtol=0.1)
    wild = np.asarray(act(replace(still, noise=50.0), x))
    assert wild.min(0).tolist() == list(LOW)
    assert wild.max(0).tolist() == list(HIGH)


@pytest.mark.parametrize("batch", [(), (7,)])
def test_every_kind_takes_one_observation_or_a_batch(batch):
    for actor in (
        Uniform(14, LOW, HIGH),
        network(14),
        Flee(14, (8, 14), LOW, HIGH),
    ):
        assert actor.observation_size == 14
        assert jax.eval_shape(actor, jnp.zeros((*batch, 14)), KEY).shape == (*batch, 2)


def test_the_scripted_prey_runs_from_a_near_predator_and_back_from_the_border():
    actor = Flee(14, (8, 14), (-1.0, -1.0), (1.0, 1.0))
    far = [50.0, 50.0] * 2
    hunted = jnp.array([0.0] * 8 + [0.2, 0.0] + far)
    assert actor(hunted, KEY)[0] < -0.9
    outside = jnp.array([0.0, 0.0, 1.5, 0.0] + [0.0] * 4 + [50.0, 50.0] + far)
    assert actor(outside, KEY)[0] < -0.9


def test_networks_are_modules_whose_arrays_are_their_leaves():
    actor = network(3, 8)
    assert isinstance(actor, MLP)
    assert len(jax.tree.leaves(actor)) == 2 + 2 * 2
