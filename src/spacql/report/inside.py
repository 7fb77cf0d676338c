"""What the algorithm did: the paper's quantities, values, and the way from the log."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from spacql.report.charts import Series, line_chart, series_legend
from spacql.report.episodes import departure
from spacql.report.markup import join, number, short, table, tag
from spacql.report.sections import points_of, series_of
from spacql.report.subject import FEW, Subject
from spacql.report.teams import Team

# Metrics that have a meaning worth a line; others are shown by their own names.
MEANING = {
    "w": "weights w_k of the backups with k replaced agents; equal weights are 1/n",
    "u": "uncertainty u_k: how much the critics disagree where k agents are replaced",
    "k_eff": "effective number of replaced agents, sum over k of w_k k",
    "q_data": "value of the logged joint actions, in the reward's units",
    "q_policy": "value of the policies' actions, in the reward's units",
    "td_error": "temporal-difference error, in the reward's units",
    "penalty": "conservative penalty",
    "anchor_distance": "squared distance of the policies from the log, as the anchor measures it",
}
FIRST = tuple(MEANING)
SKIPPED = ("round", "score", "return")


def inside(subject: Subject) -> Markup | None:
    """Charts of every metric for few datasets; the weights and a table for many."""
    parts: list[Any] = []
    if len(subject.datasets) <= FEW:
        if len(subject.colours) > 1:
            parts.append(series_legend(list(subject.colours.items())))
        for dataset, found in subject.datasets.items():
            charts = of_dataset(found, subject)
            if charts:
                many = len(subject.datasets) > 1
                parts.append(tag("h3", dataset) if many else None)
                parts.append(tag("div", charts, class_="charts"))
        parts.append(_departures(subject))
    else:
        charts = [
            chart
            for dataset, found in subject.datasets.items()
            for team in found
            if (chart := _by_part(team, "w", f"{dataset}, {team.label}", ""))
        ]
        if charts:
            words = (
                "Weights w_k of the backups with k replaced agents, by round; equal weights are "
            )
            words += (
                "1/n. Every chart has a scale of its own. Weights that never move are left out."
            )
            parts += [tag("p", words), tag("div", charts, class_="charts")]
        parts.append(_last_values(subject))
    parts = [part for part in parts if part is not None]
    return join(parts) if parts else None


def metrics_of(teams: Sequence[Team]) -> list[str]:
    """All metrics of some teams, the known ones first."""
    names = {n for team in teams for run in team.runs for point in run.curve for n in point}
    known = [name for name in FIRST if name in names]
    return known + sorted(names - {*FIRST, *SKIPPED})


def of_dataset(found: Sequence[Team], subject: Subject) -> list[Markup]:
    charts: list[Markup | None] = []
    for name in metrics_of(found):
        note = MEANING.get(name, "")
        split = [team for team in found if _parts(team, name)]
        charts += [_by_part(team, name, f"{_title(name)} of {team.label}", note) for team in split]
        plain = [team for team in found if team not in split]
        series = series_of(plain, subject, lambda point, name=name: point.get(name))  # type: ignore[misc]
        if not _constant(series):
            charts.append(line_chart(_title(name), series, note=note))
    return [chart for chart in charts if chart is not None]


def _title(name: str) -> str:
    return {"w": "w_k", "u": "u_k"}.get(name, name.replace("_", " "))


def _parts(team: Team, name: str) -> int:
    """How many numbers a metric has: one for each k, or for each agent. 0: it is a number."""
    for run in team.runs:
        for point in run.curve:
            if isinstance(point.get(name), list):
                return len(point[name])
    return 0


def _by_part(team: Team, name: str, title: str, note: str) -> Markup | None:
    count = _parts(team, name)
    per_k = name in ("u", "w")
    agents = team.first.agents

    def label(k: int) -> str:
        if per_k:
            return _replaced(team, count)[k]
        return agents[k] if len(agents) == count else f"{name} {k + 1}"

    def at(k: int) -> Any:
        return lambda point: point[name][k] if isinstance(point.get(name), list) else None

    series = [
        Series(label(k), k, [(run.seed, points_of(run, at(k))) for run in team.runs])
        for k in range(count)
    ]
    if _constant(series):
        return None
    return line_chart(title, series, note=note, named=True)


def _replaced(team: Team, count: int) -> list[str]:
    """Who is replaced where a target has so many parts: k agents each, as SPaCQL; one agent, as
    ICQL-QS; or one set, of all agents or of as many as a bandit said."""
    chosen = team.first.config.get("replaced") or range(1, count + 1)
    agents = team.first.agents
    if team.algorithm == "icql-qs" and len(agents) == count:
        return list(agents)
    if count == 1 and not team.first.config.get("replaced"):
        return ["k as drawn" if team.algorithm == "plcql" else "all agents"]
    return (
        [f"k = {k}" for k in chosen] if len(chosen) == count else [f"{k + 1}" for k in range(count)]
    )


def _constant(series: Sequence[Series]) -> bool:
    """Whether nothing ever moves: that needs no chart."""
    return all(len({y for _, points in s.seeds for _, y in points}) < 2 for s in series)


def _last_values(subject: Subject) -> Markup | None:
    """The metrics at the end of training, means over seeds."""
    names = [n for n in metrics_of(subject.shown) if n in FIRST and n not in ("u", "w")]
    rows = []
    for team in subject.shown:
        cells: list[Any] = []
        for name in names:
            ends = [r.curve[-1][name] for r in team.runs if r.curve and name in r.curve[-1]]
            ends = [end for end in ends if isinstance(end, int | float)]
            mean = sum(ends) / len(ends) if ends else None
            cells.append((short(mean), -1e12 if mean is None else mean))
        rows.append([team.label, team.dataset, *cells])
    if not names:
        return None
    head = ["algorithm", "dataset", *(_title(name) for name in names)]
    return table(head, rows, caption="At the end of training, means over seeds")


def _departures(subject: Subject) -> Markup | None:
    rows = []
    for team in subject.shown:
        if team.candidate:
            continue  # the fit itself says it
        for agent, apart, spread in departure(team) or ():
            ratio = apart / spread if spread else None
            numbers = [(number(apart, 3), apart), (number(spread, 3), spread)]
            rows.append(
                [team.label, team.dataset, agent, *numbers, (number(ratio, 2), ratio or -1)]
            )
    if not rows:
        return None
    head = ["algorithm", "dataset", "agent", "distance", "spread of the log", "ratio"]
    words = "How far each agent's policy leaves the log: the distance between its action and the "
    words += "logged one, beside the spread of the logged actions around their mean (root mean "
    words += "squares, first seed). A ratio well below 1 is a policy that follows the log."
    shown = table(head, rows, caption="Distance of every agent's policy from the log")
    return join([tag("h3", "Distance from the log"), tag("p", words), shown])
