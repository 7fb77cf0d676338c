"""The estimator against data whose excess correlation is known."""

import jax
import numpy as np
import pytest

from spacql.data import correlation
from spacql.data.correlation import CELL, _cells, from_samples

ROWS = 16_000


@pytest.fixture(scope="module", autouse=True)
def optimised():
    """Here running takes longer than compiling."""
    options = {"xla_backend_optimization_level": 1}
    plain = correlation._train.__wrapped__
    with pytest.MonkeyPatch.context() as patch:
        train = jax.jit(plain, static_argnames="loss", compiler_options=options)
        patch.setattr(correlation, "_train", train)
        yield


def gaussian_pair(rho, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(ROWS, 1))
    return np.hstack([first, rho * first + np.sqrt(1 - rho**2) * rng.normal(size=(ROWS, 1))])


def total_variation(rho):
    """Between a correlated Gaussian pair and its product, E_p[(1 - q/p)+], by sampling."""
    x, y = gaussian_pair(rho, seed=9).T
    quadratic = (x**2 - 2 * rho * x * y + y**2) / (2 * (1 - rho**2))
    log_ratio = -(x**2 + y**2) / 2 + quadratic + 0.5 * np.log(1 - rho**2)
    return float(np.maximum(0, 1 - np.exp(log_ratio)).mean())


def states_and_means(seed=1):
    """Policies that follow the state closely and are nothing like linear in it."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(ROWS, 6))
    means = np.sin(state @ rng.normal(size=(6, 2)) / np.sqrt(6) * 2)
    return state, means


SLOW = pytest.mark.slow


@pytest.mark.parametrize("rho", [pytest.param(0.0, marks=SLOW), 0.5, pytest.param(0.9, marks=SLOW)])
def test_known_correlation_under_strongly_state_dependent_policies_is_found(rho):
    state, means = states_and_means()
    found = from_samples(state, means + 0.4 * gaussian_pair(rho), (1, 1))
    true = total_variation(rho)
    assert 0.55 * true - 0.03 <= found.kappa <= true + 0.03
    assert min(found.explained) > 0.6


@SLOW
def test_copied_actions_are_near_one():
    rng = np.random.default_rng(2)
    state, action = rng.normal(size=(ROWS, 6)), rng.uniform(-1, 1, (ROWS, 1))
    found = from_samples(state, np.hstack([action, action]), (1, 1))
    assert found.kappa > 0.85
    assert found.largest > 0.8
    assert found.pairwise[0][1] > 0.99


@pytest.mark.parametrize("case", ["saturated", pytest.param("shared scatter", marks=SLOW)])
def test_independent_agents_are_not_taken_for_correlated_ones(case):
    state, means = states_and_means()
    noise = np.random.default_rng(3).normal(size=(ROWS, 2))
    actions = {
        # Clipped noise: how behaviours act near the bounds, with a lump of rows at them.
        "saturated": np.clip(np.tanh(3 * means) + 0.15 * noise, -1, 1),
        # Both are wild in the same states, and still independent given the state.
        "shared scatter": np.exp(state[:, :1]) * noise,
    }[case]
    found = from_samples(state, actions, (1, 1))
    assert found.kappa < 0.05
    assert found.largest < 0.05


def test_correlation_whose_sign_depends_on_the_state_is_found_though_it_cancels_on_average():
    state, _ = states_and_means()
    pair = gaussian_pair(0.8)
    pair[:, 1] *= np.sign(state[:, 0])
    found = from_samples(state, pair, (1, 1))
    assert found.pairwise[0][1] < 0.1
    assert found.kappa > 0.5 * total_variation(0.8)


def test_cells_are_of_equal_size_disjoint_and_tight():
    points = np.random.default_rng(0).normal(size=(1000, 2))
    cells = _cells(points)
    assert cells.shape[1] == CELL
    assert len(np.unique(cells)) == cells.size
    assert points[cells].std(axis=1).mean() < 0.4 * points.std()
