"""`spacql data make`, `data behaviours`, `data train-prey` and `data prey-report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

if TYPE_CHECKING:
    from spacql.policies import Policy


def data_make(
    name: tyro.conf.Positional[str],
    /,
    out: Path | None = None,
    seed: int = 0,
    transitions: int | None = None,
    workers: int = 1,
    prey: Path | None = None,
    behaviours: Path | None = None,
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
        prey: In tag and world, another prey than the one that ships: its policy file.
        behaviours: Folder of other behaviours: what `spacql data behaviours` left in --out.
    """
    from spacql import arguments
    from spacql.data import cache, collect, load_dataset
    from spacql.errors import InputError

    collect.parse(name)
    arguments.whole("--workers", workers)
    arguments.whole("--transitions", transitions)
    arguments.place(out)
    special = [
        option
        for option, value in (
            ("--transitions", transitions), ("--prey", prey), ("--behaviours", behaviours)
        )
        if value is not None
    ]  # fmt: skip
    if out is None and special:
        raise InputError("The cache keeps the package's own datasets of the published size: "
                         f"with {special[0]}, say where to write with --out.")  # fmt: skip
    path = cache.place(name, seed) if out is None else out
    if out is None and (path / "dataset.json").is_file():
        print(f"{path} is there already.")
        return
    collect.make_dataset(
        name,
        path,
        seed=seed,
        transitions=transitions,
        workers=workers,
        prey=_load_prey(prey),
        folder=behaviours,
    )
    dataset = load_dataset(path)
    returns = dataset.returns.mean(axis=1)
    print(
        f"{path}: {dataset.n_transitions:,} transitions in {dataset.n_episodes:,} episodes, "
        f"return {returns.mean():z.1f} ± {returns.std():z.1f}"
    )


def data_behaviours(
    task: tyro.conf.Positional[Literal["spread", "tag", "world", "halfcheetah"]],
    /,
    out: Path = Path("behaviours"),
    prey: Path | None = None,
) -> None:
    """Train a task's behaviours: five trainings, then the choice of medium and expert.

    Minutes in the particle worlds, about an hour for HalfCheetah. A killed command goes on with
    the trainings that are not finished.

    Example: spacql data behaviours spread --out behaviours

    Args:
        task: The task to train for.
        out: Folder for snapshots, curves and the chosen policies, for
            `spacql data make --behaviours`.
        prey: In tag and world, another prey than the one that ships: its policy file.
    """
    from spacql.data import behaviours
    from spacql.errors import InputError
    from spacql.progress import progress

    if prey is not None and task not in ("tag", "world"):
        raise InputError(f"There is no prey in {task}.")
    opponent = _load_prey(prey)
    _keep_prey(task, out, opponent)
    for seed in behaviours.SEEDS:
        with progress(f"{task}-{seed}", 1.0) as advance:
            behaviours.train(task, seed, out / f"{task}-{seed}", advance, opponent)
    summary = behaviours.choose(task, out, opponent)
    print(f"random {summary['random']['return']:z.1f}, expert {summary['expert']:z.1f}")
    for seed, entry in enumerate(summary["seeds"]):
        print(
            f"seed {seed}: medium at {entry['medium']['steps']:,} steps, "
            f"score {entry['medium']['score']:z.1f}; expert at {entry['expert']['steps']:,} steps, "
            f"return {entry['expert']['return']:z.1f}"
        )


def data_train_prey(
    task: tyro.conf.Positional[Literal["tag", "world"]], /, out: Path = Path("behaviours")
) -> None:
    """Train the prey of tag or world anew, and choose the snapshot most like the published one.

    Prints how far off every snapshot is, in units of what is tolerated. It takes minutes.

    Example: spacql data train-prey tag --out preys

    Args:
        task: Whose prey.
        out: Folder for the snapshots and the chosen prey, TASK-prey.
    """
    from spacql.data import prey
    from spacql.progress import progress

    with progress(f"{task}-prey", 1.0) as advance:
        for seed, iteration, found in prey.train(task, out, advance):
            print(f"seed {seed}, {iteration} iterations: {prey.unlikeness(task, found):z.2f}")
    print(f"Wrote {out / f'{task}-prey.json'}")


def data_prey_report(
    prey: tyro.conf.Positional[str], /, episodes: int = 4000, json: bool = False
) -> None:
    """Show what a prey is like, beside the published one.

    Mean return of simple predators over single episodes (± deviation), how fast the prey moves
    and where it stays while predators act at random.

    Example: spacql data prey-report tag

    Args:
        prey: Its policy file; or tag or world for the prey that ships.
        episodes: To measure each line.
        json: Print JSON.
    """
    from json import dumps

    from spacql import arguments
    from spacql.data.prey import TASKS, published_statistics, statistics, task_of, unlikeness
    from spacql.policies import Policy
    from spacql.worlds.world import default_prey

    arguments.whole("--episodes", episodes)
    policy = default_prey(prey) if prey in TASKS else Policy.load(prey)
    task = task_of(policy)
    # Other episodes than those by which `train-prey` chooses, which would flatter its choice.
    found, published = statistics(task, policy, episodes, seed=1), published_statistics()[task]
    off = unlikeness(task, found)
    if json:
        here = {"task": task, "prey": policy.name, "episodes": episodes, "unlikeness": off}
        print(dumps({**here, "statistics": found, "published": published}, indent=1))
    else:
        print(_report(task, policy.name, found, published))
        within = "within" if off <= 1 else "outside"
        print(f"\nThe furthest is {off:z.2f} times what is tolerated: {within} the tolerance.")


def _report(task: str, name: str, found: Any, published: Any) -> str:
    labels = {
        "uniform": "return of uniform predators",
        "three": "return of three that run straight at the prey",
        "two": "return of two that do, the third flees",
        "one": "return of one that does, two flee",
        "speed": "mean speed",
        "outward": "mean larger coordinate",
        "outward at the end": "the same at the last step",
    }

    def show(value: Any, digits: int) -> str:
        if isinstance(value, dict):
            return f"{value['return']:z.1f} ± {value['std']:z.1f}"
        return f"{value:.{digits}f}"

    lines = [f"| {task} | {name} | published |", "| --- | ---: | ---: |"]
    lines += [
        f"| {label} | {show(found[key], 2)} | {show(published[key], 1)} |"
        for key, label in labels.items()
    ]
    return "\n".join(lines)


def _load_prey(file: Path | None) -> "Policy | None":
    from spacql.policies import Policy

    return None if file is None else Policy.load(file)


def _keep_prey(task: str, out: Path, prey: "Policy | None") -> None:
    """Save the prey beside the trainings, and refuse to mix those against different preys."""
    import equinox as eqx

    from spacql.data import behaviours
    from spacql.errors import InputError
    from spacql.worlds.world import default_prey

    if task not in ("tag", "world"):
        return
    prey = prey or default_prey(task)
    there = behaviours.prey_of(task, out)
    if there is not None and not eqx.tree_equal(there.actors, prey.actors):
        raise InputError(f"{out} holds trainings against another prey. Choose another --out.")
    prey.save(out / f"{task}-prey")
