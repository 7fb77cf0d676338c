"""A whole round of every algorithm, and the units it works in."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import quick_key, tiny_dataset

from spacql.algorithms.registry import MODULES, find
from spacql.algorithms.transitions import Scale, Transitions, bellman, raw_q, unit_actions

SMALL = {"critics": 2, "hidden": (8, 6), "samples": 2, "updates": 2, "batch_size": 8}


@pytest.mark.parametrize("name", MODULES)
def test_a_round_moves_every_network_and_reports(name) -> None:
    module, data = find(name), tiny_dataset(states=name == "cfcql")
    weights = {"penalty_weights": "divergence"} if name == "cfcql" else {}
    config = module.Config(**SMALL, **weights)
    init = jax.jit(
        partial(module.init, spec=data.spec, config=config, statistics=data.statistics())
    )
    before = init(quick_key(0))
    rows = np.random.default_rng(0).choice(data.target_rows(), (2, 8))
    update = jax.jit(partial(module.update, config=config))
    after, metrics = update(before, data.batch(rows), key=quick_key(1))
    expected = {"td_error", "penalty", "q_data", "q_policy", "u", "w", "k_eff",
                "critic_gradient", "actor_gradient"}  # fmt: skip
    assert expected <= set(metrics)
    assert all(np.isfinite(value).all() for value in metrics.values())
    for field in ("critics", "target_critics", "actors", "target_actors", "behaviour"):
        old, new = jax.tree.leaves(getattr(before, field)), jax.tree.leaves(getattr(after, field))
        moved = [bool((x != y).any()) for x, y in zip(old, new, strict=True)]
        assert any(moved) or not moved, field
    np.testing.assert_array_equal(before.actors[0].mean, after.target_actors[0].mean)
    policy = module.policy(after)
    left, right = policy.act([np.zeros(3), np.zeros(2)])
    assert left.shape == (1,)
    assert ((right >= 0) & (right <= 4)).all()


def test_actions_are_padded_and_in_unit_bounds() -> None:
    data = tiny_dataset()
    a = unit_actions(data.spec, [jnp.array([[-0.5]]), jnp.array([[0.0, 3.0]])])
    np.testing.assert_allclose(a, [[[-0.5, 0.0], [-1.0, 0.5]]])


@pytest.mark.parametrize("terminal", [0.0, 1.0])
def test_targets_in_raw_units_are_those_of_raw_rewards(terminal) -> None:
    """Y computed with standardised numbers is Y computed with raw ones, terminal or not."""
    scale = Scale(jnp.zeros(1), jnp.ones(1), jnp.array(6.0), jnp.array(2.0))
    discount, reward, raw_next = 0.9, 11.0, 40.0
    next_value = (raw_next - 6.0 / (1 - discount)) / 2.0
    t = Transitions((), jnp.zeros((1, 1)), None, jnp.array([(reward - 6.0) / 2.0]), (), None, None,
                    jnp.array([terminal]))  # fmt: skip
    y = raw_q(scale, bellman(t, scale, jnp.array([next_value]), discount), discount)
    np.testing.assert_allclose(y, reward if terminal else reward + discount * raw_next, rtol=1e-5)
