"""The published prey of tag and world as a policy. Reading its PyTorch file needs torch.

The file (`pretrained_adv_model.pt`) holds all agents' parameters, the prey's last. A prey is a
network that normalises its input by batch statistics, then has ReLU layers, then a tanh.
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spacql.errors import DataError, InputError, SpacqlError
from spacql.files import decoding
from spacql.policies import MLP, Policy
from spacql.policies.policy import check

EPSILON = 1e-5  # PyTorch's batch normalisation adds it to the variance


def import_prey(file: Path | str, name: str = "published") -> Policy:
    """Read the file and return the prey, for `spacql.worlds.make("tag", prey=...)`.

    Only tensors and plain values are read (`weights_only`): a file with code in it is refused.
    """
    file = Path(file)
    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    try:
        import torch
    except ImportError as error:
        raise SpacqlError(
            "Reading a PyTorch file needs torch, which is not installed. Install it with: "
            "pip install torch"
        ) from error
    try:
        saved = torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{file} cannot be read as PyTorch weights: {reason}") from error
    try:
        parameters = saved["agent_params"][-1]["policy"] if "agent_params" in saved else saved
        arrays = {key: value.detach().numpy() for key, value in parameters.items()}
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(f"{file} holds no agent's policy: {error!r}.") from error
    return from_state_dict(arrays, name)


def from_state_dict(arrays: Mapping[str, Any], name: str = "published") -> Policy:
    """A policy of one agent from the arrays of a PyTorch module, by their names in it.

    The normalisation's mean and variance become the network's own; its scale and shift are
    folded into the first layer.
    """
    layers = sorted(key for key, value in arrays.items() if np.ndim(value) == 2)
    if not layers:
        raise DataError("The weights hold no linear layer.")
    weights = [_array(arrays, key).T for key in layers]  # PyTorch: (out, in)
    biases = [
        _array(arrays, key.removesuffix("weight") + "bias", weight.shape[1])
        for key, weight in zip(layers, weights, strict=True)
    ]
    for upper, lower in zip(weights[1:], weights[:-1], strict=True):
        if upper.shape[0] != lower.shape[1]:
            shapes = ", ".join(
                f"{key} {weight.T.shape}" for key, weight in zip(layers, weights, strict=True)
            )
            raise DataError(f"The layers do not follow on each other: {shapes}.")
    size = weights[0].shape[0]
    mean, std = np.zeros(size), np.ones(size)
    normalised = [key for key in arrays if key.endswith("running_mean")]
    if normalised:
        prefix = normalised[0].removesuffix("running_mean")
        known = {prefix + "weight": np.ones(size), prefix + "bias": np.zeros(size), **arrays}
        mean, variance, scale, shift = (
            _array(known, prefix + part, size)
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        if (variance < 0).any():
            raise DataError(f"The weights' {prefix}running_var is negative somewhere.")
        std = np.sqrt(variance + EPSILON)
        biases[0] = biases[0] + shift @ weights[0]
        weights[0] = scale[:, None] * weights[0]
    actions = weights[-1].shape[1]

    def array(x: np.ndarray) -> Any:
        with np.errstate(over="ignore"):  # infinity is refused below
            return jnp.asarray(x, jnp.float32)

    actor = MLP(
        mean=array(mean),
        std=array(std),
        weights=tuple(map(array, weights)),
        biases=tuple(map(array, biases)),
        low=(-1.0,) * actions,
        high=(1.0,) * actions,
    )
    policy = Policy((actor,), name=name, agents=("prey",))
    check(policy, {f"{k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(actor))})
    return policy


def _array(arrays: Mapping[str, Any], name: str, size: int | None = None) -> np.ndarray:
    """One of the module's arrays, finite; with a size, a vector of it."""
    if name not in arrays:
        raise DataError(f"The weights hold no {name!r}.")
    with decoding(f"The weights' {name}", DataError):
        array = np.array(arrays[name], np.float64)
    if size is not None and array.shape != (size,):
        raise DataError(f"The weights' {name} has shape {array.shape}; expected ({size},).")
    if not np.isfinite(array).all():
        raise DataError(f"The weights' {name} holds NaN or infinity.")
    return array
