import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import plain
from algorithms_toy import q as q_by_hand

from spacql.algorithms import ensemble
from spacql.algorithms.ensemble import (
    ensemble_gradient,
    ensemble_q,
    first_layer,
    group_size,
    in_groups,
    init_critics,
    later_layers,
    q_of_agent,
)

J, S, N, D = 2, 4, 3, 2


@pytest.fixture(scope="module")
def inputs():
    keys = jax.random.split(jax.random.key(1), 5)
    critics = jax.jit(init_critics, static_argnums=range(1, 6))(keys[0], J, S, N, D, (8, 5))
    s, a = jax.random.normal(keys[1], (12, S)), jax.random.uniform(keys[2], (12, N, D))
    return critics, s, a, jax.random.uniform(keys[3], (12, 6, N, D))


def test_split_first_layer_equals_the_concatenated_network(inputs) -> None:
    critics, s, _, many = inputs
    found = np.asarray(jax.jit(ensemble_q)(critics, s, many))
    critics, s, many = plain((critics, s, many))
    by_hand = [[[q_by_hand(critics, j, s[b], many[b, m]) for m in range(6)]
                for b in range(12)] for j in range(J)]  # fmt: skip
    np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-6)


def test_replacing_one_agent_equals_evaluating_the_replaced_joint_action(inputs) -> None:
    critics, s, a, many = inputs
    critic = jax.tree.map(lambda x: x[0], critics)
    x = many[:, :, 1]  # what agent 1 might do
    joint = jnp.broadcast_to(a[:, None], (12, 6, N, D)).at[:, :, 1].set(x)
    found = q_of_agent(critic, first_layer(critic, s, a), a, 1, x)
    np.testing.assert_allclose(found, ensemble_q(critics, s, joint)[0], rtol=1e-4, atol=1e-6)


def test_a_team_as_one_agent_is_the_joint_action(inputs) -> None:
    critics, s, a, many = inputs
    critic = jax.tree.map(lambda x: x[0], critics)
    team, joint = a.reshape(12, 1, N * D), many.reshape(12, 6, N * D)
    found = q_of_agent(critic, first_layer(critic, s, a), team, 0, joint)
    np.testing.assert_allclose(found, ensemble_q(critics, s, many)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loops", [True, False], ids=["loop", "map"])
def test_gradient_in_groups_equals_the_gradient_of_the_whole(inputs, monkeypatch, loops) -> None:
    critics, s, a, _ = inputs
    y = jnp.arange(12.0)

    def loss(critic, z, y):
        q = later_layers(critic, z)
        return jnp.mean((q - y) ** 2), {"q": jnp.mean(q)}

    def whole(critic):
        return loss(critic, first_layer(critic, s, a), y)

    monkeypatch.setattr(ensemble, "loops", lambda: loops)
    found, metrics = jax.jit(lambda c: ensemble_gradient(loss, c, s, a, in_groups(y, 4)))(critics)
    expected, expected_metrics = jax.jit(jax.vmap(jax.grad(whole, has_aux=True)))(critics)
    for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(metrics["q"], expected_metrics["q"], rtol=1e-5)


def test_group_sizes_divide_the_batch() -> None:
    assert group_size(1024, 11, most=1024) == 16
    assert group_size(1024, 2, most=1024) == 64
    assert group_size(256, 31, most=256) == 4
    assert group_size(7, 1000, most=7) == 1
    assert group_size(12, 2, most=4) == 4
