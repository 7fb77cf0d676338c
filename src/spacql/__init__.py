"""Offline multi-agent reinforcement learning by partial action replacement."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spacql.policies import Policy as Policy

# Names are imported when first used, so that `spacql --help` does not wait for JAX.
_HOMES = {
    "Policy": "spacql.policies",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'spacql' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
