"""A policy: one actor per agent. It is saved as safetensors and JSON, and acts without a world."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import msgspec
import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.files import decoding, new_file, read_record, sha256, write_json
from spacql.policies.acting import Act, Acting
from spacql.policies.actors import Uniform
from spacql.policies.saved import build, build_format_1, describe
from spacql.spec import Spec

FORMAT = 2


class Policy(eqx.Module):
    """A team's decentralised policy: agent i's actor sees agent i's observation alone.

    `policy(observations, key)` is the pure function for use inside jit. `policy.act` is for
    everybody else: it checks shapes and returns NumPy arrays. Deterministic networks act in NumPy,
    so nothing is compiled; actors of other kinds are compiled once for every batch size.
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

    @cached_property
    def act(self) -> Act:
        """`act(observations, key=0)`: actions for one observation per agent.

        Each observation is (size,) or (batch, size). `observations` is a sequence in the order of
        `agents`, or a mapping from agent names. `key`, a JAX key or a number, matters only to
        policies that act at random: give another for every call.
        """
        # A plain object's method: binding one of a module's own takes longer than acting does.
        return Acting(self.agents, self.actors, partial(_call, self)).act

    def save(self, path: Path | str) -> None:
        """Write `path`.safetensors (weights) and `path`.json (everything else)."""
        from safetensors.numpy import save

        written, path = files_of(path)
        tensors: dict[str, np.ndarray] = {}
        described = [describe(a, f"{number}", tensors) for number, a in enumerate(self.actors)]
        with new_file(path) as temporary:
            # Their save_file makes a file that nobody else may read, whatever the umask.
            temporary.write_bytes(save(tensors or {"empty": np.zeros(1, np.float32)}))
        text = {
            "format": FORMAT,
            "name": self.name,
            "agents": self.agents,
            "weights": sha256(path),  # a kill between the two files must not mix two policies
            "actors": described,
        }
        write_json(written, text)

    @staticmethod
    def load(path: Path | str, *, kinds: Mapping[str, Any] | None = None) -> "Policy":
        """Read a policy: its .safetensors or .json file, or a folder that holds policy.json.

        `kinds` are classes of actors that are not ours, by the names that the file has for them.
        """
        from safetensors.numpy import load_file

        path = Path(path)
        if path.is_dir():
            path = path / "policy"
        text, weights = files_of(path)
        described = read_record(text, Described)
        if described.format not in (1, FORMAT):
            raise InputError(f"{text} has policy format {described.format}; this version reads 1 "
                             f"to {FORMAT}.")  # fmt: skip
        if not weights.exists():
            raise InputError(f"There is no file {weights} beside {text}.")
        if described.weights != sha256(weights):
            raise InputError(f"{weights} does not belong to {text}: one of them was replaced or "
                             "damaged.")  # fmt: skip
        with decoding(weights):
            tensors = load_file(weights)
        with decoding(f"{text} and {weights.name} do not make a policy, which"):
            if described.format == 1:
                entries = enumerate(described.actors)
                actors = tuple(build_format_1(entry, k, tensors) for k, entry in entries)
            else:
                actors = build(described.actors, tensors, kinds or {})
            policy = Policy(actors, name=described.name, agents=described.agents)
            check(policy, tensors)
        return policy


def files_of(path: Path | str) -> tuple[Path, Path]:
    """A policy's .json and .safetensors, from either of them or from their name without ending,
    which may have dots of its own."""
    path = Path(path)
    stem = path.stem if path.suffix in (".json", ".safetensors") else path.name
    return path.with_name(f"{stem}.json"), path.with_name(f"{stem}.safetensors")


class Described(msgspec.Struct, frozen=True):
    """What policy.json holds."""

    format: int
    name: str
    agents: tuple[str, ...]
    weights: str
    actors: list[Any]


def check(policy: Policy, tensors: Mapping[str, np.ndarray]) -> None:
    """Refuse what could not act: other sizes than its parts say, no bounds, NaN and infinity.

    The actors are traced, not run, with observations of the size that they say they take.
    """
    if not len({*policy.agents}) == len(policy.agents) == len(policy.actors) > 0:
        raise InputError(f"{len(policy.actors)} actors do not fit the agents {policy.agents}.")
    for name, array in tensors.items():
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise InputError(f"the array {name} holds NaN, infinity or no numbers.")
    seen = []
    for agent, actor in zip(policy.agents, policy.actors, strict=True):
        sizes = Spec("policy", (agent,), (actor.observation_size,), (actor.low,), (actor.high,), 1)
        bounds = (*sizes.action_low[0], *sizes.action_high[0])
        if not all(isinstance(x, int | float) and abs(x) < 1e30 for x in bounds):
            raise InputError(f"the action bounds of {agent!r} are no numbers.")
        seen.append(jax.ShapeDtypeStruct(sizes.observation_sizes, np.float32))
    acted = jax.eval_shape(policy, seen, jax.random.key(0))
    for agent, actor, action in zip(policy.agents, policy.actors, acted, strict=True):
        if action.shape != (len(actor.low),) or action.dtype != np.float32:
            raise InputError(f"the actor of {agent!r} acts with {action.shape} {action.dtype}; its "
                             f"bounds say ({len(actor.low)},).")  # fmt: skip


def check_order(policy: Policy, spec: Spec) -> None:
    """Refuse the same agents in another order: every actor would see another one's observations."""
    if policy.agents != spec.agents and set(policy.agents) == set(spec.agents):
        raise InputError(
            f"The policy {policy.name!r} acts for {', '.join(policy.agents)}, in this order; in "
            f"{spec.task!r} they are {', '.join(spec.agents)}."
        )


def uniform(spec: Spec) -> Policy:
    """Every agent acts uniformly at random: what made the 'random' datasets."""
    bounds = zip(spec.observation_sizes, spec.action_low, spec.action_high, strict=True)
    return Policy(tuple(Uniform(*b) for b in bounds), name="uniform", agents=spec.agents)


@eqx.filter_jit
def _jitted(policy: Policy, observations: tuple[Array, ...], key: Array) -> tuple[Array, ...]:
    return policy(observations, key)


def _call(policy: Policy, observations: tuple[Any, ...], key: Any) -> tuple[np.ndarray, ...]:
    random = jax.random.key(int(key)) if isinstance(key, int | np.integer) else key
    return tuple(np.asarray(action) for action in _jitted(policy, observations, random))
