"""A policy: one actor per agent. It is saved as safetensors and JSON, and acts without a world."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.files import new_file, read_json, sha256, write_json
from spacql.policies.actors import Uniform
from spacql.policies.saved import build, build_format_1, describe
from spacql.spec import Spec

FORMAT = 2


class Policy(eqx.Module):
    """A team's decentralised policy: agent i's actor sees agent i's observation alone.

    `policy(observations, key)` is the pure function for use inside jit. `policy.act` is for
    everybody else: it checks shapes and returns NumPy arrays.
    """

    actors: tuple[Any, ...]
    name: str = eqx.field(static=True, default="policy")
    agents: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, observations: Sequence[Array], key: Array) -> tuple[Array, ...]:
        keys = jax.random.split(key, len(self.actors))
        return tuple(
            actor(observation, key)
            for actor, observation, key in zip(self.actors, observations, keys, strict=True)
        )

    def act(
        self, observations: Sequence[Any] | Mapping[str, Any], *, key: Array | int = 0
    ) -> tuple[np.ndarray, ...]:
        """Actions for one observation per agent, each (size,) or (batch, size).

        `observations` is a sequence in the order of `agents`, or a mapping from agent names.
        `key`, a JAX key or a number, matters only to policies that act at random: give another
        for every call.
        """
        if isinstance(observations, Mapping):
            missing = [name for name in self.agents if name not in observations]
            if missing:
                raise InputError(
                    f"No observation for agent {missing[0]!r}; "
                    f"this policy acts for {', '.join(self.agents)}."
                )
            observations = [observations[name] for name in self.agents]
        if len(observations) != len(self.actors):
            raise InputError(
                f"Got {len(observations)} observations; this policy acts for "
                f"{len(self.actors)} agents ({', '.join(self.agents)})."
            )
        arrays: list[Any] = []
        for agent, actor, observation in zip(self.agents, self.actors, observations, strict=True):
            array = np.asarray(observation, np.float32)
            if array.ndim not in (1, 2) or array.shape[-1] != actor.observation_size:
                raise InputError(
                    f"The observation of {agent} has shape {array.shape}; expected "
                    f"({actor.observation_size},) or (batch, {actor.observation_size})."
                )
            if not np.isfinite(array).all():
                raise InputError(f"The observation of {agent} holds NaN or infinity.")
            arrays.append(array)
        random = jax.random.key(key) if isinstance(key, int) else key
        actions = _call(self, tuple(arrays), random)
        return tuple(np.asarray(action) for action in actions)

    def save(self, path: Path | str) -> None:
        """Write `path` (weights, safetensors) and the same name with .json (everything else)."""
        from safetensors.numpy import save_file

        path = Path(path).with_suffix(".safetensors")
        tensors: dict[str, np.ndarray] = {}
        described = [describe(a, f"{number}", tensors) for number, a in enumerate(self.actors)]
        with new_file(path) as temporary:
            save_file(tensors or {"empty": np.zeros(1, np.float32)}, temporary)
        text = {
            "format": FORMAT,
            "name": self.name,
            "agents": self.agents,
            "weights": sha256(path),  # a kill between the two files must not mix two policies
            "actors": described,
        }
        write_json(path.with_suffix(".json"), text)

    @staticmethod
    def load(path: Path | str, *, kinds: Mapping[str, Any] | None = None) -> "Policy":
        """Read a policy: its .safetensors or .json file, or a folder that holds policy.json.

        `kinds` are classes of actors that are not ours, by the names that the file has for them.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        path = Path(path)
        if path.is_dir():
            path = path / "policy"
        described = read_json(path.with_suffix(".json"))
        weights = path.with_suffix(".safetensors")
        if not weights.exists():
            raise InputError(f"There is no file {weights} beside {path.with_suffix('.json')}.")
        try:
            tensors = load_file(weights)
        except SafetensorError as error:
            raise InputError(f"{weights} is damaged: {error}.") from error
        if described.get("format") not in (1, FORMAT):
            raise InputError(
                f"{path.with_suffix('.json')} has policy format "
                f"{described.get('format')!r}; this version reads 1 to {FORMAT}."
            )
        if described.get("weights") != sha256(weights):
            raise InputError(f"{weights} does not belong to {path.with_suffix('.json')}: one of "
                             "them was replaced or damaged.")  # fmt: skip
        try:
            if described["format"] == 1:
                entries = enumerate(described["actors"])
                actors = tuple(build_format_1(entry, k, tensors) for k, entry in entries)
            else:
                actors = build(described["actors"], tensors, kinds or {})
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path.with_suffix('.json')} and {weights.name} do not make a policy: {error!r}."
            ) from error
        return Policy(actors, name=described["name"], agents=tuple(described["agents"]))


def uniform(spec: Spec) -> Policy:
    """Every agent acts uniformly at random: what made the 'random' datasets."""
    bounds = zip(spec.observation_sizes, spec.action_low, spec.action_high, strict=True)
    return Policy(tuple(Uniform(*b) for b in bounds), name="uniform", agents=spec.agents)


@eqx.filter_jit
def _call(policy: Policy, observations: tuple[Array, ...], key: Array) -> tuple[Array, ...]:
    return policy(observations, key)
