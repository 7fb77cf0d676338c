"""The learnt model of the world, at the ends of episodes."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import spacql
from spacql.evaluation import model
from spacql.policies import MLP, Policy

CONFIG = model.Config(members=3, hidden=(32, 32), steps=600, batch_size=64)


def linear(weights, bias=0.0):
    """Two agents that do the same."""
    actor = MLP(jnp.zeros(len(weights)), jnp.ones(len(weights)), (jnp.array(weights)[:, None],),
                (jnp.full(1, bias),), low=(-1.0,), high=(1.0,))  # fmt: skip
    return Policy((actor, actor), agents=("a", "b"))


def episode(seen, acted, paid, ended=False):
    seen, acted = np.array(seen), np.array(acted)
    return {"observations": [seen, seen], "actions": [acted[:, :1], acted[:, 1:]],
            "rewards": np.array(paid), "terminated": ended}  # fmt: skip


def timed(episodes=120):
    """Five steps; who is not at 0 after the last of them pays. The time is observed."""
    random, found = np.random.default_rng(0), []
    for _ in range(episodes):
        acted = random.uniform(-1, 1, (5, 2))
        x = random.uniform(-1, 1) + np.append(0, np.cumsum(0.25 * acted.sum(axis=1)))
        found.append(episode(np.stack([x, np.arange(6)], axis=1), acted, [0, 0, 0, 0, -abs(x[-1])]))
    return spacql.Dataset.from_episodes(found, agents=("a", "b"), task="timed")


def ending(episodes=120):
    """A walk that ends beyond 1 with 10, and beyond -1 with -3; what is seen there is not said."""
    random, found = np.random.default_rng(0), []
    for _ in range(episodes):
        x, way = random.uniform(-0.5, 0.5), random.choice([-0.5, 0.5])
        seen, acted, paid = [], [], []
        while abs(x) < 1:
            seen.append([x])
            acted.append(np.clip(way + 0.6 * random.normal(size=2), -1, 1))
            x += 0.15 * acted[-1].sum()
            paid.append(10.0 if x >= 1 else -3.0 if x <= -1 else 0.0)
        found.append(episode(seen, acted, paid, ended=True))
    return spacql.Dataset.from_episodes(found, agents=("a", "b"), task="ending")


@pytest.fixture(scope="module")
def of_time():
    dataset = timed()
    return dataset, model.learn(dataset, dataset.transition_rows(), CONFIG)


def returns(learnt, dataset, policy, steps):
    start = model.joined(dataset, dataset.starts[:-1])
    return model.imagine(learnt, policy, start, np.full(len(start), steps), 0.95).returns.mean()


def test_the_last_step_of_an_episode_does_not_count_as_outside_the_log(of_time):
    dataset, learnt = of_time
    assert returns(learnt, dataset, linear([-3.0, 0.0]), 5) == pytest.approx(0, abs=0.1)
    assert returns(learnt, dataset, linear([0.0, 0.0], 3.0), 5) < -1.5
    imagined, true = model.replay(learnt, dataset, np.arange(dataset.n_episodes))
    assert np.abs(imagined - true).mean() < 0.1


def test_logged_actions_that_leave_the_ranges_are_worth_poor_steps_too(of_time):
    dataset, learnt = of_time
    nowhere = eqx.tree_at(lambda m: m.scale.high, learnt, learnt.scale.low + 0.01)
    imagined, _ = model.replay(nowhere, dataset, np.arange(4))
    np.testing.assert_allclose(imagined, 5 * float(learnt.scale.reward_poor), rtol=1e-5)


def test_how_a_task_ends_is_known_though_what_is_seen_there_was_not_logged():
    dataset = ending()
    learnt = model.learn(dataset, dataset.transition_rows(), CONFIG)
    assert returns(learnt, dataset, linear([0.0], 3.0), 20) == pytest.approx(10, abs=1.5)
    assert returns(learnt, dataset, linear([0.0], -3.0), 20) == pytest.approx(-3, abs=1.5)


def test_without_ends_rewards_are_of_what_follows(of_time):
    _, learnt = of_time
    inputs = 2 * 2 + 2  # of x and a
    assert learnt.reward.linear.shape[0] == inputs + 2 * 2 + 1
    assert learnt.change.linear.shape[0] == inputs + 1
