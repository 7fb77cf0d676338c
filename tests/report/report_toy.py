"""Run folders as trainings leave them, made without training."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from spacql.algorithms.settings import configure
from spacql.policies.policy import uniform
from spacql.worlds import make

REFERENCE = {"random": 159.7, "expert": 533.8, "prey": "", "source": "measured"}


def write_run(
    folder: Path,
    algorithm: str = "spacql",
    dataset: str = "spread-random",
    seed: int = 0,
    *,
    score: float | None = 60.0,
    rounds: int = 40,
    finished: bool = True,
    task: str = "spread",
    policy: bool = True,
    settings: dict | None = None,
) -> Path:
    """RUN/seed-K with everything that a report reads."""
    folder = folder / f"seed-{seed}"
    folder.mkdir(parents=True)
    known = algorithm in ("spacql", "cfcql", "icql-qs", "bc")
    config = asdict(configure(algorithm, dataset, {"rounds": rounds})) if known else {"rounds": 40}
    world = make(task if task in ("tag", "world") else "spread")
    spec = world.spec.to_json() | {"task": task}
    run = {
        "format": 1,
        "algorithm": algorithm,
        "seed": seed,
        "config": config | (settings or {}),
        "data": "",
        "dataset": {"name": dataset, "seed": seed, "identity": f"{seed:064x}",
                    "transitions": 1000, "reference": REFERENCE},
        "spec": spec,
        "evaluation": {"every": 10, "episodes": 5, "final_episodes": 500},
        "checkpoint_every": 10,
        "loggers": [],
        "versions": {"python": "3.11.7", "spacql": "0.1.0"},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    reached = rounds if finished else rounds // 2
    with open(folder / "metrics.jsonl", "w") as file:
        for k in range(10, reached + 1, 10):
            row = {"round": k, "score": k + seed if score is not None else None, "td_error": 1 / k}
            if algorithm == "spacql":
                row |= {"w": [0.4 + k / 1000, 0.35, 0.25 - k / 1000], "k_eff": 1.8 - k / 1000}
            file.write(json.dumps(row) + "\n")
    if finished:
        evaluation = score is not None and {
            "score": score, "score_interval": [score - 4, score + 4], "episodes": 500,
            "return": {"mean": 159.7 + 3.741 * score, "std": 50.0},
        }  # fmt: skip
        result = {"rounds": rounds, "seconds": 12.0, "evaluation": evaluation or None,
                  "note": "" if evaluation else "Not evaluated: no such world."}  # fmt: skip
        (folder / "result.json").write_text(json.dumps(result))
    if policy:
        uniform(world.spec).save(folder / "policy")
    return folder


def three_seeds(folder: Path, algorithm: str, base: float, **other) -> Path:
    for seed in range(3):
        noise = float(np.random.default_rng((seed, round(base))).normal())
        write_run(folder, algorithm, seed=seed, score=base + noise + seed, **other)
    return folder


def write_fit(folder: Path, labels: dict[str, float], task: str = "no-world", **change) -> Path:
    """The folder of a fit: candidates with what the log says of them, and their runs."""
    for label in labels:
        run = write_run(folder / "runs" / label, "bc", "training episodes of my-log",
                        task=f"log of {task}", score=None)  # fmt: skip
        for path in list(run.iterdir()):
            path.rename(folder / "runs" / label / path.name)
        run.rmdir()
    agents = make("spread").spec.agents
    table = [
        {"label": label, "mean": mean, "low": mean - 20, "high": mean + 20, "warnings": [],
         "distance": {a: 1.5 for a in agents}, "outside": {a: 0.25 for a in agents}}
        for label, mean in labels.items()
    ]  # fmt: skip
    fit = {
        "format": 1, "task": task, "chosen": max(labels, key=labels.__getitem__),
        "data": {"name": "my-log", "identity": "a" * 64, "episodes": 50, "transitions": 1000,
                 "reference": None},
        "verdict": "likely gain", "words": "A gain is likely.", "estimator": "model",
        "log": {"mean": 100.0, "low": 90.0, "high": 110.0}, "heldout": 10, "table": table,
        "trust": {"correlation": 0.875, "bias": -1.0, "error": 3.0, "episodes": 10}, "failed": {},
    }  # fmt: skip
    (folder / "fit.json").write_text(json.dumps(fit | change))
    return folder
