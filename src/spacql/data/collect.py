"""The sixteen datasets by name: who behaves how long in which world, written as it happens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from spacql.data import behaviours
from spacql.data.storage import DatasetWriter
from spacql.errors import InputError, suggestion
from spacql.files import read_json
from spacql.policies import Policy, uniform
from spacql.progress import Advance, progress
from spacql.worlds import TASKS, Trajectories, episode_chunks, is_jax, make
from spacql.worlds.world import default_prey

QUALITIES = ("random", "medium-replay", "medium", "expert")
NAMES = tuple(f"{task}-{quality}" for task in TASKS for quality in QUALITIES)
SIZE = 1_000_000  # transitions, as published
REPLAY_SIZE = {"spread": 97_500, "tag": 62_500, "world": 80_000, "halfcheetah": 460_000}
# Tasks whose replay is thinned evenly. Elsewhere it is the beginning of the experience, which is
# as near to random as the published one.
THINNED = ("spread",)
# Of a task's data, or of one dataset: counts up whenever the same command would make other data.
EDITIONS = {"spread": 1, "tag": 2, "world": 2, "halfcheetah": 3, "halfcheetah-medium": 4}


def parse(name: str) -> tuple[str, str]:
    """A dataset's task and quality."""
    if name not in NAMES:
        raise InputError(
            f"There is no dataset {name!r}.{suggestion(name, NAMES)} Names are TASK-QUALITY "
            f"with TASK one of {', '.join(TASKS)} and QUALITY one of "
            f"{', '.join(QUALITIES)}; for example spread-random."
        )
    task, _, quality = name.partition("-")
    return task, quality


def edition(name: str) -> int:
    return EDITIONS.get(name, EDITIONS[parse(name)[0]])


def make_dataset(
    name: str,
    out: Path | str,
    *,
    seed: int = 0,
    transitions: int | None = None,
    workers: int = 1,
    prey: Policy | None = None,
    folder: Path | None = None,
) -> None:
    """Write the dataset to a new folder `out`. The same arguments give the same bytes.

    Seeds 0 to 4 are the datasets of reported results. Seeds 100 to 104 are for development: the
    same behaviours in other episodes, and as replay another training of the same length.

    `folder` holds other behaviours than the package's, and `prey` is another prey than the one
    they were trained against; only random data can do without behaviours for its prey.
    """
    task, quality = parse(name)
    behaviour = behaviours.number(seed)
    prey, folder = _arena(task, quality, prey, folder)
    world = make(task, prey=prey or "default")
    record = behaviours.record(task, folder) if folder else None
    episodes = _episodes(name, world, behaviour, transitions, record)
    info = {
        "name": name,
        "seed": seed,
        "edition": edition(name),
        "behaviour": _describe(task, quality, behaviour, record),
        "reference": _reference(task, record, prey),
    }
    with (
        DatasetWriter(out, world.spec, info, prey) as writer,
        progress(name, episodes) as advance,
    ):
        if quality == "medium-replay":
            for chunk in _replay(task, world, seed, episodes, record, advance):
                writer.add(chunk)
            return
        policy = uniform(world.spec)
        if quality != "random":
            policy = behaviours.behaviour(task, quality, behaviour, folder or behaviours.ASSETS)
        key = jax.random.fold_in(jax.random.key(seed), NAMES.index(name))
        for chunk in episode_chunks(world, policy, key, episodes, workers=workers):
            writer.add(chunk)
            advance(len(chunk.rewards))


def _arena(
    task: str, quality: str, prey: Policy | None, folder: Path | None
) -> tuple[Policy | None, Path | None]:
    """The prey in the world, and the folder of behaviours that were trained against it."""
    if task not in ("tag", "world"):
        if prey is not None:
            raise InputError(f"There is no prey in {task}.")
        return None, folder or behaviours.ASSETS
    trained = behaviours.prey_of(task, folder) if folder else default_prey(task)
    if folder and trained is None:
        raise InputError(
            f"There is no {task}-prey.json in {folder}. Behaviours for a prey are trained with "
            f"`spacql data behaviours {task} --prey FILE --out DIR`."
        )
    if prey is None or eqx.tree_equal(prey.actors, trained.actors if trained else None):
        return trained, folder or behaviours.ASSETS
    if folder:
        raise InputError(f"The behaviours in {folder} were trained against another prey.")
    if quality != "random":
        raise InputError(
            f"The package's behaviours know another prey than {prey.name!r}. Train some with "
            f"`spacql data behaviours {task} --prey FILE --out DIR` and give --behaviours DIR."
        )
    return prey, None


def _episodes(name: str, world: Any, behaviour: int, transitions: int | None, record: Any) -> int:
    """How many episodes to make."""
    task, quality = parse(name)
    horizon = world.spec.horizon
    if transitions is not None and transitions < horizon:
        raise InputError(f"{name} needs at least one episode of {horizon} transitions, "
                         f"not {transitions}.")  # fmt: skip
    if quality != "medium-replay":
        return -(-(transitions or SIZE) // horizon)
    available = _experience(world, behaviour, record)
    if available < 1:
        steps = record["seeds"][behaviour]["replay"]["steps"]
        raise InputError(
            f"{name}: the behaviour {behaviour} was medium after {steps} steps, before it had "
            f"played an episode of {horizon}. Train it again, or make other data with it."
        )
    episodes = -(-(transitions or REPLAY_SIZE[task]) // horizon)
    if transitions is None:
        return min(episodes, available)  # some behaviours were medium sooner
    if episodes > available:
        raise InputError(
            f"{name} has {available * horizon} transitions with this seed: by then the behaviour "
            f"was medium. Ask for at most that many with --transitions."
        )
    return episodes


def _replay(
    task: str, world: Any, seed: int, episodes: int, record: Any, advance: Advance
) -> Iterator[Trajectories]:
    """The behaviour's experience until it was medium, cut to the number of episodes asked for."""
    recipe, behaviour = behaviours.RECIPES[task], behaviours.number(seed)
    snapshots = record["seeds"][behaviour]["replay"]["snapshot"]
    available = _experience(world, behaviour, record)
    kept = np.arange(episodes)
    if task in THINNED:
        kept = np.floor((kept + 0.5) * available / episodes).astype(int)
    before = 0
    for number, (_, parts) in enumerate(behaviours.training(world, recipe, seed), start=1):
        for part in parts:
            here = kept[(kept >= before) & (kept < before + len(part.rewards))] - before
            before += len(part.rewards)
            if len(here):
                yield jax.tree.map(lambda x, here=here: x[here], part)
        advance(episodes / snapshots)
        if number == snapshots or before > kept[-1]:
            return


def _experience(world: Any, behaviour: int, record: Any) -> int:
    """Episodes of the behaviour's training until it was medium."""
    episodes = record["seeds"][behaviour]["replay"]["steps"] // world.spec.horizon
    # In a host world the next step closes an episode, and none follows the last snapshot.
    return episodes if is_jax(world) else episodes - 1


def _reference(task: str, record: Any, prey: Policy | None) -> dict[str, Any] | None:
    """The returns that count as scores of 0 and 100. The published prey, known by its name, has
    the published ones; another prey has those of the behaviours trained against it."""
    for entry in read_json(behaviours.ASSETS / "references.json")[task]:
        if prey is not None and entry.get("prey") == prey.name:
            return entry
    if record is None:
        return None
    return {
        "random": record["random"]["return"],
        "expert": record["expert"],
        "episodes": record["episodes"],
        "prey": record["prey"],
        "source": "measured with the behaviours of this package",
    }


def _describe(task: str, quality: str, behaviour: int, record: Any) -> dict[str, Any]:
    """Who acted, for the provenance of a dataset."""
    if quality == "random":
        return {"policy": "uniform"}
    noise = behaviours.RECIPES[task].config.noise
    if quality == "medium-replay":
        steps = record["seeds"][behaviour]["replay"]["steps"]
        return {"policy": f"MATD3 in training, its first {steps} steps", "noise": noise}
    return {"policy": f"{task}-{quality}-{behaviour}", "noise": noise}
