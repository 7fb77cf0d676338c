"""The algorithms by name, and what each of them is given."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from spacql.errors import InputError, suggestion

if TYPE_CHECKING:  # so that the command line can list the names without waiting for JAX
    from jax import Array

    from spacql.data import Batch
    from spacql.data.dataset import Statistics
    from spacql.policies import Policy
    from spacql.spec import Spec

# name on the command line: module
MODULES = {
    "spacql": "spacql.algorithms.spacql",
    "icql-qs": "spacql.algorithms.icql_qs",
    "cfcql": "spacql.algorithms.cfcql",
    "macql": "spacql.algorithms.macql",
    "omar": "spacql.algorithms.omar",
    "iql": "spacql.algorithms.iql",
    "td3bc": "spacql.algorithms.td3bc",
    "bc": "spacql.algorithms.bc",
}


class Algorithm(Protocol):
    """What a module of an algorithm offers. Everything is a pure function over pytrees.

    `Config` is a frozen dataclass that has at least `rounds`, `updates` and `batch_size`: a round
    is given a batch with leading axes (updates, batch_size).
    """

    NEEDS_NEXT_ACTION: bool  # whether the behaviour's next joint action is used in targets
    Config: Any

    def init(self, key: "Array", spec: "Spec", config: Any, statistics: "Statistics") -> Any:
        """The state before the first round."""

    def update(
        self, state: Any, batch: "Batch", key: "Array", config: Any
    ) -> "tuple[Any, dict[str, Array]]":
        """One round: the next state, and metrics in the reward's own units."""

    def policy(self, state: Any) -> "Policy":
        """What the agents have learned."""


def find(algorithm: str | ModuleType) -> Any:
    """The module of an algorithm, by its name; or the module itself."""
    if not isinstance(algorithm, str):
        return algorithm
    if algorithm not in MODULES:
        raise InputError(
            f"There is no algorithm {algorithm!r}.{suggestion(algorithm, MODULES)} "
            f"Algorithms: {', '.join(MODULES)}."
        )
    return import_module(MODULES[algorithm])
