"""The doors for fits, estimates from logs, exported policies, and what nodes of a cluster keep."""

import functools
import hashlib
import json
import shutil
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
from hostile_doors import dataset, log
from hostile_doors import samples as data_samples
from hostile_harness import Door
from hostile_mutations import pick, spoil_bytes, spoil_json, spoil_value
from hostile_runs import samples as run_samples
from hostile_runs import spoil_policy

from spacql import records, runs
from spacql.data import Dataset, load_dataset
from spacql.evaluation import intervals
from spacql.evaluation.offline import Evaluator, check_fits
from spacql.experiments import packing
from spacql.files import write_json
from spacql.fitting import pipeline
from spacql.policies import Policy
from spacql.report import fits
from spacql.report.source import of_folder
from spacql.training.checkpoints import Checkpoints


@functools.cache
def ten_episodes() -> Dataset:
    rng = np.random.default_rng(1)
    return Dataset.from_episodes([log(rng) for _ in range(12)], task="toy", info={"name": "toy"})


def evaluation() -> dict[str, Any]:
    estimate = {"mean": 5.0, "low": 4.0, "high": 6.0}
    trust = {"correlation": 0.9, "bias": 0.1, "error": 0.5, "episodes": 5}
    apart = {"a": 0.5, "b": 1.5}
    return {"estimates": {"model": estimate}, "discounted": {"model": estimate}, "discount": 0.95,
            "log": estimate, "distance": apart, "outside": apart, "trust": trust, "heldout": 5,
            "notes": [], "warnings": ["Not settled."], "policy": "toy", "label": "bc",
            "truth": {"return": 5.5}}  # fmt: skip


@functools.cache
def samples() -> Path:
    """The folder of a fit, as valid as a real one; and a run that a node has kept."""
    place = Path(tempfile.mkdtemp(prefix="spacql-hostile-"))
    fit = place / "fit"
    for label in ("bc", "td3bc"):
        shutil.copytree(run_samples() / "run" / "seed-0", fit / "runs" / label)
        write_json(fit / "evaluations" / f"{label}.json", evaluation() | {"label": label})
    write_json(fit / "plan.json", asdict(plan()))
    found = {
        label: records.offline(fit / "evaluations" / f"{label}.json") for label in ("bc", "td3bc")
    }
    pipeline.conclude(fit, plan(), ten_episodes(), found, {"spacql": "It diverged."}, {})
    kept = place / "kept"
    shutil.copytree(run_samples() / "run" / "seed-0", kept)
    (kept / "result.json").unlink()
    Checkpoints(kept / "checkpoints").save(10, {"w": np.arange(12, dtype=np.float32)})
    return place


@functools.cache
def plan() -> pipeline.Plan:
    return pipeline.make_plan(ten_episodes(), "quick", None, 0.2, 0, "model", 1)


def a_fit(rng: np.random.Generator, folder: Path) -> None:
    """The folder of a fit that somebody brought: gone on with, shown, reported."""
    place = folder / "fit"
    shutil.copytree(samples() / "fit", place)
    names = ("fit.json", "fit.json", "plan.json", "evaluations/bc.json", "evaluations/td3bc.json")
    file = place / pick(rng, names)
    file.write_bytes(spoil_json(rng, json.loads(file.read_text())))
    if rng.random() < 0.1:
        shutil.rmtree(place / "runs" / "bc")
    pipeline.open_folder(place, plan())
    found = {
        label: records.offline(place / "evaluations" / f"{label}.json", "model")
        for label in ("bc", "td3bc")
    }
    fit = fits.read(place)
    for section in (fits.good, fits.real, fits.distances, fits.command):
        section(fit)
    assert fits.headline([fit])
    pipeline.conclude(place, plan(), ten_episodes(), found, {}, {})


def an_estimate(rng: np.random.Generator, folder: Path) -> None:
    """What stands before an evaluation without a simulator, and what was kept of earlier ones."""
    kind = rng.integers(3)
    if kind == 0:  # a policy of somebody else
        spoil_policy(rng, folder)
        check_fits(Policy.load(folder), dataset())
    elif kind == 1:  # a log of somebody else
        shutil.copytree(data_samples() / "dataset", folder / "log")
        file = folder / "log" / "dataset.json"
        file.write_bytes(spoil_json(rng, json.loads(file.read_text())))
        log_ = load_dataset(folder / "log")
        info = spoil_value(rng, {"name": "x", "gamma": 0.9})
        log_ = replace(ten_episodes(), info=info if isinstance(info, dict) else log_.info)
        with mock.patch.object(intervals, "RESAMPLES", 10):
            share = pick(rng, (0.2, 0.0, 1.0, -1.0, 0.999, 1e-9, float("nan"), float("inf")))
            Evaluator(log_, share=share, seed=pick(rng, (0, 1, 2**31)))
    else:  # an estimate that was kept
        (folder / "offline.json").write_bytes(spoil_json(rng, evaluation()))
        records.offline(folder / "offline.json")
        shutil.copytree(run_samples() / "run" / "seed-0", folder, dirs_exist_ok=True)
        of_folder(folder)


def an_export(rng: np.random.Generator, folder: Path) -> None:
    """ONNX from a policy of somebody else."""
    from spacql.policies.onnx import export

    spoil_policy(rng, folder)
    policy = Policy.load(folder)
    if max(actor.observation_size for actor in policy.actors) > 10_000:
        return
    export(policy, folder / "out" / "team", per_agent=bool(rng.integers(2)))


def a_stored_state(rng: np.random.Generator, folder: Path) -> None:
    """What a node finds in a storage: a state that others wrote, sealed as they please."""
    storage = packing.Storage(str(folder / "storage"), "a-run")
    storage.save(samples() / "kept")
    (state,) = (folder / "storage" / "a-run").iterdir()
    files: dict[Any, Any] = dict(packing.pack(samples() / "kept"))
    kind = rng.integers(5)
    name = pick(rng, sorted(files))
    if kind == 0:
        state.write_bytes(spoil_bytes(rng, state.read_bytes()))
    else:
        if kind == 1:
            files[
                pick(
                    rng, ("../x", "/tmp/x", "run.json/", "checkpoints/1.checkpoint", "", "x.py", 3)
                )
            ] = b""
        elif kind == 2:
            files[name] = pick(rng, ("text", 3, None, [], {}, b""))
        elif kind == 3:
            files[name] = spoil_bytes(rng, files[name])
        body = msgspec.msgpack.encode(files)
        body = spoil_bytes(rng, body) if kind == 4 else body
        state.write_bytes(packing.MAGIC + hashlib.sha256(body).digest() + body)
    storage.load(folder / "run")
    if (folder / "run" / "run.json").exists():
        config = runs.records.run(folder / "run")["config"]
        assert isinstance(config, dict)
        Checkpoints(folder / "run" / "checkpoints", lambda said: None).latest()
    packing.unpack(packing.pack(folder / "run"), folder / "back")


DOORS: dict[str, tuple[Door, float]] = {
    "fit": (a_fit, 0.7),
    "offline": (an_estimate, 0.7),
    "export": (an_export, 0.4),
    "storage": (a_stored_state, 0.7),
}
