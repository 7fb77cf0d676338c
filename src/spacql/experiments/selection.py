"""`spacql reproduce selection`: does choosing without a simulator choose well?

For every dataset a pool of trained policies whose true scores are known. Each estimator is asked
for its estimate of every policy, from the log alone; then its ranking, what choosing by it would
have cost, and how often its 90 % interval holds the truth are compared.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacql.errors import InputError, SpacqlError
from spacql.evaluation.offline import ESTIMATORS, Evaluator
from spacql.experiments.plans import QUALITIES, Block, Column, Method, registered
from spacql.experiments.tables import markdown_row
from spacql.files import read_json, write_json
from spacql.policies import Policy
from spacql.reference import Reference
from spacql.runs import finished
from spacql.training.metrics import read_metrics
from spacql.worlds import TASKS

# From a training's own numbers: higher is taken as better.
OF_TRAINING = {"critic's own value": ("q_policy", 1), "TD error": ("td_error", -1)}
OTHERS = ("distance to the data", "return of the log")
NAMES = (*ESTIMATORS, *OF_TRAINING, *OTHERS)
_TD3BC = {"rounds": 1500}
POOL: tuple[Method, ...] = (
    Method("bc", "bc"),
    Method("td3bc, 0.5", "td3bc", _TD3BC | {"q_weight": 0.5}),
    Method("td3bc, 2.5", "td3bc", _TD3BC),
    Method("td3bc, 10", "td3bc", _TD3BC | {"q_weight": 10.0}),
    *(Method(f"cfcql, {a:g}", "cfcql", {"alpha": a}) for a in (0.02, 0.1, 0.5, 2.5, 12.5)),
    *(Method(f"spacql, {a:g}", "spacql", {"alpha": a, "critics": 2}) for a in (0.1, 0.5, 2.5)),
    Method("iql", "iql"),
    Method("aspac", "aspac"),
)


@dataclass(frozen=True)
class Entry:
    """One policy of a pool."""

    label: str
    score: float  # in truth
    # By estimator: (estimate, low, high) as scores; an interval is NaN where there is none.
    estimates: Mapping[str, tuple[float, float, float]]


def blocks() -> tuple[Block, ...]:
    """The pools as a plan: every dataset is a column, every policy a row."""
    methods = tuple(m for m in POOL if m.algorithm in registered())
    columns = tuple(Column(f"{task}-{q}", f"{task}-{q}") for task in TASKS for q in QUALITIES)
    return (Block("pools", methods, columns),)


def pools(folders: Iterable[Path]) -> dict[tuple[str, str], list[Path]]:
    """Finished runs with a score, by the name and identity of their dataset."""
    found: dict[tuple[str, str], list[Path]] = {}
    for folder in folders:
        for described in sorted(folder.rglob("run.json")):
            run = described.parent
            if finished(run) and (read_json(run / "result.json")["evaluation"] or {}).get("score"):
                data = read_json(described)["dataset"]
                found.setdefault((data["name"], data["identity"]), []).append(run)
    return found


def measure(
    runs: Sequence[Path],
    evaluator: Evaluator,
    kept: Path,
    estimators: Sequence[str] = ESTIMATORS,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Entry]:
    """Every estimate of every policy of a pool. What is in the file `kept` is not made again."""
    known: dict[str, Any] = read_json(kept) if kept.is_file() else {}
    for run in runs:
        there = known.setdefault(name_of(run), {})
        missing = [name for name in estimators if name not in there.get("estimates", {})]
        if not missing:
            continue
        try:
            found = evaluator.evaluate(Policy.load(run), missing).to_json()
        except SpacqlError as error:
            known.pop(name_of(run))
            tell(f"{run}: left out. {error}")
            continue
        estimates = there.get("estimates", {}) | found["estimates"]
        known[name_of(run)] = found | {"estimates": estimates, "training": _training(run)}
        write_json(kept, known)
        tell(f"{run}: estimated")
    return [_entry(run, known[name_of(run)]) for run in runs if name_of(run) in known]


def name_of(run: Path) -> str:
    """A run within its pool: what it is called on disk, without the place of one machine."""
    return f"{run.parent.name}/{run.name}"


def _training(run: Path) -> dict[str, float]:
    """The last values of a training's own numbers, where it has them."""
    rows = read_metrics(run / "metrics.jsonl")[-20:]
    names = [name for name, _ in OF_TRAINING.values() if rows and name in rows[-1]]
    return {name: float(np.mean([row[name] for row in rows])) for name in names}


def _entry(run: Path, found: Mapping[str, Any]) -> Entry:
    described = read_json(run / "run.json")
    reference = Reference.from_json(described["dataset"]["reference"])
    score, nan = reference.score, float("nan")
    estimates = {
        name: (score(x["mean"]), score(x["low"]), score(x["high"]))
        for name, x in found["estimates"].items()
    }
    for name, (metric, sign) in OF_TRAINING.items():
        value = found["training"].get(metric)
        estimates[name] = (nan if value is None else sign * value, nan, nan)
    estimates[OTHERS[0]] = (-float(np.mean(list(found["distance"].values()))), nan, nan)
    is_clone = described["algorithm"] == "bc"
    estimates[OTHERS[1]] = (float(is_clone), nan, nan)  # keep what you have: the clone
    label = f"{described['algorithm']} {run.parent.name}"
    true = read_json(run / "result.json")["evaluation"]["score"]
    return Entry(label, float(true), estimates)


def statistics(pool: Sequence[Entry]) -> dict[str, dict[str, float]]:
    """By estimator: rank correlation, regret in points of score, share of intervals that hold the
    truth. The choice is by the lower bound where there is one."""
    from scipy.stats import spearmanr

    if len(pool) < 3:
        raise InputError(f"A pool of {len(pool)} policies has no ranking.")
    best = max(entry.score for entry in pool)
    found = {}
    for name in NAMES:
        known = [e for e in pool if np.isfinite(e.estimates.get(name, (np.nan,))[0])]
        if len(known) < 3:
            continue
        true = np.array([e.score for e in known])
        value, low, high = np.array([e.estimates[name] for e in known]).T
        choice = int(np.argmax(np.where(np.isfinite(low), low, value)))
        intervals = np.isfinite(low)
        constant = np.ptp(value) == 0 or np.ptp(true) == 0
        found[name] = {
            "policies": len(known),
            "rank_correlation": float("nan") if constant else float(spearmanr(true, value)[0]),
            "regret": float(best - true[choice]),
            "coverage": float(((low <= true) & (true <= high))[intervals].mean())
            if intervals.any()
            else float("nan"),
        }
    return found


def markdown(by_dataset: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """One table: datasets, and for every estimator rank correlation / regret / coverage."""
    header = ["dataset", "policies", *NAMES]
    lines = [markdown_row(header), markdown_row(["---", *["---:"] * (len(header) - 1)])]
    for dataset, found in by_dataset.items():
        cells = [_cell(found.get(name)) for name in NAMES]
        count = max(int(x["policies"]) for x in found.values())
        lines.append(markdown_row([dataset, str(count), *cells]))
    note = (
        "Rank correlation with true scores / regret of the choice in points of score / share of "
        "90 % intervals that hold the truth."
    )
    return "\n".join([*lines, "", note]) + "\n"


def _cell(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "–"
    correlation, regret, coverage = (found[k] for k in ("rank_correlation", "regret", "coverage"))
    first = "–" if np.isnan(correlation) else f"{correlation:.2f}"
    last = "" if np.isnan(coverage) else f" / {100 * coverage:.0f} %"
    return f"{first} / {regret:.1f}{last}"
