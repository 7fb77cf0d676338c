"""The pools of `spacql reproduce selection`: for every dataset a log, policies that were trained on
most of it, what the rest of it says of them, and the truth.

RUNS/<dataset>-<seed>/log/          the dataset's first transitions
                      data/         its training episodes
                      runs/<policy>/
RESULTS/selection/<dataset>-<seed>.json    what the table is made of: written as it comes, and what
                                           is there is not made again
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from spacql import records
from spacql.data import Dataset, load_dataset, save_dataset
from spacql.data.collect import REPLAY_SIZE, make_dataset, parse
from spacql.errors import InputError
from spacql.evaluation import heldout
from spacql.evaluation.model import Config as ModelConfig
from spacql.evaluation.offline import ESTIMATORS, Evaluator
from spacql.experiments.executors import PlannedRun
from spacql.experiments.running import Outcome, execute
from spacql.files import write_json
from spacql.fitting.pipeline import last_metrics, training_data
from spacql.fitting.portfolio import Member, configuration, model_steps, seconds
from spacql.policies import Policy
from spacql.runs import scorer
from spacql.worlds import is_slow

SIZE = 100_000  # transitions of a log: what a user may have
SLOW_REPLAY = 50_000  # of a replay whose making is a training in a slow world
SHARE = 0.4  # of the steps of `spacql fit --quick`
EPISODES, SLOW_EPISODES = 500, 10  # that a true score is the mean of


@dataclass(frozen=True)
class Pooled:
    """A policy of a pool: what `spacql fit --quick` would train, or a part of it."""

    member: Member
    share: float = 1.0  # of the training's length: short ones are bad policies

    @property
    def label(self) -> str:
        return self.member.label


def _pooled(label: str, algorithm: str, share: float = 1.0, **overrides: Any) -> Pooled:
    return Pooled(Member(label, algorithm, "quick", overrides), share)


POOL: tuple[Pooled, ...] = (
    _pooled("bc", "bc"),
    _pooled("bc-short", "bc", 0.1),
    _pooled("td3bc-2.5", "td3bc"),
    _pooled("td3bc-10", "td3bc", q_weight=10.0),
    _pooled("iql", "iql"),
    _pooled("cfcql-0.5", "cfcql", alpha=0.5),
    _pooled("cfcql-0.5-short", "cfcql", 0.2, alpha=0.5),
    _pooled("spacql-0.1", "spacql", alpha=0.1),
    _pooled("spacql-0.5", "spacql", alpha=0.5),
    _pooled("spacql-2.5", "spacql", alpha=2.5),
    _pooled("aspac", "aspac", hidden=(64, 64)),
    _pooled("aspac-tight", "aspac", anchor_weight=0.007, hidden=(64, 64)),
)


def make_log(name: str, seed: int, folder: Path) -> Dataset:
    """The first transitions of a dataset."""
    place, (task, quality) = folder / "log", parse(name)
    if not (place / "dataset.json").is_file():
        size: int | None = SIZE
        if quality == "medium-replay":
            short = REPLAY_SIZE[task] <= SIZE  # some of them end sooner: as long as they are
            size = None if short else SLOW_REPLAY if is_slow(task) else SIZE
        make_dataset(name, place, seed=seed, transitions=size)
    return load_dataset(place)


def train(
    log: Dataset, seed: int, folder: Path, executor: Callable[[Path], Any], quiet: bool
) -> list[Outcome]:
    """Train a pool on the log's training episodes. What is finished is not trained again."""
    if not (folder / "data" / "dataset.json").is_file():
        save_dataset(training_data(log, heldout.split(log, seed=seed)), folder / "data")
    data = str((folder / "data").resolve())
    runs = [
        PlannedRun(p.member.algorithm, data, seed,
                   configuration(p.member, log, "quick", SHARE * p.share), p.label)
        for p in POOL
    ]  # fmt: skip
    return execute(
        runs, executor(folder / "runs"), label=lambda run: run.folder, title=folder.name,
        quiet=quiet, expected=lambda run: seconds(run.config),
    )  # fmt: skip


def measure(
    log: Dataset,
    seed: int,
    folder: Path,
    kept: Path,
    estimators: Sequence[str] = ESTIMATORS,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Every estimate and the true score of every policy; what is in `kept` is not made again."""
    evaluator = pool_evaluator(log, seed)
    score, note = scorer(log.spec.task, log)
    if note:
        raise InputError(note)
    episodes = SLOW_EPISODES if is_slow(log.spec.task) else EPISODES
    known: dict[str, Any] = records.pool(kept) if kept.is_file() else about(log, evaluator)
    for pooled in POOL:
        label, run = pooled.label, folder / "runs" / pooled.label
        there = known["policies"].get(label, {"estimates": {}})
        missing = [name for name in estimators if name not in there["estimates"]]
        if not missing or not (run / "policy.json").is_file():
            continue
        policy = Policy.load(run)
        found = evaluator.evaluate(policy, missing).to_json()
        if "model" in missing:
            known["trust"] = found["trust"]
        if "score" not in there:
            true = score(policy, episodes, jax.random.key(seed + 2_000_003))
            there |= {
                "algorithm": pooled.member.algorithm,
                "score": true["score"],
                "score_interval": true["score_interval"],
                "distance": found["distance"],
                "outside": found["outside"],
                "training": last_metrics(run),
            }
        there["estimates"] |= found["estimates"]
        known["policies"][label] = there
        write_json(kept, known)
        tell(f"{folder.name} {label}: estimated")
    return known


def complete(kept: Path) -> bool:
    """Whether a file holds every estimate of every policy."""
    if not kept.is_file():
        return False
    known = records.pool(kept)["policies"]
    return all(set(ESTIMATORS) <= set(known.get(p.label, {}).get("estimates", ())) for p in POOL)


def pool_evaluator(log: Dataset, seed: int) -> Evaluator:
    """As `spacql fit --quick` makes it."""
    config = ModelConfig()
    config = replace(config, steps=model_steps(log, config.batch_size, "quick"))
    return Evaluator(log, seed=seed, model_config=config)


def about(log: Dataset, evaluator: Evaluator) -> dict[str, Any]:
    return {
        "format": 1,
        "dataset": log.info["name"],
        "seed": log.info["seed"],
        "identity": log.identity,
        "transitions": log.n_transitions,
        "episodes": log.n_episodes,
        "heldout": len(evaluator.episodes),
        "reference": log.info["reference"],
        "log": evaluator.log._asdict(),
        "trust": None,
        "policies": {},
    }
