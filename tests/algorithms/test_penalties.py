"""Both forms of the penalty against plain loops, and what taking turns means."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import plain, quick_key, replaced
from algorithms_toy import q as q_by_hand
from algorithms_toy import setting as fresh

from spacql.algorithms import cfcql, macql
from spacql.algorithms.actors import act
from spacql.algorithms.conservative import all_agents_at_once, one_agent_at_a_time
from spacql.algorithms.ensemble import ensemble_gradient, first_layer
from spacql.algorithms.penalties import conservative_loss

SMALL = {"critics": 2, "hidden": (8, 6), "samples": 3}
FORMS = ["log-sum-exp", "policy"]


def setting(module, **values):
    return *fresh(), module.Config(**SMALL, **values)


@partial(jax.jit, static_argnames=("make", "config"))
def alternatives(make, state, t, config):
    return make(quick_key(5), state, t, config)


policies = jax.jit(act, static_argnums=0)


@partial(jax.jit, static_argnames="config")
def losses(state, t, instead, config):
    """(TD error, penalty) of every critic with Y = 1, as trained."""
    groups = (jnp.ones((len(instead.a), len(t.s) // len(instead.a))), instead)
    loss = lambda *x: conservative_loss(*x, config.alpha, config.penalty)  # noqa: E731
    _, metrics = ensemble_gradient(loss, state.critics.online, t.s, t.a, groups)
    return metrics["td"], metrics["penalty"]


def softened(values, form):
    return np.mean(values) if form == "policy" else np.log(np.mean(np.exp(values)))


@pytest.mark.parametrize("form", FORMS)
def test_individual_penalty_by_hand(form) -> None:
    state, t, config = setting(cfcql, penalty=form, penalty_agents="all")
    instead = alternatives(one_agent_at_a_time, state, t, config)
    td, penalty = losses(state, t, instead, config)
    pi = np.asarray(policies(state.spec, state.actors.online, t.observations))
    x = np.asarray(instead.x).reshape(24, 2, -1, 2)  # (B, agents, N, d)
    assert (x[:, 0, :, 1] == 0).all(), "the padding of the smaller action stays zero"
    if form == "policy":
        np.testing.assert_allclose(x[:, :, 0], pi)
    critics, t = plain((state.critics.online, t))
    for j in range(2):
        value = lambda b, a, j=j: q_by_hand(critics, j, t.s[b], a)  # noqa: E731
        gaps, errors = [], []
        for b in range(24):
            logged = t.a[b]
            q = value(b, logged)
            errors.append((q - 1) ** 2)
            for i in (0, 1):
                q_x = []
                for choice in x[b, i]:
                    everyone = np.broadcast_to(choice, (2, 2))
                    q_x.append(value(b, replaced(logged, everyone, [i])))
                gaps.append(softened(q_x, form) - q)
        np.testing.assert_allclose(penalty[j], np.mean(gaps), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(td[j], np.mean(errors), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_joint_penalty_by_hand(form) -> None:
    state, t, config = setting(macql, penalty=form)
    instead = alternatives(all_agents_at_once, state, t, config)
    _, penalty = losses(state, t, instead, config)
    x = np.asarray(instead.x).reshape(24, -1, 2, 2)  # (B, N, agents, d)
    critics, t = plain((state.critics.online, t))
    for j in range(2):
        value = lambda b, a, j=j: q_by_hand(critics, j, t.s[b], a)  # noqa: E731
        gaps = [softened([value(b, a) for a in x[b]], form) - value(b, t.a[b]) for b in range(24)]
        np.testing.assert_allclose(penalty[j], np.mean(gaps), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("form", "every"), [("log-sum-exp", 1), ("policy", 1), ("policy", 4)])
def test_fewer_agents_and_transitions_have_the_expectation_of_the_full_sum(form, every) -> None:
    """Exactly so when the mean is over rows in every order and every start of the turns."""
    state, t, one = setting(cfcql, penalty=form, penalty_agents="one", penalty_every=every)
    _, _, full = setting(cfcql, penalty=form, penalty_agents="all")

    @jax.jit
    def draw(key):
        order, penalty_key, full_key = jax.random.split(key, 3)
        mixed = jax.tree.map(lambda x: jax.random.permutation(order, x), t)
        turns = one_agent_at_a_time(penalty_key, state, mixed, one)
        whole = one_agent_at_a_time(full_key, state, mixed, full)
        return _penalty(state, mixed, turns, form), _penalty(state, mixed, whole, form)

    turns, whole = jax.lax.map(draw, jax.random.split(jax.random.key(6), 1000))
    spread = np.std(turns) / np.sqrt(len(turns)) + np.std(whole) / np.sqrt(len(whole))
    assert abs(turns.mean() - whole.mean()) < 4 * spread + 1e-6


def _penalty(state, t, instead, form):
    first = jax.tree.map(lambda x: x[0], state.critics.online)
    count = len(instead.a)
    z = first_layer(first, t.s, t.a).reshape(count, len(t.s) // count, -1)
    y = jnp.zeros(z.shape[:2])
    _, metrics = jax.vmap(
        lambda z, group: conservative_loss(first, z, group, 1.0, form), in_axes=(0, 0)
    )(z, (y, instead))
    return metrics["penalty"].mean()


@pytest.mark.parametrize("make", [one_agent_at_a_time, all_agents_at_once])
def test_the_penalty_of_one_in_three_leaves_the_td_error_of_all(make) -> None:
    state, t, config = setting(cfcql, penalty="policy", penalty_agents="all", penalty_every=3)
    _, _, full = setting(cfcql, penalty="policy", penalty_agents="all")
    some, whole = (alternatives(make, state, t, c) for c in (config, full))
    assert some.a.shape[:2] == (1, 8)
    td, penalty = losses(state, t, some, config)
    td_of_all, _ = losses(state, t, whole, full)
    np.testing.assert_allclose(td, td_of_all, rtol=1e-5)
    of_the_first = jax.tree.map(lambda x: x[:8], t)
    _, expected = losses(state, of_the_first, alternatives(make, state, of_the_first, full), full)
    np.testing.assert_allclose(penalty, expected, rtol=1e-4)


def test_every_agent_gets_a_turn() -> None:
    state, t, config = setting(cfcql, penalty_agents="one")
    instead = alternatives(one_agent_at_a_time, state, t, config)
    assert set(np.ravel(instead.agents).tolist()) == {0, 1}


def test_samples_near_the_policy_carry_their_density() -> None:
    state, t, config = setting(cfcql, policy_samples=200, penalty_agents="all", sample_noise=0.1)
    instead = alternatives(one_agent_at_a_time, state, t, config)
    x = np.asarray(instead.x).reshape(24, 2, -1, 2)
    log_p = np.asarray(instead.log_density).reshape(24, 2, -1)
    pi = np.asarray(policies(state.spec, state.actors.online, t.observations))
    near = x[:, :, 3:203] - pi[:, :, None]
    assert 0.08 < near[:, 1].std() < 0.11
    density = np.exp(-((near[0, 1, 0] / 0.1) ** 2).sum() / 2) / (2 * np.pi * 0.01)
    np.testing.assert_allclose(np.exp(log_p[0, 1, 3]), density * 4, rtol=1e-3)
    assert (log_p[:, :, :3] == 0).all(), "uniform actions are what densities are relative to"
