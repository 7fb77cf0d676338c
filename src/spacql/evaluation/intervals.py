"""What an ensemble says of many episodes, as one number and an interval."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spacql.files import as_record
from spacql.records import Estimated

CONFIDENCE = 0.9
RESAMPLES = 2000
ROUNDING = 1e-6  # of their size: ends that differ by less are one number
LONG, MOST_PLACES = 1e7, 6  # beyond, a number is easier to read with an exponent
MOST_DIGITS = 15  # that a float has


class Interval(NamedTuple):
    mean: float
    low: float
    high: float
    bound: float | None = None  # its lower end before it was widened, if it was


def kept(value: Any, where: Path | str) -> Interval:
    """An interval from a file."""
    found = as_record(value, Estimated, where)
    return Interval(found.mean, found.low, found.high, found.bound)


def mapped(x: Interval, change: Callable[[float], float]) -> Interval:
    """The same with all of its numbers changed: cut off, or in other units."""
    ends = (change(x.mean), change(x.low), change(x.high))
    return Interval(*ends, None if x.bound is None else change(x.bound))


def written(low: float, high: float) -> Callable[[float], str]:
    """How the numbers beside an interval are written: to three digits of its width, so that its
    ends differ where they do and what is nothing beside it is 0. Without width, to four digits."""
    size, width = max(abs(low), abs(high)), high - low
    if not ROUNDING * size < width < math.inf:
        width = size / 10
    places = 2 - math.floor(math.log10(width)) if width else 0
    if size < LONG and places <= MOST_PLACES:
        return lambda value: f"{value:z,.{max(0, places)}f}"

    def scientific(value: float) -> str:
        if value == 0 or abs(value) < width / 1000:
            return "0"
        digits = math.floor(math.log10(abs(value))) + places
        return f"{value:.{min(max(digits, 0), MOST_DIGITS)}e}"

    return scientific


def interval(values: np.ndarray, seed: int = 0) -> Interval:
    """Of values (members, episodes): resampled episodes, each time as one member sees them.

    So it holds both what other episodes would have changed and what the members disagree about.
    A member whose mean lies in a resample's normal spread of members' means stands for those that
    were not trained: few members would else give an interval that is too narrow.
    """
    random = np.random.default_rng(seed)
    members, episodes = values.shape
    centre = values.mean(axis=0)  # (E,)
    offsets = values.mean(axis=1) - values.mean()
    spread = offsets.std(ddof=1) if members > 1 else 0.0
    draws = np.empty(RESAMPLES)
    for k in range(RESAMPLES):
        draws[k] = centre[random.integers(0, episodes, episodes)].mean()
    draws += spread * random.standard_t(max(1, members - 1), RESAMPLES)
    edge = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, [edge, 1 - edge])
    return Interval(float(values.mean()), float(low), float(high))
