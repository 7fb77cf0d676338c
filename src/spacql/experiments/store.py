"""The store of finished runs: one small JSON file each, from which tables and figures are made.

RESULTS/runs/spread-random/spacql-1a2b3c4d-seed-0.json    1a2b3c4d stands for the configuration
RESULTS/tuning/spread-random-spacql.json                  sweeps, as `spacql tune` wrote them

A run is found by its algorithm, the name of its dataset, its seed and every value of its
configuration, so that a changed default never passes an old result for a new one.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from spacql import records, reference
from spacql.algorithms.settings import REMOVED
from spacql.data import behaviours, collect
from spacql.data.behaviours import dataset_seed
from spacql.errors import InputError
from spacql.files import as_json, as_record, new_file, safe_name
from spacql.runs import final_episodes, finished
from spacql.training.metrics import read_metrics

LONGEST_EPISODE = 1000  # of the benchmark's worlds
POINTS = 20  # most points of a curve
DIGITS = 5  # significant ones
ROWS = ("u", "w")  # a number for each number of replaced agents
METRICS = (*ROWS, "k_eff", "q_data", "q_policy", "td_error", "penalty")
# Hyperparameters that came later, and the value that does what runs without them did.
LATER: dict[str, Any] = {"mixing": "uncertainty", "penalty_every": 1, "tanh_cost": 0.0}
SILENT = LATER | REMOVED  # at these values they say nothing about a run

Status = Literal["added", "there", "no score", "other data"]


@dataclass(frozen=True)
class StoredRun:
    """A run that ended, as its file holds it."""

    algorithm: str
    dataset: str
    dataset_seed: int | None
    identity: str  # of the dataset
    seed: int
    config: Mapping[str, Any]
    seconds: float
    score: float | None  # None for a training that diverged
    diverged: str  # why, if it did
    curve: Sequence[Mapping[str, Any]]
    record: Mapping[str, Any] = field(repr=False)  # all of it

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "StoredRun":
        """From what `spacql.records` has read, or `summary` made."""
        data, evaluation = record["dataset"], record["evaluation"]
        score = None if evaluation is None else evaluation["score"]
        return cls(
            algorithm=record["algorithm"],
            dataset=data["name"],
            dataset_seed=data["seed"],
            identity=data["identity"],
            seed=record["seed"],
            config=dict(record["config"]),
            seconds=float(record["seconds"]),
            score=None if score is None else float(score),
            diverged=record.get("diverged", ""),
            curve=list(record["curve"]),
            record=record,
        )

    @property
    def key(self) -> str:
        return key(self.algorithm, self.config, self.dataset, self.seed)

    @property
    def name(self) -> str:
        what = f"{self.algorithm}-{digest(self.config)}-seed-{self.seed}"
        folder = safe_name(self.dataset)
        if folder != self.dataset:  # two names may become one
            folder += f"-{sha256(self.dataset.encode()).hexdigest()[:8]}"
        return f"{folder}/{safe_name(what)}.json"


class Store:
    """All runs that ended, in a folder. What does not exist yet is empty."""

    def __init__(self, results: Path | str | None = None):
        self.results = default_results() if results is None else Path(results)
        self.runs: dict[str, StoredRun] = {}
        if self.results.exists() and not self.results.is_dir():
            raise InputError(f"{self.results} is a file, not a folder of results.")
        for path in sorted((self.results / "runs").glob("*/[!.]*.json")):  # no half-written ones
            run = _read(path)
            self.runs[run.key] = run

    def __iter__(self) -> Iterator[StoredRun]:
        return iter(self.runs.values())

    def __len__(self) -> int:
        return len(self.runs)

    def add(self, record: Mapping[str, Any]) -> Status:
        """Take in a record that `summary` made. What is there already is not replaced. Runs with
        one seed are compared, so those on other data than the stored ones are refused.

        A diverged training is kept too: a table that left it out would show the lucky seeds alone.
        """
        run = StoredRun.from_json(record)
        if run.score is None and not run.diverged:
            return "no score"
        if other_seed(run) or self.identity_of(run.dataset, run.seed) not in ("", run.identity):
            return "other data"
        if run.key in self.runs:
            return "there"
        place = self.results / "runs" / run.name
        as_record(as_json(record, place), records.StoredRecord, place)  # or no store could be read
        with new_file(place) as temporary:
            temporary.write_text(compact(run.record))
        self.runs[run.key] = run
        return "added"

    def identity_of(self, dataset: str, seed: int) -> str:
        """Of the data that stored runs with this seed saw, if it is a benchmark's; or nothing."""
        if dataset not in collect.NAMES:
            return ""
        place = (dataset, dataset_seed(seed))
        mine = (r for r in self if (r.dataset, dataset_seed(r.seed)) == place)
        return next((run.identity for run in mine), "")

    def check_writable(self) -> None:
        """Refuse now rather than after hours of training."""
        place = self.results / "runs"
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write results to {place}: {error.strerror}.") from error
        if not os.access(place, os.W_OK):
            raise InputError(f"Cannot write results to {place}. Choose another folder: --results.")

    def add_sweep(self, path: Path | str) -> Path | None:
        """Take in a tune.json. An older sweep of the same data, algorithm, hyperparameter, penalty
        and number of critics is replaced, or joined by other seeds or values of the same sweep.
        None if a training crashed: it is not done, and would count as such."""
        sweep = records.sweep(path)
        if any(entry.get("crashed") for entry in sweep["values"]):
            return None
        place = self.sweep_place(sweep)
        if place.is_file():
            sweep = joined(records.sweep(place), sweep)
        with new_file(place) as temporary:
            temporary.write_text(compact(rounded(sweep), "values"))
        return place

    def sweep_place(self, sweep: Mapping[str, Any]) -> Path:
        """The file of a sweep."""
        from spacql.algorithms.registry import find

        parts, config = [sweep["data"], sweep["algorithm"]], sweep["config"]
        if sweep["hyperparameter"] != "alpha":
            parts.append(sweep["hyperparameter"])
        if config.get("penalty", "log-sum-exp") != "log-sum-exp":
            parts.append(config["penalty"])
        usual = getattr(find(sweep["algorithm"]).Config(), "critics", None)
        if config.get("critics", usual) != usual:
            parts.append(f"{config['critics']}-critics")
        return self.results / "tuning" / f"{safe_name('-'.join(parts))}.json"


def same_sweep(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two sweeps differ in their values and seeds alone."""

    def settings(sweep: Mapping[str, Any]) -> Any:
        rest = {n: v for n, v in sweep["config"].items() if n != sweep["hyperparameter"]}
        names = sweep["algorithm"], sweep["data"], sweep["hyperparameter"]
        return names, sweep["rounds"], sweep.get("by", "score"), signature(rest)

    return bool(settings(one) == settings(other))


def trainings(sweep: Mapping[str, Any]) -> dict[tuple[str, int], float | None]:
    """Scores by value, as text, and seed; None of those that failed."""
    scores = {}
    for entry in sweep["values"]:
        failed, left = entry.get("failed", []), iter(entry["scores"])
        for seed in sweep["seeds"]:
            scores[value_text(entry["value"]), seed] = None if seed in failed else next(left, None)
    return scores


def value_text(value: Any) -> str:
    return json.dumps(_plain(value))


def joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Two parts of one sweep as one, with the seeds that all values have in one of them; the new
    one if it is another sweep or there is no such seed. Where both have a training, the new one
    counts."""
    values = {value_text(e["value"]): e["value"] for sweep in (old, new) for e in sweep["values"]}
    scores = trainings(old) | trainings(new)
    seeds = [
        seed
        for seed in sorted({*old["seeds"], *new["seeds"]})
        if all((value, seed) in scores for value in values)
    ]
    if not same_sweep(old, new) or not seeds:
        return dict(new)
    entries = []
    for name, value in values.items():
        found = [score for seed in seeds if (score := scores[name, seed]) is not None]
        failed = [seed for seed in seeds if scores[name, seed] is None]
        mean = float(np.mean(found)) if found else None
        entries.append({"value": value, "scores": found, "mean": mean, "failed": failed})
    known = [entry for entry in entries if entry["mean"] is not None]
    best = max(known, key=lambda entry: entry["mean"])["value"] if known else None
    return {**new, "seeds": seeds, "values": entries, "best": best}


def default_results() -> Path:
    """`results` here, or that of the checkout which this package is run from."""
    here = Path("results")
    checkout = Path(__file__).resolve().parents[3]
    if not here.is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout / "results"
    return here


def key(algorithm: str, config: Mapping[str, Any], dataset: str, seed: int) -> str:
    return json.dumps([algorithm, dataset, seed, signature(config)])


def signature(config: Mapping[str, Any]) -> str:
    """A configuration as text: equal for equal values, however they are written."""
    kept = {n: v for n, v in config.items() if n not in SILENT or v != SILENT[n]}
    return json.dumps(_plain(kept), sort_keys=True)


def digest(config: Mapping[str, Any]) -> str:
    return sha256(signature(config).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    """Tuples as lists, and 1.0 as 1."""
    if isinstance(value, Mapping):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def other_seed(run: StoredRun) -> str:
    """Why a run with the name of a benchmark's dataset did not see it; empty if it did."""
    if run.dataset not in collect.NAMES or run.dataset_seed == dataset_seed(run.seed):
        return ""
    return (
        f"seed {run.seed} of {run.dataset} is trained on dataset {dataset_seed(run.seed)}, and "
        f"this run saw dataset {run.dataset_seed}; --data {run.dataset} finds the right one"
    )


def another_version(run: StoredRun) -> str:
    """The same of a run that saw it with another prey, or only a part of it; or whose score is of
    fewer episodes than others have."""
    if run.dataset not in collect.NAMES:
        return ""
    task, quality = collect.parse(run.dataset)
    evaluation, usual_episodes = run.record.get("evaluation"), final_episodes(task)
    if evaluation and evaluation["episodes"] < usual_episodes:
        return (
            f"this run was scored in {evaluation['episodes']:,} episodes, others on {run.dataset} "
            f"in {usual_episodes:,}"
        )
    usual, scored = reference.stored(task)[0], run.record["dataset"].get("reference") or {}
    if any(scored.get(name) != getattr(usual, name) for name in ("random", "expert")):
        return f"this run's {run.dataset} was made with another prey or other behaviours"
    whole, seen = collect.SIZE, run.record["dataset"]["transitions"]
    if quality == "medium-replay":
        number = behaviours.number(dataset_seed(run.seed))
        steps = behaviours.record(task)["seeds"][number]["replay"]["steps"]
        # Some behaviours were medium sooner, and the last episode may not have ended.
        whole = min(collect.REPLAY_SIZE[task], steps - LONGEST_EPISODE)
    if seen >= whole:
        return ""
    return f"{run.dataset} has more transitions than the {seen:,} that this run saw"


def own_log(sweep: Mapping[str, Any]) -> str:
    """Why a sweep with the name of a benchmark's dataset was not on it; empty if it was."""
    if not sweep.get("folder") or sweep["data"] not in collect.NAMES:
        return ""
    return f"the sweep saw one folder for all seeds; --data {sweep['data']} finds the right ones"


def ended(folder: Path) -> bool:
    """Whether a run folder holds something to store: a result, or the end of one that diverged."""
    return finished(folder) or (folder / "diverged.json").is_file()


def summary(folder: Path) -> dict[str, Any]:
    """What is stored of a run folder that is finished, or whose training diverged."""
    described = records.run(folder)
    rows = read_metrics(folder / "metrics.jsonl")
    reached = rows[-1]["round"] if rows else 0
    diverged = ""
    result: dict[str, Any] = {"rounds": reached, "seconds": 0.0, "evaluation": None}
    if finished(folder):
        result = records.result(folder)
    elif (folder / "diverged.json").is_file():
        end = records.diverged(folder)
        diverged, result["seconds"] = end["error"], end.get("seconds", 0.0)
    else:
        raise InputError(f"The run in {folder} is not finished.")
    evaluation, note = result["evaluation"], result.get("note", "")
    if evaluation is not None:
        note = note or evaluation.get("note", "")
        evaluation = {
            "score": evaluation["score"],
            "return": {name: evaluation["return"][name] for name in ("mean", "std")},
            "episodes": evaluation["episodes"],
        }
    return {
        "format": records.FORMAT,
        "algorithm": described["algorithm"],
        "seed": described["seed"],
        "config": described["config"],
        "dataset": described["dataset"],
        "versions": described["versions"],
        "rounds": result["rounds"],
        "seconds": rounded(result["seconds"]),
        "evaluation": rounded(evaluation),
        **({"note": note} if note else {}),  # why there is no score
        **({"diverged": diverged} if diverged else {}),
        "curve": rounded(thinned(rows)),
    }


def thinned(rows: list[dict[str, Any]], points: int = POINTS) -> list[dict[str, Any]]:
    """At most `points` evaluated rounds, the last among them: their scores, and each metric's
    mean over the rounds since the point before."""
    scored = [k for k, row in enumerate(rows) if row.get("score") is not None]
    if len(scored) > points:
        chosen = np.linspace(0, len(scored), points + 1)[1:].round().astype(int) - 1
        scored = [scored[k] for k in chosen]
    curve, start = [], 0
    for k in scored:
        point = {"round": rows[k]["round"], "score": rows[k]["score"]}
        for name in METRICS:
            values = [row[name] for row in rows[start : k + 1] if row.get(name) is not None]
            # An algorithm of one's own may call something else by the same name.
            fit = {np.ndim(value) for value in values} == {int(name in ROWS)}
            if fit and len({np.shape(value) for value in values}) == 1:
                point[name] = np.mean(values, axis=0).tolist()
        curve.append(point)
        start = k + 1
    return curve


def rounded(value: Any) -> Any:
    """The same with floats of few digits."""
    if isinstance(value, Mapping):
        return {name: rounded(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def compact(record: Mapping[str, Any], rows: str = "curve") -> str:
    """JSON with a line for every field and for every row of one field: small, and `git diff`
    shows what changed."""
    lines = []
    for name, value in record.items():
        text = json.dumps(value)
        if name == rows and value:
            text = "[\n  " + ",\n  ".join(json.dumps(row) for row in value) + "\n ]"
        lines.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _read(path: Path) -> StoredRun:
    run = StoredRun.from_json(records.stored(path))
    if run.score is None and not run.diverged:
        raise InputError(f"{path} is no stored run: it has no score.")
    return run


def mixed_data(runs: Iterable[StoredRun]) -> list[str]:
    """A sentence for every dataset of which the runs have seen different versions.

    A run's seed says which of the benchmark's it should have seen, whatever it did see."""
    seen: dict[tuple[str, int | None], dict[str, set[str]]] = {}
    for run in runs:
        named = run.dataset in collect.NAMES
        seed = dataset_seed(run.seed) if named else run.dataset_seed
        place = seen.setdefault((run.dataset, seed), {})
        place.setdefault(run.identity, set()).add(run.algorithm)
    return [
        f"Careful: these runs saw different data under the name {name}, seed {seed}: "
        + "; ".join(f"{i[:8]} {', '.join(sorted(who))}" for i, who in identities.items())
        + ". They cannot be compared."
        for (name, seed), identities in seen.items()
        if len(identities) > 1
    ]


def run_folders(places: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """All run folders and all sweeps (tune.json) below some places. The trainings of a sweep are
    not among the runs: their seeds are for tuning."""
    runs: list[Path] = []
    sweeps: list[Path] = []
    for place in places:
        if not place.is_dir():
            raise InputError(f"There is no folder {place}.")
        mine = sorted(place.rglob("tune.json"))
        sweeps += mine
        runs += [
            path.parent
            for path in sorted(place.rglob("run.json"))
            if not any(sweep.parent in path.parents for sweep in mine)
        ]
    return runs, sweeps
