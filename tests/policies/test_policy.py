import json
import os
import stat
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from spacql.data import behaviours
from spacql.errors import InputError
from spacql.policies import Flee, Policy, Uniform, init_mlp, saved
from spacql.policies.policy import uniform
from spacql.spec import Spec

KEY = jax.random.key(0)
SPEC = Spec("mixed", ("a", "b"), (3, 14), ((-1.0,), (0.0, 0.0)), ((1.0,), (2.0, 5.0)), horizon=10)


def networks(seed=0):
    keys = jax.random.split(jax.random.key(seed))
    rows = zip(keys, SPEC.observation_sizes, SPEC.action_low, SPEC.action_high, strict=True)
    actors = tuple(init_mlp(*row, hidden=(8, 8)) for row in rows)
    return Policy(actors, name="team", agents=SPEC.agents)


def observations(batch=()):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(*batch, size)) for size in SPEC.observation_sizes]


@pytest.mark.parametrize(
    "policy",
    [
        networks(),
        replace(networks(), actors=tuple(replace(a, noise=0.2) for a in networks().actors)),
        uniform(SPEC),
        Policy(
            (Uniform(3, (-1.0,), (1.0,)), Flee(14, (8, 14), (-1.0,) * 2, (1.0,) * 2)),
            name="scripted",
            agents=("a", "b"),
        ),
    ],
    ids=["networks", "noisy", "uniform", "scripted"],
)
def test_saving_and_loading_keeps_every_bit(policy, tmp_path):
    policy.save(tmp_path / "policy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["policy.json", "policy.safetensors"]
    for path in (tmp_path, tmp_path / "policy.json", tmp_path / "policy.safetensors"):
        loaded = Policy.load(path)
        assert jax.tree.structure(loaded) == jax.tree.structure(policy)
        jax.tree.map(np.testing.assert_array_equal, loaded, policy)
    for ours, theirs in zip(policy.act(observations()), loaded.act(observations()), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_umask_decides_who_may_read_weights_and_text(tmp_path):
    usual = os.umask(0o027)
    try:
        networks().save(tmp_path / "team")
    finally:
        os.umask(usual)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"team.json": 0o640, "team.safetensors": 0o640}


def test_each_actor_sees_its_own_observation_alone():
    policy, seen = networks(), observations()
    before = policy.act(seen)
    seen[1] = seen[1] + 1
    after = policy.act(seen)
    np.testing.assert_array_equal(before[0], after[0])
    assert (before[1] != after[1]).any()


def test_a_batch_acts_like_its_rows():
    policy, seen = networks(), observations((5,))
    together = policy.act(seen)
    assert [a.shape for a in together] == [(5, 1), (5, 2)]
    for row in range(5):
        alone = policy.act([o[row] for o in seen])
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_allclose(one, many[row], rtol=1e-5, atol=1e-6)


def test_named_observations_may_come_in_any_order():
    policy, (a, b) = networks(), observations()
    for named, plain in zip(policy.act({"b": b, "a": a}), policy.act([a, b]), strict=True):
        np.testing.assert_array_equal(named, plain)


def test_a_random_policy_repeats_with_its_key():
    policy, seen = uniform(SPEC), observations()
    first, same, other = (policy.act(seen, key=key) for key in (1, jax.random.key(1), 2))
    np.testing.assert_array_equal(first[1], same[1])
    assert (first[1] != other[1]).all()


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        ([np.zeros(3)], r"Got 1 observations; this policy acts for 2 agents \(a, b\)"),
        ({"a": np.zeros(3)}, "No observation for agent 'b'"),
        ([np.zeros(3), np.zeros(13)], r"of b has shape \(13,\); expected \(14,\)"),
        ([np.zeros(()), np.zeros(14)], "of a has shape"),
        ([np.array([0, np.nan, 0]), np.zeros(14)], "of a holds NaN or infinity"),
        ([np.zeros(3), np.full(14, np.inf)], "of b holds NaN or infinity"),
    ],
)
def test_wrong_observations_are_refused_with_a_sentence(seen, sentence):
    with pytest.raises(InputError, match=sentence):
        networks().act(seen)


def broken_policies(path):
    described = json.loads((path / "policy.json").read_text())
    yield "no file", lambda: (path / "policy.json").unlink()
    yield "no file", lambda: (path / "policy.safetensors").unlink()
    yield "not valid JSON", lambda: (path / "policy.json").write_text("{")
    yield "was replaced or damaged", lambda: (path / "policy.safetensors").write_bytes(b"x" * 100)
    for change, sentence in (
        ({"format": 99}, "policy format 99; this version reads 1 to 2"),
        ({"actors": [{"kind": "wizard", "fields": {}}]}, "'wizard', which is not known here"),
        ({"actors": [{"kind": "mlp", "fields": {"mean": 0}}]}, "do not make a policy"),
        ({"actors": [{"kind": "mlp"}]}, "do not make a policy"),
    ):
        text = json.dumps(described | change)
        yield sentence, lambda text=text: (path / "policy.json").write_text(text)


@pytest.mark.parametrize("number", range(8))
def test_a_damaged_policy_is_refused_with_a_sentence(number, tmp_path):
    networks().save(tmp_path / "policy")
    sentence, damage = list(broken_policies(tmp_path))[number]
    damage()
    with pytest.raises(InputError, match=sentence):
        Policy.load(tmp_path)


def test_calling_inside_jit_equals_acting():
    policy, seen = networks(), observations()
    arrays = tuple(jnp.asarray(o, jnp.float32) for o in seen)
    for inside, outside in zip(eqx.filter_jit(policy)(arrays, KEY), policy.act(seen), strict=True):
        np.testing.assert_allclose(inside, outside, rtol=1e-5, atol=1e-6)


def test_weights_of_another_policy_are_refused(tmp_path):
    networks(seed=0).save(tmp_path / "a")
    networks(seed=1).save(tmp_path / "b")
    (tmp_path / "b.safetensors").replace(tmp_path / "a.safetensors")
    with pytest.raises(InputError, match="does not belong"):
        Policy.load(tmp_path / "a")


def test_policies_of_the_first_format_still_load():
    """The behaviours that ship with the package were saved by it."""
    path = behaviours.ASSETS / "behaviours" / "spread-expert-0.json"
    described = json.loads(path.read_text())
    assert described["format"] == 1
    policy = Policy.load(path)
    assert policy.agents == tuple(described["agents"])
    assert policy.actors[0].noise == described["actors"][0]["noise"]
    first = load_file(path.with_suffix(".safetensors"))["0.weights.0"]
    np.testing.assert_array_equal(policy.actors[0].weights[0], first)


class Mixed(eqx.Module):
    """An actor that is not ours: a module of Equinox's inside, and a scale that a name chooses."""

    inner: eqx.nn.Linear
    offsets: tuple[jax.Array, ...]
    shape: str = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    @property
    def observation_size(self):
        return self.inner.weight.shape[1]

    def __call__(self, observation, key):
        shape = {"tanh": jnp.tanh}[self.shape]
        return shape(observation @ self.inner.weight.T + self.offsets[0]) * jnp.array(self.high)


def test_any_equinox_module_may_be_an_actor(tmp_path):
    inner = eqx.nn.Linear(3, 1, use_bias=False, key=KEY)
    actor = Mixed(inner, (jnp.array([0.3]),), "tanh", (-2.0,), (2.0,))
    policy = Policy((actor,), name="mixed", agents=("a",))
    policy.save(tmp_path / "policy")
    with pytest.raises(InputError, match=r"kind '.*Mixed', which is not known"):
        Policy.load(tmp_path)
    kinds = {saved.kind_name(cls): cls for cls in (Mixed, eqx.nn.Linear)}
    loaded = Policy.load(tmp_path, kinds=kinds)
    seen = [np.array([0.1, -0.4, 0.7])]
    np.testing.assert_array_equal(loaded.act(seen)[0], policy.act(seen)[0])
    assert loaded.actors[0].shape == "tanh"


def test_an_actor_that_holds_a_function_is_refused_with_a_sentence(tmp_path):
    network = eqx.nn.MLP(3, 1, 8, 1, key=KEY)
    policy = Policy((network,), name="mlp", agents=("a",))
    with pytest.raises(InputError, match="functions in its code"):
        policy.save(tmp_path / "policy")
    assert not list(tmp_path.iterdir())


def test_names_may_have_dots(tmp_path):
    for name in ("cfcql-0.1", "cfcql-0.5"):
        Policy(networks().actors, name=name, agents=networks().agents).save(tmp_path / name)
    for name in ("cfcql-0.1", "cfcql-0.5"):
        for ending in ("", ".json", ".safetensors"):
            assert Policy.load(tmp_path / f"{name}{ending}").name == name


def test_a_numpy_number_is_a_key_too():
    policy, seen = uniform(SPEC), observations()
    ours, theirs = policy.act(seen, key=3), policy.act(seen, key=np.int64(3))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
