"""The learner that makes behaviours, with tiny networks and few steps."""

from dataclasses import replace
from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.data import matd3
from spacql.spec import Spec, unit_box
from spacql.worlds import HostState, make, rollout

TINY = matd3.Config(
    teams=((0, 1, 2),), worlds=4, warmup=25, capacity=512, batch=16, hidden=8, reward_scale=0.02
)
WORLD = make("spread")


def trained(seed: int, parts: int):
    carry, experience = matd3.start(WORLD, TINY, seed), []
    for _ in range(parts):
        carry, part = matd3.run(WORLD, carry, TINY, 50)
        experience.append(part)
    return carry, experience


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    first, second, other = (trained(seed, 2)[0].learner.online for seed in (0, 0, 1))
    equal = jax.tree.map(lambda a, b: bool((a == b).all()), first, second)
    assert all(jax.tree.leaves(equal))
    assert (first.actors[0].weights[0] != other.actors[0].weights[0]).any()


def test_episodes_are_whole_and_follow_the_world():
    _, (experience, _) = trained(0, 2)
    episodes = matd3.episodes(experience, WORLD.spec)
    assert episodes.rewards.shape == (2 * TINY.worlds, 25, 3)
    assert episodes.observations[0].shape == (2 * TINY.worlds, 26, 18)
    # Position moves by velocity times dt after every step, and never across episodes.
    velocity, position = episodes.observations[0][..., :2], episodes.observations[0][..., 2:4]
    np.testing.assert_allclose(position[:, 1:], position[:, :-1] + 0.1 * velocity[:, 1:], atol=1e-5)
    assert (velocity[:, 0] == 0).all()


def test_nothing_is_learned_before_the_warmup_and_actions_are_uniform():
    config = replace(TINY, warmup=1000)
    carry, experience = matd3.run(WORLD, matd3.start(WORLD, config, 0), config, 50)
    assert carry.learner.updates == 0
    actions = np.asarray(experience.transition.action)
    assert abs(actions.mean()) < 0.1
    assert abs(actions.std() - 3**-0.5) < 0.05


def test_critic_target_is_reward_plus_discounted_smaller_value():
    """With a learning rate of zero gradient steps the loss gradient is checked by hand."""
    spec = Spec("toy", ("a", "b"), (2, 3), **unit_box((1, 1)), horizon=5)
    config = replace(TINY, teams=((0, 1),), target_noise=0.0, learning_rate=0.0, batch=4)
    learner = jax.jit(lambda key: matd3.init(key, spec, config))(jax.random.key(0))
    key = jax.random.key(1)
    keys = jax.random.split(key, 4)
    batch = matd3.Transition(*map(jax.random.normal, keys, [(4, 5), (4, 2), (4, 1), (4, 5)]))
    after = jax.jit(lambda *given: matd3.update(*given, spec, config))(learner, batch, key)
    # Adam's first moment after one step is a tenth of the (clipped) gradient.
    moment = after.optimisers[1][0][1][0].mu[0].w3 / 0.1

    @jax.jit
    def by_hand(learner, batch):
        pair = learner.online.critics[0]
        first, second = batch.next_observation[:, :2], batch.next_observation[:, 2:]
        actors = learner.target.actors
        next_inputs = jnp.concatenate(
            [batch.next_observation, actors[0].squashed(first), actors[1].squashed(second)], axis=1
        )
        value = jnp.minimum(pair[0](next_inputs), pair[1](next_inputs))
        y = config.reward_scale * batch.reward[:, 0] + config.discount * value
        inputs = jnp.concatenate([batch.observation, batch.action], axis=1)

        def loss(pair):
            return sum(jnp.mean((critic(inputs) - y) ** 2) for critic in pair)

        gradient = jax.grad(loss)(pair)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        return gradient[0].w3 * jnp.minimum(1.0, 0.5 / norm)

    expected = by_hand(learner, batch)
    np.testing.assert_allclose(moment, expected, rtol=1e-4, atol=1e-7)


class Target:
    """A host world of five steps in which agents are paid for actions near their observation."""

    spec = Spec("target", ("a", "b"), (1, 1), **unit_box((1, 1)), horizon=5)

    def reset(self, key):
        self.rng = np.random.default_rng(int(jax.random.bits(key)))
        self.time = 0
        return self.seen()

    def seen(self):
        observations = tuple(self.rng.uniform(-0.8, 0.8, (2, 1)).astype(np.float32))
        return HostState(observations, np.zeros(0, np.float32), truncated=self.time == 5)

    def step(self, state, actions):
        error = sum(float(abs(a - o)[0]) for a, o in zip(actions, state.observations, strict=True))
        self.time += 1
        return self.seen(), np.full(2, -error, np.float32)

    def observe(self, state):
        return state.observations


def test_learning_in_a_host_world_improves_the_return():
    config = replace(TINY, teams=((0, 1),), warmup=200, worlds=1, capacity=4000, batch=64)
    config = replace(config, hidden=16, discount=0.0, reward_scale=1.0, learning_rate=3e-3)
    world = Target()
    parts = matd3.train_in_host_world(world, config, seed=0, report=500)
    (_, episodes), (last, _) = islice(parts, 2)
    assert episodes[0].observations[0].shape == (1, 6, 1)
    key = jax.random.key(0)
    fresh = jax.jit(lambda key: matd3.init(key, world.spec, config))(jax.random.key(5))
    before, after = (
        rollout(world, matd3.to_policy(x.online.actors, world.spec, "x"), key, 20).mean()
        for x in (fresh, last)
    )
    assert after > before / 2  # returns are negative: half the error, or better


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_behaviour_keeps_its_noise_within_the_bounds(noise):
    learner = jax.jit(lambda key: matd3.init(key, WORLD.spec, TINY))(jax.random.key(0))
    policy = matd3.to_policy(learner.online.actors, WORLD.spec, "b", noise)
    observations = [np.zeros((1000, 18), np.float32)] * 3
    actions = policy.act(observations)
    assert abs(actions[0].std(axis=0).mean() - noise) < 0.02
    assert max(abs(a).max() for a in actions) <= 1
