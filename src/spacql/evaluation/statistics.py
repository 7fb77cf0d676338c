"""Statistics of a handful or thousands of returns or scores: centre, spread, uncertainty."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spacql.errors import InputError

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Summary:
    count: int
    mean: float
    std: float  # of a sample: divided by n - 1
    iqm: float  # interquartile mean
    interval: tuple[float, float] | None  # 95 % bootstrap interval of the mean; None for one value

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(values: Values, *, seed: int = 0) -> Summary:
    array = _checked(values)
    return Summary(
        count=len(array),
        mean=float(array.mean()),
        std=float(deviation(array)),
        iqm=float(interquartile_mean(array)),
        interval=bootstrap_interval(array, seed=seed),
    )


def deviation(values: Values, axis: int = -1) -> Any:
    """The standard deviation of a sample, divided by n - 1; 0 of a single value."""
    array = np.asarray(values, np.float64)
    return np.std(array, axis=axis, ddof=min(1, array.shape[axis] - 1))


def interquartile_mean(values: Values, axis: int = -1) -> Any:
    """The mean of the middle half: neither the best nor the worst quarter moves it.

    Values on the edge of the middle half count in part, so that it is also right for counts
    that four does not divide; of fewer than three values it is the mean.
    """
    array = np.sort(np.asarray(values, np.float64), axis)
    count = array.shape[axis]
    if not count:
        raise InputError("There is no interquartile mean of no values.")
    weights = np.diff(np.clip(np.arange(count + 1) / count, 0.25, 0.75))
    return np.moveaxis(array, axis, -1) @ weights / weights.sum()


def bootstrap_interval(
    values: Values,
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """The percentile bootstrap interval of a statistic; None for one value, which has none.

    `statistic` takes an array and an `axis`, as NumPy's do.
    """
    from scipy.stats import bootstrap

    array = _checked(values)
    if len(array) < 2:
        return None
    result = bootstrap(
        (array,),
        statistic,
        confidence_level=confidence,
        n_resamples=resamples,
        batch=max(1, 4_000_000 // len(array)),  # bounds the memory of many values
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _checked(values: Values) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"Statistics need a row of values; got the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InputError(
            f"{np.sum(~np.isfinite(array))} of {array.size} values are NaN or infinite: "
            "their statistics would be, too."
        )
    return array
