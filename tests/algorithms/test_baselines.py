"""The baselines' losses, targets and searches against numbers computed by hand."""

from dataclasses import replace as with_values
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from algorithms_toy import least, plain, quick_key, replaced, tiny_dataset
from algorithms_toy import q as q_by_hand
from algorithms_toy import unequal_setting as setting

from spacql.algorithms import actors as actor_part
from spacql.algorithms import bc, iql, omar, td3bc
from spacql.algorithms.actors import act, squared_distance
from spacql.algorithms.independent import own_batch
from spacql.algorithms.learner import next_actions, td_step
from spacql.algorithms.transitions import raw_q, transitions
from spacql.errors import InputError

SIZES = (1, 2)  # action sizes of the tiny team


policies = jax.jit(act, static_argnums=0)
squashed = jax.jit(lambda network, seen: network.squashed(seen))


def loss_before_the_step(monkeypatch, improve, seen=None):
    """What `improve` minimises, at the weights it begins with: (value, extra); and what it has
    left in a list."""
    found = []

    def instead(actors, loss, config):
        found.append(loss(actors.online))
        return actors, found[-1][1], {}

    @jax.jit
    def run():
        improve()
        return found.pop() if seen is None else (found.pop(), seen.pop())

    monkeypatch.setattr(actor_part, "step", instead)
    return run()


def distances(pi, a):
    """(pi_i - a_i)^2, a mean over agent i's own coordinates, (B, n)."""
    return np.array(
        [[np.mean((p[i, :d] - x[i, :d]) ** 2) for i, d in enumerate(SIZES)]
         for p, x in zip(pi, a, strict=True)]
    )  # fmt: skip


def test_distance_is_a_mean_over_an_agents_own_coordinates() -> None:
    state, t = setting()
    pi = policies(state.spec, state.actors.online, t.observations)
    found = jax.jit(squared_distance, static_argnums=0)(state.spec, pi, t.a)
    np.testing.assert_allclose(found, distances(*plain((pi, t.a))), rtol=1e-5)


# BC


def test_bc_minimises_the_mean_squared_error(monkeypatch) -> None:
    state, t = setting()
    clone = lambda: bc.clone(state, t.observations, t.a, bc.Config())  # noqa: E731
    value, error = loss_before_the_step(monkeypatch, clone)
    pi = policies(state.spec, state.actors.online, t.observations)
    by_hand = distances(*plain((pi, t.a)))
    np.testing.assert_allclose(value, by_hand.mean(axis=0).sum(), rtol=1e-5)
    np.testing.assert_allclose(error, by_hand.mean(), rtol=1e-5)


# MA-TD3+BC


def test_td3bc_weighs_q_by_its_mean_magnitude(monkeypatch) -> None:
    state, t = setting()
    improve = lambda: td3bc.improve_actors(state, t, td3bc.Config(q_weight=2.5))  # noqa: E731
    value, (q, error) = loss_before_the_step(monkeypatch, improve)
    pi = policies(state.spec, state.actors.online, t.observations)
    pi, critics, t = plain((pi, state.critics.online, t))
    values = np.array(
        [[q_by_hand(critics, 0, t.s[b], replaced(t.a[b], pi[b], [i])) for i in (0, 1)]
         for b in range(len(t.r))]
    )  # fmt: skip
    cloning = distances(pi, t.a).mean(axis=0)
    by_hand = sum(
        cloning[i] - 2.5 / np.mean(np.abs(values[:, i])) * np.mean(values[:, i]) for i in (0, 1)
    )
    np.testing.assert_allclose(value, by_hand, rtol=1e-4)
    np.testing.assert_allclose(q, values.mean(), rtol=1e-4)
    np.testing.assert_allclose(error, cloning.mean(), rtol=1e-5)


def test_td3bc_takes_the_magnitude_as_a_constant() -> None:
    """Else a Q that is the same for all rows would have no gradient at all."""
    state, t = setting()
    one = jax.tree.map(lambda x: x[:1], t)
    config = td3bc.Config(hidden=(8, 6), q_weight=1e4)
    _, metrics = jax.jit(partial(td3bc.improve_actors, config=config))(state, one)
    assert metrics["actor_gradient"] > 1


@partial(jax.jit, static_argnames=("module", "config"))
def target(module, key, state, t, config):
    return module(key, state, t, config)


def joint_by_hand(state, t, discount, a_pi):
    """Raw Y: nothing follows a terminal, min_j Qtar follows the rest."""
    state, t, a_pi = plain((state, t, a_pi))
    mean, std = float(state.scale.reward_mean), float(state.scale.reward_std)
    follows = [
        least(state.critics.target, s, a) * std + mean / (1 - discount)
        for s, a in zip(t.next_s, a_pi, strict=True)
    ]
    return t.r * std + mean + discount * np.where(t.terminal > 0, 0, follows)


def test_td3bc_target_replaces_all_agents_and_ends_at_terminals() -> None:
    state, t = setting()
    config = td3bc.Config(target_noise=0.0)
    found = target(td3bc.target, quick_key(5), state, t, config)
    a_pi = policies(state.spec, state.actors.target, t.next_observations)
    assert t.terminal.sum() == 1
    by_hand = joint_by_hand(state, t, config.discount, a_pi)
    np.testing.assert_allclose(raw_q(state.scale, found, config.discount), by_hand, rtol=1e-4)


def test_td3bc_noise_is_clipped() -> None:
    state, t = setting()
    a_pi = policies(state.spec, state.actors.target, t.next_observations)
    config = td3bc.Config(target_noise=1e6, noise_clip=0.25)
    make = jax.jit(partial(next_actions, noise=config.target_noise, most=config.noise_clip))
    moved = np.asarray(make(quick_key(5), state, t) - a_pi)
    inside = np.abs(np.asarray(a_pi)) < 0.7
    real = inside & (np.arange(2) < np.array(SIZES)[:, None])
    np.testing.assert_allclose(np.abs(moved[real]), 0.25, rtol=1e-4)
    assert (moved[:, 0, 1] == 0).all(), "padding stays zero"


def test_td3bc_policies_wait_for_two_critic_updates() -> None:
    state, t = setting()
    config = td3bc.Config(hidden=(8, 6), batch_size=24)
    assert config.updates == 2
    y = target(td3bc.target, quick_key(0), state, t, config)
    after, metrics = jax.jit(lambda state: td_step(state, t, y, config))(state)
    for old, new in zip(
        jax.tree.leaves((state.actors, state.critics.target)),
        jax.tree.leaves((after.actors, after.critics.target)),
        strict=True,
    ):
        np.testing.assert_array_equal(old, new)
    assert "penalty" not in metrics
    critics, t, y = plain((state.critics.online, t, y))
    q = np.array([[q_by_hand(critics, j, t.s[b], t.a[b]) for b in range(24)] for j in (0, 1)])
    error = np.sqrt(np.mean((q - y) ** 2)) * float(state.scale.reward_std)
    np.testing.assert_allclose(metrics["td_error"], error, rtol=1e-4)


def flipped(state, t):
    """The same team with its agents in the other order."""
    turn = lambda x: tuple(reversed(x))  # noqa: E731
    fields = ("agents", "observation_sizes", "action_low", "action_high")
    spec = with_values(state.spec, **{name: turn(getattr(state.spec, name)) for name in fields})
    critics = {
        name: with_values(old, action_weight=old.action_weight[:, ::-1])
        for name in ("online", "target")
        for old in [getattr(state.critics, name)]
    }
    actors = {name: turn(getattr(state.actors, name)) for name in ("online", "target")}
    parts = {
        "critics": with_values(state.critics, **critics),
        "actors": with_values(state.actors, **actors),
    }
    observed = {name: turn(getattr(t, name)) for name in ("observations", "next_observations")}
    t = t._replace(a=t.a[:, ::-1], next_a=t.next_a[:, ::-1], **observed)
    return with_values(state, spec=spec, **parts), t


def test_permuting_agents_changes_no_target_and_no_loss(monkeypatch) -> None:
    mine, theirs = setting(), flipped(*setting())
    config = td3bc.Config(target_noise=0.0)
    targets = [target(td3bc.target, quick_key(5), *x, config) for x in (mine, theirs)]
    np.testing.assert_allclose(*targets, rtol=1e-5)
    losses = [
        loss_before_the_step(monkeypatch, lambda x=x: td3bc.improve_actors(*x, config))
        for x in (mine, theirs)
    ]
    np.testing.assert_allclose(losses[0][0], losses[1][0], rtol=1e-4)


# IQL


def test_the_expectile_loss_is_smallest_at_the_expectile() -> None:
    """The 0.7 expectile m of a sample: 0.7 sum (x - m)+ = 0.3 sum (m - x)+."""
    sample = np.array([0.0, 1.0, 2.0, 5.0])
    grid = np.linspace(0, 5, 5001)
    losses = np.mean(iql.expectile_loss(jnp.asarray(sample[:, None] - grid), 0.7), axis=0)
    m = grid[int(np.argmin(losses))]
    above, below = np.maximum(sample - m, 0).sum(), np.maximum(m - sample, 0).sum()
    np.testing.assert_allclose(0.7 * above, 0.3 * below, atol=0.01)
    np.testing.assert_allclose(iql.expectile_loss(jnp.array([2.0, -2.0]), 0.7), [2.8, 1.2])


def test_advantage_weights_are_exponential_and_capped() -> None:
    config = iql.Config(temperature=3.0, weight_cap=100.0)
    found = iql.advantage_weights(jnp.array([-1.0, 0.0, 0.5, 2.0, 1e4]), config)
    np.testing.assert_allclose(found, [np.exp(-3), 1, np.exp(1.5), 100, 100], rtol=1e-5)


@pytest.mark.parametrize("expectile", [0.0, 1.0])
def test_an_impossible_expectile_is_refused(expectile) -> None:
    with pytest.raises(InputError, match="expectile"):
        iql.Config(expectile=expectile)


def iql_setting(**values):
    """A state whose target critics differ, 24 transitions, and V at s and s' by hand."""
    data, config = tiny_dataset(), iql.Config(hidden=(8, 6), **values)
    init = partial(iql.init, spec=data.spec, config=config, statistics=data.statistics())
    state = jax.jit(init)(quick_key(3))
    team, t = setting()
    return with_values(state, critics=team.critics, actors=team.actors), t, config


def v_by_hand(value, s):
    return np.array([q_by_hand(value.network, 0, row, np.zeros((0, 0))) for row in s])


def test_iql_clones_with_the_weight_of_the_teams_advantage(monkeypatch) -> None:
    state, t, config = iql_setting(temperature=2.0, weight_cap=1.5)
    advantage = jnp.linspace(-1, 1, 24)
    improve = lambda: iql.improve_actors(state, t, advantage, config)  # noqa: E731
    value, error = loss_before_the_step(monkeypatch, improve)
    pi = policies(state.spec, state.actors.online, t.observations)
    distance = distances(*plain((pi, t.a)))
    weight = np.minimum(np.exp(2 * np.asarray(advantage)), 1.5)
    by_hand = np.mean([w * (d[0] + d[1]) for w, d in zip(weight, distance, strict=True)])
    np.testing.assert_allclose(value, by_hand, rtol=1e-5)
    np.testing.assert_allclose(error, distance.mean(), rtol=1e-5)


def test_iql_steps_by_hand(monkeypatch) -> None:
    """Q's target is r + gamma V(s') with the new V, which nothing follows at a terminal; the
    advantage is min_j Qtar(s, a) - V(s)."""
    state, t, config = iql_setting()
    seen = {}
    regress, clone = iql.td_step, iql.improve_actors

    def critics(state, t, y, config):
        seen["y"] = y
        return regress(state, t, y, config)

    def actors(state, t, advantage, config):
        seen["advantage"] = advantage
        return clone(state, t, advantage, config)

    monkeypatch.setattr(iql, "td_step", critics)
    monkeypatch.setattr(iql, "improve_actors", actors)

    @jax.jit
    def step(state):
        after, _ = iql.step(state, t, config)
        return after, seen.pop("y"), seen.pop("advantage")

    after, y, advantage = step(state)
    scale, old, new, value, t = plain((state.scale, state.critics, after.critics, after.value, t))
    q = [least(old.target, t.s[b], t.a[b]) for b in range(24)]
    np.testing.assert_allclose(advantage, q - v_by_hand(value, t.s), rtol=1e-3, atol=1e-5)
    mean, std = float(scale.reward_mean), float(scale.reward_std)
    follows = v_by_hand(value, t.next_s) * std + mean / (1 - config.discount)
    raw = t.r * std + mean + config.discount * np.where(t.terminal > 0, 0, follows)
    np.testing.assert_allclose(raw_q(scale, y, config.discount), raw, rtol=1e-4)
    moved = old.target.last_bias + 0.005 * (new.online.last_bias - old.target.last_bias)
    np.testing.assert_allclose(new.target.last_bias, moved, rtol=1e-5)


def test_iql_value_becomes_the_expectile_of_what_it_is_given() -> None:
    state, t, config = iql_setting(learning_rate=0.02, expectile=0.9)
    same = t._replace(s=jnp.zeros_like(t.s))  # one state, so V is one number
    q = jnp.asarray(np.random.default_rng(0).normal(size=24), jnp.float32)

    def step(value, _):
        return iql.improve_value(value, same, q, config), None

    value, _ = jax.jit(lambda value: jax.lax.scan(step, value, length=300))(state.value)
    v = float(jax.jit(iql.v)(value, same.s)[0])
    above, below = np.maximum(q - v, 0).sum(), np.maximum(v - q, 0).sum()
    np.testing.assert_allclose(0.9 * above, 0.1 * below, rtol=0.05)


# OMAR


def omar_state(**values):
    data, config = tiny_dataset(), omar.Config(hidden=(8, 6), critics=2, **values)
    init = partial(omar.init, spec=data.spec, config=config, statistics=data.statistics())
    return data, jax.jit(init)(quick_key(3)), config


@partial(jax.jit, static_argnums=(1, 4))
def search(*given):
    return omar.search(*given)


@partial(jax.jit, static_argnums=2)
def own_transitions(agent, batch, i):
    return transitions(agent.spec, agent.scale, own_batch(batch, i))


@pytest.mark.parametrize("elites", [0, 5])
def test_search_finds_the_maximum_of_a_quadratic(elites) -> None:
    peak = jax.random.uniform(quick_key(1), (40, 2), minval=-0.9, maxval=0.9)
    values = lambda x: -20 * jnp.sum((x - peak[:, None]) ** 2, axis=-1)  # noqa: E731
    config = omar.Config(iterations=8, candidates=40, elites=elites, search_std=0.7)
    found = search(quick_key(2), values, jnp.array(1.0), jnp.zeros((40, 2)), config)
    np.testing.assert_allclose(found, peak, atol=0.2)
    assert np.abs(found - peak).mean() < 0.05


def test_search_never_returns_worse_than_the_policy() -> None:
    pi = jnp.full((40, 2), 0.3)
    values = lambda x: -jnp.sum(jnp.abs(x - 0.3), axis=-1)  # noqa: E731
    config = omar.Config(iterations=1, candidates=2)
    found = search(quick_key(2), values, jnp.array(1.0), pi, config)
    np.testing.assert_array_equal(found, pi)


def test_search_by_hand() -> None:
    """Two iterations, softmax-weighted, with the same random numbers."""
    config = omar.Config(iterations=2, candidates=4, search_std=0.5)
    pi, value = np.zeros((3, 2)), lambda x: -((x - 0.4) ** 2).sum(-1)
    found = search(quick_key(2), value, jnp.array(2.0), jnp.asarray(pi), config)
    keys = jax.random.split(quick_key(2), 2)
    noise = [np.asarray(jax.random.normal(key, (3, 4, 2))) for key in keys]
    for b in range(3):
        x = np.clip(0.5 * noise[0][b], -1, 1)
        weight = np.exp(2 * value(x)) / np.exp(2 * value(x)).sum()
        mean = weight @ x
        std = np.sqrt(((x - mean) ** 2).mean(axis=0))
        y = np.clip(mean + std * noise[1][b], -1, 1)
        seen = np.concatenate([pi[b : b + 1], x, y])
        np.testing.assert_allclose(found[b], seen[np.argmax(value(seen))], rtol=1e-4)


def test_omar_actor_mixes_the_distance_and_the_value(monkeypatch) -> None:
    data, state, config = omar_state(coefficient=0.7)
    agent, rows = state.agents[1], data.transition_rows()[:24]
    t = own_transitions(agent, data.batch(rows), 1)
    monkeypatch.setattr(omar, "search", lambda *_: jnp.full((24, 2), 0.5))
    improve = lambda: omar.improve_actor(quick_key(0), agent, t, config)  # noqa: E731
    value, (q, distance) = loss_before_the_step(monkeypatch, improve)
    pi = np.asarray(squashed(agent.actors.online[0], t.observations[0]))
    critics, unit, t = plain((agent.critics.online, agent.scale.reward_std, t))
    values = [q_by_hand(critics, 0, t.s[b], pi[b : b + 1]) for b in range(24)]
    np.testing.assert_allclose(q, np.mean(values), rtol=1e-4)
    np.testing.assert_allclose(distance, np.mean((pi - 0.5) ** 2), rtol=1e-5)
    by_hand = 0.7 * distance - 0.3 * unit * np.mean(values) + 0.001 * np.mean(pi**2)
    np.testing.assert_allclose(value, by_hand, rtol=1e-4)


def test_omar_searches_at_the_first_of_so_many_transitions(monkeypatch) -> None:
    data, state, config = omar_state(coefficient=0.7, batch_size=24, search_every=4)
    agent, rows = state.agents[1], data.transition_rows()[:24]
    t = own_transitions(agent, data.batch(rows), 1)
    best, searched = jnp.full((6, 2), 0.5), []
    monkeypatch.setattr(omar, "search", lambda *given: searched.append(given[3]) or best)
    loss = lambda: omar.improve_actor(quick_key(0), agent, t, config)  # noqa: E731
    (_, (q, distance)), where = loss_before_the_step(monkeypatch, loss, searched)
    pi = np.asarray(squashed(agent.actors.online[0], t.observations[0]))
    np.testing.assert_allclose(where, pi[:6], rtol=1e-5)
    np.testing.assert_allclose(distance, np.mean((pi[:6] - 0.5) ** 2), rtol=1e-5)
    critics, t = plain((agent.critics.online, t))
    values = [q_by_hand(critics, 0, t.s[b], pi[b : b + 1]) for b in range(24)]  # of all
    np.testing.assert_allclose(q, np.mean(values), rtol=1e-4)


def test_omar_refuses_a_search_that_does_not_divide_the_batch() -> None:
    with pytest.raises(InputError, match="one in 3 transitions of a batch of 256"):
        omar.Config(batch_size=256, search_every=3)


def test_omar_agents_see_their_own_rows_only() -> None:
    data, state, _ = omar_state()
    batch = data.batch(data.transition_rows()[:24])
    for i, size in enumerate(SIZES):
        agent = state.agents[i]
        t = plain(own_transitions(agent, batch, i))
        assert t.a.shape == (24, 1, size)
        mean, std = data.statistics().observation_mean[i], data.statistics().observation_std[i]
        np.testing.assert_allclose(t.s, (batch.observations[i] - mean) / std, rtol=1e-4, atol=1e-5)
        scale = data.statistics()
        reward = (batch.rewards[:, i] - scale.team_reward_mean) / scale.team_reward_std
        np.testing.assert_allclose(t.r, reward, rtol=1e-4, atol=1e-5)


def test_omar_target_is_the_agents_own_and_ends_at_terminals() -> None:
    data, state, _ = omar_state()
    agent, config = state.agents[1], omar.Config(target_noise=0.0)
    rows = data.transition_rows()[:24]
    t = own_transitions(agent, data.batch(rows), 1)
    found = target(omar.target, quick_key(5), agent, t, config)[1]
    a_pi = policies(agent.spec, agent.actors.target, t.next_observations)
    assert t.terminal.sum() == 1
    by_hand = joint_by_hand(agent, t, config.discount, a_pi)
    np.testing.assert_allclose(raw_q(agent.scale, found, config.discount), by_hand, rtol=1e-4)


@pytest.mark.parametrize(
    "values", [{"coefficient": 1.5}, {"elites": 11}, {"iterations": 0}, {"candidates": 0}]
)
def test_an_impossible_search_is_refused(values) -> None:
    with pytest.raises(InputError):
        omar.Config(**values)
