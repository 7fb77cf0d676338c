from functools import cache

import jax
import numpy as np
import pytest

from spacql.errors import InputError
from spacql.policies import Policy, Uniform, init_mlp
from spacql.policies import acting as acting_module


@cache
def team(sizes, acts, low=-3.0, high=5.0, hidden=(16, 8)):
    keys = jax.random.split(jax.random.key(1, impl="rbg"), len(sizes))

    @jax.jit
    def make(keys):
        return tuple(
            init_mlp(key, size, (low,) * act, (high,) * act, hidden=hidden,
                     mean=np.full(size, 2.0, np.float32), std=np.full(size, 0.5, np.float32))
            for key, size, act in zip(keys, sizes, acts, strict=True)
        )  # fmt: skip

    return Policy(make(keys), name="t", agents=tuple(f"agent_{i}" for i in range(len(sizes))))


def observed(policy, *batch):
    random = np.random.default_rng(0)
    return [
        random.normal(2, 0.5, (*batch, a.observation_size)).astype(np.float32)
        for a in policy.actors
    ]


@pytest.mark.parametrize(("sizes", "acts"), [((6, 6, 6), (2, 2, 2)), ((3, 7), (1, 4))])
@pytest.mark.parametrize("batch", [(), (1,), (9,)])
def test_numpy_acts_like_the_jax_function(sizes, acts, batch):
    policy = team(sizes, acts)
    seen = observed(policy, *batch)
    expected = jax.jit(lambda seen: policy(seen, jax.random.key(0)))(seen)
    for mine, other in zip(policy.act(seen), expected, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine / 4, np.asarray(other) / 4, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (-0.3, 0.6), (-1.0, 1.0)])
def test_saturated_actors_stay_within_their_bounds(low, high):
    policy = team((4, 4), (2, 2), low, high)
    seen = [1e4 * x for x in observed(policy, 33)]
    inside = jax.jit(lambda seen: policy(seen, jax.random.key(0)))(seen)
    for acted in (*policy.act(seen), *map(np.asarray, inside)):
        assert np.float32(low) <= acted.min() < low + 1e-6
        assert high - 1e-6 < acted.max() <= np.float32(high)


def test_networks_act_without_any_compilation(monkeypatch):
    policy = team((4, 4), (2, 2))

    def compiled(*_):
        raise AssertionError("compiled")

    monkeypatch.setattr("spacql.policies.policy._jitted", compiled)
    for batch in ((), (1,), (2,), (33,)):
        policy.act(observed(policy, *batch))


def test_hidden_layers_of_different_widths_are_stacked():
    wide, narrow = team((4, 4), (2, 2), hidden=(16,)), team((4, 4), (2, 2), hidden=(5,))
    mixed = Policy((wide.actors[0], narrow.actors[1]), agents=("a", "b"))
    seen = observed(mixed, 3)
    np.testing.assert_allclose(mixed.act(seen)[0], wide.act(seen)[0], atol=1e-6)
    np.testing.assert_allclose(mixed.act(seen)[1], narrow.act(seen)[1], atol=1e-6)


def test_what_acts_at_random_goes_on_acting_at_random():
    policy = Policy((Uniform(2, (-1.0,), (1.0,)),) * 2, agents=("a", "b"))
    assert acting_module.numpy_team(policy.actors) is None
    seen = [np.zeros(2), np.zeros(2)]
    assert policy.act(seen, key=1)[0] != policy.act(seen, key=2)[0]


def test_refusals_name_the_agent():
    policy = team((3, 4), (1, 1))
    good = observed(policy)
    for wrong, words in (
        ([good[0]], "Got 1 observations"),
        ([good[0], good[0]], "agent_1 has shape"),
        ([good[0], observed(policy, 2)[1]], "same batch"),
        ([good[0], good[1] * np.nan], "agent_1 holds NaN"),
        ({"agent_0": good[0]}, "No observation for agent 'agent_1'"),
    ):
        with pytest.raises(InputError, match=words):
            policy.act(wrong)
