"""`spacql fit --data LOGS --out DIR`."""

from pathlib import Path
from typing import Any

import tyro

from spacql.commands.where import HERE, Where


def fit(
    data: str,
    out: Path,
    quick: bool = False,
    thorough: bool = False,
    budget: float | None = None,
    heldout: float = 0.2,
    seed: int = 0,
    estimator: str = "model",
    workers: int = 0,
    quiet: bool = False,
    json: bool = False,
    where: tyro.conf.OmitArgPrefixes[Where] = HERE,
) -> int:
    """From a log to a policy that can be trusted, without a simulator.

    Trains a small portfolio on most of the episodes, evaluates every policy with those that were
    held out, chooses by a lower bound of the expected return, and says in words whether the gain
    is real. An interrupted fit goes on when the same command is given again. The folder holds the
    policy and a page about it, report.html.

    Example: spacql fit --data my-robots --out my-robots-fit --quick

    Args:
        data: A dataset folder, or a name such as spread-random.
        out: New folder for the policy, its report and all runs; or that of the fit to go on with.
        quick: A few short trainings: minutes.
        thorough: More and longer trainings.
        budget: Minutes that it may take; trainings are shortened or lengthened to fit.
        heldout: Share of the episodes that no training sees.
        seed: Of the division and of the trainings.
        estimator: What judges: model, fqe or plain-fqe.
        workers: Processes at a time; 0 is one per core.
        quiet: No progress.
        json: Print fit.json.
        where: On this machine, or on a Ray cluster.
    """
    import sys
    from json import dumps

    from spacql.errors import InputError, Interrupted
    from spacql.fitting.pipeline import fit as run
    from spacql.report import report

    if quick and thorough:
        raise InputError("Choose one of --quick and --thorough.")
    level: Any = "quick" if quick else "thorough" if thorough else "normal"
    tell = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr))
    try:
        found = run(data, out, level=level, budget=budget, share=heldout, seed=seed,
                    estimator=estimator, workers=workers, executor=where.make, quiet=quiet,
                    tell=tell)  # fmt: skip
    except KeyboardInterrupt as stop:
        raise Interrupted("What is finished is kept.") from stop
    page = report([out], out / "report.html")
    if json:
        print(dumps(found.result, indent=1))
        return 0
    show(found.result)
    print(f"Policy: {out}  (spacql export {out} --out team.onnx)")
    print(f"Report: {page}")
    return 0


def show(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from spacql.evaluation.intervals import written

    table = Table("policy", box=None, padding=(0, 1), header_style="underline")
    rows = result["table"]
    agents = escape(", ".join(rows[0]["distance"]))  # names come from the log
    names = ["expected return", "90 % interval", f"deviations from the log: {agents}"]
    mixed = any("k_eff" in row["training"] for row in rows)  # how many agents targets replace
    known = any(row["truth"] for row in rows)
    names += ["k_eff", "critics' disagreement"] * mixed + ["in truth"] * known
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        mark = "*" if row["label"] == result["chosen"] else " "
        far = ", ".join(f"{away:.1f}" for away in row["distance"].values())
        text = written(row["low"], row["high"])
        cells = [text(row["mean"]), f"{text(row['low'])} to {text(row['high'])}", far]
        own = row["training"]
        if mixed:
            cells += [f"{own['k_eff']:.2f}", f"{own['u'][-1]:.3g}"] if "k_eff" in own else ["", ""]
        if known:
            cells.append(text(row["truth"]["return"]) if row["truth"] else "")
        table.add_row(f"{row['label']}{mark}", *cells)
    log = result["log"]
    text = written(log["low"], log["high"])
    table.add_row("the log", text(log["mean"]), f"{text(log['low'])} to {text(log['high'])}")
    for label in result["failed"]:
        table.add_row(label, "failed")
    Console().print(table)
    print(result["words"])
