"""What a run is expected to take, where none of its kind has ended yet."""

from dataclasses import asdict

import pytest

from spacql.algorithms.settings import configure
from spacql.experiments.estimate import rough_seconds, seconds
from spacql.experiments.executors import PlannedRun
from spacql.experiments.store import StoredRun


def cost(*hidden: int) -> float:
    """Seconds of a training beyond one whose networks cost nothing."""
    return rough_seconds({"hidden": hidden, "critics": 2}) - rough_seconds({"hidden": (1,)})


def test_a_layer_more_costs_what_the_layer_before_it_did() -> None:
    assert abs(cost(128, 128, 128) / cost(128, 128) - 2) < 1e-9


def ended(algorithm: str, dataset: str, factor: float) -> StoredRun:
    config = asdict(configure(algorithm, dataset))
    took = factor * rough_seconds(config)
    return StoredRun(algorithm, dataset, 0, "", 0, config, took, 1.0, "", [], {})


def test_finished_runs_of_the_nearest_kind_correct_the_estimate() -> None:
    run = PlannedRun("cfcql", "tag-expert", 0, configure("cfcql", "tag-expert"))
    rough = rough_seconds(run.config)
    finished: list[StoredRun] = []
    assert seconds(run, finished) == rough
    for algorithm, dataset, factor in (
        ("spacql", "tag-expert", 0.5),
        ("cfcql", "spread-random", 2.0),
        ("cfcql", "tag-random", 3.0),
    ):
        finished.append(ended(algorithm, dataset, factor))
        assert seconds(run, finished) == pytest.approx(factor * rough)
