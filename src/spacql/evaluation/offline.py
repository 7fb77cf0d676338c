"""How good a policy is, from a log alone.

An `Evaluator` holds what one log has to say: which episodes are held out, and what is learnt once
for all policies. Estimators:

    model        policy and behaviour play in a learnt model of the world (`evaluation.model`), and
                 the policy's gain is added to the log's returns: the default
    fqe          fitted Q evaluation, made robust (`evaluation.fqe`)
    plain-fqe    fitted Q evaluation as published: one critic

Importance weighting is not offered: a deterministic policy has no density to weigh by.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from spacql.data import Dataset
from spacql.errors import InputError, suggestion
from spacql.evaluation import distance as distances
from spacql.evaluation import fqe, heldout, model
from spacql.evaluation.intervals import Interval, interval, mapped
from spacql.evaluation.model import Imagined
from spacql.policies import Policy
from spacql.policies.policy import check_order

Estimator = Literal["model", "fqe", "plain-fqe"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
DEFAULT: Estimator = "model"
CLONE = "bc"  # the label of what the log itself does, as a policy
# How many times wider than the ensemble and the episodes say an interval must be to hold the truth
# nine times in ten: found on development data (seeds from 100 on) of the selection study.
WIDER: dict[str, float] = {"model": 6.0}
SAME = 1e-6  # of their size: returns that differ by less are one return, and rounding
UNTESTED = "The held-out episodes all returned the same, so the learnt model could not be tested."
MOST_STEPS = 20_000_000  # imagined, of all members and episodes together: bounds the time


@dataclass(frozen=True)
class Trust:
    """How well the model foretells held-out episodes when their own actions are played again."""

    correlation: float | None  # of imagined and true returns; None where these are all the same
    bias: float  # imagined minus true, mean
    error: float  # root mean square of the same, over episodes
    episodes: int


@dataclass(frozen=True)
class OfflineEvaluation:
    """What a log says of a policy. Returns are the team's, of whole episodes, undiscounted."""

    policy: str
    estimates: dict[str, Interval]  # by estimator: mean, and a 90 % interval
    discounted: dict[str, Interval]  # the same, discounted
    discount: float
    log: Interval  # what the held-out episodes returned
    distance: dict[str, float]  # per agent, in deviations of the behaviour
    outside: dict[str, float]  # per agent, share of states beyond three of them
    trust: Trust | None  # in the model, if it was asked
    heldout: int  # episodes

    @property
    def estimate(self) -> Interval:
        """That of the first estimator."""
        return next(iter(self.estimates.values()))

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        for name in ("estimates", "discounted"):
            found[name] = {k: v._asdict() for k, v in getattr(self, name).items()}
        return found | {"log": self.log._asdict()}


class Evaluator:
    """What a log says of policies. Everything that does not depend on the policy is learnt once,
    when it is first needed."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        seed: int = 0,
        share: float = heldout.SHARE,
        split: heldout.Split | None = None,
        model_config: model.Config | None = None,
        fqe_config: fqe.Config | None = None,
        report: Callable[[str, float], None] = lambda what, share: None,
    ):
        self.dataset, self.seed, self.report = dataset, seed, report
        self.split = split or heldout.split(dataset, share, seed)
        self.rows = heldout.transition_rows(dataset, self.split.training)
        lengths = np.diff(dataset.starts) - 1
        self.horizon = int(lengths.max())  # a log says nothing of what comes later
        self.discount = float(np.clip(1 - 1 / self.horizon, 0.95, 0.99))
        self.model_config = model_config or model.Config()
        self.fqe_config = replace(fqe_config or fqe.Config(), discount=self.discount)
        most = max(20, MOST_STEPS // (self.horizon * self.model_config.members))
        self.episodes = heldout.some(self.split.heldout, min(heldout.MOST, most), seed)
        self.start = dataset.starts[:-1][self.episodes]
        # Where time cut an episode, it would have cut another policy's too.
        cut = ~dataset.terminated[self.episodes]
        self.steps = np.where(cut, lengths[self.episodes], self.horizon)
        self.log = interval(dataset.team_returns[self.episodes][None], seed)

    @cached_property
    def model(self) -> model.Model:
        return model.learn(self.dataset, self.rows, self.model_config, self.seed,
                           lambda share: self.report("model of the world", share))  # fmt: skip

    @cached_property
    def densities(self) -> Any:
        return distances.learn(self.dataset, self.rows, self.seed)

    @cached_property
    def replayed(self) -> tuple[np.ndarray, np.ndarray]:
        """Imagined (J, E) and true (E,) returns of held-out episodes, logged actions again."""
        return model.replay(self.model, self.dataset, self.episodes)

    @cached_property
    def trust(self) -> Trust:
        imagined, true = self.replayed
        mean = imagined.mean(axis=0)
        correlation: float | None = None
        if np.ptp(true) > SAME * np.abs(true).max():
            correlation = 0.0 if mean.std() == 0 else float(np.corrcoef(mean, true)[0, 1])
        error = mean - true
        rms = float(np.sqrt((error**2).mean()))
        return Trust(correlation, float(error.mean()), rms, len(true))

    @cached_property
    def highest(self) -> float:
        """What episodes of these lengths would return on average, of nothing but the best reward;
        where the task may end, at least what is got by ending it."""
        rewards = self.dataset.team_reward[self.dataset.transition_rows()]
        highest = self.steps * float(rewards.max())
        return float((np.maximum(highest, 0) if self.dataset.terminated.any() else highest).mean())

    @cached_property
    def logged(self) -> tuple[np.ndarray, np.ndarray]:
        """All episodes' returns, undiscounted and discounted."""
        return self.dataset.team_returns, discounted_returns(self.dataset, self.discount)

    @cached_property
    def behaviour_imagined(self) -> Imagined:
        """What the model says of the behaviour itself."""
        policy = distances.behaviour(self.densities, self.dataset.spec)
        start = model.joined(self.dataset, self.start)
        return model.imagine(self.model, policy, start, self.steps, self.discount, self.seed)

    @cached_property
    def behaviour_value(self) -> dict[bool, np.ndarray]:
        return {}

    def evaluate(self, policy: Policy, estimators: Sequence[str] = (DEFAULT,)) -> OfflineEvaluation:
        check_fits(policy, self.dataset)
        check_estimators(estimators)
        away = distances.distance(
            self.densities, self.dataset, policy,
            heldout.transition_rows(self.dataset, self.episodes))  # fmt: skip
        found: dict[str, Interval] = {}
        discounted: dict[str, Interval] = {}
        for name in estimators:
            by_model = name == "model"
            both = self._by_model(policy) if by_model else self._by_fqe(policy, name == "fqe")
            whole, part = (wider(x, WIDER.get(name, 1.0)) for x in both)
            found[name], discounted[name] = at_most(whole, self.highest), part
        agents = self.dataset.spec.agents
        return OfflineEvaluation(
            policy=policy.name,
            estimates=found,
            discounted=discounted,
            discount=self.discount,
            log=self.log,
            distance=dict(zip(agents, away.mean, strict=True)),
            outside=dict(zip(agents, away.outside, strict=True)),
            trust=self.trust if "model" in estimators else None,
            heldout=len(self.episodes),
        )

    def _by_model(self, policy: Policy) -> list[Interval]:
        """The log's returns, and what the policy gains over the behaviour, both imagined."""
        start = model.joined(self.dataset, self.start)
        imagined = model.imagine(self.model, policy, start, self.steps, self.discount, self.seed)
        parts = zip(self.logged, imagined, self.behaviour_imagined, strict=True)
        return [
            interval(true[self.episodes] + x - behaviour, self.seed) for true, x, behaviour in parts
        ]

    def _by_fqe(self, policy: Policy, robust: bool) -> list[Interval]:
        """The log's returns, and what the policy gains over the behaviour's own value."""
        config = replace(self.fqe_config, robust=robust)
        if not robust:
            config = replace(config, critics=1)
        label = "fitted Q evaluation"
        if robust not in self.behaviour_value:
            known = np.isin(self.rows, self.dataset.target_rows())
            critics = fqe.fit(self.dataset, self.rows[known], None, config, self.seed,
                              lambda share: self.report(label, share))  # fmt: skip
            self.behaviour_value[robust] = fqe.values(
                critics, self.dataset, None, self.start, config
            )
        critics = fqe.fit(self.dataset, self.rows, policy, config, self.seed,
                          lambda share: self.report(label, share))  # fmt: skip
        found = fqe.values(critics, self.dataset, policy, self.start, config)
        # From a discounted value to the sum of an episode's rewards: of one that ends after so many
        # steps, or of one that goes on and is only cut.
        lengths = np.diff(self.dataset.starts)[self.episodes] - 1
        ends = lengths / (1 - self.discount**lengths)
        whole = np.where(self.dataset.terminated[self.episodes], ends, lengths)
        gain = (found - self.behaviour_value[robust]) * whole * (1 - self.discount)
        returned = self.dataset.team_returns[self.episodes] + gain
        return [interval(returned, self.seed), interval(found, self.seed)]


def evaluate_offline(
    policy: Policy | Path | str,
    dataset: Dataset | Path | str,
    *,
    estimators: Sequence[str] = (DEFAULT,),
    share: float = heldout.SHARE,
    seed: int = 0,
) -> OfflineEvaluation:
    """What a log says of a policy, without a simulator: its expected return with an interval, and
    how far it leaves the log.

    Of a policy that was trained on these very episodes the estimate is optimistic; `spacql.fit`
    holds some out. For several policies on one log, make an `Evaluator` and reuse it.

    Example: spacql.evaluate_offline("runs/spacql-my-robots/seed-0", "my-robots").estimate
    """
    from spacql.data.cache import resolve

    chosen = policy if isinstance(policy, Policy) else Policy.load(policy)
    log = dataset if isinstance(dataset, Dataset) else resolve(dataset)
    return Evaluator(log, seed=seed, share=share).evaluate(chosen, estimators)


def check_estimators(names: Sequence[str]) -> None:
    for name in names:
        if name not in ESTIMATORS:
            raise InputError(
                f"There is no estimator {name!r}.{suggestion(name, ESTIMATORS)} Estimators: "
                f"{', '.join(ESTIMATORS)}."
            )
    if not names:
        raise InputError(f"Name at least one estimator: {', '.join(ESTIMATORS)}.")


def check_fits(policy: Policy, dataset: Dataset) -> None:
    """Refuse a policy of other agents."""
    spec = dataset.spec
    if len(policy.actors) != spec.n_agents:
        raise InputError(
            f"The policy acts for {len(policy.actors)} agents; the log has {spec.n_agents}."
        )
    check_order(policy, spec)
    for agent, actor, seen, low in zip(
        spec.agents, policy.actors, spec.observation_sizes, spec.action_low, strict=True
    ):
        if actor.observation_size != seen or len(actor.low) != len(low):
            raise InputError(
                f"The policy's actor of {agent} sees {actor.observation_size} numbers and does "
                f"{len(actor.low)}; in the log it sees {seen} and does {len(low)}."
            )


def wider(x: Interval, factor: float) -> Interval:
    low, high = x.mean - factor * (x.mean - x.low), x.mean + factor * (x.high - x.mean)
    return Interval(x.mean, low, high, bound=x.low)


def at_most(x: Interval, highest: float) -> Interval:
    """The same, but not above what is possible."""
    return mapped(x, lambda end: min(end, highest))


def bound(x: Interval, estimator: str) -> float:
    """What policies are chosen by: the lower bound as the ensemble and the episodes have it. The
    calibrated one, which lies as far below as the worst surprises, would choose the dullest."""
    if x.bound is not None:
        return x.bound
    return x.mean - (x.mean - x.low) / WIDER.get(estimator, 1.0)  # of a file from before


def choose(estimates: Mapping[str, Interval], estimator: str) -> str:
    """The policy with the highest bound, of those that are expected to return at least what the
    clone is: one that promises less has nothing for it but a narrow interval."""
    least = estimates[CLONE].mean if CLONE in estimates else -np.inf
    worth = {label: bound(x, estimator) for label, x in estimates.items() if x.mean >= least}
    return max(worth, key=lambda label: worth[label])


def discounted_returns(dataset: Dataset, discount: float) -> np.ndarray:
    """Of every episode's team rewards."""
    step = np.arange(dataset.n_rows) - np.repeat(dataset.starts[:-1], np.diff(dataset.starts))
    worth = dataset.team_reward.astype(np.float64) * discount**step
    worth[dataset.starts[1:] - 1] = 0.0  # the final row is no transition
    return np.add.reduceat(worth, dataset.starts[:-1])
