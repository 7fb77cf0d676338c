"""`spacql.fit`: trains a portfolio on a log, evaluates it on held-out episodes, chooses, says so.

OUT/plan.json        what was asked: the log, the portfolio, the seeds; a second call goes on
    data/            the training episodes, as a dataset
    runs/<member>/   one run folder each
    evaluations/     what the log says of each
    fit.json         the table, the choice, and the words
    policy.json, policy.safetensors    the chosen policy, in the log's own units
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from spacql import arguments, records
from spacql.data import Dataset, load_dataset, save_dataset
from spacql.errors import InputError, TrainingError
from spacql.evaluation import heldout
from spacql.evaluation.intervals import kept
from spacql.evaluation.model import Config as ModelConfig
from spacql.evaluation.offline import CLONE, DEFAULT, Evaluator, bound, check_estimators, choose
from spacql.experiments.executors import Local, PlannedRun
from spacql.experiments.running import execute
from spacql.files import read_record, write_json
from spacql.fitting import words
from spacql.fitting.portfolio import Level, configuration, members, model_steps, seconds
from spacql.policies import Policy
from spacql.progress import duration
from spacql.runs import dataset_name, locked, scorer
from spacql.training.metrics import read_metrics

MODEL_SECONDS = 0.025  # of one core, per step of the model's ensemble
# Of a training's own numbers: how many agents its targets replace, what its critics disagree about
# when k of them are, and what could be chosen by.
OWN = ("k_eff", "u", "q_policy", "td_error")
SHORTEST, LONGEST = 0.1, 10.0  # of the usual lengths: what a budget can make of trainings
ROUGH = 0.1  # share by which a time may differ from a budget before it is said
LEAST_EACH = 5  # episodes to train on, and to judge by
MEMBER_SECONDS = 5.0  # of one core, to evaluate a policy
# Parts of a plan whose names do not speak for themselves, in an error.
NAMES = {
    "source": "another log",
    "share": "another --heldout",
    "budget": "another --budget",
    "workers": "another number of --workers, who share its --budget",
    "runs": "other trainings (another --budget, or version of spacql)",
    "model": "another model of the world (another --budget, or version of spacql)",
}


@dataclass(frozen=True)
class Fit:
    """What came out: the chosen policy, and the table it was chosen from."""

    folder: Path
    policy: Policy
    chosen: str  # its label in the table
    verdict: words.Verdict
    result: dict[str, Any]  # what fit.json holds

    @property
    def table(self) -> list[dict[str, Any]]:
        return list(self.result["table"])


@dataclass(frozen=True)
class Plan:
    """What a folder of a fit is for."""

    source: str  # identity of the log
    task: str
    level: Level
    seed: int
    share: float
    estimator: str
    budget: float | None  # minutes, and the number of workers that share them
    workers: int | None
    runs: list[dict[str, Any]]
    model: dict[str, Any]
    data: str = ""  # where the log was, to name it; `source` says what it is


def fit(
    data: Dataset | Path | str,
    out: Path | str,
    *,
    level: Level = "normal",
    budget: float | None = None,
    share: float = heldout.SHARE,
    seed: int = 0,
    estimator: str = DEFAULT,
    workers: int = 0,
    executor: Callable[[Path, int], Any] = Local,
    quiet: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Fit:
    """From a log to the policy that its own held-out episodes speak for, without a simulator.

    `data` is a `Dataset`, a folder or a name. `level` is "quick", "normal" or "thorough";
    `budget`, in minutes, shortens or lengthens the trainings to fit. `executor` makes what trains,
    from a folder and a number of workers. Called again with the same `out`, it goes on where it
    stopped.

    Example: spacql.fit("my-robots", out="my-robots-fit").policy.act(observations)
    """
    from spacql.data.cache import resolve

    arguments.whole("seed", seed, 0)
    arguments.whole("workers", workers, 0)
    folder = Path(out)
    arguments.place(folder)
    dataset = data if isinstance(data, Dataset) else resolve(data, seed)
    trainer = executor(folder / "runs", workers)
    plan = make_plan(dataset, level, budget, share, seed, estimator, trainer.workers)
    plan = replace(plan, data=dataset_name(dataset) if isinstance(data, Dataset) else str(data))
    with locked(folder):
        return carry_out(plan, dataset, folder, trainer, quiet, tell)


def carry_out(
    plan: Plan,
    dataset: Dataset,
    folder: Path,
    trainer: Any,
    quiet: bool,
    tell: Callable[[str], None],
) -> Fit:
    """All that a plan asks for and that is not there yet."""
    open_folder(folder, plan)
    runs = [PlannedRun.from_json(run) for run in plan.runs]
    tell(expectation(plan, runs, dataset, trainer.workers))
    division = heldout.split(dataset, plan.share, plan.seed)
    if not (folder / "data" / "dataset.json").is_file():
        save_dataset(training_data(dataset, division), folder / "data")
    placed = [replace(run, dataset=str((folder / "data").resolve())) for run in runs]
    outcomes = execute(placed, trainer, label=lambda run: run.folder, title="portfolio",
                       quiet=quiet, expected=lambda run: seconds(run.config))  # fmt: skip
    failed = {o.run.folder: o.error for o in outcomes if o.record is None or o.error}
    evaluations = evaluate_all(folder, dataset, division, plan, failed, quiet)
    if not evaluations:
        raise TrainingError(f"No training of the portfolio came to an end: {failed}.")
    truth = add_truth(folder, dataset, plan.seed)
    return conclude(folder, plan, dataset, evaluations, failed, truth)


def make_plan(
    dataset: Dataset, level: Level, budget: float | None, share: float, seed: int, estimator: str,
    workers: int,
) -> Plan:  # fmt: skip
    check_division(heldout.split(dataset, share, seed), share)
    check_estimators([estimator])
    if level not in get_args(Level):
        raise InputError(f"level is {level!r}; it must be one of {', '.join(get_args(Level))}.")
    if budget is not None and budget <= 0:
        raise InputError(f"A budget is a number of minutes above 0, not {budget:g}.")
    model = ModelConfig(steps=model_steps(dataset, ModelConfig().batch_size, level))
    chosen, scale = members(level), 1.0

    def configs(scale: float) -> list[Any]:
        return [configuration(member, dataset, level, scale) for member in chosen]

    if budget is not None:
        after = after_seconds(model.steps, len(chosen))
        if after > 0.5 * 60 * budget:
            model = replace(model, steps=max(500, int(model.steps * 30 * budget / after)))
        room = 60 * budget - after_seconds(model.steps, len(chosen))
        scale, longer = SHORTEST, LONGEST
        for _ in range(20):  # a part of a training's time does not depend on its length
            middle = (scale * longer) ** 0.5
            if training_seconds(configs(middle), workers) <= room:
                scale = middle
            else:
                longer = middle
    runs = [
        PlannedRun(member.algorithm, "data", seed, config, member.label).to_json()
        for member, config in zip(chosen, configs(scale), strict=True)
    ]
    return Plan(dataset.identity, dataset.spec.task, level, seed, share, estimator,
                budget, None if budget is None else workers,
                json.loads(json.dumps(runs)), json.loads(json.dumps(asdict(model))))  # fmt: skip


def check_division(division: heldout.Split, share: float) -> None:
    """Refuse a share that leaves too little to train on or to judge by. A short log may hold out as
    few as the usual share gives."""
    training, held = len(division.training), len(division.heldout)
    episodes = training + held
    least = min(LEAST_EACH, round(heldout.SHARE * episodes))
    if min(training, held) < least:
        raise InputError(
            f"A held-out share of {share:g} leaves {training} of {episodes:,} episodes to train on "
            f"and {held} to judge by; each needs at least {least}. Choose a share from "
            f"{least / episodes:.2g} to {1 - least / episodes:.2g}."
        )


def open_folder(folder: Path, plan: Plan) -> None:
    """Begin the folder of a fit, or see to it that the one that is there is the same."""
    path = folder / "plan.json"
    if not path.is_file():
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} exists and holds no fit. Choose another place with --out.")
        write_json(path, asdict(plan))
        return
    there = read_record(path, dict[str, Any])
    later = {"budget": plan.budget, "workers": plan.workers}  # plans from before do not say
    asked = asdict(plan)
    del asked["data"]  # the same log may lie elsewhere now
    for name, value in asked.items():
        found = (later | there).get(name)
        if found != value:
            plain = name not in ("source", "runs", "model")
            was = f": {_said(found)}, not {_said(value)}" if plain else ""
            what = NAMES.get(name, f"another {name}") + was
            raise InputError(
                f"The fit in {folder} is of {what}. Give the same, or another place with --out."
            )


def _said(value: Any) -> str:
    return "none" if value is None else str(value)[:50]


def expectation(plan: Plan, runs: list[PlannedRun], dataset: Dataset, workers: int) -> str:
    training = training_seconds([run.config for run in runs], workers)
    after = after_seconds(plan.model["steps"], len(runs))
    said = (
        f"{dataset.n_episodes:,} episodes, {dataset.n_transitions:,} transitions. "
        f"{len(runs)} trainings and their evaluation: about {duration(training + after)} on "
        f"{workers} {'core' if workers == 1 else 'cores'}."
    )
    given = training + after if plan.budget is None else 60 * plan.budget
    if training + after > (1 + ROUGH) * given:
        said += f" The budget of {plan.budget:g} min cannot be met: this is the shortest."
    elif training + after < (1 - ROUGH) * given:
        more = "" if plan.level == "thorough" else " --thorough tries more."
        said += (
            f" The budget of {plan.budget:g} min is not used up: trainings are at most "
            f"{LONGEST:g} times as long as usual.{more}"
        )
    return said


def after_seconds(steps: int, policies: int) -> float:
    """Of the model, and of what it says of every policy."""
    return steps * MODEL_SECONDS + policies * MEMBER_SECONDS


def training_seconds(configs: Sequence[Any], workers: int) -> float:
    """Of all trainings, so many at a time: none is shorter than its own time."""
    each = [seconds(config) for config in configs]
    return max(sum(each) / workers, max(each))


def training_data(dataset: Dataset, division: heldout.Split) -> Dataset:
    """The training episodes, under a name and a task that no simulator and no settings know."""
    part = heldout.of_episodes(dataset, division.training)
    name = f"training episodes of {dataset.info.get('name', dataset.spec.task)}"
    info = {k: v for k, v in dataset.info.items() if k not in ("name", "reference")}
    task = f"log of {dataset.spec.task}"
    return replace(part, spec=replace(part.spec, task=task), info={**info, "name": name})


def evaluate_all(
    folder: Path,
    dataset: Dataset,
    division: heldout.Split,
    plan: Plan,
    failed: Mapping[str, str],
    quiet: bool,
) -> dict[str, dict[str, Any]]:
    """What the log says of every policy, by label. What is written already is only read."""
    from spacql.evaluation.verdict import of_run
    from spacql.progress import progress

    labels = [run["folder"] for run in plan.runs if run["folder"] not in failed]
    places = {label: folder / "evaluations" / f"{label}.json" for label in labels}
    missing = [label for label in labels if not places[label].is_file()]
    if missing:
        config = ModelConfig(**{**plan.model, "hidden": tuple(plan.model["hidden"])})
        with progress("offline evaluation", 1.0) as advance:
            done = 0.0

            def report(what: str, share: float) -> None:
                nonlocal done
                if not quiet:
                    advance(max(0.0, share - done), what)
                done = share if share < 1 else 0.0

            evaluator = Evaluator(
                dataset, seed=plan.seed, split=division, model_config=config, report=report
            )
            for label in missing:
                policy = Policy.load(folder / "runs" / label)
                found = evaluator.evaluate(policy, (plan.estimator,)).to_json()
                run = folder / "runs" / label
                warnings = of_run(run, load_dataset(folder / "data"))
                write_json(places[label], found | {"label": label, "warnings": warnings,
                                                   "training": last_metrics(run)})  # fmt: skip
    return {label: records.offline(places[label], plan.estimator) for label in labels}


def last_metrics(run: Path) -> dict[str, Any]:
    """What a training's own numbers were at its end, where it has them."""
    rows = read_metrics(run / "metrics.jsonl")[-20:]
    known = [name for name in OWN if rows and name in rows[-1]]
    return {name: np.mean([row[name] for row in rows], axis=0).tolist() for name in known}


def add_truth(folder: Path, dataset: Dataset, seed: int) -> dict[str, dict[str, Any]]:
    """True returns of all policies, where the log is of a world that is known here: measured after
    the choice, which never sees them."""
    import jax

    from spacql.worlds import is_slow

    score, note = scorer(dataset.spec.task, dataset)
    if note:
        return {}
    episodes = 10 if is_slow(dataset.spec.task) else 500
    found = {}
    for path in sorted((folder / "evaluations").glob("*.json")):
        evaluation = records.offline(path)
        if "truth" not in evaluation:
            policy = Policy.load(folder / "runs" / path.stem)
            true = score(policy, episodes, jax.random.key(seed + 2_000_003))
            kept = {"return": true["return"]["mean"], "interval": true["return"]["interval"],
                    "score": true["score"], "episodes": episodes}  # fmt: skip
            evaluation["truth"] = kept
            write_json(path, evaluation)
        found[path.stem] = evaluation["truth"]
    return found


def conclude(
    folder: Path,
    plan: Plan,
    dataset: Dataset,
    evaluations: Mapping[str, Mapping[str, Any]],
    failed: Mapping[str, str],
    truth: Mapping[str, Mapping[str, Any]],
) -> Fit:
    """The chosen policy, the folder's own files, and the words."""
    found = {
        label: kept(x["estimates"][plan.estimator], f"What the log says of {label}")
        for label, x in evaluations.items()
    }
    best = choose(found, plan.estimator)
    table = sorted(
        ({"label": label, **found[label]._asdict(), "bound": bound(found[label], plan.estimator),
          "distance": x["distance"],
          "outside": x["outside"], "warnings": x.get("warnings", []),
          "training": x.get("training", {}), "truth": truth.get(label)}
         for label, x in evaluations.items()),
        key=lambda row: (row["label"] != best, -row["bound"]),
    )  # fmt: skip
    chosen = table[0]
    any_one = evaluations[chosen["label"]]
    clone = next((row for row in table if row["label"] == CLONE), None)
    verdict = words.verdict(chosen, any_one["log"], clone)
    policy = Policy.load(folder / "runs" / chosen["label"])
    policy.save(folder / "policy")
    result = {
        "format": 1,
        "task": plan.task,
        "data": {"name": dataset_name(dataset), "identity": plan.source,
                 "episodes": dataset.n_episodes, "transitions": dataset.n_transitions,
                 "reference": dataset.info.get("reference")},
        "chosen": chosen["label"],
        "verdict": verdict,
        "words": words.summary(verdict, chosen, any_one["log"], clone, any_one["trust"]),
        "estimator": plan.estimator,
        "log": any_one["log"],
        "clone": clone,
        "level": plan.level,
        "trust": any_one["trust"],
        "heldout": any_one["heldout"],
        "table": table,
        "failed": dict(failed),
    }  # fmt: skip
    write_json(folder / "fit.json", result)
    return Fit(folder, policy, chosen["label"], verdict, result)
