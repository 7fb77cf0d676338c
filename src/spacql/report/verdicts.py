"""The sentences of a report: what the numbers say, and what they do not."""

from collections.abc import Mapping, Sequence

from spacql.experiments.pairs import ENOUGH, highest, mean_over, significantly_better
from spacql.experiments.tables import Statistics
from spacql.report.markup import count, number, span
from spacql.report.teams import Team, paired
from spacql.runs import no_simulator


def headlines(datasets: Mapping[str, Sequence[Team]]) -> str:
    """All of them; of logs without a simulator, which need none, one sentence together."""
    alone = {name: tasks for name, found in datasets.items() if (tasks := _unsimulated(found))}
    said = [headline(name, found) for name, found in datasets.items() if name not in alone]
    said += [no_simulator(*sorted(set().union(*alone.values())))] if alone else []
    return " ".join(said)


def _unsimulated(found: Sequence[Team]) -> set[str]:
    """The tasks of a dataset's runs, if that is why they have no scores."""
    runs = [run for team in found for run in team.runs]
    if any(run.score is not None for run in runs):
        return set()
    return {run.task for run in runs if run.note == no_simulator(run.task)}


def headline(dataset: str, found: Sequence[Team], *, brief: bool = False) -> str:
    """One dataset in a sentence or two; `brief` where the numbers stand below it."""
    scored = [team for team in found if team.statistics is not None]
    if not scored:
        reasons = {run.note for team in found for run in team.runs if run.note}
        why = sorted(reasons)[0] if reasons else "No training is finished yet."
        return f"No scores on {dataset}. {why}"
    if len(scored) == 1:
        beside = against_log(scored[0])
        return _one(scored[0]) + (f" That is {beside}." if beside else "")
    scores = paired(scored)
    first = highest(scores)
    if first is None:
        first = max(range(len(scored)), key=lambda k: scored[k].mean or 0.0)
    best, mine = scored[first], scores[first]
    others = {t.label: s for t, s in zip(scored, scores, strict=True) if t is not best}
    apart = [label for label, theirs in others.items() if len(mine.keys() & theirs) < ENOUGH]
    rest = [label for label in others if label not in apart]
    close = [label for label in rest if not significantly_better(mine, others[label])]
    text = f"{best.label} scores highest on {dataset}: {_score(best)}."
    if brief:
        text = f"Highest: {best.label}."
    few = [team.label for team in scored if len(team.scored) < ENOUGH]
    if few:
        who = "" if few == [team.label for team in scored] else f" of {listed(few)}"
        return f"{text} Fewer than three seeds{who}: chance may have made the order."
    if apart:
        text += f" With {listed(apart)} it has fewer than three seeds of the same data in common: "
        text += "they cannot be compared."
    if close:
        return text + f" Seed by seed it is not significantly better than {listed(close)}."
    if apart and rest:
        return text + f" Seed by seed it is significantly better than {listed(rest)}."
    return text if apart else text + " Seed by seed it is significantly better than every other."


def _one(team: Team) -> str:
    return f"{team.label} on {team.dataset} scores {_score(team)}."


def _score(team: Team) -> str:
    assert team.mean is not None
    text = number(team.mean)
    seeds = count(len(team.scored), "seed")
    if team.interval is None:
        return f"{text} ({seeds})"
    return f"{text} {span(*team.interval)} ({seeds}; 95 % interval over {team.over})"


def against_log(team: Team) -> str:
    """Where the policies stand beside the logs that they were learnt from, seed by seed; one of
    them by the interval over its episodes."""
    if team.level is None:
        return ""
    gaps = {r.seed: r.score - r.level for r in team.scored if r.level is not None}  # type: ignore[operator]
    found = mean_over({"": gaps})
    if found is not None and found.low is not None and found.high is not None:
        low, high = found.low, found.high
    elif len(team.scored) == 1 and team.interval is not None:
        low, high = (end - team.level for end in team.interval)
    else:
        return ""
    where = "above" if low > 0 else "below" if high < 0 else "not to be told from"
    return f"{where} the log itself, which scores {number(team.level)}"


def compare(found: Statistics) -> str:
    """A difference in a word: by its interval, or not known."""
    if found.low is None or found.high is None:
        return "one seed" if found.seeds == 1 else "unclear"
    if found.low > 0:
        return "ahead"
    return "behind" if found.high < 0 else "unclear"


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
