"""What is tried on a log: a few algorithms at a few strengths of their regularisation, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from spacql.algorithms.config import Training
from spacql.algorithms.registry import find, names
from spacql.algorithms.settings import configure
from spacql.data import Dataset
from spacql.experiments.estimate import rough_seconds

Level = Literal["quick", "normal", "thorough"]
LEVELS: tuple[Level, ...] = ("quick", "normal", "thorough")


@dataclass(frozen=True)
class Member:
    """One training of the portfolio."""

    label: str
    algorithm: str
    level: Level  # from which it is part of the portfolio
    overrides: Mapping[str, Any] = field(default_factory=dict)


PORTFOLIO: tuple[Member, ...] = (
    Member("bc", "bc", "quick"),
    Member("aspac", "aspac", "quick"),
    Member("td3bc", "td3bc", "quick"),
    Member("cfcql-0.5", "cfcql", "quick", {"alpha": 0.5}),
    Member("spacql-0.5", "spacql", "quick", {"alpha": 0.5}),
    Member("aspac-loose", "aspac", "normal", {"anchor_weight": 3.4e-5}),
    Member("aspac-tight", "aspac", "normal", {"anchor_weight": 1e-3}),
    Member("spacql-0.1", "spacql", "normal", {"alpha": 0.1}),
    Member("spacql-2.5", "spacql", "normal", {"alpha": 2.5}),
    Member("cfcql-2.5", "cfcql", "normal", {"alpha": 2.5}),
    Member("td3bc-10", "td3bc", "normal", {"q_weight": 10.0}),
    Member("cfcql-0.1", "cfcql", "thorough", {"alpha": 0.1}),
    Member("spacql-12.5", "spacql", "thorough", {"alpha": 12.5}),
    Member("iql", "iql", "thorough"),
)
# What suits logs that nobody has tuned for: small ensembles, fast targets, a penalty that sees
# what the policy would do, and actors that pay for saturating.
COMMON: dict[str, Any] = {"batch_size": 512, "critics": 2}
PENALISED: dict[str, Any] = {
    "actor_learning_rate": 0.003, "learning_rate": 0.003, "target_rate": 0.03, "tanh_cost": 0.01,
    "penalty_every": 4, "samples": 4, "policy_samples": 3,
}  # fmt: skip
BY_ALGORITHM: dict[str, dict[str, Any]] = {
    "spacql": PENALISED,
    "cfcql": PENALISED,
    "td3bc": {"learning_rate": 0.001},
    "iql": {"learning_rate": 0.001},
    "aspac": {"target_rate": 0.01, "anchor_weight": 1e-4},  # short trainings stay nearer
}
STEPS: dict[Level, int] = {"quick": 2000, "normal": 5000, "thorough": 12_000}  # of the critics
MODEL_STEPS: dict[Level, int] = {"quick": 2500, "normal": 6000, "thorough": 15_000}
PASSES = 100  # over the log: more would only learn it by heart
LEAST_STEPS = 500


def members(level: Level) -> list[Member]:
    """Those of a level whose algorithm there is."""
    known = LEVELS[: LEVELS.index(level) + 1]
    return [m for m in PORTFOLIO if m.level in known and m.algorithm in names()]


def configuration(member: Member, dataset: Dataset, level: Level, scale: float = 1.0) -> Any:
    """A Config for a log of this size. Never the settings of a benchmark, whatever its name."""
    config = find(member.algorithm).Config
    known = {f.name for f in fields(config)}
    values = COMMON | BY_ALGORITHM.get(member.algorithm, {}) | dict(member.overrides)
    values = {name: value for name, value in values.items() if name in known}
    updates = values.get("updates", config().updates)
    steps = training_steps(dataset, values.get("batch_size", config().batch_size), level)
    rounds = max(2, round(scale * steps / updates / 10)) * 10
    return configure(member.algorithm, "", values | {"rounds": rounds})


def training_steps(dataset: Dataset, batch_size: int, level: Level) -> int:
    """Of the critics: what the level allows, but no more than PASSES over the log."""
    enough = PASSES * dataset.n_transitions // batch_size
    return max(LEAST_STEPS, min(STEPS[level], enough))


def model_steps(dataset: Dataset, batch_size: int, level: Level) -> int:
    enough = PASSES * dataset.n_transitions // batch_size
    return max(LEAST_STEPS, min(MODEL_STEPS[level], enough))


def seconds(config: Training) -> float:
    """Of one core, roughly."""
    return rough_seconds(config)
