"""What a fit promised beside what its policies then did, for those who can try them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacql import records
from spacql.evaluation.offline import CLONE
from spacql.experiments.tables import markdown_row
from spacql.files import write_json
from spacql.fitting.pipeline import Fit
from spacql.policies import Policy

LOG = "the log"


def compare(
    found: Fit,
    tried: Callable[[Policy | None], np.ndarray],
    command: str,
    labels: Sequence[str] = (),
    keep: Path | None = None,
) -> dict[str, Any]:
    """Try policies of a fit, say how they did, and keep it where `spacql results fits` looks for
    it, results/fits/NAME.json, if asked.

    `tried` is given a policy, or None for what made the log, and returns the returns of episodes.
    `labels` are the policies to try: all of them if none is named.
    """
    rows = [_row(LOG, tried(None), None)]
    for row in found.table:
        if not labels or row["label"] in labels:
            policy = Policy.load(found.folder / "runs" / row["label"])
            rows.append(_row(row["label"], tried(policy), [row["mean"], row["low"], row["high"]]))
    known = {
        "command": command,
        "episodes": found.result["data"]["episodes"],
        "transitions": found.result["data"]["transitions"],
        "level": found.result["level"],
        "chosen": found.chosen,
        "verdict": found.verdict,
        "rows": rows,
    }
    print(text(known))
    if keep is not None:
        write_json(keep, known)
    return known


def _row(label: str, returns: np.ndarray, expected: list[float] | None) -> dict[str, Any]:
    error = float(np.std(returns) / len(returns) ** 0.5)
    return {"label": label, "true": float(np.mean(returns)), "tried": len(returns),
            "error": error, "expected": expected}  # fmt: skip


def text(known: Mapping[str, Any]) -> str:
    lines = ["In truth:"]
    for row in known["rows"]:
        mean, low, high = row["expected"] or (None, None, None)
        promised = "" if mean is None else f"   (expected {mean:.4g}, {low:.4g} to {high:.4g})"
        mark = "  <- chosen" if row["label"] == known["chosen"] else ""
        lines.append(
            f"  {row['label']:<12} {row['true']:8.2f} ± {row['error']:.2f}{promised}{mark}"
        )
    return "\n".join(lines)


def stored(results: Path) -> dict[str, dict[str, Any]]:
    return {
        path.stem: records.tried_fit(path) for path in sorted((results / "fits").glob("[!.]*.json"))
    }


def markdown(known: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for every log: what it returns, cloning, and the choice, with what was expected."""
    header = ["log", "episodes", "the log itself", "cloning", "chosen", "true return", "expected"]
    lines = [markdown_row([*header, "verdict"]), markdown_row(["---", *["---:"] * 6, "---"])]
    for name, fit in known.items():
        rows = {row["label"]: row for row in fit["rows"]}
        chosen = rows[fit["chosen"]]
        mean, low, high = chosen["expected"]
        cells = [
            name, f"{fit['episodes']:,}", _number(rows[LOG]), _number(rows.get(CLONE)),
            fit["chosen"], _number(chosen), f"{mean:.4g} ({low:.4g} to {high:.4g})",
            fit["verdict"],
        ]  # fmt: skip
        lines.append(markdown_row(cells))
    commands = "; ".join(f"`{fit['command']}`" for fit in known.values())
    return "\n".join([*lines, "", f"Means ± standard errors of tried episodes. {commands}"]) + "\n"


def _number(row: Mapping[str, Any] | None) -> str:
    return "–" if row is None else f"{row['true']:.2f} ± {row['error']:.2f}"
