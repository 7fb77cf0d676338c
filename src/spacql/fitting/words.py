"""What a fit found, in words that somebody can act on."""

from collections.abc import Mapping
from typing import Any, Literal

from spacql.evaluation.offline import CLONE

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
        f"returned {log['mean']:.4g}"
        + (f", cloning is expected to return {number(clone)}." if clone else ".")
    ]
    parts.append(
        {
            "likely gain": "A gain is likely: even the lower end of the interval lies above the "
            "log. On the benchmark, `spacql reproduce selection --stored` says how often such "
            "intervals hold the truth.",
            "inconclusive": "Inconclusive: the expected return is higher than the log's, but its "
            "interval reaches below it. More episodes, or --thorough, may decide it.",
            "keep what you have": "Keep what you have: nothing that was trained is expected to do "
            "better than what made the log.",
        }[verdict]
    )
    far = {agent: share for agent, share in chosen["outside"].items() if share > 0.1}
    if far:
        agents = ", ".join(f"{agent} in {100 * share:.0f} %" for agent, share in far.items())
        parts.append(
            f"It leaves the log's actions by more than three of their deviations: {agents} of the "
            "states. Try it with care there."
        )
    if trust and trust["correlation"] < POOR:
        parts.append(
            "The learnt model of the world foretells held-out returns poorly (correlation "
            f"{trust['correlation']:.2f}): trust these numbers little."
        )
    return " ".join([*parts, *chosen.get("warnings", ())])


def number(row: Mapping[str, Any]) -> str:
    return f"{row['mean']:.4g} (90 %: {row['low']:.4g} to {row['high']:.4g})"
