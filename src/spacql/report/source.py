"""What a report reads: run folders and stored results, as one kind of record.

Nothing else in the report knows how either lies on the disk.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from spacql.errors import InputError, SpacqlError
from spacql.experiments.store import Store, StoredRun, digest, run_folders
from spacql.files import read_json
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
    returned: float | None = None
    interval: tuple[float, float] | None = None  # of the score, over episodes
    episodes: int = 0
    seconds: float = 0.0
    note: str = ""  # why there is no score
    level: float | None = None  # the score of the log itself
    data: str = ""  # where the dataset was
    spec: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None  # of the run; stored results have none

    @property
    def finished(self) -> bool:
        return self.rounds >= int(self.config.get("rounds", 0)) and not self.note

    @property
    def task(self) -> str:
        return str(self.spec.get("task") or self.dataset.partition("-")[0])

    @property
    def agents(self) -> list[str]:
        return [str(agent) for agent in self.spec.get("agents", ())]


def gather(places: Sequence[Path]) -> list[Trained]:
    """All trainings below some places: folders of runs, of single seeds, of results."""
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
    if not found:
        raise InputError(f"There is no run below {', '.join(map(str, places))}.")
    unique = {(run.folder, run.dataset, run.algorithm, digest(run.config), run.seed): run
              for run in found}  # fmt: skip
    return list(unique.values())


def stored_runs(results: Path) -> list[Trained]:
    path = results / LEVELS
    levels = read_json(path) if path.is_file() else {}
    return [_of_record(run, levels) for run in Store(results)]


def _of_record(run: StoredRun, levels: Mapping[str, Any]) -> Trained:
    record = run.record
    described = _described(record, f"the stored run {run.name}")
    evaluation = record["evaluation"] or {}
    level = levels.get(f"{run.dataset}/{record['dataset'].get('seed')}", {})
    same = level.get("identity") == record["dataset"].get("identity")
    return Trained(
        **described,
        curve=run.curve,
        rounds=record["rounds"],
        score=_number(run.score),
        returned=_number((evaluation.get("return") or {}).get("mean")),
        episodes=int(evaluation.get("episodes") or 0),
        seconds=_number(run.seconds) or 0.0,
        note=str(record.get("diverged", "")),
        level=_number(level.get("score")) if same else None,
    )


def of_folder(folder: Path) -> Trained:
    """One run folder (RUN/seed-0)."""
    described = read_json(folder / "run.json")
    try:
        rows = read_metrics(folder / "metrics.jsonl")
    except json.JSONDecodeError as error:
        raise InputError(f"{folder / 'metrics.jsonl'} is not valid JSON: {error}.") from error
    result: dict[str, Any] = {}
    if (folder / "result.json").is_file():
        result = read_json(folder / "result.json")
    evaluation = result.get("evaluation") or {}
    reached = result.get("rounds") or (rows[-1].get("round", 0) if rows else 0)
    common = _described(described, str(folder))
    ends = [_number(end) for end in evaluation.get("score_interval") or ()]
    low, high = ends if len(ends) == 2 else (None, None)
    run = Trained(
        **common,
        curve=thinned(rows),
        rounds=int(reached),
        score=_number(evaluation.get("score")),
        returned=_number((evaluation.get("return") or {}).get("mean")),
        interval=None if low is None or high is None else (low, high),
        episodes=int(evaluation.get("episodes") or 0),
        seconds=_number(result.get("seconds")) or 0.0,
        note=str(result.get("note") or evaluation.get("note") or ""),
        data=str(described.get("data") or ""),
        spec=described.get("spec") or {},
        folder=folder,
    )
    return run if run.score is None else _with_level(run)


def _described(record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What run.json and a stored record share."""
    try:
        dataset = record["dataset"]
        return {
            "algorithm": str(record["algorithm"]),
            "seed": int(record["seed"]),
            "config": dict(record["config"]),
            "dataset": str(dataset["name"]),
            "dataset_seed": dataset.get("seed"),
            "identity": str(dataset.get("identity") or ""),
            "transitions": dataset.get("transitions"),
            "reference": dataset.get("reference") or {},
            "versions": dict(record.get("versions") or {}),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} does not describe a run: {error} is missing or wrong."
        ) from error


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
    level = 100 * (float(log.team_returns.mean()) - random) / (expert - random)
    return replace(run, level=level)


def dataset_of(run: Trained) -> Any:
    """The dataset a run was trained on, if it is on this machine unchanged; else None. Nothing is
    made or fetched for a report."""
    from spacql.data import cache, load_dataset

    places = [Path(run.data)] if run.data else []
    with suppress(SpacqlError, KeyError):  # no name of ours
        places.append(cache.place(run.dataset, run.dataset_seed or 0))
    for place in places:
        if (place / "dataset.json").is_file():
            try:
                log = load_dataset(place)
            except SpacqlError:
                continue
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
