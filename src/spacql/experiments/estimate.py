"""How long a run will take: from finished ones of its kind, or roughly."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median
from typing import Any

from spacql.algorithms.config import Training
from spacql.experiments.executors import PlannedRun
from spacql.experiments.store import StoredRun


def rough_seconds(config: Training | Mapping[str, Any]) -> float:
    """On one core of 2026: a fixed part for every critic update, one for the critics, and one for
    their penalty, which looks at some of the transitions."""
    get = config.get if isinstance(config, Mapping) else lambda n, d: getattr(config, n, d)
    width = sum(i * o for i, o in pairwise(get("hidden", (64, 64)))) / 64**2
    size = get("critics", 0) * get("batch_size", 1024) / 256
    penalised = 1 / every if (every := get("penalty_every", 0)) else 0
    critics = (0.00027 + 0.00103 * penalised) * width * size
    return 20 + get("rounds", 2000) * get("updates", 5) * (0.0025 + critics)


def seconds(run: PlannedRun, finished: Iterable[StoredRun]) -> float:
    """The rough estimate, corrected by how far it was off for the same algorithm and task, or for
    the same algorithm, or for all."""
    task = run.dataset.partition("-")[0]
    known = [(s, s.seconds / rough_seconds(s.config)) for s in finished if s.score is not None]
    same = [(s, ratio) for s, ratio in known if s.algorithm == run.algorithm]
    here = [(s, ratio) for s, ratio in same if s.dataset.partition("-")[0] == task]
    ratios = [ratio for _, ratio in here or same or known]
    return rough_seconds(run.config) * (median(ratios) if ratios else 1.0)
