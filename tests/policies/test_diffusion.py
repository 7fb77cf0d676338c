"""The schedule, one denoising step, the noise network and the sampling, by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spacql.policies import MLP, Diffusion, Policy
from spacql.policies.diffusion import (
    TIME,
    denoise,
    denoising_error,
    make_schedule,
    mish,
    noised,
    time_embedding,
)

KEY = jax.random.key(0)
act = eqx.filter_jit(lambda actor, seen, key: actor(seen, key))
sample = eqx.filter_jit(lambda actor, seen, *given: actor.sample(seen, *given))


def actor(steps=5, seed=0, **values):
    """3 observations, 2 actions within [-1, 1] and [0, 4]."""
    rng = np.random.default_rng(seed)
    shapes = ((2 + TIME + 3, 8), (8, 6), (6, 2))
    fields = {
        "mean": jnp.array([1.0, 2.0, 3.0]),
        "std": jnp.array([1.0, 2.0, 0.5]),
        "weights": tuple(jnp.asarray(rng.normal(size=s) / 3, jnp.float32) for s in shapes),
        "biases": tuple(jnp.asarray(rng.normal(size=s[1]) / 3, jnp.float32) for s in shapes),
        "share": None,
        "low": (-1.0, 0.0),
        "high": (1.0, 4.0),
        "steps": steps,
    }
    return Diffusion(**fields | values)


def test_the_linear_schedule_by_hand() -> None:
    beta, kept, before = make_schedule(3, "linear")
    np.testing.assert_allclose(beta, [1e-4, 0.01005, 0.02])
    np.testing.assert_allclose(kept, [0.9999, 0.9999 * 0.98995, 0.9999 * 0.98995 * 0.98])
    np.testing.assert_allclose(before, [1, 0.9999, 0.9999 * 0.98995])


@pytest.mark.parametrize("steps", [5, 10, 100])
def test_the_vp_schedule_leaves_the_same_whatever_the_number_of_steps(steps) -> None:
    assert make_schedule(steps, "vp").kept[-1] == pytest.approx(np.exp(-5.05))


def test_one_denoising_step_by_hand() -> None:
    """Textbook posterior of x_{k-1} given x_k and the action; clipped; at last without noise."""
    beta, kept, before = (x[1] for x in make_schedule(3, "linear"))
    x, eps, z = 0.5, -0.3, 1.5
    action = (x - np.sqrt(1 - kept) * eps) / np.sqrt(kept)
    mean = np.sqrt(before) * beta / (1 - kept) * action
    mean += np.sqrt(1 - beta) * (1 - before) / (1 - kept) * x
    by_hand = mean + np.sqrt(beta * (1 - before) / (1 - kept)) * z
    np.testing.assert_allclose(denoise(x, eps, z, beta, kept, before), by_hand, rtol=1e-5)
    beta, kept, before = (x[0] for x in make_schedule(3, "linear"))
    np.testing.assert_allclose(denoise(0.5, 0.0, 9.0, beta, kept, before), 0.5 / np.sqrt(kept))
    np.testing.assert_allclose(denoise(3.0, 0.0, 9.0, beta, kept, before), 1.0, rtol=1e-6)


def test_denoising_undoes_noise_that_is_known_exactly() -> None:
    schedule = make_schedule(10, "vp")
    a, eps = 0.4, 1.3
    x = np.sqrt(schedule.kept[-1]) * a + np.sqrt(1 - schedule.kept[-1]) * eps
    for k in reversed(range(10)):
        known = (x - np.sqrt(schedule.kept[k]) * a) / np.sqrt(1 - schedule.kept[k])
        x = float(denoise(x, known, 0.7, *(s[k] for s in schedule)))
    assert x == pytest.approx(a, abs=1e-5)


def test_mish_is_x_tanh_softplus() -> None:
    x = jnp.array([-50.0, -3.0, 0.0, 0.7, 5.0, 100.0])
    by_hand = x * np.tanh(np.log1p(np.exp(np.minimum(x, 30))))
    np.testing.assert_allclose(mish(x), by_hand, atol=1e-5)
    mine, theirs = (jax.jit(jax.grad(lambda x, f=f: f(x).sum()))(x) for f in (mish, jax.nn.mish))
    np.testing.assert_allclose(mine, theirs, atol=1e-5)


def network_by_hand(actor, x, time, observation):
    h = np.concatenate([x, time, (observation - actor.mean) / actor.std])
    for weight, bias in zip(actor.weights[:-1], actor.biases[:-1], strict=True):
        h = np.asarray(h @ np.asarray(weight) + np.asarray(bias), np.float64)
        h = h * np.tanh(np.log1p(np.exp(h)))
    return h @ np.asarray(actor.weights[-1]) + np.asarray(actor.biases[-1])


def test_the_noise_network_sees_action_time_and_standardised_observation() -> None:
    net, time = actor(), time_embedding(5)[2]
    x, seen = np.array([0.1, -0.7]), np.array([0.5, 2.0, 4.0])
    found = net.noise(jnp.asarray(x), time, net.condition(jnp.asarray(seen)))
    np.testing.assert_allclose(found, network_by_hand(net, x, time, seen), rtol=1e-4)
    weighted = replace(net, share=jnp.array(0.5))
    half = weighted.noise(jnp.asarray(x), time, net.condition(jnp.asarray(seen)))
    np.testing.assert_allclose(half, 0.5 * found, rtol=1e-6)


def test_the_denoising_error_by_hand() -> None:
    net, rng = actor(), np.random.default_rng(1)
    seen, a = rng.normal(size=(6, 3)), rng.uniform(-1, 1, (6, 2))
    step_key, noise_key = jax.random.split(KEY)
    k = np.asarray(jax.random.randint(step_key, (6,), 0, 5))
    eps = np.asarray(jax.random.normal(noise_key, (6, 2)))
    kept = make_schedule(5, "linear").kept
    total = 0.0
    for b in range(6):
        x = np.sqrt(kept[k[b]]) * a[b] + np.sqrt(1 - kept[k[b]]) * eps[b]
        total += np.mean((eps[b] - network_by_hand(net, x, time_embedding(5)[k[b]], seen[b])) ** 2)
    found = eqx.filter_jit(denoising_error)(net, jnp.asarray(seen), jnp.asarray(a), KEY)
    np.testing.assert_allclose(found, total / 6, rtol=1e-4)


def test_a_sample_is_k_steps_back_from_noise() -> None:
    net, seen = actor(), np.array([0.5, 2.0, 4.0])
    found = sample(net, jnp.asarray(seen), KEY, 0.8)
    z = 0.8 * np.asarray(jax.random.normal(KEY, (6, 2)))
    x, schedule = z[0], make_schedule(5, "linear")
    for number, k in enumerate(reversed(range(5))):
        eps = network_by_hand(net, x, time_embedding(5)[k], seen)
        x = np.asarray(denoise(x, eps, z[number + 1], *(s[k] for s in schedule)))
    np.testing.assert_allclose(found, x, rtol=1e-3, atol=1e-4)


def test_acting_is_deterministic_for_a_key_and_random_over_keys() -> None:
    policy = Policy((actor(), actor(seed=1)), agents=("a", "b"))
    seen = [np.ones((20, 3)), np.zeros((20, 3))]
    first, again, other = (policy.act(seen, key=k) for k in (1, 1, 2))
    for x, y, z in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(x, y)
        assert (x != z).any()
        assert ((x >= [-1, 0]) & (x <= [1, 4])).all()
    assert len(np.unique(first[0][:, 0])) > 1, "every row of a batch has noise of its own"


def test_a_temperature_of_zero_is_not_random() -> None:
    net = actor(temperature=0.0)
    x, y = (act(net, jnp.ones((4, 3)), jax.random.key(k)) for k in (1, 2))
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("batch", [(), (7,)])
def test_the_best_candidate_by_the_critic_is_taken(batch) -> None:
    """A critic that is the first coordinate of the action: the largest of the samples' is taken."""
    weight = jnp.zeros((5, 1)).at[3, 0].set(1.0)
    critic = MLP(jnp.zeros(5), jnp.ones(5), (weight,), (jnp.zeros(1),), (-1.0,), (1.0,))
    net = actor(candidates=16, critic=critic)
    seen = jnp.ones((*batch, 3))
    samples = sample(net, jnp.broadcast_to(seen, (16, *seen.shape)), KEY)
    found = act(net, seen, KEY)
    assert found.shape == (*batch, 2)
    np.testing.assert_allclose(found[..., 0], samples[..., 0].max(axis=0), rtol=1e-6)
    assert found[..., 0].min() > samples[..., 0].mean()


def test_noise_is_added_as_the_schedule_says() -> None:
    net = actor()
    x, time = noised(net, jnp.array([[0.5, -0.5]]), jnp.array([3]), jnp.array([[1.0, 2.0]]))
    kept = make_schedule(5, "linear").kept[3]
    np.testing.assert_allclose(
        x[0], np.sqrt(kept) * np.array([0.5, -0.5]) + np.sqrt(1 - kept) * np.array([1.0, 2.0]),
        rtol=1e-5,
    )  # fmt: skip
    np.testing.assert_array_equal(time[0], time_embedding(5)[3])
