"""The settings: every benchmark configuration, as recorded in tests/data/configurations.json."""

import json
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from spacql.experiments.plans import QUALITIES, TASKS, configured

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "configurations.json").read_text())
GONE = ("penalty_weights", "tau")  # options that no result used
ALGORITHMS = tuple(RECORDED["defaults"])


def resolved(algorithm: str, dataset: str, penalty: str) -> dict[str, Any]:
    """The configuration as JSON has it. An algorithm without a penalty has one for both."""
    has_penalty = "penalty" in RECORDED["defaults"][algorithm]
    config = configured(algorithm, dataset, {"penalty": penalty} if has_penalty else {})
    values = json.loads(json.dumps(asdict(config)))
    return {name: value for name, value in values.items() if name not in GONE}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_benchmark_configuration_is_the_recorded_one(algorithm: str) -> None:
    for task, quality, penalty in product(TASKS, QUALITIES, ("log-sum-exp", "policy")):
        dataset = f"{task}-{quality}"
        differs = RECORDED["differs"][algorithm][dataset][penalty]
        assert resolved(algorithm, dataset, penalty) == RECORDED["defaults"][algorithm] | differs
