"""What a world, a dataset and a policy must agree on: who acts, on what, within which bounds."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from spacql.errors import InputError
from spacql.files import as_record

LARGEST = 2**31 - 1  # of a size or a horizon, which become array indices


@dataclass(frozen=True)
class Spec:
    """The interface between agents and their world. Hashable, so that jit can key on it."""

    task: str  # name of the world, for example "spread"
    agents: tuple[str, ...]  # names of the agents that act, in order
    observation_sizes: tuple[int, ...]  # per agent
    action_low: tuple[tuple[float, ...], ...]  # per agent and coordinate
    action_high: tuple[tuple[float, ...], ...]
    horizon: int  # steps of an episode; its end is a time limit
    state_size: int = 0  # size of the global state; 0: the joint observation serves as state
    prey: str = ""  # name of the frozen prey inside the world, if there is one

    def __post_init__(self) -> None:
        n = len(self.agents)
        if n == 0 or len(set(self.agents)) != n:
            raise InputError(
                f"spec: agents must be one or more different names, not {self.agents}."
            )
        for field in ("observation_sizes", "action_low", "action_high"):
            if len(getattr(self, field)) != n:
                raise InputError(
                    f"spec: {field} has {len(getattr(self, field))} entries, "
                    f"but there are {n} agents."
                )
        sizes = {"observation_sizes": min(self.observation_sizes), "horizon": self.horizon}
        for field, size in sizes.items():
            if size < 1:
                raise InputError(f"spec: {field} must be at least 1, not {size}.")
        if max(*self.observation_sizes, self.horizon, self.state_size) > LARGEST:
            raise InputError(f"spec: sizes and the horizon must be at most {LARGEST:,}.")
        if self.state_size < 0:
            raise InputError(f"spec: state_size must be 0 or more, not {self.state_size}.")
        for agent, low, high in zip(self.agents, self.action_low, self.action_high, strict=True):
            ranges = len(low) == len(high) > 0 and all(
                a < b and math.isfinite(b - a) for a, b in zip(low, high, strict=True)
            )
            if not ranges:
                raise InputError(f"spec: the action bounds of {agent!r} are no ranges: "
                                 f"{low} to {high}.")  # fmt: skip

    @property
    def n_agents(self) -> int:
        return len(self.agents)

    @property
    def action_sizes(self) -> tuple[int, ...]:
        return tuple(len(low) for low in self.action_low)

    def with_bounds_of(self, other: "Spec") -> "Spec":
        """The same but for the bounds of actions, which may have been rescaled."""
        return replace(self, action_low=other.action_low, action_high=other.action_high)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Any, where: str = "spec") -> "Spec":
        return as_record(values, Spec, where)


def unit_box(sizes: Sequence[int]) -> dict[str, Any]:
    """Bounds [-1, 1] for agents with these action sizes, as keyword arguments of `Spec`."""
    return {
        "action_low": tuple((-1.0,) * size for size in sizes),
        "action_high": tuple((1.0,) * size for size in sizes),
    }
