"""The doors for what runs leave behind, and for the command line's arguments."""

import contextlib
import functools
import hashlib
import io
import json
import os
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from unittest import mock

import jax
import numpy as np
from hostile_doors import dataset
from hostile_harness import Door
from hostile_mutations import PICKLE, pick, spoil_bytes, spoil_json, spoil_value

from spacql import records, runs
from spacql.algorithms.registry import find
from spacql.algorithms.settings import config_from, configure
from spacql.cli import main
from spacql.errors import SpacqlError
from spacql.experiments.store import Store, ended, summary
from spacql.experiments.sweeps import lines, stored
from spacql.files import write_json
from spacql.policies import Policy, init_mlp, uniform
from spacql.reference import Reference
from spacql.training.metrics import MetricsFile

TINY = {"rounds": 20, "batch_size": 16, "hidden": (8, 8), "critics": 2, "updates": 2}


@functools.cache
def samples() -> Path:
    """A finished run, its policy, a store and a sweep, as valid as trained ones."""
    place = Path(tempfile.mkdtemp(prefix="spacql-hostile-"))
    folder = place / "run" / "seed-0"
    config = configure("spacql", "toy", TINY)
    described = runs.describe("spacql", config, dataset(), 0)
    write_json(folder / "run.json", described)
    evaluation = {
        "score": 50.0, "return": {"mean": 5.0, "std": 1.0}, "episodes": 10, "note": "",
        "score_interval": [40.0, 60.0], "returns": [5.0] * 10,
    }  # fmt: skip
    result = {"rounds": 20, "seconds": 1.0, "evaluation": evaluation, "note": ""}
    write_json(folder / "result.json", result)
    rows = [{"round": k, "u": [0.1, 0.2], "k_eff": 1.5} for k in range(1, 21)]
    for row in rows[9::10]:
        row |= {"score": 50.0, "return": 5.0}
    metrics = MetricsFile(folder / "metrics.jsonl")
    metrics.write(rows)
    metrics.close()
    spec = dataset().spec
    bounds = zip(spec.observation_sizes, spec.action_low, spec.action_high, strict=True)
    actors = tuple(init_mlp(jax.random.key(0), *b, hidden=(4,)) for b in bounds)
    Policy(actors, name="toy", agents=spec.agents).save(folder / "policy")
    uniform(spec).save(place / "uniform")
    dof, small = find("dof"), configure("dof", "toy", {"hidden": (4,), "batch_size": 16})
    state = jax.jit(lambda key: dof.init(key, spec, small, dataset().statistics()))
    dof.policy(state(jax.random.key(0))).save(place / "dof")
    Store(place / "results").add(summary(folder))
    sweep = {
        "algorithm": "spacql", "data": "toy", "rounds": 20, "seeds": [100, 101],
        "config": described["config"], "best": 0.5,
        "hyperparameter": "alpha",
        "values": [{"value": a, "scores": [1.0, 2.0], "mean": 1.5, "failed": []} for a in (0.5, 1.0)],
    }  # fmt: skip
    write_json(place / "tune.json", sweep)
    Store(place / "results").add_sweep(place / "tune.json")
    return place


def spoil(rng: np.random.Generator, file: Path) -> None:
    file.write_bytes(spoil_json(rng, json.loads(file.read_text())))


def a_run(rng: np.random.Generator, folder: Path) -> None:
    """Listing, storing and reading on from a run folder that somebody brought."""
    place = folder / "run"
    shutil.copytree(samples() / "run", place)
    seed = place / "seed-0"
    spoil(rng, seed / pick(rng, ("run.json", "run.json", "result.json")))
    if rng.random() < 0.2:
        metrics = seed / "metrics.jsonl"
        metrics.write_bytes(spoil_bytes(rng, metrics.read_bytes()))
    if rng.random() < 0.2:
        (seed / "result.json").unlink()
        (seed / "diverged.json").write_bytes(spoil_json(rng, {"error": "Not finite."}))
    from spacql.commands.runs import entry
    from spacql.report.source import of_folder

    described = records.run(seed)
    entry(seed)
    of_folder(seed)
    config_from(find(described["algorithm"]), described["config"])
    if reference := described["dataset"]["reference"]:
        Reference.from_json(reference).score(1.0)
    if ended(seed):
        store = Store(folder / "results")
        store.add(summary(seed))
        assert len(Store(folder / "results")) == len(store)
    # As `spacql train` names its folder.
    runs.default_folder(described["algorithm"], described["dataset"]["name"]).mkdir(parents=True)


def a_continued_run(rng: np.random.Generator, folder: Path) -> None:
    """What --resume compares before it trains."""
    place = folder / "seed-0"
    shutil.copytree(samples() / "run" / "seed-0", place)
    spoil(rng, place / "run.json")
    config = configure("spacql", "toy", TINY)
    runs.open_folder(place, runs.describe("spacql", config, dataset(), 0), resume=True)


def a_store(rng: np.random.Generator, folder: Path) -> None:
    place = folder / "results"
    shutil.copytree(samples() / "results", place)
    spoil(rng, next((place / "runs").rglob("*.json")))
    store = Store(place)
    for run in store:
        store.add(run.record)
        Store(folder / "other").add(run.record)  # under a name of its own
        assert run.score is None or np.isfinite(run.score)


def a_sweep(rng: np.random.Generator, folder: Path) -> None:
    (folder / "tune.json").write_bytes(
        spoil_json(rng, json.loads((samples() / "tune.json").read_text()))
    )
    store = Store(folder / "results")
    store.add_sweep(folder / "tune.json")
    for sweep in stored(store):
        lines(sweep)


def spoil_policy(rng: np.random.Generator, folder: Path) -> None:
    """Policy files that are not what they were."""
    from safetensors.numpy import load_file, save

    policies = ("run/seed-0/policy", "run/seed-0/policy", "uniform", "dof")
    source = samples() / pick(rng, policies)
    text = json.loads(source.with_suffix(".json").read_text())
    weights = source.with_suffix(".safetensors").read_bytes()
    kind = rng.integers(4)
    if kind == 0:
        tensors = load_file(source.with_suffix(".safetensors"))
        name = pick(rng, sorted(tensors))
        array = tensors[name]
        bad = pick(rng, (np.nan, np.inf, 1e38, 0.0))
        options = (array[:-1], array * bad, array[None], array.astype(np.float64), array.astype(np.int8),
                   np.zeros((0,), np.float32), array.T.copy(), np.repeat(array, 2, axis=-1))  # fmt: skip
        tensors[name] = np.ascontiguousarray(pick(rng, options))
        if rng.random() < 0.2:
            del tensors[name]
        weights = save(tensors)
    elif kind == 1:
        weights = spoil_bytes(rng, weights) if rng.random() < 0.9 else PICKLE
    else:
        text = spoil_value(rng, text)
    if isinstance(text, dict) and rng.random() < 0.9:  # somebody who wants to be believed
        text["weights"] = hashlib.sha256(weights).hexdigest()
    (folder / "policy.safetensors").write_bytes(weights)
    (folder / "policy.json").write_bytes(
        json.dumps(text).encode() if rng.random() < 0.9 else spoil_json(rng, text)
    )


def a_policy(rng: np.random.Generator, folder: Path) -> None:
    spoil_policy(rng, folder)
    policy = Policy.load(folder)
    with jax.disable_jit():  # shapes differ from case to case: compiling each would take minutes
        for observation in (0.0, 1e6):
            sizes = [actor.observation_size for actor in policy.actors]
            if max(sizes) > 10_000:
                return
            seen = [np.full(size, observation, np.float32) for size in sizes]
            assert all(np.isfinite(action).all() for action in policy.act(seen))


ESCAPE = "../../escaped"
WORDS = (
    "-1", "0", "", "nan", "1e9", "99999999999999999999", "x", ESCAPE, "/etc/passwd", 
    "x" * 300, "--json", "--help", "spread-random", "toy", ".", "[/red]", "-", "--", "1.5", "None", "ä",
)  # fmt: skip
# Commands that are refused; the cases change, add and leave out words.
COMMANDS = (
    "train spacql --data nowhere --seeds 0 --rounds 20 --workers 1 --episodes 5",
    "train icql-qs --data DATA --seeds 0 0 --batch-size 16",
    "train spacql --data DATA --seeds -1",
    "train spacql --data DATA --replaced 4",
    "train spacql --data DATA --episodes -3",
    "train spacql --data DATA --batch-size 2000000000 --updates 500",
    "train spacql --data DATA --workers -1",
    "train spacql --data DATA --out FILE",
    "train spacql --data DATA --loggers paper",
    "tune spacql --data nowhere --alphas 0.1 --seeds 100",
    "tune spacql --data DATA --alphas nan",
    "tune spacql --data DATA --seeds 1 1",
    "evaluate nowhere --episodes 5",
    "evaluate RUN --episodes 0",
    "evaluate RUN --offline --data DATA --seed 0",
    "fit --data DATA --out new --quick --seed 0 --workers 1",
    "fit --data nowhere --out new --budget 1 --heldout 0.3",
    "fit --data DATA --out FILE --thorough",
    "export RUN --out new",
    "bench executors --runs 0",
    "data make nowhere --seed 0",
    "data make spread-random --seed -1 --out new",
    "data make spread-random --transitions 0 --out new",
    "data make halfcheetah-random --workers -1 --out new",
    "data import npz FILE --out new",
    "data import vault DATA --out new",
    "data import omar DATA --out new",
    "data export npz DATA --out FILE",
    "data inspect nowhere",
    "data fetch omar/nothing",
    "reproduce table1 --stored --results nowhere",
    "reproduce table1 --workers -1",
    "reproduce table1 --seeds 0 0",
    "results list --results nowhere",
    "results add RUN --results new",
    "results sweeps --results nowhere",
    "runs RUN",
    "theory --instances -1",
    "bench update --repeats 0",
    "report nowhere --out new.html",
    "nothing",
)


def arguments(rng: np.random.Generator, folder: Path) -> None:
    """A command ends with 0, 1 or 2 and says something; nothing else comes out of it."""
    from hostile_doors import samples as data_samples

    (folder / "file").write_text("x")
    places = {"DATA": str(data_samples() / "dataset"), "FILE": str(folder / "file"),
              "RUN": str(samples() / "run")}  # fmt: skip
    command = pick(rng, COMMANDS)
    words = [places.get(word, word) for word in command.split()]
    for _ in range(int(rng.integers(0, 3))):
        where = int(rng.integers(1, len(words))) if len(words) > 1 else 0
        kind = rng.integers(3)
        if kind == 0 and words[where].startswith("--"):
            del words[where]
        elif kind == 1:
            words.insert(where, pick(rng, WORDS))
        else:
            words[where] = pick(rng, WORDS)
        if not words:
            return
    if any(option in ("--out", "--results") and ESCAPE in word for option, word in pairwise(words)):
        return  # whoever says where to write is obeyed
    if words[0] in ("demo", "bench", "theory") and "".join(words[1:]) not in QUICK:
        return  # right after all, and minutes long
    out, err = io.StringIO(), io.StringIO()
    environment = dict(os.environ)
    stop = SpacqlError("What the arguments ask for would begin now.")
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch("spacql.experiments.executors.Local.execute", side_effect=stop),
            mock.patch("spacql.data.collect.make_dataset", side_effect=stop),
            mock.patch("spacql.data.fetch.download", side_effect=stop),
            mock.patch("spacql.experiments.store.default_results", return_value=folder / "results"),
        ):
            main(words)
    except SystemExit as end:
        if end.code not in (0, 1, 2, None):
            raise RuntimeError(f"exit code {end.code}") from end
        if end.code:
            raise SpacqlError(err.getvalue() or out.getvalue()) from end
    finally:
        os.environ.clear()
        os.environ.update(environment)


QUICK = ("--instances-1", "update--repeats0")


DOORS: dict[str, tuple[Door, float]] = {
    "run": (a_run, 1.0),
    "resume": (a_continued_run, 0.7),
    "store": (a_store, 0.7),
    "sweep": (a_sweep, 0.7),
    "policy": (a_policy, 0.7),
    "arguments": (arguments, 0.3),
}
