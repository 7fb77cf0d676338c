"""The parts by themselves: critics without actors, actors of any kind, a value."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from algorithms_toy import quick_key, tiny_dataset

from spacql.algorithms import actors, critics, values
from spacql.algorithms.config import ActorCritic, Training
from spacql.algorithms.ensemble import ensemble_q, in_groups, later_layers

SPEC = tiny_dataset(episodes=1).spec
CONFIG = ActorCritic(hidden=(8, 6), critics=2, learning_rate=0.02, actor_learning_rate=0.02)


def inputs():
    s_key, a_key = jax.random.split(quick_key(1))
    return jax.random.normal(s_key, (24, 4)), jax.random.uniform(a_key, (24, 2, 2), minval=-1)


def test_critics_learn_given_targets_without_any_actor() -> None:
    s, a = inputs()
    y = s[:, 0] + a[:, 1, 0]
    part = critics.init(quick_key(2), SPEC, 4, CONFIG)

    @jax.jit
    def many(part):
        step = lambda part, _: critics.td_step(part, s, a, y, CONFIG)  # noqa: E731
        return jax.lax.scan(step, part, length=300)

    trained, metrics = many(part)
    assert metrics["td"][-1].max() < 0.05 * metrics["td"][0].min()
    q = ensemble_q(trained.online, s, a[:, None])[..., 0]
    np.testing.assert_allclose(q, np.stack([y, y]), atol=0.5)
    for old, new in zip(jax.tree.leaves(part.target), jax.tree.leaves(trained.target), strict=True):
        np.testing.assert_array_equal(old, new, "targets move when they are told to")


def test_targets_move_by_their_rate() -> None:
    part = critics.init(quick_key(2), SPEC, 4, CONFIG)
    ahead = eqx.tree_at(lambda c: c.online.last_bias, part, part.online.last_bias + 1)
    moved = critics.update_targets(ahead, 0.25)
    np.testing.assert_allclose(moved.target.last_bias - part.target.last_bias, 0.25, rtol=1e-5)
    np.testing.assert_array_equal(moved.online.last_bias, ahead.online.last_bias)


class Scaled(eqx.Module):
    """An actor that is not ours: a statistic that must not learn, a gain that does."""

    unit: jax.Array
    gain: jax.Array
    size: int = eqx.field(static=True)

    def squashed(self, observation):
        x = observation[..., : self.size] / jax.lax.stop_gradient(self.unit)
        return jnp.tanh(self.gain * x)


def test_any_module_is_an_actor_and_its_statistics_do_not_learn() -> None:
    networks = tuple(Scaled(jnp.array(2.0), jnp.array(0.1), size) for size in (1, 2))
    part = actors.init(networks, Training(actor_learning_rate=0.02))
    observations = (jnp.ones((5, 3)), jnp.ones((5, 2)))

    def loss(networks):
        pi = actors.act(SPEC, networks, observations)
        return -jnp.sum(jnp.mean(pi, axis=(0, 2))), jnp.mean(pi)

    stepped, mean, metrics = jax.jit(
        lambda part: actors.step(part, loss, Training(actor_learning_rate=0.02))
    )(part)
    for old, new in zip(part.online, stepped.online, strict=True):
        assert new.gain > old.gain
        assert new.unit == old.unit
    assert metrics["actor_gradient"] > 0
    assert mean > 0
    followed = actors.update_targets(stepped, 0.5)
    half = (part.online[0].gain + stepped.online[0].gain) / 2
    np.testing.assert_allclose(followed.target[0].gain, half, rtol=1e-6)
    assert followed.target[0].size == 1


def test_a_value_learns_without_actions() -> None:
    s, _ = inputs()
    y = s[:, 1]

    def loss(network, z, y):
        return jnp.mean((later_layers(network, z) - y) ** 2), {}

    @jax.jit
    def many(part):
        step = lambda part, _: (values.step(part, loss, s, in_groups(y, 12), CONFIG), None)  # noqa: E731
        return jax.lax.scan(step, part, length=300)[0]

    part = many(values.init(quick_key(3), 4, CONFIG))
    np.testing.assert_allclose(values.v(part, s), y, atol=0.5)
