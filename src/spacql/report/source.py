"""What a report reads: run folders and stored results, as one kind of record.

Nothing else in the report knows how either lies on the disk.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spacql import records
from spacql.errors import InputError, SpacqlError
from spacql.evaluation.intervals import Interval, kept, mapped
from spacql.experiments.store import Store, StoredRun, digest, run_folders
from spacql.files import as_record, read_record
from spacql.reference import Reference
from spacql.report.run_files import Described, Diverged, Evaluated, Level, Result
from spacql.training.metrics import read_metrics

POINTS = 50  # most points of a curve
LEVELS = "data.json"  # in the results folder: what the named datasets themselves return
NOT_METRICS = ("round", "score", "return")


@dataclass(frozen=True)
class Trained:
    """One training, finished or not."""

    algorithm: str
    seed: int
    config: Mapping[str, Any]
    dataset: str
    dataset_seed: int | None
    identity: str
    transitions: int | None
    reference: Mapping[str, Any]  # the returns that count as 0 and 100, if known
    versions: Mapping[str, str]
    curve: Sequence[Mapping[str, Any]]  # round, score and metrics
    rounds: int  # that it has reached
    score: float | None = None
    interval: tuple[float, float] | None = None  # of the score, over episodes
    seconds: float = 0.0
    note: str = ""  # why there is no score
    level: float | None = None  # the score of the log itself
    data: str = ""  # where the dataset was
    agents: Sequence[str] = ()
    task: str = ""  # the world, and the prey in it
    prey: str = ""
    folder: Path | None = None  # of the run; stored results have none
    label: str = ""  # what a fit calls it
    offline: "Offline | None" = None  # what the log says of the policy


@dataclass(frozen=True)
class Offline:
    """What `spacql evaluate --offline` found: as scores where the data has reference returns."""

    estimator: str  # the first that was asked
    estimate: Interval
    log: float  # what the log itself got in the episodes that were asked
    unit: str  # score or return


def gather(places: Sequence[Path], *, none: bool = False) -> list[Trained]:
    """All trainings below some places: folders of runs, of single seeds, of results. `none` is
    whether there may be none."""
    if not places:
        raise InputError("Which runs? For example: spacql report runs/spacql-spread-random")
    found: list[Trained] = []
    for place in places:
        if not place.is_dir():
            raise InputError(f"There is no folder {place}.")
        stored = any((place / "runs").glob("*/[!.]*.json")) and not (place / "run.json").exists()
        if stored and not any((place / "runs").rglob("run.json")):
            found += stored_runs(place)
        else:
            found += [of_folder(folder) for folder in run_folders([place])[0]]
    if not found and not none:
        raise InputError(f"There is no run below {', '.join(map(str, places))}.")
    unique = {(run.folder, run.dataset, run.algorithm, digest(run.config), run.seed): run
              for run in found}  # fmt: skip
    return list(unique.values())


def stored_runs(results: Path) -> list[Trained]:
    path = results / LEVELS
    levels = read_record(path, dict[str, Level]) if path.is_file() else {}
    return [_of_record(run, levels) for run in Store(results)]


def _of_record(run: StoredRun, levels: Mapping[str, Level]) -> Trained:
    described = as_record(run.record, Described, f"the stored run {run.name}")
    level = levels.get(f"{run.dataset}/{described.dataset.seed}", Level())
    return Trained(
        **_common(described),
        curve=run.curve,
        rounds=as_record(run.record, Result, run.name).rounds,
        score=_number(run.score),
        seconds=_number(run.seconds) or 0.0,
        note=run.diverged,
        level=level.score if level.identity == described.dataset.identity else None,
    )


def of_folder(folder: Path) -> Trained:
    """One run folder (RUN/seed-0)."""
    described = read_record(folder / "run.json", Described)
    rows = read_metrics(folder / "metrics.jsonl")
    result = Result(rounds=rows[-1]["round"] if rows else 0)
    if (folder / "result.json").is_file():
        result = read_record(folder / "result.json", Result)
    elif (folder / "diverged.json").is_file():
        result.note = read_record(folder / "diverged.json", Diverged).error
    evaluation = result.evaluation or Evaluated()
    run = Trained(
        **_common(described),
        curve=thinned(rows),
        rounds=result.rounds,
        score=_number(evaluation.score),
        interval=evaluation.score_interval,
        seconds=result.seconds,
        note=result.note or evaluation.note,
        data=described.data,
        agents=described.spec.agents,
        task=described.spec.task,
        prey=described.spec.prey,
        folder=folder,
        offline=_offline(folder, described),
    )
    return run if run.score is None else _with_level(run)


def _offline(folder: Path, described: Described) -> Offline | None:
    path = folder / "offline.json"
    if not path.is_file():
        return None
    found = records.offline(path)
    name, first = next(iter(found["estimates"].items()))
    estimate, log = kept(first, path), float(found["log"]["mean"])
    if described.dataset.reference is None:
        return Offline(name, estimate, log, "return")
    score = Reference.from_json(described.dataset.reference).score
    return Offline(name, mapped(estimate, score), score(log), "score")


def _common(described: Described) -> dict[str, Any]:
    log = described.dataset
    return {
        "algorithm": described.algorithm,
        "seed": described.seed,
        "config": described.config,
        "dataset": log.name,
        "dataset_seed": log.seed,
        "identity": log.identity,
        "transitions": log.transitions,
        "reference": log.reference or {},
        "versions": described.versions,
    }


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _with_level(run: Trained) -> Trained:
    """The same with the score of the log itself, where its dataset is at hand."""
    log = dataset_of(run)
    random, expert = (_number(run.reference.get(name)) for name in ("random", "expert"))
    if log is None or random is None or expert is None or random == expert:
        return run
    level = Reference(random, expert).score(float(log.team_returns.mean()))
    return replace(run, level=level)


def dataset_of(run: Trained) -> Any:
    """The dataset a run was trained on, if it is on this machine unchanged; else None. Nothing is
    made or fetched for a report."""
    from spacql.data import cache, load_dataset

    places = [Path(run.data)] if run.data else []
    with suppress(SpacqlError, KeyError):  # no name of ours
        places.append(cache.place(run.dataset, run.dataset_seed or 0))
    for place in places:
        with suppress(SpacqlError, OSError):  # it is not there, or no dataset
            if (place / "dataset.json").is_file():
                log = load_dataset(place)
                if log.identity == run.identity:
                    return log
    return None


def thinned(rows: Sequence[Mapping[str, Any]], points: int = POINTS) -> list[dict[str, Any]]:
    """At most `points` rounds, the last among them. Evaluated ones, if there are any, with each
    metric's mean over the rounds since the point before."""
    scored = [k for k, row in enumerate(rows) if row.get("score") is not None]
    kept = scored or list(range(len(rows)))
    if len(kept) > points:
        kept = [kept[k] for k in np.linspace(0, len(kept), points + 1)[1:].round().astype(int) - 1]
    curve, start = [], 0
    for k in kept:
        point = {name: rows[k].get(name) for name in ("round", "score")}
        for name in rows[k]:
            values = [row[name] for row in rows[start : k + 1] if name in row]
            if name not in NOT_METRICS and _numeric(values):
                point[name] = np.mean(values, axis=0).tolist()
        curve.append(point)
        start = k + 1
    return curve


def _numeric(values: Iterable[Any]) -> bool:
    try:
        array = np.asarray(list(values), np.float64)
    except (ValueError, TypeError):
        return False
    return array.size > 0 and bool(np.isfinite(array).all())
