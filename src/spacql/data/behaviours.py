"""The behaviours that make the datasets: trained by MATD3, chosen by level, kept as files.

`train` makes snapshots of one training, `choose` picks the medium and the expert among them and
measures the reference scores. What both leave in a folder is all that `collect` needs; the
package's own assets are such a folder:

    FOLDER/behaviours/tag.json             levels, reference returns, curves
    FOLDER/behaviours/tag-expert-0.*       the policies
    FOLDER/tag-prey.*                      the prey that they were trained against
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import jax
import msgspec
import numpy as np

from spacql.data import matd3
from spacql.errors import InputError
from spacql.files import as_record, read_json, write_json
from spacql.policies import Policy, uniform
from spacql.policies.policy import files_of
from spacql.progress import Advance
from spacql.reference import Reference
from spacql.worlds import Trajectories, is_jax, make, rollout

SEEDS = range(5)
DEVELOPMENT = 100  # dataset seeds 100 to 104: the same five behaviours, other episodes
ASSETS = Path(str(files("spacql") / "assets"))
Row = dict[str, Any]  # of a curve: snapshot, steps, return; with a measurement also std


class Measured(msgspec.Struct, frozen=True):
    returned: float = msgspec.field(name="return")


class Point(Measured, frozen=True):
    steps: Annotated[int, msgspec.Meta(ge=1)]
    snapshot: Annotated[int, msgspec.Meta(ge=1)]


class OfSeed(msgspec.Struct, frozen=True):
    expert: Point
    medium: Point
    replay: Point


class Record(msgspec.Struct, frozen=True):
    """What `behaviours/TASK.json` must hold, beside what only pictures show."""

    random: Measured
    expert: float
    prey: str
    episodes: Annotated[int, msgspec.Meta(ge=1)]
    seeds: Annotated[list[OfSeed], msgspec.Meta(min_length=len(SEEDS), max_length=len(SEEDS))]


@dataclass(frozen=True)
class Recipe:
    """How a task's behaviours are trained and chosen."""

    config: matd3.Config
    snapshot: int  # iterations (particle worlds: whole episodes) or steps between snapshots
    medium: float  # score that the medium behaviour should have, as in the published data
    expert: float  # return at which a behaviour counts as expert; infinity: its best snapshot
    episodes: int = 1000  # to measure a snapshot
    final_episodes: int = 10_000  # to measure the chosen ones and the references
    settled: int = 1  # snapshots whose mean return counts for the end of training and the expert
    trials: int = 0  # likely snapshots that are compared by how steady their episodes are
    training_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)  # of the five behaviours
    factors: tuple[float, ...] = ()  # by which the medium's actions may be scaled, see `slowed`


PARTICLE = matd3.Config(teams=((0, 1, 2),), iterations=20_000, reward_scale=0.02)
_CHEETAH = matd3.Config(
    teams=((0, 1),),
    iterations=1_000_000,
    worlds=20,  # steps per update: a slow learner leaves a long and varied replay
    warmup=10_000,
    capacity=1_000_000,
    batch=256,
    hidden=256,
    discount=0.99,
    target_rate=0.005,
    reward_scale=1.0,
    action_cost=0.0,
)
# The level of an expert is the mean return of the published expert data, where it is reached.
RECIPES = {
    "spread": Recipe(
        config=replace(PARTICLE, iterations=50_000), snapshot=250, medium=32, expert=531.0
    ),
    "tag": Recipe(
        config=replace(PARTICLE, iterations=12_000), snapshot=50, medium=64, expert=208.0
    ),
    "world": Recipe(config=PARTICLE, snapshot=50, medium=84, expert=85.2),
    "halfcheetah": Recipe(
        config=_CHEETAH,
        snapshot=5_000,
        medium=48,
        expert=3600.0,
        episodes=3,
        final_episodes=100,
        settled=8,
        trials=10,
        training_seeds=(0, 1, 2, 3, 5),  # training 4 was caught in a gait that returns 500
        factors=tuple(k / 100 for k in range(40, 72, 2)),
    ),
}
TOLERANCE = 5.0  # points of score that a medium behaviour may be off
TRIAL_EPISODES = 40  # to tell a steady snapshot from an unsteady one
FACTOR_EPISODES = 20  # to compare factors of a slowed expert


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
            carry, experience = matd3.run(world, carry, config, recipe.snapshot)
            yield carry.learner.online.actors, [matd3.episodes(experience, spec)]
    else:
        parts = matd3.train_in_host_world(world, config, random_seed, recipe.snapshot)
        for _ in range(0, config.iterations, recipe.snapshot):
            learner, episodes = next(parts)
            yield learner.online.actors, episodes


def train(task: str, seed: int, folder: Path, advance: Advance, prey: Policy | None = None) -> None:
    """Train one behaviour; leaves every snapshot and `curve.json` (written last) in `folder`."""
    recipe, world = RECIPES[task], make(task, prey=prey or "default")
    if (folder / "curve.json").exists():
        return
    curve: list[Row] = []
    steps = recipe.snapshot * (recipe.config.worlds if is_jax(world) else 1)
    total = recipe.config.iterations // recipe.snapshot
    for snapshot, (actors, _) in enumerate(training(world, recipe, seed), start=1):
        name = f"{task}-{seed}-snapshot-{snapshot}"
        behaviour = matd3.to_policy(actors, world.spec, name, recipe.config.noise)
        behaviour.save(folder / f"{snapshot}")
        key = jax.random.fold_in(jax.random.key(1000 + seed), snapshot)
        returns = rollout(world, behaviour, key, recipe.episodes).mean(axis=1)
        mean = float(returns.mean())
        curve.append({"snapshot": snapshot, "steps": snapshot * steps, "return": mean})
        advance(1 / total, f"return {mean:z.1f}")
        latest = [row["return"] for row in curve[-recipe.settled :]]
        if snapshot >= recipe.settled and np.mean(latest) > 1.05 * recipe.expert:
            break  # certainly expert: no need to go on
    write_json(folder / "curve.json", curve)


@dataclass(frozen=True)
class Candidates:
    """The snapshots of one training, among which its expert and its medium are chosen."""

    seed: int
    folder: Path
    curve: list[Row]
    world: Any
    recipe: Recipe

    def load(self, row: Row) -> Policy:
        return Policy.load(self.folder / f"{row['snapshot']}")

    def measured(self, row: Row, salt: int) -> Row:
        """The row with the return of many fresh episodes."""
        return {**row, **_measure(self.world, self.load(row), salt, self.recipe.final_episodes)}

    def steadiest(self, ranked: list[Row], off: Callable[[np.ndarray], float]) -> list[Row]:
        """The first `trials` snapshots, in the order of how far `off` their episodes are."""
        if not self.recipe.trials:
            return ranked

        def trial(row: Row) -> float:
            key = jax.random.fold_in(jax.random.key(78), row["snapshot"])
            returns = rollout(self.world, self.load(row), key, TRIAL_EPISODES)
            return float(off(returns.mean(axis=1)))

        return sorted(ranked[: self.recipe.trials], key=trial)


def choose(task: str, folder: Path, prey: Policy | None = None) -> dict[str, Any]:
    """Pick each training's expert and medium among its snapshots; measure all with fresh episodes.

    Score 100 is the mean return of the five experts as they act in the data, noise included;
    score 0 that of uniform actions.
    """
    recipe, world = RECIPES[task], make(task, prey=prey or "default")
    trainings = []
    for seed in SEEDS:
        place = folder / f"{task}-{seed}"
        curve = read_json(place / "curve.json")
        as_record(curve, list[Point], place / "curve.json")
        trainings.append(Candidates(seed, place, curve, world, recipe))
    random = _measure(world, uniform(world.spec), 0, recipe.final_episodes)
    experts = [choose_expert(candidates) for candidates in trainings]
    level = float(np.mean([expert["return"] for expert in experts]))
    score = Reference(random["return"], level).score
    seeds = []
    for candidates, expert in zip(trainings, experts, strict=True):
        replay = choose_medium(candidates, expert, score)
        medium = slowed(candidates, expert, score) if recipe.factors else replay
        for quality, row in (("medium", medium), ("expert", expert)):
            name = f"{task}-{quality}-{candidates.seed}"
            save_behaviour(candidates.load(row), row, name, folder)
        curve = [[row["steps"], round(row["return"], 1)] for row in candidates.curve]
        # The replay ends with a snapshot, which is the medium unless that is a slowed expert.
        seeds.append({"expert": expert, "medium": medium, "replay": replay, "curve": curve})
    if task in ("tag", "world"):
        world.prey.save(folder / f"{task}-prey")
    summary = {
        "prey": world.spec.prey,
        "episodes": recipe.final_episodes,
        "random": random,
        "expert": level,
        "seeds": seeds,
    }
    write_json(folder / "behaviours" / f"{task}.json", summary)
    return summary


def choose_expert(candidates: Candidates) -> Row:
    """The first snapshot at the level, or the best one."""
    ranked = expert_order(candidates.curve, candidates.recipe)
    ranked = candidates.steadiest(ranked, lambda returns: returns.std() - returns.mean())
    tried: list[Row] = []
    # A lucky measurement may have put a weak snapshot first: measure until one holds.
    for row in ranked[:5]:
        tried.append(candidates.measured(row, 10 + candidates.seed))
        if tried[-1]["return"] >= 0.99 * min(candidates.recipe.expert, row["return"]):
            break
    return max(tried, key=lambda row: row["return"])


def choose_medium(candidates: Candidates, expert: Row, score: Callable[[Any], Any]) -> Row:
    """The snapshot before the expert whose score is nearest to the wanted one."""
    wanted = candidates.recipe.medium
    before = [row for row in candidates.curve if row["snapshot"] < expert["snapshot"]]
    ranked = sorted(before or candidates.curve, key=lambda row: abs(score(row["return"]) - wanted))
    ranked = candidates.steadiest(ranked, lambda r: np.mean((score(r) - wanted) ** 2))
    tried: list[Row] = []
    off = np.inf
    for row in ranked[:10]:
        measured = candidates.measured(row, 20 + candidates.seed)
        tried.append({**measured, "score": score(measured["return"])})
        off = min(off, abs(tried[-1]["score"] - wanted))
        if off < TOLERANCE / 2 or (len(tried) >= 5 and off < TOLERANCE):
            break
    return min(tried, key=lambda row: abs(row["score"] - wanted))


def slowed(candidates: Candidates, expert: Row, score: Callable[[Any], Any]) -> Row:
    """The expert with its actions scaled down, as medium behaviour: the factor whose single
    episodes are nearest to the wanted score.

    For worlds in which snapshots at the medium level are unsteady: they run in some episodes and
    fall in others.
    """
    recipe, world, policy = candidates.recipe, candidates.world, candidates.load(expert)

    def off(factor: float) -> float:
        key = jax.random.fold_in(jax.random.key(79), candidates.seed)
        returns = rollout(world, scale(policy, factor), key, FACTOR_EPISODES).mean(axis=1)
        return float(np.mean((score(returns) - recipe.medium) ** 2))

    factor = min(recipe.factors, key=off)
    policy = scale(policy, factor)
    found = _measure(world, policy, 20 + candidates.seed, recipe.final_episodes)
    return {**expert, **found, "score": score(found["return"]), "factor": factor}


def scale(policy: Policy, factor: float) -> Policy:
    """The policy with its actions scaled about the middle of their bounds; its noise stays."""

    def slow(actor: Any) -> Any:
        middle = [(low + high) / 2 for low, high in zip(actor.low, actor.high, strict=True)]
        low = tuple(m + factor * (x - m) for m, x in zip(middle, actor.low, strict=True))
        high = tuple(m + factor * (x - m) for m, x in zip(middle, actor.high, strict=True))
        return replace(actor, low=low, high=high, noise=actor.noise / factor)

    return Policy(tuple(map(slow, policy.actors)), name=policy.name, agents=policy.agents)


def save_behaviour(policy: Policy, row: Row, name: str, folder: Path) -> None:
    """Keep a chosen snapshot as the behaviour that its row describes."""
    policy = scale(policy, row["factor"]) if "factor" in row else policy
    policy = Policy(policy.actors, name=name, agents=policy.agents)
    policy.save(folder / "behaviours" / name)


def expert_order(curve: list[Row], recipe: Recipe) -> list[Row]:
    """Snapshots in the order in which to try them as expert: the first ones at the level, so
    that data resembles the published; else the best ones."""

    def settled(row: Row) -> float:
        upto = row["snapshot"]
        latest = curve[max(0, upto - recipe.settled) : upto]
        return float(np.mean([r["return"] for r in latest]))

    reached = [row for row in curve if settled(row) >= recipe.expert]
    rest = sorted((r for r in curve if settled(r) < recipe.expert), key=lambda r: -r["return"])
    return reached + rest


def behaviour(task: str, quality: str, seed: int, folder: Path = ASSETS) -> Policy:
    """One of the chosen behaviours; without a folder, one that ships with the package."""
    return Policy.load(folder / "behaviours" / f"{task}-{quality}-{seed}")


def record(task: str, folder: Path = ASSETS) -> dict[str, Any]:
    """What is known about a task's behaviours: levels, references, curves."""
    path = folder / "behaviours" / f"{task}.json"
    if not path.exists():
        raise InputError(
            f"There are no behaviours for {task} in {folder}. Train them with "
            f"`spacql data behaviours {task} --out {folder}`."
        )
    found = read_json(path)
    as_record(found, Record, path)
    return found


def prey_of(task: str, folder: Path = ASSETS) -> Policy | None:
    """The prey that a folder's behaviours were trained against, where there is one."""
    path = folder / f"{task}-prey"
    return Policy.load(path) if files_of(path)[0].exists() else None


def dataset_seed(seed: int) -> int:
    """Which of a name's datasets a run of this seed is trained on."""
    first = DEVELOPMENT if seed >= DEVELOPMENT else 0
    return first + (seed - first) % len(SEEDS)


def number(seed: int) -> int:
    """Which of the five behaviours a dataset seed belongs to."""
    if seed in SEEDS or seed - DEVELOPMENT in SEEDS:
        return seed % DEVELOPMENT
    raise InputError(
        f"Dataset seeds are 0 to {len(SEEDS) - 1}, each with a behaviour of its own, and "
        f"{DEVELOPMENT} to {DEVELOPMENT + len(SEEDS) - 1} for development, not {seed}."
    )


def _measure(world: Any, policy: Policy, salt: int, episodes: int) -> dict[str, float]:
    key = jax.random.fold_in(jax.random.key(77), salt)
    returns = rollout(world, policy, key, episodes).mean(axis=1)
    return {"return": float(returns.mean()), "std": float(returns.std())}
