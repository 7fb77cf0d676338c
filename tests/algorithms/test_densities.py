"""The behaviour's density against SciPy-like formulas, and that it learns."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from algorithms_toy import plain, quick_key, setting, tiny_dataset

from spacql.algorithms import densities
from spacql.algorithms.config import Training


def fresh():
    data = tiny_dataset()
    config = Training(hidden=(8, 6), actor_learning_rate=0.02)
    init = partial(densities.init, spec=data.spec, statistics=data.statistics(), config=config)
    return jax.jit(init)(quick_key(3)), data.spec, config


def test_the_density_is_a_gaussian() -> None:
    (found, _, _), (_, t) = fresh(), setting()
    network, o, a = found.networks[1], t.observations[1], t.a[:, 1]
    mean, log_std = densities.gaussian(network, o)
    log_p = jax.scipy.stats.norm.logpdf(a, mean, jnp.exp(log_std)).sum(-1)
    constant = 2 * np.log(2 * np.pi) / 2
    loss = densities.negative_log_likelihood(network, o, a)
    np.testing.assert_allclose(loss, -log_p.mean() - constant, rtol=1e-4)


def test_distances_are_in_units_of_the_behaviours_own_deviation() -> None:
    (found, spec, _), (_, t) = fresh(), setting()
    distance = densities.standardised_distance(found, spec, t.observations, t.a)
    for i, size in enumerate(spec.action_sizes):
        mean, log_std = plain(densities.gaussian(found.networks[i], t.observations[i]))
        expected = (((np.asarray(t.a[:, i, :size]) - mean) / np.exp(log_std)) ** 2).mean(axis=-1)
        np.testing.assert_allclose(distance[:, i], expected, rtol=1e-4)


def test_the_mean_variance_is_that_of_every_agents_own_coordinates() -> None:
    (found, spec, _), (_, t) = fresh(), setting()
    variance = np.asarray(densities.mean_variance(found, spec, t.observations))
    for i, size in enumerate(spec.action_sizes):
        _, log_std = plain(densities.gaussian(found.networks[i], t.observations[i]))
        np.testing.assert_allclose(variance[i, :size], np.exp(2 * log_std).mean(0), rtol=1e-5)
        assert (variance[i, size:] == 0).all()


def test_steps_raise_the_likelihood_of_the_log() -> None:
    (found, spec, config), (_, t) = fresh(), setting()
    step = jax.jit(lambda found: densities.step(found, spec, t.observations, t.a, config))
    losses = []
    for _ in range(30):
        found, metrics = step(found)
        losses.append(float(metrics["behaviour_loss"]))
    assert losses[-1] < losses[0] - 0.1
