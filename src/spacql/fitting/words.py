"""What a fit found, in words that somebody can act on."""

from collections.abc import Mapping
from typing import Any, Literal

from spacql.evaluation.intervals import written
from spacql.evaluation.offline import CLONE, UNTESTED

Verdict = Literal["likely gain", "inconclusive", "keep what you have"]
POOR = 0.5  # correlation of replayed and true returns, below which a model says little


def verdict(
    chosen: Mapping[str, Any], log: Mapping[str, Any], clone: Mapping[str, Any] | None
) -> Verdict:
    """A gain is likely if the lower bound lies above what the log and its clone return."""
    floor = max(log["mean"], clone["mean"] if clone else log["mean"])
    if chosen["label"] == CLONE or chosen["mean"] <= floor:
        return "keep what you have"
    return "likely gain" if chosen["low"] > floor else "inconclusive"


def summary(
    verdict: Verdict,
    chosen: Mapping[str, Any],
    log: Mapping[str, Any],
    clone: Mapping[str, Any] | None,
    trust: Mapping[str, Any] | None,
) -> str:
    parts = [
        f"Chosen: {chosen['label']}. Expected return {number(chosen)}; the log's held-out episodes "
        f"returned {written(log['low'], log['high'])(log['mean'])}"
        + (f", cloning is expected to return {number(clone)}." if clone else ".")
    ]
    parts.append(gain(verdict, chosen, log, clone))
    far = {agent: share for agent, share in chosen["outside"].items() if share > 0.1}
    if far:
        agents = ", ".join(f"{agent} in {100 * share:.0f} %" for agent, share in far.items())
        parts.append(
            f"It leaves the log's actions by more than three of their deviations: {agents} of the "
            "states. Try it with care there."
        )
    if trust and trust["correlation"] is None:
        parts.append(UNTESTED)
    elif trust and trust["correlation"] < POOR:
        parts.append(
            "The learnt model of the world foretells held-out returns poorly (correlation "
            f"{trust['correlation']:.2f}): trust these numbers little."
        )
    return " ".join([*parts, *chosen.get("warnings", ())])


def gain(
    verdict: Verdict,
    chosen: Mapping[str, Any],
    log: Mapping[str, Any],
    clone: Mapping[str, Any] | None,
) -> str:
    both = "the log's and cloning's" if clone else "the log's"
    if verdict == "likely gain":
        return (
            f"A gain is likely: even the lower end of the interval lies above {both}. On the "
            "benchmark, `spacql reproduce selection --stored` says how often such intervals hold "
            "the truth."
        )
    if verdict == "inconclusive":
        higher = "cloning's" if clone and clone["mean"] > log["mean"] else "the log's"
        return (
            f"Inconclusive: the expected return is higher than {both}, but not all of its interval "
            f"lies above {higher}. More episodes, or --thorough, may decide it."
        )
    if chosen["label"] == CLONE:
        return (
            "Keep what you have, or its clone: nothing that was trained is expected to beat "
            "cloning surely enough."
        )
    return f"Keep what you have: {chosen['label']} is not expected to return more than {both}."


def number(row: Mapping[str, Any]) -> str:
    text = written(row["low"], row["high"])
    return f"{text(row['mean'])} (90 %: {text(row['low'])} to {text(row['high'])})"
