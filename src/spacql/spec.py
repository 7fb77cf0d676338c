"""What a world, a dataset and a policy must agree on: who acts, on what, within which bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spacql.errors import InputError


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
        for field in ("observation_sizes", "action_low", "action_high"):
            if len(getattr(self, field)) != n:
                raise InputError(
                    f"spec: {field} has {len(getattr(self, field))} entries, "
                    f"but there are {n} agents."
                )

    @property
    def n_agents(self) -> int:
        return len(self.agents)

    @property
    def action_sizes(self) -> tuple[int, ...]:
        return tuple(len(low) for low in self.action_low)

    @property
    def homogeneous(self) -> bool:
        """Whether all agents have the same observation and action sizes."""
        return len(set(self.observation_sizes)) == 1 and len(set(self.action_sizes)) == 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Spec":
        def tuples(x: Any) -> Any:
            return tuple(map(tuples, x)) if isinstance(x, list | tuple) else x

        return Spec(**{name: tuples(value) for name, value in values.items()})


def unit_box(sizes: Sequence[int]) -> dict[str, Any]:
    """Bounds [-1, 1] for agents with these action sizes, as keyword arguments of `Spec`."""
    return {
        "action_low": tuple((-1.0,) * size for size in sizes),
        "action_high": tuple((1.0,) * size for size in sizes),
    }
