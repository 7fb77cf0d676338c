"""Run folders as training leaves them, without training; and a store filled by hand."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from spacql.algorithms.settings import configure
from spacql.data.behaviours import dataset_seed
from spacql.experiments.plans import Plan
from spacql.experiments.store import Store, summary
from spacql.files import write_json
from spacql.reference import Reference, stored
from spacql.spec import Spec, unit_box

SPEC = Spec("toy", ("a", "b"), (2, 2), **unit_box((1, 1)), horizon=5)
IDENTITY = "1234567890abcdef"


def run_folder(
    folder: Path,
    *,
    algorithm: str = "cfcql",
    dataset: str = "spread-random",
    seed: int = 0,
    config: dict[str, Any] | None = None,
    score: float | None = 50.0,
    identity: str = IDENTITY,
    done: bool = True,
    diverged: str = "",
    rounds: int = 40,
) -> Path:
    """A run of `rounds` rounds, evaluated every ten, whose metric td_error is its round."""
    if config is None:
        config = asdict(configure(algorithm, dataset, {"rounds": rounds}))
    rounds = config["rounds"]
    usual = stored(dataset.partition("-")[0]) or (Reference(0.0, 300.0),)
    described = {
        "format": 1,
        "data": dataset,
        "spec": SPEC.to_json(),
        "evaluation": {"every": 10, "episodes": 500, "final_episodes": 500},
        "checkpoint_every": 10,
        "loggers": [],
        "algorithm": algorithm,
        "seed": seed,
        "config": config,
        "dataset": {"name": dataset, "seed": dataset_seed(seed), "identity": identity,
                    "transitions": 1_000_000, "reference": asdict(usual[0])},
        "versions": {"jax": "1"},
    }  # fmt: skip
    write_json(folder / "run.json", described)
    lines = []
    for r in range(1, min(rounds, 1000) + 1):
        scored = f', "score": {r / 3}, "return": {r}' if r % 10 == 0 or r == rounds else ""
        lines.append(f'{{"round": {r}, "td_error": {r}.0, "u": [{r}.0, 2.0], "w": [0.75, 0.25]'
                     f', "actor_gradient": 1.0{scored}}}\n')  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(lines))
    if diverged:
        write_json(folder / "diverged.json", {"error": diverged})
    elif done:
        evaluation = {"score": score, "return": {"mean": 150.123456, "std": 3.0, "iqm": 1.0},
                      "episodes": 500, "returns": [1.0] * 500}  # fmt: skip
        write_json(folder / "result.json", {"rounds": rounds, "seconds": 12.3456789,
                                            "evaluation": evaluation, "note": ""})  # fmt: skip
    return folder


def fill(plan: Plan, store: Store, scores: dict[str, list[float]], work: Path) -> None:
    """Store a run for every score: `scores` by dataset and method's label, seeds from the first.

    The first run of a length is a folder that is read; the others differ in what names them."""
    read: dict[int, dict[str, Any]] = {}
    for _, method, column in plan.cells():
        given = scores.get(f"{column.label}/{method.label}", [])
        for run, score in zip(plan.cell(method, column), given, strict=False):
            if run.config.rounds not in read:
                folder = run_folder(work / run.place, config=asdict(run.config))
                read[run.config.rounds] = summary(folder)
            same = read[run.config.rounds]
            named = {"algorithm": run.algorithm, "seed": run.seed, "config": asdict(run.config)}
            data = same["dataset"] | {"name": run.dataset, "seed": dataset_seed(run.seed)}
            evaluation = same["evaluation"] | {"score": score}
            store.add(same | named | {"dataset": data, "evaluation": evaluation})
