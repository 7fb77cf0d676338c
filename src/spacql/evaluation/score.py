"""Returns and normalised scores of a policy in a world."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jax import Array

from spacql.errors import InputError
from spacql.evaluation.statistics import Summary, summarise
from spacql.policies import Policy
from spacql.reference import Reference, stored
from spacql.reference import reference as reference_of
from spacql.spec import Spec
from spacql.worlds import rollout


@dataclass(frozen=True)
class Evaluation:
    """How a policy did. The team's return of an episode is the mean of its agents' returns."""

    task: str
    prey: str
    policy: str
    returns: np.ndarray  # (episodes,)
    summary: Summary  # of the returns
    reference: Reference | None
    note: str = ""  # why there is no score, when there is none

    @property
    def score(self) -> float | None:
        return None if self.reference is None else self.reference.score(self.summary.mean)

    @property
    def score_std(self) -> float | None:
        if self.reference is None:
            return None
        return 100 * self.summary.std / self.reference.span

    @property
    def score_interval(self) -> tuple[float, float] | None:
        if self.reference is None or self.summary.interval is None:
            return None
        low, high = self.summary.interval
        return self.reference.score(low), self.reference.score(high)

    def to_json(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "prey": self.prey,
            "policy": self.policy,
            "episodes": len(self.returns),
            "return": self.summary.to_json(),
            "score": self.score,
            "score_std": self.score_std,
            "score_interval": self.score_interval,
            "reference": None if self.reference is None else asdict(self.reference),
            "note": self.note,
            "returns": self.returns.tolist(),
        }


def evaluate(
    policy: Policy,
    world: Any,
    *,
    episodes: int,
    key: Array,
    reference: Reference | None = None,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run `episodes` episodes and score them against `reference` (the task's own if not given).

    `workers` and `progress` are those of `spacql.worlds.rollout`.
    """
    spec = world.spec
    agents = rollout(world, policy, key, episodes, workers=workers, progress=progress)
    returns = agents.mean(axis=1, dtype=np.float64)
    broken = int(np.sum(~np.isfinite(returns)))
    if broken:
        raise InputError(
            f"The returns of {broken} of {episodes} episodes are NaN or infinite: either the "
            f"policy {policy.name!r} acts with such numbers, or the world {spec.task!r} pays them."
        )
    given = reference if reference is not None else reference_of(spec)
    fits = given is not None and given.prey == spec.prey
    return Evaluation(
        task=spec.task,
        prey=spec.prey,
        policy=policy.name,
        returns=returns,
        summary=summarise(returns),
        reference=given if fits else None,
        note="" if fits else _why_no_score(spec, given),
    )


def _why_no_score(spec: Spec, given: Reference | None) -> str:
    entries = (given,) if given is not None else stored(spec.task)
    if not entries:
        return f"No score: there are no reference returns for {spec.task!r}."
    known = ", ".join(repr(entry.prey or "no prey") for entry in entries)
    here = f"the prey {spec.prey!r}" if spec.prey else "no frozen prey"
    return f"No score: this {spec.task} has {here}, and the reference returns are for {known}."
