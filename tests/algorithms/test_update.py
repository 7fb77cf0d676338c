"""A whole round of every algorithm, and the units it works in."""

from dataclasses import fields, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import quick_key, setting, tiny_dataset

from spacql.algorithms import cfcql
from spacql.algorithms.learner import improve_actors
from spacql.algorithms.registry import MODULES, find
from spacql.algorithms.transitions import Scale, Transitions, bellman, raw_q, unit_actions

SMALL = {"critics": 2, "hidden": (8, 6), "samples": 2, "updates": 2, "batch_size": 8}
CONSERVATIVE = {"td_error", "penalty", "q_data", "q_policy", "u", "w", "k_eff",
                "critic_gradient", "actor_gradient"}  # fmt: skip
METRICS = {
    "omar": {"td_error", "penalty", "q_data", "q_policy", "search_distance", "actor_gradient"},
    "iql": {"td_error", "q_data", "advantage", "weight", "clone_error", "actor_gradient"},
    "td3bc": {"td_error", "q_data", "q_policy", "clone_error", "actor_gradient"},
    "bc": {"clone_error", "actor_gradient"},
}


def networks(state):
    """Everything that a round must move, by name: the state itself, or those it is made of."""
    parts = getattr(state, "agents", None) or (getattr(state, "team", state),)
    names = ("critics", "target_critics", "actors", "target_actors", "behaviour")
    found = {(k, n): getattr(part, n, None) for k, part in enumerate(parts) for n in names}
    return found | {(0, "value"): getattr(state, "value", None)}


@pytest.mark.parametrize("name", MODULES)
def test_a_round_moves_every_network_and_reports(name) -> None:
    module, data = find(name), tiny_dataset(states=name in ("cfcql", "iql"))
    known = {field.name for field in fields(module.Config)}
    values = {name: value for name, value in SMALL.items() if name in known}
    if name == "cfcql":
        values["penalty_weights"] = "divergence"
    config = module.Config(**values)
    init = jax.jit(
        partial(module.init, spec=data.spec, config=config, statistics=data.statistics())
    )
    before = init(quick_key(0))
    rows = np.random.default_rng(0).choice(data.target_rows(), (2, 8))
    update = jax.jit(partial(module.update, config=config))
    after, metrics = update(before, data.batch(rows), key=quick_key(1))
    assert METRICS.get(name, CONSERVATIVE) <= set(metrics)
    assert all(np.isfinite(value).all() for value in metrics.values())
    for (part, field), old in networks(before).items():
        if name == "iql" and field == "target_actors":
            continue  # implicit targets need no policy
        old, new = jax.tree.leaves(old), jax.tree.leaves(networks(after)[part, field])
        moved = [bool((x != y).any()) for x, y in zip(old, new, strict=True)]
        assert any(moved) or not moved, field
    policy = module.policy(after)
    np.testing.assert_array_equal(policy.actors[0].mean, data.statistics().observation_mean[0])
    left, right = policy.act([np.zeros(3), np.zeros(2)])
    assert left.shape == (1,)
    assert ((right >= 0) & (right <= 4)).all()


@pytest.mark.parametrize("cost", [0.0, 0.01])
def test_the_cost_before_the_tanh_brings_back_an_actor_that_saturated(cost) -> None:
    state, t = setting()
    first = state.actors[0]
    stuck = eqx.tree_at(lambda actor: actor.biases[-1], first, jnp.full_like(first.biases[-1], 30))
    state = replace(state, actors=(stuck, *state.actors[1:]))
    config = cfcql.Config(hidden=(8, 6), action_cost=0.001, tanh_cost=cost)
    after, _ = improve_actors(state, t, config)
    moved = (after.actors[0].biases[-1] - stuck.biases[-1]) / config.actor_learning_rate
    np.testing.assert_allclose(moved, -1.0 if cost else 0.0, atol=1e-2)  # Adam's first step


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
