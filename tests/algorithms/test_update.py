"""A whole round of every algorithm, and the units it works in."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import setting, tiny_dataset

from spacql.algorithms import cfcql
from spacql.algorithms.conservative import improve_actors
from spacql.algorithms.transitions import Scale, Transitions, bellman, raw_q, unit_actions


@pytest.mark.parametrize("cost", [0.0, 0.01])
def test_the_cost_before_the_tanh_brings_back_an_actor_that_saturated(cost) -> None:
    state, t = setting()
    first = state.actors.online[0]
    stuck = eqx.tree_at(lambda actor: actor.biases[-1], first, jnp.full_like(first.biases[-1], 30))
    actors = replace(state.actors, online=(stuck, *state.actors.online[1:]))
    state = replace(state, actors=actors)
    config = cfcql.Config(hidden=(8, 6), action_cost=0.001, tanh_cost=cost)
    after, _ = jax.jit(partial(improve_actors, config=config))(state, t)
    moved = (after.actors.online[0].biases[-1] - stuck.biases[-1]) / config.actor_learning_rate
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
