"""Actors as JSON and arrays, and back.

An actor is an Equinox module. Its arrays go into one safetensors file, named by their paths in the
policy's pytree ("0.weights.1"); everything else goes into JSON, with the name of the module's kind.
Kinds are found by name and never imported from a file: ours are in `KINDS`, other packages
add theirs by entry points of the group `spacql.actors`, and `Policy.load` takes any by hand.
"""

from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from spacql.errors import InputError
from spacql.policies.actors import MLP, Flee, Uniform
from spacql.policies.diffusion import Diffusion

GROUP = "spacql.actors"
KINDS = {"uniform": Uniform, "mlp": MLP, "flee": Flee, "diffusion": Diffusion}
LARGEST = 100_000  # of the whole numbers that an actor has: sizes, steps, samples
Tensors = dict[str, np.ndarray]


def describe(value: Any, path: str, tensors: Tensors) -> Any:
    """What JSON says of a module or of one of its fields; arrays are added to `tensors`."""
    if eqx.is_array(value) or isinstance(value, np.ndarray):
        tensors[path] = np.ascontiguousarray(value)
        return {"array": path}
    if isinstance(value, eqx.Module):
        of_fields = {
            field.name: describe(getattr(value, field.name), f"{path}.{field.name}", tensors)
            for field in fields(value)
        }
        return {"kind": kind_name(type(value)), "fields": of_fields}
    if isinstance(value, tuple | list):
        return [describe(x, f"{path}.{number}", tensors) for number, x in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(
        f"The actor cannot be saved: {path} is a {type(value).__name__}. Keep arrays, numbers, "
        "text, modules and tuples of these in an actor, and functions in its code."
    )


def build(described: Any, tensors: Mapping[str, np.ndarray], kinds: Mapping[str, Any]) -> Any:
    """The module or the field that `describe` described."""
    if isinstance(described, list):
        return tuple(build(x, tensors, kinds) for x in described)
    if not isinstance(described, dict):
        if isinstance(described, int) and abs(described) > LARGEST:
            raise InputError(f"an actor's size or count is {described:,}, above {LARGEST:,}.")
        return described
    if "array" in described:
        return jnp.asarray(tensors[described["array"]])
    kind = find_kind(described["kind"], kinds)
    values = {n: build(x, tensors, kinds) for n, x in described["fields"].items()}
    if values.keys() != {field.name for field in fields(kind)}:
        raise TypeError(f"{described['kind']} has other fields than {', '.join(values)}")
    # Not by the constructor, which may take something else: the fields are all there is.
    module = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(module, name, value)
    return module


def build_format_1(entry: Mapping[str, Any], number: int, tensors: Mapping[str, Any]) -> Any:
    """An actor as the first format describes it: flat, its tuples of arrays by their length."""
    kind: Any = KINDS[entry["kind"]]
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = field.name
        if field.metadata.get("static"):
            value = entry[name]
            values[name] = tuple(value) if isinstance(value, list) else value
        elif name in entry:
            count = entry[name]["arrays"]
            names = [f"{number}.{name}.{k}" for k in range(count)]
            values[name] = tuple(jnp.asarray(tensors[n]) for n in names)
        else:
            values[name] = jnp.asarray(tensors[f"{number}.{name}"])
    return kind(**values)


def kind_name(kind: type) -> str:
    known: dict[Any, str] = {cls: name for name, cls in KINDS.items()}
    theirs = {entry.value: entry.name for entry in entry_points(group=GROUP)}
    place = f"{kind.__module__}:{kind.__qualname__}"
    return known.get(kind) or theirs.get(place) or place


def find_kind(name: str, given: Mapping[str, Any]) -> Any:
    if name in KINDS:
        return KINDS[name]
    if name in given:
        return given[name]
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return entry.load()
    raise InputError(
        f"An actor of this policy is of the kind {name!r}, which is not known here. Give its "
        f"class: Policy.load(path, kinds={{{name!r}: CLASS}})."
    )
