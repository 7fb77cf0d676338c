"""PLCQL: the bandit's reward and PPO by hand, its sets, and that it learns the better arm."""

from dataclasses import replace as with_values
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import least, plain, quick_key, replaced, tiny_dataset, unequal_setting

from spacql.algorithms import plcql
from spacql.algorithms.actors import act
from spacql.algorithms.replacement import random_sets
from spacql.algorithms.transitions import raw_q
from spacql.errors import InputError


@cache
def setting(**values):
    """A state whose target networks differ from the online ones, 24 transitions, a Config."""
    data, config = tiny_dataset(), plcql.Config(hidden=(8, 6), critics=2, **values)
    init = partial(plcql.init, spec=data.spec, config=config, statistics=data.statistics())
    team, t = unequal_setting()
    state = jax.jit(init)(quick_key(3))
    return with_values(state, critics=team.critics, actors=team.actors), t, config


@partial(jax.jit, static_argnames="config")
def target(key, state, t, config):
    return plcql.target(key, state, t, config)


def test_sets_have_exactly_the_number_of_agents_that_was_chosen() -> None:
    k = jnp.asarray(np.random.default_rng(0).integers(1, 6, (200, 1)))
    sets = np.asarray(random_sets(quick_key(0), 200, 5, k))
    np.testing.assert_array_equal(sets.sum(axis=-1), k)
    once = sets[np.asarray(k)[:, 0] == 1, 0].mean(axis=0)
    assert (once > 0).all(), "any agent may be the one"


def test_the_reward_is_value_less_disagreement_in_deviations_of_the_value() -> None:
    value, u = np.array([1.0, 3.0, 5.0]), np.array([0.5, 0.0, 1.0])
    by_hand = [(x - 3 - 2 * y) / np.sqrt(8 / 3) for x, y in zip(value, u, strict=True)]
    everywhere = jnp.ones(3, bool)
    found = plcql.reward(jnp.array(value), jnp.array(u), everywhere, 2.0)
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)
    shifted = plcql.reward(jnp.array(10 * value + 7), jnp.array(10 * u), everywhere, 2.0)
    np.testing.assert_allclose(shifted, by_hand, rtol=1e-5)  # whatever the unit of Q


def test_ppo_clips_the_ratio_on_the_side_where_it_would_gain() -> None:
    old = np.log([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.2, 0.8]])
    new = np.log([[0.9, 0.1], [0.9, 0.1], [0.25, 0.75], [0.1, 0.9]])
    arm, advantage = np.array([0, 0, 0, 0]), np.array([1.0, -1.0, 2.0, -2.0])
    # ratios 1.8, 1.8, 1.25, 0.5; with a clip of 0.3 within [0.7, 1.3]
    gains = [1.3, -1.8, 2.5, -1.4]
    entropy = -(np.exp(new) * new).sum(axis=1)
    by_hand = -np.mean(gains + 0.1 * entropy)
    config = plcql.Config(ratio_clip=0.3, entropy=0.1)
    found = plcql.ppo_loss(*map(jnp.asarray, (new, old, arm, advantage, [True] * 4)), config)
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)


def test_the_target_replaces_the_chosen_number_of_agents_and_ends_at_terminals(monkeypatch) -> None:
    """The bandit is made to choose k = 1 on half of the rows, by what it sees, and 2 on others."""
    state, t, config = setting(target_noise=0.0)
    one = np.arange(24) % 2 == 0
    log_pi = jnp.log(jnp.where(one[:, None], jnp.array([1.0, 1e-9]), jnp.array([1e-9, 1.0])))
    monkeypatch.setattr(plcql, "log_probabilities", lambda network, s: log_pi)
    monkeypatch.setattr(plcql, "learn", lambda bandit, *_: bandit)
    target = jax.jit(partial(plcql.target, config=config))
    _, y, metrics = target(quick_key(5), state, t)
    a_pi = jax.jit(act, static_argnums=0)(state.spec, state.actors.target, t.next_observations)
    scale, critics, t, a_pi = plain((state.scale, state.critics.target, t, a_pi))
    mean, std = float(scale.reward_mean), float(scale.reward_std)
    found = np.asarray(raw_q(scale, y, config.discount))
    for b in range(24):
        choices = ([0], [1]) if one[b] else ([0, 1],)
        follows = [
            least(critics, t.next_s[b], replaced(t.next_a[b], a_pi[b], who)) * std
            + mean / (1 - config.discount)
            for who in choices
        ]
        raw = [t.r[b] * std + mean + config.discount * (0 if t.terminal[b] else f) for f in follows]
        assert np.isclose(found[b], raw, rtol=1e-4).any(), b
    np.testing.assert_allclose(metrics["k_eff"], 1.5)
    np.testing.assert_allclose(metrics["w"], [0.5, 0.5], atol=1e-6)


def test_the_bandit_learns_nothing_at_terminals() -> None:
    state, t, config = setting(entropy=0.0)
    everywhere = t._replace(terminal=jnp.ones_like(t.terminal))
    moved, _, _ = target(quick_key(1), state, t, config)
    stayed, _, _ = target(quick_key(1), state, everywhere, config)
    assert not eqx.tree_equal(moved.bandit.network, state.bandit.network)
    assert eqx.tree_equal(stayed.bandit.network, state.bandit.network)


def test_what_stands_at_terminals_changes_nothing_that_the_bandit_learns_elsewhere() -> None:
    _, t, config = setting()
    bandit = jax.jit(lambda key: plcql.init_bandit(key, t.next_s.shape[1], 2, config))(quick_key(1))
    arm, acts = jnp.arange(24) % 2, jnp.arange(24) % 3 > 0

    @jax.jit
    def learnt(value, s):
        paid = plcql.reward(value, 0.1 * value, acts, 1.0)
        log_pi = plcql.log_probabilities(bandit.network, s)
        return plcql.learn(bandit, s, arm, log_pi, paid, acts, config).network

    value = jnp.sin(jnp.arange(24.0))
    other_value, other_s = (jnp.where(acts, value, 9.0), jnp.where(acts[:, None], t.next_s, 5.0))
    once, again = learnt(value, t.next_s), learnt(other_value, other_s)
    assert eqx.tree_equal(once, again, rtol=1e-5, atol=1e-6)
    assert not eqx.tree_equal(once, bandit.network)


def test_the_target_looks_at_one_joint_action_per_transition(monkeypatch) -> None:
    state, t, config = setting()
    seen = []
    evaluate = plcql.ensemble_q
    monkeypatch.setattr(
        plcql, "ensemble_q", lambda q, s, a: (seen.append(a.shape), evaluate(q, s, a))[1]
    )
    jax.eval_shape(partial(plcql.target, config=config), quick_key(0), state, t)
    assert seen == [(24, 1, 2, 2)]


def test_a_fresh_bandit_chooses_evenly_and_moves_within_the_target() -> None:
    state, t, config = setting()
    after, _, metrics = target(quick_key(5), state, t, config)
    np.testing.assert_allclose(metrics["w"], [0.5, 0.5], atol=0.1)
    assert metrics["entropy"] <= np.log(2) + 1e-6
    old, new = (jax.tree.leaves(s.bandit) for s in (state, after))
    moved = [bool((x != y).any()) for x, y in zip(old, new, strict=True)]
    assert sum(moved) > len(moved) / 2
    for old, new in zip(
        *(jax.tree.leaves((s.actors, s.critics)) for s in (state, after)), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def taught(paid, arms, steps=100):
    """A bandit that saw (s, arm) of 64 random states a step, and was paid `paid(s, arm)`."""
    _, _, config = setting(bandit_learning_rate=0.01, learning_rate=0.01, entropy=0.0)
    bandit = jax.jit(lambda key: plcql.init_bandit(key, 2, arms, config))(quick_key(1))

    def step(bandit, key):
        state_key, arm_key = jax.random.split(key)
        s = jax.random.normal(state_key, (64, 2))
        log_pi = plcql.log_probabilities(bandit.network, s)
        arm = jax.random.categorical(arm_key, log_pi)
        acts = jnp.ones(64, bool)
        return plcql.learn(bandit, s, arm, log_pi, paid(s, arm), acts, config), None

    run = jax.jit(lambda bandit, keys: jax.lax.scan(step, bandit, keys)[0])
    return run(bandit, jax.random.split(quick_key(2), steps)).network


def test_the_bandit_learns_how_many_to_replace_where() -> None:
    """Value grows with k, disagreement grows faster where s is positive. A part of the value that
    k does not change is four times as large as what it does."""

    def paid(s, arm):
        value = 0.5 * arm + 2 * s[:, 1]
        acts = jnp.ones(len(s), bool)
        return plcql.reward(value, jnp.where(s[:, 0] > 0, arm, 0.0), acts, 1.0)

    network = taught(paid, arms=3)
    s = jnp.array([[1.0, 0.3], [-1.0, 0.3], [1.0, -1.0], [-1.0, -1.0]])
    pi = np.exp(plcql.log_probabilities(network, s))
    assert (pi[[0, 2], 0] > 0.8).all(), "one where the critics disagree"
    assert (pi[[1, 3], 2] > 0.8).all(), "all where they agree"


@pytest.mark.parametrize("values", [{"bandit_steps": 0}, {"ratio_clip": 0.0}])
def test_an_impossible_bandit_is_refused(values) -> None:
    with pytest.raises(InputError, match="impossible"):
        plcql.Config(**values)
