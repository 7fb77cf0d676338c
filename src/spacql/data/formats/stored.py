"""What spacql writes beside the arrays of another format: the dataset's spec, which must fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from spacql.data.dataset import Dataset
from spacql.errors import DataError
from spacql.spec import Spec


def options_of(spec: Spec) -> dict[str, Any]:
    """The arguments of `Dataset.from_arrays` that a stored spec knows."""
    return {"agents": spec.agents, "action_low": spec.action_low, "action_high": spec.action_high}


def with_spec(dataset: Dataset, spec: Spec, where: Path) -> Dataset:
    """The dataset with the stored spec, save bounds that were rescaled."""
    found = dataset.spec  # its horizon is the longest episode
    if spec.observation_sizes != found.observation_sizes:
        raise DataError(
            f"{where}: its spec says that agents observe {spec.observation_sizes} numbers, and "
            f"its observations have {found.observation_sizes}."
        )
    if spec.horizon < found.horizon:
        raise DataError(
            f"{where}: its spec has the horizon {spec.horizon}, and an episode has "
            f"{found.horizon} steps."
        )
    return replace(dataset, spec=spec.with_bounds_of(found))
