"""`spacql reproduce selection`: does choosing without a simulator choose well?

For every dataset a pool of trained policies whose true scores are known (`fitting.pools`). Each
estimator is asked for its estimate of every policy, from the log alone; then its ranking, what
choosing by it would have cost, and how often its 90 % interval holds the truth are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacql import records
from spacql.data.collect import NAMES as DATASETS
from spacql.errors import InputError
from spacql.evaluation.intervals import Interval, kept, mapped
from spacql.evaluation.offline import CLONE, ESTIMATORS, choose
from spacql.experiments.tables import markdown_row
from spacql.reference import Reference

# From a training's own numbers: higher is taken as better.
OF_TRAINING = {"critic's own value": ("q_policy", 1), "TD error": ("td_error", -1)}
OTHERS = ("distance to the data", "return of the log")
NAMES = (*ESTIMATORS, *OF_TRAINING, *OTHERS)
CLOSE = 5.0  # points of score: what a good choice may cost


@dataclass(frozen=True)
class Entry:
    """One policy of a pool."""

    label: str
    score: float  # in truth
    estimates: Mapping[str, Interval]  # by estimator, as scores; NaN where there is no interval


def stored(results: Path, only: Sequence[str] = (), seed: int = 0) -> dict[str, list[Entry]]:
    """The pools in a folder of results, in the order of the datasets."""
    found = {}
    for name in DATASETS:
        path = results / "selection" / f"{name}-{seed}.json"
        if path.is_file() and (not only or any(word in name for word in only)):
            found[name] = entries(records.pool(path))
    return found


def entries(pool: Mapping[str, Any]) -> list[Entry]:
    """What `pools.measure` wrote, as scores."""
    score = Reference.from_json(pool["reference"]).score
    return [_entry(label, found, score) for label, found in pool["policies"].items()]


def _entry(label: str, found: Mapping[str, Any], score: Any) -> Entry:
    nan = float("nan")
    estimates = {
        name: mapped(kept(x, f"The estimates of {label}"), score)
        for name, x in found["estimates"].items()
    }
    for name, (metric, sign) in OF_TRAINING.items():
        value = found["training"].get(metric)
        estimates[name] = Interval(nan if value is None else sign * value, nan, nan)
    estimates[OTHERS[0]] = Interval(-float(np.mean(list(found["distance"].values()))), nan, nan)
    estimates[OTHERS[1]] = Interval(float(label == CLONE), nan, nan)  # keep what you have
    return Entry(label, float(found["score"]), estimates)


def statistics(pool: Sequence[Entry]) -> dict[str, dict[str, float]]:
    """By estimator: rank correlation, regret in points of score, what its choice gains over the
    clone, and the share of intervals that hold the truth. The choice is that of `fit` where there
    are intervals."""
    from scipy.stats import spearmanr

    if len(pool) < 3:
        raise InputError(f"A pool of {len(pool)} policies has no ranking.")
    best = max(entry.score for entry in pool)
    clone = next((entry.score for entry in pool if entry.label == CLONE), float("nan"))
    found = {}
    for name in NAMES:
        known = [e for e in pool if np.isfinite(e.estimates.get(name, (np.nan,))[0])]
        if len(known) < 3:
            continue
        true = np.array([e.score for e in known])
        value, low, high = np.array([e.estimates[name][:3] for e in known]).T
        intervals = np.isfinite(low)
        if intervals.all():
            chosen = choose({e.label: e.estimates[name] for e in known}, name)
            choice = [e.label for e in known].index(chosen)
        else:
            choice = int(np.argmax(value))
        ranked = np.unique(value).size > 2 and np.ptp(true) > 0
        found[name] = {
            "policies": len(known),
            "rank_correlation": float(spearmanr(true, value)[0]) if ranked else float("nan"),
            "regret": float(best - true[choice]),
            "above_cloning": float(true[choice] - clone),
            "coverage": float(((low <= true) & (true <= high))[intervals].mean())
            if intervals.any()
            else float("nan"),
        }
    return found


def summary(by_dataset: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    """By estimator, over all datasets: means, and how many choices were close to the best."""
    found = {}
    for name in NAMES:
        rows = [of[name] for of in by_dataset.values() if name in of]
        if not rows:
            continue
        column = {key: np.array([row[key] for row in rows]) for key in rows[0]}

        def mean(key: str, column: Any = column) -> float:
            known = column[key][np.isfinite(column[key])]
            return float(known.mean()) if len(known) else float("nan")

        found[name] = {
            "datasets": len(rows),
            "rank_correlation": mean("rank_correlation"),
            "regret": mean("regret"),
            "close": int((column["regret"] <= CLOSE).sum()),
            "below_cloning": float(max(0.0, np.max(-column["above_cloning"]))),
            "coverage": mean("coverage"),
        }
    return found


def markdown(by_dataset: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Datasets, and for every estimator rank correlation / regret / coverage; then all together."""
    header = ["dataset", "policies", *NAMES]
    lines = [markdown_row(header), markdown_row(["---", *["---:"] * (len(header) - 1)])]
    for dataset, found in by_dataset.items():
        cells = [_cell(found.get(name)) for name in NAMES]
        count = max(int(x["policies"]) for x in found.values())
        lines.append(markdown_row([dataset, str(count), *cells]))
    whole = summary(by_dataset)
    for title, text in (
        ("mean", _cell),
        (f"choices within {CLOSE:g} points of the best",
         lambda x: f"{x['close']} of {x['datasets']}"),
        ("worst choice, points below cloning", lambda x: f"{x['below_cloning']:.1f}"),
    ):  # fmt: skip
        cells = [text(whole[name]) if name in whole else "–" for name in NAMES]
        lines.append(markdown_row([f"**{title}**", "", *cells]))
    note = (
        "Rank correlation with true scores / regret of the choice in points of score / share of "
        "90 % intervals that hold the truth."
    )
    missing = [name for name in DATASETS if name not in by_dataset]
    if missing:
        note += f" Not measured: {', '.join(missing)}."
    return "\n".join([*lines, "", note]) + "\n"


def _cell(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "–"
    correlation, regret, coverage = (found[k] for k in ("rank_correlation", "regret", "coverage"))
    first = "–" if np.isnan(correlation) else f"{correlation:.2f}"
    last = "" if np.isnan(coverage) else f" / {100 * coverage:.0f} %"
    return f"{first} / {regret:.1f}{last}"
