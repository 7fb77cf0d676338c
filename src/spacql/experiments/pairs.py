"""Algorithms compared in pairs, seed by seed: with one seed both have seen the same dataset.

Most of the spread between seeds is that between datasets, and a difference seed by seed is free of
it. Five seeds are too few for a bootstrap: it resamples five numbers, so that its intervals are too
narrow (a variance of 4/5, and no tails). Student's t knows how few they are, so all intervals of
means here are t intervals.

Over several datasets the mean is taken first within a seed of a task, whose datasets share the
behaviours that made them, and then over the tasks, whose variances add up; the degrees of freedom
are Satterthwaite's. Of one dataset this is the plain paired t interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

Scores = Mapping[str, Mapping[int, float]]  # by dataset, then by seed
ENOUGH = 3  # seeds: the interval of fewer says little, and is not given
NOISE = 1e-18  # a variance that is rounding alone


@dataclass(frozen=True)
class Estimate:
    """A mean over datasets and seeds, with its 95 % interval."""

    datasets: int
    seeds: int  # the fewest of a task
    mean: float
    low: float | None  # no interval: too few seeds, or no spread that could be estimated
    high: float | None

    @property
    def significant(self) -> bool:
        """Whether the interval lacks 0: a difference with this sign, and not chance."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


class Share(NamedTuple):
    """Of pairs in which the first is higher, with its 95 % interval."""

    pairs: int
    share: float
    low: float
    high: float


def mean_over(values: Scores) -> Estimate | None:
    """The mean over datasets; of a task only with the seeds that all its datasets have."""
    tasks: dict[str, list[Mapping[int, float]]] = {}
    for dataset, by_seed in values.items():
        if by_seed:
            tasks.setdefault(dataset.partition("-")[0], []).append(by_seed)
    if not tasks:
        return None
    total = sum(map(len, tasks.values()))
    mean, counts, variances = 0.0, [], []
    for cells in tasks.values():
        weight = len(cells) / total
        seeds = sorted(set.intersection(*(set(cell) for cell in cells)))
        counts.append(len(seeds))
        if not seeds:  # nothing within a seed: the mean of means, about which no more is known
            mean += weight * float(np.mean([np.mean(list(cell.values())) for cell in cells]))
            continue
        within = np.array([np.mean([cell[seed] for cell in cells]) for seed in seeds])
        mean += weight * float(within.mean())
        if len(seeds) > 1:
            variances.append(weight**2 * float(within.var(ddof=1)) / len(seeds))
    low, high = None, None
    if min(counts) >= ENOUGH and sum(variances) > NOISE:
        freedom = sum(variances) ** 2 / sum(
            v**2 / (n - 1) for v, n in zip(variances, counts, strict=True)
        )
        reach = float(stats.t.ppf(0.975, freedom)) * sum(variances) ** 0.5
        low, high = mean - reach, mean + reach
    return Estimate(total, min(counts), mean, low, high)


def differences(first: Scores, second: Scores) -> dict[str, dict[int, float]]:
    """first - second, wherever both have a score."""
    found = {}
    for dataset in first:
        mine, other = first[dataset], second.get(dataset, {})
        if seeds := sorted(mine.keys() & other.keys()):
            found[dataset] = {seed: mine[seed] - other[seed] for seed in seeds}
    return found


def improvement(gaps: Scores) -> Share | None:
    """How likely the first is higher, given a dataset and a seed: of the pairs at hand, ties half.

    The interval is Wilson's, which five of five leave open downwards: [0.57, 1].
    """
    signs = [float(np.sign(gap)) for cell in gaps.values() for gap in cell.values()]
    if not signs:
        return None
    n, share, z = len(signs), float(np.mean(np.array(signs) + 1) / 2), float(stats.norm.ppf(0.975))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return Share(n, share, max(0.0, centre - reach), min(1.0, centre + reach))


def highest(column: Sequence[Mapping[int, float]]) -> int | None:
    """Which of a column's methods, given their scores by seed, has the highest mean: over the
    seeds that all of them have, if these are enough, since a method with more seeds has also
    seen other datasets.

    Those with too few seeds are left out, and a method alone is not best of anything.
    """
    there = {k: scores for k, scores in enumerate(column) if len(scores) >= ENOUGH}
    if len(there) < 2:
        return None
    shared = set.intersection(*(set(scores) for scores in there.values()))

    def mean(k: int) -> float:
        scores = there[k]
        return float(np.mean([scores[s] for s in (shared if len(shared) >= ENOUGH else scores)]))

    return max(there, key=mean)


def significantly_better(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Whether the first is higher, on enough seeds that both have, and not by chance."""
    gap = mean_over(differences({"": first}, {"": second}))
    return gap is not None and gap.significant and gap.mean > 0


def may_be_best(column: Sequence[Mapping[int, float]]) -> list[bool]:
    """Which of a column's methods no other is significantly better than. Those with too few seeds
    are left out, and a method alone is not best of anything."""
    there = [k for k, scores in enumerate(column) if len(scores) >= ENOUGH]
    if len(there) < 2:
        return [False] * len(column)
    return [
        k in there and not any(significantly_better(column[j], column[k]) for j in there)
        for k in range(len(column))
    ]
