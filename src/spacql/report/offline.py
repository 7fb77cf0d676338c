"""What a log says of policies, as `spacql evaluate --offline` left it in their folders."""

from typing import Any

from markupsafe import Markup

from spacql.report.charts import Mark, Row, dot_plot, legend
from spacql.report.markup import beside, join, number, tag
from spacql.report.subject import Subject


def without_simulator(subject: Subject) -> Markup | None:
    """What the log says of policies, beside what it returned itself and, where it is known, what
    the simulator says."""
    plots = [plot for unit in ("score", "return") if (plot := _from_the_log(subject, unit))]
    words = "Every policy was trained on the episodes that it is judged by, so these estimates are "
    words += "optimistic; spacql fit holds some out."
    return join([tag("h3", "Without a simulator"), tag("p", words), plots]) if plots else None


def _from_the_log(subject: Subject, unit: str) -> Markup | None:
    """Those policies of which the log speaks in this unit: scores and returns share no axis."""
    found = [
        (team, run, run.offline)
        for team in subject.shown
        for run in team.runs
        if run.offline is not None and run.offline.unit == unit
    ]
    if not found:
        return None
    true = [run.score for _, run, _ in found if unit == "score" and run.score is not None]
    rows = []
    for team, run, said in found:
        x = said.estimate
        text = number if unit == "score" else beside(x.low, x.high)
        marks = [Mark("log", said.log, f"the log itself: {text(said.log)}")]
        cells: list[Any] = [(text(x.mean), x.mean), (f"[{text(x.low)}, {text(x.high)}]", x.low),
                            said.estimator]  # fmt: skip
        if true:
            score = run.score
            cells.append((number(score), -1e300 if score is None else score))
            if score is not None:
                marks.append(Mark("truth", score, f"in the simulator: {number(score)}"))
        name = f"{team.label} on {team.dataset}, seed {run.seed}"
        rows.append(Row(name=name, colour=subject.colours[team.label], seeds=(), centre=x.mean,
                        interval=(x.low, x.high), marks=marks, cells=cells, confidence=90,
                        text=text))  # fmt: skip
    entries = [("centre", f"{unit} that the log speaks for"), ("interval", "its 90 % interval"),
               ("log", "what the log got in the episodes that were asked")]  # fmt: skip
    entries += [("truth", "score in the simulator")] if true else []
    head = ["policy", "from the log", "90 % interval", "estimator"] + ["in truth"] * bool(true)
    caption = f"What the log says without a simulator{', beside the truth' if true else ''}"
    return join([legend(entries), dot_plot(head, rows, caption=caption, axis=unit)])
