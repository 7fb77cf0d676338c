"""`spacql evaluate RUN`."""

from pathlib import Path
from typing import Any

import tyro


def evaluate(
    run: tyro.conf.Positional[Path],
    /,
    episodes: int | None = None,
    gif: Path | None = None,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Score the policies of a run, one line per seed.

    RUN is the folder of a run, or of one seed in it.

    Example: spacql evaluate runs/spacql-spread-random --gif spread.gif

    Args:
        run: Folder of a run, or of one seed.
        episodes: Episodes per policy; 500, or 100 in halfcheetah.
        gif: Write a picture of the first policy in action (particle worlds).
        seed: Seed of the episodes.
        json: Print JSON, with every episode's return.
    """
    import sys
    from json import dumps

    import jax

    from spacql import arguments, records
    from spacql.errors import InputError
    from spacql.evaluation.score import evaluate as measure
    from spacql.policies import Policy
    from spacql.reference import Reference
    from spacql.runs import world_of

    arguments.whole("--episodes", episodes)
    arguments.whole("--seed", seed, 0)
    folders = [run] if (run / "run.json").exists() else sorted(run.glob("seed-*"))
    folders = [folder for folder in folders if (folder / "policy.json").exists()]
    if not folders:
        raise InputError(f"There is no trained policy in {run}.")
    results: list[dict[str, Any]] = []
    world: Any = None
    for folder in folders:
        described = records.run(folder)
        task, stored = described["spec"]["task"], described["dataset"]["reference"]
        prey = Policy.load(folder / "prey") if (folder / "prey.json").exists() else None
        world = world_of(described["spec"], prey)
        found = measure(
            Policy.load(folder),
            world,
            episodes=episodes or (100 if task == "halfcheetah" else 500),
            key=jax.random.key(seed),
            reference=Reference.from_json(stored) if stored else None,
        )
        results.append({"folder": str(folder), **found.to_json()})
        if not json:
            interval = found.score_interval
            span = f" (95 %: {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
            score = f"score {found.score:.1f}{span}, " if found.score is not None else ""
            print(f"{folder}: {score}return {found.summary.mean:.1f}. {found.note}".rstrip())
    if json:
        print(dumps(results, indent=1))
    if gif is not None:
        from spacql.worlds.render import save_gif

        save_gif(world, Policy.load(folders[0]), jax.random.key(seed), gif)
        print(f"Wrote {gif}", file=sys.stderr)
    return 0
