"""Every target against the paper's formula in plain loops: two agents, two critics."""

from dataclasses import replace as with_values
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import deviation, least, plain, quick_key, replaced, unequal_setting

from spacql.algorithms import cfcql, icql_qs, macql, spacql
from spacql.algorithms.actors import act
from spacql.algorithms.ensemble import ensemble_gradient, in_groups, init_critics, later_layers
from spacql.algorithms.transitions import raw_q

MODULES = {"spacql": spacql, "icql-qs": icql_qs, "cfcql": cfcql, "macql": macql}
SMALL = {"critics": 2, "hidden": (8, 6), "target_noise": 0.0}


def setting(module, **values):
    """A state whose target networks differ from the online ones, and all transitions."""
    return *unequal_setting(), module.Config(**SMALL, **values)


@partial(jax.jit, static_argnames=("module", "config"))
def target(module, key, state, t, config):
    return module.target(key, state, t, config)[1:]


def by_hand(state, t, discount, value):
    """Y with `value(s', a', a_pi)` for every transition, in the reward's own units."""
    policies = jax.jit(act, static_argnums=0)(state.spec, state.actors.target, t.next_observations)
    scale, t, a_pi = plain((state.scale, t, policies))
    mean, std = float(scale.reward_mean), float(scale.reward_std)
    targets = []
    for b in range(len(t.r)):
        reward = float(t.r[b]) * std + mean
        if t.terminal[b]:
            targets.append(reward)  # nothing follows
        else:
            v = value(t.next_s[b], t.next_a[b], a_pi[b])
            targets.append(reward + discount * (v * std + mean / (1 - discount)))
    return np.array(targets)


def check(module, value, **values):
    state, t, config = setting(module, **values)
    y, metrics = target(module, quick_key(5), state, t, config)
    found = raw_q(state.scale, y, config.discount)
    expected = by_hand(state, t, config.discount, lambda *x: value(plain(state), *x))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    return metrics


@pytest.mark.parametrize("module", [cfcql, macql])
def test_joint_target_replaces_all_agents(module) -> None:
    def value(state, s, logged, policy):
        return least(state.critics.target, s, policy)

    assert check(module, value)["k_eff"] == 2


def test_icql_qs_replaces_one_agent_at_a_time_each_with_its_own_minimum() -> None:
    def value(state, s, logged, policy):
        values = [least(state.critics.target, s, replaced(logged, policy, [i])) for i in (0, 1)]
        return sum(values) / 2

    assert check(icql_qs, value)["k_eff"] == 1


def spacql_value(state, s, logged, policy, first):
    """Algorithm 1, lines 6 to 13, when the random set of one agent is `first`."""
    y, trust = 0.0, 0.0
    for agents in ([first], [0, 1]):
        a_k = replaced(logged, policy, agents)
        u_k = deviation(state.critics.online, s, a_k)
        y += least(state.critics.target, s, a_k) / u_k
        trust += 1 / u_k
    return y / trust


def test_spacql_mixes_sets_by_the_online_critics_disagreement() -> None:
    state, t, config = setting(spacql)
    y, metrics = target(spacql, quick_key(5), state, t, config)
    found = np.asarray(raw_q(state.scale, y, config.discount))
    either = [
        by_hand(state, t, config.discount, lambda *x, i=i: spacql_value(plain(state), *x, i))
        for i in (0, 1)
    ]
    near = np.isclose(found, either, rtol=1e-3)
    assert near.any(axis=0).all()
    assert near[0].sum() > 3, "the first agent is drawn now and then"
    assert near[1].sum() > 3, "and the second"
    np.testing.assert_allclose(metrics["w"].sum(), 1, rtol=1e-5)
    assert 1 < metrics["k_eff"] < 2


def test_spacql_with_all_agents_replaced_is_cfcql() -> None:
    state, t, config = setting(spacql, replaced=(2,))
    mine, _ = target(spacql, quick_key(5), state, t, config)
    theirs, _ = target(cfcql, quick_key(5), state, t, cfcql.Config(**SMALL))
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_spacql_with_one_agent_replaced_is_icql_qs_in_expectation() -> None:
    state, t, config = setting(spacql, replaced=(1,))
    draw = jax.jit(jax.vmap(lambda key: spacql.target(key, state, t, config)[1]))
    mean = draw(jax.random.split(jax.random.key(5), 4000)).mean(axis=0)
    expected, _ = target(icql_qs, quick_key(5), state, t, icql_qs.Config(**SMALL))
    np.testing.assert_allclose(mean, expected, atol=0.02)


def test_one_critic_gives_equal_weights() -> None:
    state, t, config = setting(spacql)
    one = with_values(state.critics, online=jax.tree.map(lambda x: x[:1], state.critics.online))
    _, metrics = target(spacql, quick_key(5), with_values(state, critics=one), t, config)
    np.testing.assert_allclose(metrics["w"], 0.5)


def test_spacql_with_uniform_mixing_ignores_the_disagreement() -> None:
    """The ablation: every k counts the same."""
    state, t, config = setting(spacql, mixing="uniform")
    y, metrics = target(spacql, quick_key(5), state, t, config)
    np.testing.assert_allclose(metrics["w"], 0.5)
    assert metrics["k_eff"] == 1.5
    weighted, _ = target(spacql, quick_key(5), state, t, spacql.Config(**SMALL))
    assert not np.allclose(y, weighted)


def test_icql_qs_averaged_gradient_is_the_centralised_one() -> None:
    """The paper's proposition: mean of per-agent TD gradients = gradient with the mean target."""
    keys = jax.random.split(jax.random.key(6), 4)
    critics = jax.jit(init_critics, static_argnums=range(1, 6))(keys[0], 1, 4, 3, 2, (16, 16))
    s, a = jax.random.normal(keys[1], (32, 4)), jax.random.uniform(keys[2], (32, 3, 2))
    targets = jax.random.normal(keys[3], (3, 32))  # one an agent

    def loss(critic, z, y):
        return jnp.mean((later_layers(critic, z) - y) ** 2), ()

    gradient = jax.jit(lambda y: ensemble_gradient(loss, critics, s, a, in_groups(y, 8))[0])
    separate = [gradient(y) for y in targets]
    averaged = jax.tree.map(lambda *x: sum(x) / 3, *separate)
    central = gradient(targets.mean(axis=0))
    for left, right in zip(jax.tree.leaves(averaged), jax.tree.leaves(central), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)


def swapped(tree):
    """Agents in the other order, in anything that has an agent axis of its own."""
    return tuple(reversed(tree))


@pytest.mark.parametrize("name", ["icql-qs", "cfcql", "spacql"])
def test_permuting_agents_changes_no_target(name) -> None:
    module = MODULES[name]
    values = {"replaced": (2,)} if name == "spacql" else {}  # else the sets would be drawn anew
    state, t, config = setting(module, **values)
    spec = with_values(
        state.spec,
        agents=swapped(state.spec.agents),
        observation_sizes=swapped(state.spec.observation_sizes),
        action_low=swapped(state.spec.action_low),
        action_high=swapped(state.spec.action_high),
    )

    def swap_critics(critics):
        return with_values(critics, action_weight=critics.action_weight[:, ::-1])

    other = with_values(
        state,
        spec=spec,
        actors=with_values(
            state.actors, online=swapped(state.actors.online), target=swapped(state.actors.target)
        ),
        critics=with_values(
            state.critics,
            online=swap_critics(state.critics.online),
            target=swap_critics(state.critics.target),
        ),
    )
    flipped = t._replace(
        a=t.a[:, ::-1],
        next_a=t.next_a[:, ::-1],
        observations=swapped(t.observations),
        next_observations=swapped(t.next_observations),
    )
    mine, metrics = target(module, quick_key(5), state, t, config)
    theirs, other_metrics = target(module, quick_key(5), other, flipped, config)
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    u = other_metrics["u"][::-1] if name == "icql-qs" else other_metrics["u"]
    np.testing.assert_allclose(metrics["u"], u, rtol=1e-4)
