"""Offline multi-agent reinforcement learning by partial action replacement."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spacql.data import Dataset as Dataset
    from spacql.data import load_dataset as load_dataset
    from spacql.data import save_dataset as save_dataset
    from spacql.evaluation.offline import evaluate_offline as evaluate_offline
    from spacql.evaluation.score import evaluate as evaluate
    from spacql.fitting.pipeline import fit as fit
    from spacql.policies import Policy as Policy
    from spacql.runs import train as train

# Names are imported when first used, so that `spacql --help` does not wait for JAX.
_HOMES = {
    "Dataset": "spacql.data",
    "Policy": "spacql.policies",
    "evaluate": "spacql.evaluation.score",
    "evaluate_offline": "spacql.evaluation.offline",
    "fit": "spacql.fitting.pipeline",
    "load_dataset": "spacql.data",
    "save_dataset": "spacql.data",
    "train": "spacql.runs",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'spacql' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
