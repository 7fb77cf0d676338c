"""The three changes of aspac by hand, and what is left when they are taken out."""

from dataclasses import replace as with_values
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import least, plain, quick_key, replaced, tiny_dataset, unequal_setting
from jax.flatten_util import ravel_pytree

from spacql.algorithms import actors as actor_part
from spacql.algorithms import aspac, cfcql, conservative, densities, spacql
from spacql.algorithms.actors import act
from spacql.algorithms.learner import with_critics
from spacql.algorithms.transitions import raw_q
from spacql.errors import InputError

SMALL = {"critics": 2, "hidden": (8, 6), "target_noise": 0.0}


def setting(**values):
    """The shared state with densities of the behaviour, 24 transitions, a Config."""
    team, t = unequal_setting()
    config = aspac.Config(**SMALL, **values)
    part = jax.jit(partial(densities.init, spec=team.spec, config=config,
                           statistics=tiny_dataset().statistics()))(quick_key(7))  # fmt: skip
    steps = jnp.asarray(config.rounds)  # the anchor has come down to c
    return aspac.State(team.actors, team.critics, team.scale, team.spec, part, steps), t, config


@partial(jax.jit, static_argnames=("module", "config"))
def target(module, key, state, t, config):
    return module.target(key, state, t, config)[1:]


def test_the_target_weighs_sets_by_the_softmax_of_their_lower_bounds() -> None:
    state, t, config = setting(sharpness=3.0)
    y, metrics = target(aspac, quick_key(5), state, t, config)
    a_pi = jax.jit(act, static_argnums=0)(state.spec, state.actors.target, t.next_observations)
    critics, rows, a_pi = plain((state.critics.target, t, a_pi))
    going_on = rows.terminal == 0
    either = []
    for first in (0, 1):  # the random set of one agent
        values = []
        for b in range(24):
            logged, policy = rows.next_a[b], a_pi[b]
            q_k = [least(critics, rows.next_s[b], replaced(logged, policy, agents))
                   for agents in ([first], [0, 1])]  # fmt: skip
            w_k = np.exp(3 * np.array(q_k)) / np.exp(3 * np.array(q_k)).sum()
            values.append(rows.r[b] + config.discount * w_k @ q_k)
        either.append(values)
    near = np.isclose(np.asarray(y), either, rtol=1e-3, atol=1e-4)[:, going_on]
    assert near.any(axis=0).all()
    np.testing.assert_allclose(metrics["w"].sum(), 1, rtol=1e-5)


def test_a_sharp_softmax_takes_the_highest_lower_bound() -> None:
    state, t, config = setting(sharpness=1e6)
    y, _ = target(aspac, quick_key(5), state, t, config)
    single, _ = target(aspac, quick_key(5), state, t, with_values(config, sharpness=0.0))
    assert (np.asarray(y) >= np.asarray(single) - 1e-5).all()
    assert (np.asarray(y) > np.asarray(single) + 1e-6).any()


def test_with_all_agents_replaced_the_target_is_cfcqls() -> None:
    state, t, config = setting(replaced=(2,))
    mine, _ = target(aspac, quick_key(5), state, t, config)
    theirs, _ = target(cfcql, quick_key(5), state, t, cfcql.Config(**SMALL))
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_with_the_papers_weights_the_target_is_spacqls() -> None:
    state, t, config = setting(mixing="uncertainty")
    mine, _ = target(aspac, quick_key(5), state, t, config)
    theirs, _ = target(spacql, quick_key(5), state, t, spacql.Config(**SMALL))
    np.testing.assert_array_equal(mine, theirs)


def test_actors_without_anchor_and_with_logged_others_are_the_papers_on_any_critic() -> None:
    state, t, config = setting(others="logged", anchor_weight=0.0)

    @jax.jit
    def papers(state, j):
        first = jax.tree.map(lambda x: jnp.roll(x, -j, axis=0), state.critics.online)
        critics = eqx.tree_at(lambda c: c.online, state.critics, first)
        moved, _ = conservative.improve_actors(with_critics(state, critics), t, config)
        return ravel_pytree(moved.actors.online)[0]

    @jax.jit
    def ours(state, key):
        return ravel_pytree(aspac.improve_actors(key, state, t, config)[0].actors.online)[0]

    theirs = np.array([papers(state, j) for j in range(2)])
    drawn = set()
    for key in jax.random.split(quick_key(0), 8):
        distance = np.abs(theirs - np.asarray(ours(state, key))).max(axis=1)
        drawn.add(int(distance.argmin()))
        assert distance.min() < 1e-6 < 1e-4 < distance.max()
    assert drawn == {0, 1}, "a critic for every step"


@pytest.mark.parametrize("others", ["partial", "logged", "policies"])
def test_the_others_do_what_the_option_says(others) -> None:
    pi, a = jnp.ones((4000, 3, 2)), jnp.zeros((4000, 3, 2))
    config = aspac.Config(others=others)
    x = np.asarray(jax.jit(partial(aspac.what_others_do, config=config))(quick_key(0), pi, a))
    assert (x[..., 0] == x[..., 1]).all(), "an agent is replaced as a whole"
    counts = np.bincount(x[..., 0].sum(axis=1).astype(int), minlength=4) / 4000
    # A probability that is itself uniform makes every number of replaced agents equally likely.
    expected = {"partial": [0.25] * 4, "logged": [1, 0, 0, 0], "policies": [0, 0, 0, 1]}[others]
    np.testing.assert_allclose(counts, expected, atol=0.03)


@pytest.mark.parametrize("anchor", ["by-width", "plain"])
def test_the_actors_loss_by_hand(monkeypatch, anchor) -> None:
    state, t, config = setting(others="logged", anchor=anchor, anchor_weight=0.1, tanh_cost=0.0)
    seen = []

    def instead(actors, loss, config):
        seen.append(loss(actors.online))
        return actors, seen[-1][1], {}

    monkeypatch.setattr(actor_part, "step", instead)

    @jax.jit
    def improve(state, t):
        _, metrics = aspac.improve_actors(quick_key(0), state, t, config)
        shapes = [densities.gaussian(network, x) for network, x in
                 zip(state.densities.networks, t.observations, strict=True)]  # fmt: skip
        pi = act(state.spec, state.actors.online, t.observations)
        return metrics, seen.pop(), shapes, pi

    metrics, (value, (q, distance)), shapes, pi = improve(state, t)
    weight = 0.1 * state.spec.horizon ** (4 / 3)
    by_hand = 0.0
    for i, size in enumerate(state.spec.action_sizes):
        x = np.asarray(pi[:, i, :size])
        gap = (x - np.asarray(t.a[:, i, :size])) ** 2
        if anchor == "by-width":
            _, log_std = plain(shapes[i])
            gap *= np.maximum(1 / np.exp(2 * log_std).mean(axis=0) - 3, 0)
        # The cost is a mean over the padded width.
        by_hand += weight * gap.mean() + config.action_cost * (x**2).sum() / (24 * 2)
    np.testing.assert_allclose(value, by_hand - 2 * q, rtol=1e-4)
    np.testing.assert_allclose(metrics["anchor_distance"], distance)
    np.testing.assert_allclose(
        metrics["q_policy"], raw_q(state.scale, q, config.discount), rtol=1e-5
    )


def test_a_heavy_anchor_brings_the_policies_to_the_behaviour() -> None:
    state, t, config = setting(anchor_weight=100.0, actor_learning_rate=0.02)

    @jax.jit
    def many(state):
        step = lambda state, key: aspac.improve_actors(key, state, t, config)  # noqa: E731
        return jax.lax.scan(step, state, jax.random.split(jax.random.key(0), 200))[1]

    distance = many(state)["anchor_distance"]
    assert distance[-1] < 0.4 * distance[0]


def test_nothing_holds_the_actors_to_uniform_behaviour() -> None:
    state, t, config = setting()
    wide = jnp.full((2, 2), 1 / densities.UNIFORM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aspac, "mean_variance", lambda *_: wide)
        np.testing.assert_allclose(aspac.precision(state, t, config), 0, atol=1e-5)
        patch.setattr(aspac, "mean_variance", lambda *_: wide / 4)
        np.testing.assert_allclose(aspac.precision(state, t, config), 9, rtol=1e-5)


@pytest.mark.parametrize(
    ("start", "expected"), [(16.0, [16, 4, 1, 1]), (0.5, [1, 1, 1, 1]), (0.0, [1, 1, 1, 1])]
)
def test_the_anchor_comes_down_from_its_start_within_its_share(start, expected) -> None:
    state, _, config = setting(rounds=100, anchor_release=0.4)
    steps = state.spec.horizon
    config = with_values(config, anchor_weight=1 / steps ** (4 / 3), anchor_start=start / steps)
    weights = [aspac.anchor_strength(eqx.tree_at(lambda s: s.steps, state, steps), config)
               for steps in map(jnp.asarray, (0, 20, 40, 100))]  # fmt: skip
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_every_step_of_the_actors_is_counted() -> None:
    state, t, config = setting()
    after, _ = jax.jit(partial(aspac.improve_actors, config=config))(quick_key(0), state, t)
    assert int(after.steps) == int(state.steps) + 1


@pytest.mark.parametrize("name", ["anchor_weight", "anchor_start", "sharpness"])
def test_what_is_negative_is_refused_by_name(name) -> None:
    with pytest.raises(InputError, match=f"{name} is -1.0; it must be at least 0"):
        aspac.Config(**{name: -1.0})


def test_an_anchor_that_comes_down_in_no_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"anchor_release is 0.0, .* above 0"):
        aspac.Config(anchor_release=0.0)
