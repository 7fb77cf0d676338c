"""The algorithms by name, and what each of them offers.

Other packages add algorithms by entry points, without touching this one:

    [project.entry-points."spacql.algorithms"]
    mine = "my_package.my_algorithm"
"""

from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from spacql.errors import InputError, suggestion

if TYPE_CHECKING:  # so that the command line can list the names without waiting for JAX
    from jax import Array

    from spacql.data import Batch
    from spacql.data.dataset import Statistics
    from spacql.policies import Policy
    from spacql.spec import Spec

GROUP = "spacql.algorithms"
# name on the command line: module
MODULES = {
    "spacql": "spacql.algorithms.spacql",
    "plcql": "spacql.algorithms.plcql",
    "icql-qs": "spacql.algorithms.icql_qs",
    "cfcql": "spacql.algorithms.cfcql",
    "macql": "spacql.algorithms.macql",
    "omar": "spacql.algorithms.omar",
    "iql": "spacql.algorithms.iql",
    "td3bc": "spacql.algorithms.td3bc",
    "dof": "spacql.algorithms.dof",
    "bc": "spacql.algorithms.bc",
    "aspac": "spacql.algorithms.aspac",
}


class Algorithm(Protocol):
    """What a module of an algorithm offers. Everything is a pure function over pytrees."""

    NEEDS_NEXT_ACTION: bool  # whether the behaviour's next joint action is used in targets
    # A frozen dataclass with at least `rounds`, `updates` and `batch_size`, such as one that
    # inherits `spacql.algorithms.config.Training`. A round is given a batch with leading axes
    # (updates, batch_size).
    Config: Any

    def init(self, key: "Array", spec: "Spec", config: Any, statistics: "Statistics") -> Any:
        """The state before the first round."""

    def update(
        self, state: Any, batch: "Batch", key: "Array", config: Any
    ) -> "tuple[Any, dict[str, Array]]":
        """One round: the next state, and metrics in the reward's own units."""

    def policy(self, state: Any) -> "Policy":
        """What the agents have learned."""


FUNCTIONS = {
    "init": ("key", "spec", "config", "statistics"),
    "update": ("state", "batch", "key", "config"),
    "policy": ("state",),
}


def names() -> tuple[str, ...]:
    """All algorithms: ours, then those of other packages."""
    return (*MODULES, *_others())


def find(algorithm: Any) -> Any:
    """The module of an algorithm, by its name; or what was given, if it offers an algorithm."""
    if not isinstance(algorithm, str):
        return checked(algorithm, name_of(algorithm))
    if algorithm in MODULES:
        try:
            return checked(import_module(MODULES[algorithm]), algorithm)
        except ImportError as error:
            raise InputError(
                f"The algorithm {algorithm!r} ({MODULES[algorithm]}) cannot be imported: {error}."
            ) from error
    entry = _others().get(algorithm)
    if entry is None:
        raise InputError(
            f"There is no algorithm {algorithm!r}.{suggestion(algorithm, names())} "
            f"Algorithms: {', '.join(names())}."
        )
    try:
        module = entry.load()
    except Exception as error:  # whatever the other package does when it is imported
        raise InputError(
            f"The algorithm {algorithm!r} of {_package(entry)} cannot be imported: {error!r}."
        ) from error
    return checked(module, algorithm)


def name_of(module: Any) -> str:
    """The name of an algorithm that is given as a module."""
    ours = {place: name for name, place in MODULES.items()}
    full = str(getattr(module, "__name__", module))
    return ours.get(full, full.rpartition(".")[2])


def checked(module: Any, name: str) -> Any:
    """`module`, if it offers what an algorithm must; else an error that says what is missing."""

    def refuse(what: str) -> None:
        raise InputError(f"{name!r} is no algorithm: {what}. See spacql.algorithms.registry.")

    if not isinstance(getattr(module, "NEEDS_NEXT_ACTION", None), bool):
        refuse("it has no NEEDS_NEXT_ACTION = True or False")
    config = getattr(module, "Config", None)
    if not (isinstance(config, type) and is_dataclass(config)):
        refuse("it has no dataclass Config")
    else:
        if not config.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            refuse("its Config is not frozen")
        known = {field.name for field in fields(config)}
        missing = [n for n in ("rounds", "updates", "batch_size") if n not in known]
        if missing:
            refuse(f"its Config has no field {missing[0]!r}")
    for function, arguments in FUNCTIONS.items():
        found = getattr(module, function, None)
        if not callable(found):
            refuse(f"it has no function {function}({', '.join(arguments)})")
        elif tuple(signature(found).parameters)[: len(arguments)] != arguments:
            refuse(f"its {function} must take ({', '.join(arguments)})")
    return module


def _others() -> dict[str, EntryPoint]:
    """Algorithms of other packages; ours cannot be replaced."""
    return {e.name: e for e in entry_points(group=GROUP) if e.name not in MODULES}


def _package(entry: EntryPoint) -> str:
    return f"package {entry.dist.name}" if entry.dist else entry.value
