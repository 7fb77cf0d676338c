"""`spacql data make` and `spacql data behaviours`."""

from pathlib import Path
from typing import Annotated, Literal

import tyro


def data_make(
    name: tyro.conf.Positional[str],
    /,
    out: Path | None = None,
    seed: int = 0,
    transitions: int | None = None,
    workers: int = 1,
) -> None:
    """Make one of the sixteen datasets, TASK-QUALITY.

    TASK is spread, tag, world or halfcheetah; QUALITY is random, medium-replay, medium or expert.

    Example: spacql data make spread-random --seed 0 --out spread-random-0

    Args:
        name: For example spread-random or halfcheetah-medium-replay.
        out: New folder for the dataset; without it, the cache, where --data NAME finds it.
        seed: 0 to 4; each belongs to an independently trained behaviour. 100 to 104 are the same
            behaviours in other episodes, for development.
        transitions: How many; as published if not said.
        workers: Processes that step HalfCheetah at once.
    """
    from spacql.data import cache, collect, load_dataset
    from spacql.errors import InputError

    collect.parse(name)
    if out is None and transitions is not None:
        raise InputError("The cache keeps datasets of the published size: "
                         "with --transitions, say where to write with --out.")  # fmt: skip
    path = cache.place(name, seed) if out is None else out
    if out is None and (path / "dataset.json").is_file():
        print(f"{path} is there already.")
        return
    collect.make_dataset(name, path, seed=seed, transitions=transitions, workers=workers)
    dataset = load_dataset(path)
    returns = dataset.returns.mean(axis=1)
    print(
        f"{path}: {dataset.n_transitions:,} transitions in {dataset.n_episodes:,} episodes, "
        f"return {returns.mean():.1f} ± {returns.std():.1f}"
    )


def data_behaviours(
    task: tyro.conf.Positional[Literal["spread", "tag", "world", "halfcheetah"]],
    /,
    out: Path = Path("behaviours"),
    prey: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Train a task's behaviours again: five trainings, then the choice of medium and expert.

    Minutes in the particle worlds, about an hour for HalfCheetah. A killed command goes on with
    the trainings that are not finished.

    Example: spacql data behaviours spread --out behaviours

    Args:
        task: The task to train for.
        out: Folder for snapshots, curves and the chosen policies.
        prey: Train the prey of tag or world anew instead, and stop.
    """
    from spacql.data import behaviours
    from spacql.errors import InputError
    from spacql.progress import progress

    if prey:
        if task not in ("tag", "world"):
            raise InputError(f"There is no prey in {task}.")
        with progress(f"{task}-prey", 1.0) as advance:
            behaviours.train_prey(task, out, advance)
        print(f"Wrote {out / f'{task}-prey.json'}")
        return
    for seed in behaviours.SEEDS:
        with progress(f"{task}-{seed}", 1.0) as advance:
            behaviours.train(task, seed, out / f"{task}-{seed}", advance)
    summary = behaviours.choose(task, out, out)
    print(f"random {summary['random']['return']:.1f}, expert {summary['expert']:.1f}")
    for seed, entry in enumerate(summary["seeds"]):
        print(
            f"seed {seed}: medium at {entry['medium']['steps']:,} steps, "
            f"score {entry['medium']['score']:.1f}; expert at {entry['expert']['steps']:,} steps, "
            f"return {entry['expert']['return']:.1f}"
        )
