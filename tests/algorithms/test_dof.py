"""DoF: the loss and the target by hand, the critic in the policy, cloning of two ways to act."""

from dataclasses import replace as with_values
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from algorithms_toy import least, plain, quick_key, tiny_dataset
from algorithms_toy import q as q_by_hand

from spacql.algorithms import actors as actor_part
from spacql.algorithms import dof
from spacql.algorithms.independent import own_batch
from spacql.algorithms.transitions import raw_q, transitions
from spacql.data import Dataset
from spacql.errors import InputError
from spacql.policies import Policy
from spacql.policies.diffusion import denoising_error


@cache
def setting(**values):
    """The second agent (2 observations, 2 actions), 24 transitions, a Config, the whole state."""
    data = tiny_dataset()
    config = dof.Config(hidden=(8, 6), diffusion_steps=4, **values)
    init = partial(dof.init, spec=data.spec, config=config, statistics=data.statistics())
    state = jax.jit(init)(quick_key(3))
    agent, rows = state.agents[1], data.transition_rows()[:24]
    convert = lambda batch: transitions(agent.spec, agent.scale, own_batch(batch, 1))  # noqa: E731
    return agent, jax.jit(convert)(data.batch(rows)), config, state


@pytest.mark.parametrize("every", [1, 4])
def test_the_actors_loss_is_the_denoising_error_less_q_over_its_magnitude(
    monkeypatch, every
) -> None:
    agent, t, config, _ = setting(eta=0.7, q_every=every)
    found = []

    def instead(actors, loss, config):
        found.append(loss(actors.online))
        return actors, found[-1][1], {}

    @jax.jit
    def improve(agent, t):
        dof.improve_actor(quick_key(1), agent, t, config)
        error_key, sample_key = jax.random.split(quick_key(1))
        [actor] = agent.actors.online
        error = denoising_error(actor, t.observations[0], t.a[:, 0], error_key)
        return found.pop(), error, actor.sample(t.observations[0][: 24 // every], sample_key)

    monkeypatch.setattr(actor_part, "step", instead)
    (value, metrics), error, x = improve(agent, t)
    x = np.asarray(x)
    critics, rows = plain((agent.critics.online, t))
    values = np.array([q_by_hand(critics, 0, rows.s[b], x[b : b + 1]) for b in range(len(x))])
    by_hand = error - 0.7 * values.mean() / np.abs(values).mean()
    np.testing.assert_allclose(value, by_hand, rtol=1e-4)
    np.testing.assert_allclose(metrics["denoising_error"], error, rtol=1e-5)
    raw = raw_q(agent.scale, values.mean(), config.discount)
    np.testing.assert_allclose(metrics["q_policy"], raw, rtol=1e-4)


@partial(jax.jit, static_argnames="config")
def improve(key, agent, t, config):
    return dof.improve_actor(key, agent, t, config)


def test_detached_the_gradient_is_that_of_the_denoising_error_alone() -> None:
    agent, t, config, _ = setting()
    error_key, _ = jax.random.split(quick_key(1))
    [actor] = agent.actors.online
    gradient = eqx.filter_jit(eqx.filter_grad(denoising_error))
    norm = optax.global_norm(gradient(actor, t.observations[0], t.a[:, 0], error_key))
    _, detached = improve(quick_key(1), agent, t, with_values(config, detach_q=True))
    np.testing.assert_allclose(detached["actor_gradient"], norm, rtol=1e-4)
    assert "q_policy" not in detached
    _, kept = improve(quick_key(1), agent, t, config)
    assert abs(kept["actor_gradient"] / norm - 1) > 1e-3


def test_the_target_samples_by_the_averaged_actor_and_ends_at_terminals() -> None:
    agent, t, config, state = setting()
    other = state.agents[1].actors.online[0]
    averaged = with_values(other, weights=tuple(2 * w for w in other.weights))
    agent = with_values(agent, actors=with_values(agent.actors, target=(averaged,)))
    found = jax.jit(partial(dof.target, config=config))(quick_key(5), agent, t)
    x = np.asarray(eqx.filter_jit(averaged.sample)(t.next_observations[0], quick_key(5)))
    rows, critics = plain((t, agent.critics.target))
    mean, std = float(agent.scale.reward_mean), float(agent.scale.reward_std)
    follows = np.array([
        least(critics, rows.next_s[b], x[b : b + 1]) * std + mean / (1 - config.discount)
        for b in range(24)
    ])  # fmt: skip
    assert rows.terminal.sum() == 1
    raw = rows.r * std + mean + config.discount * np.where(rows.terminal > 0, 0, follows)
    np.testing.assert_allclose(raw_q(agent.scale, found, config.discount), raw, rtol=1e-4)


def test_a_policy_with_candidates_holds_the_first_critic() -> None:
    agent, t, _, state = setting(candidates=5)
    policy = dof.policy(state)
    network = policy.actors[1].critic
    inputs = jnp.concatenate([t.observations[0], t.a[:, 0]], axis=1)
    found = eqx.filter_jit(network.before_tanh)(inputs)[:, 0]
    critics, rows = plain((agent.critics.online, t))
    by_hand = [q_by_hand(critics, 0, rows.s[b], rows.a[b]) for b in range(24)]
    np.testing.assert_allclose(found, by_hand, rtol=1e-3, atol=1e-5)
    assert dof.policy(setting()[3]).actors[1].critic is None


def test_the_policy_is_the_averaged_one_and_acts_from_its_file(tmp_path) -> None:
    _, _, _, state = setting(candidates=3, weighted_noise=True)
    seen = [np.ones((4, 3)), np.ones((4, 2))]
    policy = dof.policy(state)
    policy.save(tmp_path / "policy")
    actions = policy.act(seen, key=7)
    for mine, theirs in zip(actions, Policy.load(tmp_path).act(seen, key=7), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert [x.shape for x in actions] == [(4, 1), (4, 2)]
    assert ((actions[1] >= 0) & (actions[1] <= 4)).all()


def test_weighted_noise_learns_one_number_per_agent() -> None:
    agent, t, config, _ = setting(weighted_noise=True)
    after, _ = improve(quick_key(1), agent, t, config)
    assert agent.actors.online[0].share == 1
    assert after.actors.online[0].share != 1
    assert setting()[0].actors.online[0].share is None


def two_ways(episodes=40):
    """Two agents that do -0.6 or 0.6 whatever they see, each paid for its own 0.6 alone."""
    rng = np.random.default_rng(0)
    logs = []
    for _ in range(episodes):
        actions = rng.choice([-0.6, 0.6], (4, 2)) + 0.02 * rng.normal(size=(4, 2))
        observations = [rng.normal(size=(5, 2)) for _ in range(2)]
        logs.append({"observations": observations, "actions": [actions[:, :1], actions[:, 1:]],
                     "rewards": (actions > 0).astype(float)})  # fmt: skip
    return Dataset.from_episodes(logs, agents=("a", "b"), action_low=-1.0, action_high=1.0)


def trained(**values):
    """A policy after a short training on two ways to act."""
    data = two_ways()
    config = dof.Config(hidden=(32, 32), schedule="vp", batch_size=64, critics=1, discount=0.5,
                        actor_learning_rate=0.01, learning_rate=0.01, target_rate=0.02,
                        gradient_clip=10.0, candidates=8, **values)  # fmt: skip
    init = partial(dof.init, spec=data.spec, config=config, statistics=data.statistics())
    rows = np.random.default_rng(1).choice(data.transition_rows(), (1000, 1, 64))

    def step(state, inputs):
        return dof.update(state, *inputs, config)[0], None

    run = jax.jit(lambda state, *inputs: jax.lax.scan(step, state, inputs)[0])
    keys = jax.random.split(quick_key(1), 1000)
    return dof.policy(run(jax.jit(init)(quick_key(0)), data.batch(rows), keys))


def actions(policy):
    seen = np.random.default_rng(2).normal(size=(2, 200, 2))
    return np.concatenate(policy.act(list(seen), key=3))


def without_critics(policy):
    one = tuple(with_values(actor, critic=None) for actor in policy.actors)
    return with_values(policy, actors=one)


@pytest.mark.slow
def test_cloning_keeps_both_ways_to_act_and_the_best_of_several_is_the_better_one() -> None:
    policy = trained(detach_q=True)
    cloned = actions(without_critics(policy))
    near = np.minimum(np.abs(cloned - 0.6), np.abs(cloned + 0.6))
    assert np.median(near) < 0.15, "and not their mean, 0"
    assert 0.25 < np.mean(cloned > 0) < 0.75
    assert np.mean(actions(policy) > 0) > 0.9


@pytest.mark.slow
def test_the_gradient_of_q_leads_to_the_better_way() -> None:
    assert np.mean(actions(without_critics(trained(eta=1.0))) > 0) > 0.9


@pytest.mark.parametrize(
    "values", [{"diffusion_steps": 0}, {"candidates": 0}, {"temperature": -1.0}]
)
def test_an_impossible_diffusion_is_refused(values) -> None:
    with pytest.raises(InputError, match="impossible"):
        dof.Config(**values)
