import sys

import numpy as np
import pytest

from spacql.data.torch_prey import EPSILON, from_state_dict, import_prey
from spacql.errors import DataError, InputError, SpacqlError
from spacql.worlds import make


def state_dict(size=14, hidden=64, actions=2, normalised=True, seed=0):
    """Arrays as PyTorch names and shapes them."""
    rng = np.random.default_rng(seed)
    sizes = [size, hidden, hidden, actions]
    arrays = {}
    if normalised:
        arrays = {
            "in_fn.weight": rng.uniform(0.5, 2, size),
            "in_fn.bias": rng.normal(size=size),
            "in_fn.running_mean": rng.normal(size=size),
            "in_fn.running_var": rng.uniform(0, 2, size),
            "in_fn.num_batches_tracked": np.array(1000),
        }
    for layer in range(3):
        arrays[f"fc{layer + 1}.weight"] = 0.3 * rng.normal(size=(sizes[layer + 1], sizes[layer]))
        arrays[f"fc{layer + 1}.bias"] = 0.3 * rng.normal(size=sizes[layer + 1])
    return arrays


def forward(arrays, x):
    """What the PyTorch module computes in evaluation, written out."""
    if "in_fn.weight" in arrays:
        x = (x - arrays["in_fn.running_mean"]) / np.sqrt(arrays["in_fn.running_var"] + EPSILON)
        x = x * arrays["in_fn.weight"] + arrays["in_fn.bias"]
    x = np.maximum(arrays["fc1.weight"] @ x + arrays["fc1.bias"], 0)
    x = np.maximum(arrays["fc2.weight"] @ x + arrays["fc2.bias"], 0)
    return np.tanh(arrays["fc3.weight"] @ x + arrays["fc3.bias"])


@pytest.mark.parametrize("normalised", [True, False])
def test_the_policy_acts_as_the_module_does(normalised):
    arrays = state_dict(normalised=normalised)
    policy = from_state_dict(arrays)
    for observation in np.random.default_rng(1).normal(size=(20, 14)):
        (action,) = policy.act([observation])
        np.testing.assert_allclose(action, forward(arrays, observation), atol=2e-5)


def test_it_can_be_the_prey_of_tag():
    world = make("tag", prey=from_state_dict(state_dict()))
    assert world.spec.prey == "published"
    assert world.spec.n_agents == 3


def test_weights_that_make_no_network_are_refused():
    arrays = state_dict()
    with pytest.raises(DataError, match=r"no 'fc2\.bias'"):
        from_state_dict({key: value for key, value in arrays.items() if key != "fc2.bias"})
    with pytest.raises(DataError, match="do not follow on each other"):
        from_state_dict({**arrays, "fc2.weight": np.zeros((64, 3))})
    with pytest.raises(DataError, match="no linear layer"):
        from_state_dict({})


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("in_fn.running_mean", np.zeros(3), r"running_mean has shape \(3,\)"),
        ("in_fn.running_var", np.zeros(1), r"running_var has shape \(1,\)"),
        ("in_fn.running_var", -np.ones(14), "running_var is negative"),
        ("in_fn.weight", np.zeros((14, 1, 1)), r"in_fn\.weight has shape"),
        ("in_fn.bias", np.zeros(3), r"in_fn\.bias has shape"),
        ("fc1.bias", np.zeros(1), r"fc1\.bias has shape \(1,\); expected \(64,\)"),
        ("fc2.weight", np.full((64, 64), np.nan), r"fc2\.weight holds NaN"),
        ("fc3.bias", np.full(2, 1e300), "NaN, infinity"),
        ("fc3.bias", ["x", "y"], r"fc3\.bias cannot be read"),
    ],
)
def test_weights_of_other_sizes_or_that_are_not_finite_are_refused(key, value, sentence):
    with pytest.raises(InputError, match=sentence):
        from_state_dict({**state_dict(), key: value})


def test_a_normalisation_without_its_variance_is_refused():
    arrays = state_dict()
    del arrays["in_fn.running_var"]
    with pytest.raises(DataError, match=r"no 'in_fn\.running_var'"):
        from_state_dict(arrays)


def test_without_torch_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "prey.pt").write_bytes(b"x")
    with pytest.raises(SpacqlError, match="pip install torch"):
        import_prey(tmp_path / "prey.pt")
    with pytest.raises(InputError, match="There is no file"):
        import_prey(tmp_path / "none.pt")


class FakeTorch:
    """Stands in for torch, which is no dependency: only what the importer calls."""

    def __init__(self, saved):
        self.saved = saved

    def load(self, file, map_location, weights_only):
        assert weights_only is True
        if isinstance(self.saved, Exception):
            raise self.saved
        return self.saved


class FakeTensor:
    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    def numpy(self):
        return self.array


def test_the_last_agent_of_the_published_file_is_read_and_bad_files_are_refused(
    tmp_path, monkeypatch
):
    file = tmp_path / "prey.pt"
    file.write_bytes(b"x")
    arrays = state_dict(seed=7)
    tensors = {key: FakeTensor(value) for key, value in arrays.items()}
    saved = {"agent_params": [{"policy": {}}, {"policy": tensors}]}
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(saved))
    (action,) = import_prey(file).act([np.ones(14)])
    np.testing.assert_allclose(action, forward(arrays, np.ones(14)), atol=2e-5)
    monkeypatch.setitem(sys.modules, "torch", FakeTorch({"agent_params": [{"critic": {}}]}))
    with pytest.raises(DataError, match="holds no agent's policy"):
        import_prey(file)
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(RuntimeError("Weights only load failed")))
    with pytest.raises(DataError, match="Weights only load failed"):
        import_prey(file)
