"""The sentences of a report: what the numbers say, and what they do not."""

from collections.abc import Sequence

from spacql.experiments.pairs import not_told_from_best
from spacql.experiments.tables import Statistics
from spacql.report.markup import count, number, span
from spacql.report.teams import ENOUGH, Team


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
    best = max(scored, key=lambda team: team.mean or float("-inf"))
    marked = not_told_from_best([team.by_seed for team in scored], ENOUGH)
    close = [t.label for t, near in zip(scored, marked, strict=True) if near and t is not best]
    text = f"{best.label} scores highest on {dataset}: {_score(best)}."
    if brief:
        text = f"Highest: {best.label}."
    few = [team.label for team in scored if len(team.scored) < ENOUGH]
    if few:
        who = "" if few == [team.label for team in scored] else f" of {listed(few)}"
        return f"{text} Fewer than three seeds{who}: chance may have made the order."
    if close:
        return text + f" Seed by seed it cannot be told from {listed(close)}."
    return text + " Seed by seed it can be told from every other."


def _one(team: Team) -> str:
    return f"{team.label} on {team.dataset} scores {_score(team)}."


def _score(team: Team) -> str:
    assert team.centre is not None
    text = number(team.centre)
    seeds = count(len(team.scored), "seed")
    if team.interval is None:
        return f"{text} ({seeds})"
    return f"{text} {span(*team.interval)} ({seeds}; 95 % interval over {team.over})"


def against_log(team: Team) -> str:
    """Where the policy stands beside the log that it was learnt from, by its interval."""
    if team.level is None or team.interval is None:
        return ""
    low, high = team.interval
    where = "above" if low > team.level else "below" if high < team.level else "not to be told from"
    return f"{where} the log itself, which scores {number(team.level)}"


def compare(found: Statistics) -> str:
    """A difference in a word: by its interval, or not known."""
    if found.low is None or found.high is None:
        return "one seed"
    if found.low > 0:
        return "ahead"
    return "behind" if found.high < 0 else "unclear"


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
