"""The sixteen datasets by name: who behaves how long in which world, written as it happens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from spacql.data import behaviours
from spacql.data.storage import DatasetWriter
from spacql.errors import InputError
from spacql.policies import uniform
from spacql.progress import Advance, progress
from spacql.worlds import TASKS, Trajectories, episode_chunks, is_jax, make

QUALITIES = ("random", "medium-replay", "medium", "expert")
NAMES = tuple(f"{task}-{quality}" for task in TASKS for quality in QUALITIES)
SIZE = 1_000_000  # transitions, as published
REPLAY_SIZE = {"spread": 97_500, "tag": 62_500, "world": 80_000, "halfcheetah": 460_000}
# Of a task's data: counts up whenever the same command would make other data.
EDITIONS = {"spread": 1, "tag": 1, "world": 1, "halfcheetah": 3}


def parse(name: str) -> tuple[str, str]:
    """A dataset's task and quality."""
    if name not in NAMES:
        raise InputError(
            f"There is no dataset {name!r}. Names are TASK-QUALITY with TASK one of "
            f"{', '.join(TASKS)} and QUALITY one of {', '.join(QUALITIES)}; for example "
            "spread-random."
        )
    task, _, quality = name.partition("-")
    return task, quality


def make_dataset(
    name: str, out: Path | str, *, seed: int = 0, transitions: int | None = None, workers: int = 1
) -> None:
    """Write the dataset to a new folder `out`. The same arguments give the same bytes.

    Seeds 0 to 4 are the datasets of reported results. Seeds 100 to 104 are for development: the
    same behaviours in other episodes, and as replay another training of the same length.
    """
    task, quality = parse(name)
    behaviour = behaviours.number(seed)
    world, record = make(task), behaviours.record(task)
    horizon = world.spec.horizon
    if transitions is not None and transitions < horizon:
        raise InputError(f"{name} needs at least one episode of {horizon} transitions, "
                         f"not {transitions}.")  # fmt: skip
    episodes = -(-(transitions or SIZE) // horizon)
    if quality == "medium-replay":
        lived = _lived(task, world, behaviour, record)
        episodes = -(-(transitions or REPLAY_SIZE[task]) // horizon)
        if transitions is None:
            episodes = min(episodes, lived)  # some behaviours were medium sooner
        if episodes > lived:
            raise InputError(
                f"{name} with seed {seed} has {lived * horizon} transitions: by then the behaviour "
                f"was medium. Ask for at most that many with --transitions."
            )
    info = {
        "name": name,
        "seed": seed,
        "edition": EDITIONS[task],
        "behaviour": _describe(task, quality, seed, record),
        "reference": {
            "random": record["random"]["return"],
            "expert": record["expert"],
            "episodes": record["episodes"],
            "prey": record["prey"],
            "source": "measured with the behaviours of this package",
        },
    }
    with DatasetWriter(out, world.spec, info) as writer, progress(name, episodes) as advance:
        if quality == "medium-replay":
            chunks = _replay(task, world, seed, episodes, record, advance)
        else:
            policy = (
                uniform(world.spec)
                if quality == "random"
                else behaviours.behaviour(task, quality, behaviour)
            )
            key = jax.random.fold_in(jax.random.key(seed), NAMES.index(name))
            chunks = episode_chunks(world, policy, key, episodes, workers=workers)
        for chunk in chunks:
            writer.add(chunk)
            if quality != "medium-replay":
                advance(len(chunk.rewards))


def _replay(
    task: str, world: Any, seed: int, episodes: int, record: Any, advance: Advance
) -> Iterator[Trajectories]:
    """What the behaviour lived until it was medium, thinned evenly to the size asked for."""
    recipe = behaviours.RECIPES[task]
    behaviour = behaviours.number(seed)
    snapshots = record["seeds"][behaviour]["medium"]["snapshot"]
    lived = _lived(task, world, behaviour, record)
    kept = np.floor((np.arange(episodes) + 0.5) * lived / episodes).astype(int)
    before = 0
    for number, (_, parts) in enumerate(behaviours.training(world, recipe, seed), start=1):
        for part in parts:
            here = kept[(kept >= before) & (kept < before + len(part.rewards))] - before
            before += len(part.rewards)
            if len(here):
                yield jax.tree.map(lambda x, here=here: x[here], part)
        advance(episodes / snapshots)
        if number == snapshots:
            return


def _lived(task: str, world: Any, seed: int, record: Any) -> int:
    """Episodes of the behaviour's training until it was medium."""
    episodes = record["seeds"][seed]["medium"]["steps"] // world.spec.horizon
    # In a host world the next step closes an episode, and none follows the last snapshot.
    return episodes if is_jax(world) else episodes - 1


def _describe(task: str, quality: str, seed: int, record: Any) -> dict[str, Any]:
    """Who acted, for the provenance of a dataset."""
    if quality == "random":
        return {"policy": "uniform"}
    noise = behaviours.RECIPES[task].config.noise
    if quality == "medium-replay":
        steps = record["seeds"][behaviours.number(seed)]["medium"]["steps"]
        return {"policy": f"MATD3 in training, its first {steps} steps", "noise": noise}
    return {"policy": f"{task}-{quality}-{behaviours.number(seed)}", "noise": noise}
