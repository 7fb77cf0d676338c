import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacql.algorithms import replacement

positive = st.floats(0.0078125, 128.0, width=32)


def test_exactly_k_actions_differ(key: jax.Array) -> None:
    batch, n = 200, 5
    sets = replacement.random_sets(key, batch, n, range(1, n + 1))
    a = replacement.replace(sets, jnp.zeros((batch, n, 2)), jnp.ones((batch, n, 2)))
    differ = np.asarray((a != 0).any(axis=-1).sum(axis=-1))
    np.testing.assert_array_equal(differ, np.tile(np.arange(1, n + 1), (batch, 1)))


def test_sets_are_drawn_anew_for_every_transition_and_k(key: jax.Array) -> None:
    sets = np.asarray(replacement.random_sets(key, 3000, 4, (2, 2)))
    assert len(np.unique(sets[:, 0], axis=0)) == 6  # all pairs of four agents
    same = (sets[:, 0] == sets[:, 1]).all(axis=-1).mean()
    assert abs(same - 1 / 6) < 0.03


def test_every_agent_is_replaced_equally_often(key: jax.Array) -> None:
    sets = np.asarray(replacement.random_sets(key, 8000, 3, (1, 2)))
    np.testing.assert_allclose(sets.mean(axis=0), [[1 / 3] * 3, [2 / 3] * 3], atol=0.02)


def test_equal_draws_still_give_exactly_k(monkeypatch) -> None:
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.zeros(shape))
    sets = np.asarray(replacement.random_sets(jax.random.key(0), 4, 3, (1, 2, 3)))
    np.testing.assert_array_equal(sets.sum(axis=-1), [[1, 2, 3]] * 4)


@settings(max_examples=50, deadline=None)
@given(arrays(np.float32, (4, 3), elements=positive))
def test_weights_are_the_paper_s_and_sum_to_one(u_k: np.ndarray) -> None:
    w_k = np.asarray(replacement.weights(u_k))
    np.testing.assert_allclose(w_k.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(w_k, (1 / u_k) / (1 / u_k).sum(-1, keepdims=True), rtol=1e-3)
    assert (np.argmax(w_k, -1) == np.argmin(u_k, -1)).all() or len(np.unique(u_k)) < u_k.size


def test_weights_are_equal_where_uncertainties_are_equal() -> None:
    w_k = replacement.weights(jnp.array([[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1e-20, 1e-20, 1e-20]]))
    np.testing.assert_allclose(w_k, 1 / 3, rtol=1e-6)


def test_weights_favour_fewer_replacements_when_uncertainty_grows() -> None:
    w = np.asarray(replacement.weights(jnp.array([[0.1, 0.2, 0.4]])))[0]
    np.testing.assert_allclose(w, [4 / 7, 2 / 7, 1 / 7], rtol=1e-4)


def test_critics_that_agree_give_equal_weights() -> None:
    u_k = replacement.uncertainty(jnp.broadcast_to(jnp.array([[1.0, 2.0]]), (10, 1, 2)))
    np.testing.assert_allclose(replacement.weights(u_k), [[0.5, 0.5]])


def test_mixture_takes_the_minimum_over_critics_before_the_weights() -> None:
    q = jnp.array([[[1.0, 5.0]], [[3.0, 2.0]]])  # two critics, one transition, two sets
    np.testing.assert_allclose(replacement.mixture(jnp.array([[0.25, 0.75]]), q), [0.25 + 1.5])


def test_effective_agents() -> None:
    sets = jnp.array([[[1, 0, 0], [1, 1, 0], [1, 1, 1]]], bool)
    k_eff = replacement.effective_agents(jnp.array([[0.5, 0.25, 0.25]]), sets)
    np.testing.assert_allclose(k_eff, 1.75)
