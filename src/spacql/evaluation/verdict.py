"""What a training's own numbers warn of, in words: said at the end of every training."""

from pathlib import Path
from typing import Any

import numpy as np

from spacql.algorithms.registry import find
from spacql.data import Dataset
from spacql.errors import SpacqlError
from spacql.files import read_json
from spacql.policies import MLP, Policy
from spacql.training.metrics import read_metrics

ROWS = 2000  # of the log that the actors are looked at
SATURATED, OFTEN = 0.99, 0.5  # of the action range; share of actions
FAR, OUTSIDE = 4.0, 0.25  # deviations of the log's actions; share of states
LEAST = 0.01  # of the action range, of a deviation: where the log always does the same, a policy
# that does so too is off by rounding
STILL = 0.1  # of the span of a curve, in its last fifth
TRIFLE = 0.01  # of a value: a change that nobody would train longer for
ROWS_EACH = 10  # rows for every column of a linear guess: with fewer it knows the log by heart
# What holds a policy to the log, by the hyperparameter that has it, and where more of it lies.
STRENGTHS = {"anchor_weight": "larger", "alpha": "larger", "q_weight": "smaller", "eta": "smaller"}


def of_run(folder: Path, dataset: Dataset) -> list[str]:
    """One sentence for everything that calls for a second look; none if all is well."""
    rows, run = read_metrics(folder / "metrics.jsonl"), read_json(folder / "run.json")
    found = [
        impossible(rows, dataset, run["config"]),
        moving(rows, may_be_lengthened(run.get("algorithm", ""))),
    ]
    try:
        policy = Policy.load(folder)
    except SpacqlError:  # an actor of a kind that is not known here
        return [text for text in found if text]
    return [text for text in (*found, saturated(policy, dataset), far(policy, dataset)) if text]


def may_be_lengthened(algorithm: str) -> bool:
    try:
        return bool(getattr(find(algorithm).Config, "may_be_lengthened", True))
    except SpacqlError:  # somebody's own, that is not known by its name
        return True


def impossible(rows: list[dict[str, Any]], dataset: Dataset, config: dict[str, Any]) -> str:
    """Q-values beyond what returns are possible."""
    value = rows[-1].get("q_policy") if rows else None
    discount = config.get("discount")
    if not isinstance(value, float) or discount is None:
        return ""
    reward = dataset.team_reward[dataset.transition_rows()]
    low, high = (float(x) / (1 - discount) for x in (reward.min(), reward.max()))
    if dataset.terminated.any():  # after the end every reward is 0
        low, high = min(low, 0.0), max(high, 0.0)
    if low <= value <= high:
        return ""
    word, bound = ("above", high) if value > high else ("below", low)
    own = next((f"a {more} {name}, or " for name, more in STRENGTHS.items() if name in config), "")
    nearer = "bc" if "q_weight" in config else "td3bc, bc"
    return (
        f"The critic's value of the policy, {value:.4g}, lies {word} every return that the log's "
        f"rewards allow ({bound:.4g}): it cannot be trusted. What helps: {own}an algorithm that "
        f"stays nearer to the log ({nearer})."
    )


def moving(rows: list[dict[str, Any]], lengthens: bool = True) -> str:
    """A curve that still moves at the end."""
    for name in ("q_policy", "clone_error"):
        curve = np.array([row[name] for row in rows if isinstance(row.get(name), float)])
        if len(curve) < 50:
            continue
        fifth = len(curve) // 5
        now, before = curve[-fifth:].mean(), curve[-2 * fifth : -fifth].mean()
        noise = curve[-2 * fifth :].std() / np.sqrt(fifth)
        span = np.ptp(curve)
        trifle = TRIFLE * max(abs(now), abs(before))
        if abs(now - before) > max(STILL * span, 3 * noise, trifle):
            how = (
                "train with --rounds and --resume" if lengthens else "train anew with more --rounds"
            )
            return (
                f"The training had not settled: {name} still went from {before:.4g} to {now:.4g} "
                f"in its last fifth. More may help: {how}, fit with --thorough."
            )
        return ""
    return ""


def far(policy: Policy, dataset: Dataset) -> str:
    """Agents that leave what the log does, measured by a linear guess of its behaviour."""
    if not all(isinstance(actor, MLP) for actor in policy.actors):
        return ""
    transitions = dataset.transition_rows()
    some = transitions[:: max(1, len(transitions) // ROWS)]
    seen = [x[some] for x in dataset.observations]
    spec = dataset.spec
    away = []
    for agent, pi, o, a, low, high in zip(
        policy.agents, policy.act(seen), seen, (x[some] for x in dataset.actions),
        spec.action_low, spec.action_high, strict=True,
    ):  # fmt: skip
        inputs = np.concatenate([o, np.ones((len(o), 1), np.float32)], axis=1)
        if len(inputs) < ROWS_EACH * inputs.shape[1]:
            continue
        guess = inputs @ np.linalg.lstsq(inputs, a, rcond=None)[0]
        spread = np.maximum(np.std(a - guess, axis=0), LEAST * (np.array(high) - np.array(low)))
        outside = float((np.abs(pi - guess) > FAR * spread).any(axis=1).mean())
        if outside > OUTSIDE:
            away.append(f"{agent} in {100 * outside:.0f} %")
    if not away:
        return ""
    return (
        f"The policy is far from the log ({', '.join(away)} of its states): no log can say how it "
        "does there. `spacql evaluate RUN --offline` asks; an anchored algorithm stays nearer."
    )


def saturated(policy: Policy, dataset: Dataset) -> str:
    """Actors that do little but the extremes, where their gradient is gone."""
    transitions = dataset.transition_rows()
    some = transitions[:: max(1, len(transitions) // ROWS)]
    if not all(isinstance(actor, MLP) for actor in policy.actors):
        return ""
    acted = policy.act([x[some] for x in dataset.observations])
    stuck = []
    for agent, actor, x in zip(policy.agents, policy.actors, acted, strict=True):
        low, high = np.array(actor.low), np.array(actor.high)
        unit = 2 * (x - low) / (high - low) - 1
        constant = unit.std(axis=0).max() < 0.01
        if (np.abs(unit) > SATURATED).mean() > OFTEN and constant:
            stuck.append(agent)
    if not stuck:
        return ""
    return (
        f"{', '.join(stuck)} always {'does' if len(stuck) == 1 else 'do'} the same extreme action: "
        "the actors saturated. A smaller --actor-learning-rate or --tanh-cost 0.01 helps."
    )
