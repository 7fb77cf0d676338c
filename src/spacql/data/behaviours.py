"""The behaviours that make the datasets: trained by MATD3, chosen by level, shipped as files.

`train` makes snapshots of one training, `choose` picks the medium and the expert among them and
measures the reference scores. What both leave in the package's assets is all that `make` needs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jax
import numpy as np

from spacql.data import matd3
from spacql.errors import InputError
from spacql.files import read_json, write_json
from spacql.policies import Policy, uniform
from spacql.progress import Advance
from spacql.worlds import Trajectories, is_jax, make, rollout

SEEDS = range(5)
DEVELOPMENT = 100  # dataset seeds 100 to 104: the same five behaviours, other episodes
ASSETS = Path(str(files("spacql") / "assets"))


@dataclass(frozen=True)
class Recipe:
    """How a task's behaviours are trained and chosen."""

    config: matd3.Config
    snapshot: int  # iterations (particle worlds: whole episodes) or steps between snapshots
    medium: float  # score that the medium behaviour should have, as in the published data
    expert: float  # return at which a behaviour counts as expert; infinity: its best snapshot
    episodes: int  # to measure a snapshot
    final_episodes: int  # to measure the chosen ones and the references
    settled: int = 1  # snapshots whose mean return counts for the end of training and the expert
    trials: int = 0  # likely snapshots that are compared by how steady their episodes are
    training_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)  # of the five behaviours


_PARTICLE = matd3.Config(teams=((0, 1, 2),), iterations=20_000, reward_scale=0.02)
_CHEETAH = matd3.Config(
    teams=((0, 1),),
    iterations=1_000_000,
    worlds=20,  # steps an update: a slow learner leaves a long and varied replay
    warmup=10_000,
    capacity=1_000_000,
    batch=256,
    hidden=256,
    discount=0.99,
    target_rate=0.005,
    reward_scale=1.0,
    action_cost=0.0,
)
RECIPES = {
    "spread": Recipe(replace(_PARTICLE, iterations=50_000), 250, 32, 531.0, 1000, 10_000),
    "tag": Recipe(_PARTICLE, 125, 64, 208.0, 1000, 10_000),
    # Training 1 learned so slowly that it ended 20 % below the others.
    "world": Recipe(_PARTICLE, 250, 84, np.inf, 1000, 10_000, training_seeds=(0, 5, 2, 3, 4)),
    # Training 4 was caught in a gait that returns 500.
    "halfcheetah": Recipe(
        _CHEETAH, 5_000, 48, 3600.0, 3, 100, settled=8, trials=10, training_seeds=(0, 1, 2, 3, 5)
    ),
}
PREY = replace(_PARTICLE, teams=((0, 1, 2), (3,)), iterations=8_000)
TOLERANCE = 5.0  # points of score that a medium behaviour may be off
TRIAL_EPISODES = 40  # to tell a steady snapshot from an unsteady one


def train_prey(task: str, out: Path, advance: Advance) -> Policy:
    """Predators and prey against each other; the prey is then frozen, the predators forgotten."""
    world = make(task, prey=None)
    carry = matd3.start(world, PREY, seed=0)
    for _ in range(0, PREY.iterations, 500):
        carry, _ = matd3.run(world, carry, PREY, 500)
        advance(500 / PREY.iterations)
    prey = matd3.to_policy(carry.learner.online.actors, world.spec, "").actors[-1]
    policy = Policy((prey,), name=f"{task}-prey", agents=("prey",))
    policy.save(out / f"{task}-prey")
    return policy


def training(world: Any, recipe: Recipe, seed: int) -> Iterator[tuple[Any, list[Trajectories]]]:
    """A behaviour's training, snapshot by snapshot: its actors, and its experience in episodes.

    Always cut at the same places, so that its beginning can be repeated bit by bit. Dataset seeds
    from 100 on are trainings that serve replays for development alone.
    """
    config, spec = recipe.config, world.spec
    random_seed = recipe.training_seeds[seed % DEVELOPMENT] + seed // DEVELOPMENT * DEVELOPMENT
    if is_jax(world):
        carry = matd3.start(world, config, random_seed)
        for _ in range(0, config.iterations, recipe.snapshot):
            carry, lived = matd3.run(world, carry, config, recipe.snapshot)
            yield carry.learner.online.actors, [matd3.episodes(lived, spec)]
    else:
        parts = matd3.train_in_host_world(world, config, random_seed, recipe.snapshot)
        for _ in range(0, config.iterations, recipe.snapshot):
            learner, episodes = next(parts)
            yield learner.online.actors, episodes


def train(task: str, seed: int, folder: Path, advance: Advance) -> None:
    """Train one behaviour; leaves every snapshot and `curve.json` (written last) in `folder`."""
    recipe, world = RECIPES[task], make(task)
    if (folder / "curve.json").exists():
        return
    curve = []
    steps = recipe.snapshot * (recipe.config.worlds if is_jax(world) else 1)
    total = recipe.config.iterations // recipe.snapshot
    for number, (actors, _) in enumerate(training(world, recipe, seed), start=1):
        behaviour = _behaviour(actors, world, recipe, task, seed, number)
        behaviour.save(folder / f"{number}")
        key = jax.random.fold_in(jax.random.key(1000 + seed), number)
        returns = rollout(world, behaviour, key, recipe.episodes).mean(axis=1)
        curve.append({"snapshot": number, "steps": number * steps, "return": float(returns.mean())})
        advance(1 / total, f"return {returns.mean():.1f}")
        latest = [row["return"] for row in curve[-recipe.settled :]]
        if number >= recipe.settled and np.mean(latest) > 1.05 * recipe.expert:
            break  # certainly expert: no need to go on
    write_json(folder / "curve.json", curve)


def choose(task: str, folder: Path, out: Path) -> dict[str, Any]:
    """Pick each seed's expert and medium among its snapshots; measure all with fresh episodes.

    Score 100 is the mean return of the five experts as they act in the data, noise included;
    score 0 that of uniform actions.
    """
    recipe, world = RECIPES[task], make(task)
    curves = {seed: read_json(folder / f"{task}-{seed}" / "curve.json") for seed in SEEDS}

    def measure(policy: Policy, salt: int, episodes: int) -> dict[str, float]:
        key = jax.random.fold_in(jax.random.key(77), salt)
        returns = rollout(world, policy, key, episodes).mean(axis=1)
        return {"return": float(returns.mean()), "std": float(returns.std())}

    def load(seed: int, number: int) -> Policy:
        return Policy.load(folder / f"{task}-{seed}" / f"{number}")

    def steadiest(
        seed: int, ranked: list[dict[str, Any]], off: Callable[[np.ndarray], float]
    ) -> list[dict[str, Any]]:
        """The first `trials` snapshots, in the order of how far `off` their episodes are."""
        if not recipe.trials:
            return ranked

        def trial(row: dict[str, Any]) -> float:
            key = jax.random.fold_in(jax.random.key(78), row["snapshot"])
            policy = load(seed, row["snapshot"])
            return float(off(rollout(world, policy, key, TRIAL_EPISODES).mean(axis=1)))

        return sorted(ranked[: recipe.trials], key=trial)

    random = measure(uniform(world.spec), 0, recipe.final_episodes)
    chosen: dict[int, dict[str, Any]] = {seed: {} for seed in SEEDS}
    for seed, curve in curves.items():
        ranked = _expert_order(curve, recipe)
        ranked = steadiest(seed, ranked, lambda returns: returns.std() - returns.mean())
        # A lucky measurement may have put a weak snapshot first: measure until one holds.
        for row in ranked[:5]:
            measured = measure(load(seed, row["snapshot"]), 10 + seed, recipe.final_episodes)
            best = chosen[seed].get("expert")
            if best is None or measured["return"] > best["return"]:
                chosen[seed]["expert"] = {**row, **measured}
            if measured["return"] >= 0.99 * min(recipe.expert, row["return"]):
                break
    expert = float(np.mean([c["expert"]["return"] for c in chosen.values()]))

    def score(value: Any) -> Any:
        return 100 * (value - random["return"]) / (expert - random["return"])

    for seed, curve in curves.items():
        before = [r for r in curve if r["snapshot"] < chosen[seed]["expert"]["snapshot"]]
        ranked = sorted(before or curve, key=lambda row: abs(score(row["return"]) - recipe.medium))
        ranked = steadiest(seed, ranked, lambda r: np.mean((score(r) - recipe.medium) ** 2))
        for tried, row in enumerate(ranked[:10], start=1):
            measured = measure(load(seed, row["snapshot"]), 20 + seed, recipe.final_episodes)
            entry = {**row, **measured, "score": score(measured["return"])}
            chosen[seed]["medium"] = min(
                [chosen[seed].get("medium", entry), entry],
                key=lambda medium: abs(medium["score"] - recipe.medium),
            )
            off = abs(chosen[seed]["medium"]["score"] - recipe.medium)
            if off < TOLERANCE / 2 or (tried >= 5 and off < TOLERANCE):
                break
    for seed in SEEDS:
        for level in ("medium", "expert"):
            policy = load(seed, chosen[seed][level]["snapshot"])
            replace_name(policy, f"{task}-{level}-{seed}").save(
                out / "behaviours" / f"{task}-{level}-{seed}"
            )
    summary = {
        "prey": world.spec.prey,
        "episodes": recipe.final_episodes,
        "random": random,
        "expert": expert,
        "seeds": [
            {
                **chosen[seed],
                "curve": [[row["steps"], round(row["return"], 1)] for row in curves[seed]],
            }
            for seed in SEEDS
        ],
    }
    write_json(out / "behaviours" / f"{task}.json", summary)
    return summary


def behaviour(task: str, quality: str, seed: int) -> Policy:
    """A behaviour that ships with the package."""
    return Policy.load(ASSETS / "behaviours" / f"{task}-{quality}-{seed}")


def number(seed: int) -> int:
    """Which of the five behaviours a dataset seed belongs to."""
    if seed in SEEDS or seed - DEVELOPMENT in SEEDS:
        return seed % DEVELOPMENT
    raise InputError(
        f"Dataset seeds are 0 to {len(SEEDS) - 1}, each with a behaviour of its own, and "
        f"{DEVELOPMENT} to {DEVELOPMENT + len(SEEDS) - 1} for development, not {seed}."
    )


def record(task: str) -> dict[str, Any]:
    """What is known about a task's shipped behaviours: levels, references, curves."""
    path = ASSETS / "behaviours" / f"{task}.json"
    if not path.exists():
        raise InputError(f"No behaviours for {task!r} ship with this version.")
    return read_json(path)


def replace_name(policy: Policy, name: str) -> Policy:
    return Policy(policy.actors, name=name, agents=policy.agents)


def _behaviour(
    actors: Any, world: Any, recipe: Recipe, task: str, seed: int, number: int
) -> Policy:
    name = f"{task}-{seed}-snapshot-{number}"
    return matd3.to_policy(actors, world.spec, name, recipe.config.noise)


def _expert_order(curve: list[dict[str, Any]], recipe: Recipe) -> list[dict[str, Any]]:
    """Snapshots in the order in which to try them as expert: the first ones at the level, so
    that data resembles the published; else the best ones."""

    def settled(row: dict[str, Any]) -> float:
        upto = row["snapshot"]
        latest = curve[max(0, upto - recipe.settled) : upto]
        return float(np.mean([r["return"] for r in latest]))

    reached = [row for row in curve if settled(row) >= recipe.expert]
    rest = sorted((r for r in curve if settled(r) < recipe.expert), key=lambda r: -r["return"])
    return reached + rest
