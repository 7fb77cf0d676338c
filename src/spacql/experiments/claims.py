"""The paper's claims, one by one: held on our data or not, from the stored runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacql.errors import InputError
from spacql.experiments import figures
from spacql.experiments.paper import make_plan
from spacql.experiments.plans import Plan
from spacql.experiments.store import Store
from spacql.experiments.tables import Cell, grid

HELD, PART, UNSEEN = "held", "held in part", "not seen here"
LOW = ("random", "medium-replay")  # the qualities for which the paper makes its claims


@dataclass(frozen=True)
class Claim:
    number: int
    claim: str  # in the paper's words, as short as they go
    verdict: str
    found: str  # the numbers behind it
    picture: str  # the command that draws them


def claims(store: Store) -> list[Claim]:
    """All that can be said of the stored runs; a claim whose runs are missing is left out."""
    found = []
    for judge in (best_of_all, one_against_all, less_spread, first_weight, cloning):
        try:
            found.append(judge(store))
        except InputError:
            continue
    return found


def cells_of(plan: Plan, store: Store) -> list[list[Cell]]:
    """Columns, each with a cell for every row that has a score."""
    columns: list[list[Cell]] = []
    for block in plan.blocks:
        for column in zip(*grid(plan, block, store), strict=True):
            columns.append([cell for cell in column if cell.statistics is not None])
    if not any(columns):
        raise InputError(f"No run of {plan.name} is finished in {store.results}.")
    return [column for column in columns if column]


def _quality(cell: Cell) -> str:
    return cell.column.dataset.partition("-")[2]


def _iqm(cell: Cell) -> float:
    assert cell.statistics is not None
    return cell.statistics.iqm


def best_of_all(store: Store) -> Claim:
    columns = [c for c in cells_of(make_plan("table2"), store) if _quality(c[0]) in LOW]
    highest, near = 0, 0
    above: list[str] = []
    for column in columns:
        best = max(column, key=_iqm)
        ours = [cell for cell in column if cell.method.algorithm == "spacql"]
        highest += best in ours
        near += any(cell.best for cell in ours)
        if best not in ours:
            above.append(f"{best.method.label} on {best.column.dataset}")
    total = len(columns)
    verdict = HELD if highest == total else PART if 2 * highest >= total else UNSEEN
    text = (
        f"SPaCQL has the highest score of all algorithms on {highest} of {total} such datasets, "
        f"and on {near} it is the highest or its interval overlaps with that of the highest."
    )
    if above:
        text += f" Above it: {', '.join(above)}."
    claim = "SPaCQL is best on every random and medium-replay dataset."
    return Claim(1, claim, verdict, text, "spacql reproduce scores --stored")


def one_against_all(store: Store) -> Claim:
    """Intervals of the differences, seed by seed, that speak for the claim, against it, neither."""
    words: dict[str, list[str]] = {"for": [], "against": [], "neither": []}
    for column in cells_of(make_plan("differences"), store):
        for cell in column:
            if cell.method.label != "icql-qs - cfcql" or cell.statistics is None:
                continue
            sign = 1 if _quality(cell) in LOW else -1
            side = "neither" if not cell.best else "for" if sign * _iqm(cell) > 0 else "against"
            low, high = cell.statistics.range
            words[side].append(f"{cell.column.dataset}, {_iqm(cell):.0f} [{low:.0f}, {high:.0f}]")
    agree, against, unclear = (len(words[side]) for side in ("for", "against", "neither"))
    total = agree + against + unclear
    verdict = HELD if agree == total else PART if agree > against else UNSEEN
    text = (
        f"Of {total} differences, seed by seed, {_said(words['for'], 'speak', 'for it')}, "
        f"{_said(words['against'], 'speak', 'against it')}, and {unclear} have 0 in their "
        "interval."
    )
    claim = (
        "Replacing one agent (ICQL-QS) is better than replacing all (CFCQL) on random and "
        "medium-replay data, and worse on expert and medium data."
    )
    return Claim(2, claim, verdict, text.replace("-0 ", "0 "), "spacql reproduce gaps --stored")


def _said(names: Sequence[str], verb: str, what: str) -> str:
    listed = f" ({'; '.join(names)})" if names else ""
    return f"{len(names) or 'none'} {verb if len(names) != 1 else verb + 's'} {what}{listed}"


def less_spread(store: Store) -> Claim:
    series = figures.draw(make_plan("figure2"), store, None)["series"]
    ends = {(s["dataset"], s["method"].partition(",")[0]): (s["mean"][-1], s["std"][-1])
            for s in series}  # fmt: skip
    parts, apart = [], {}
    for dataset in dict.fromkeys(name for name, _ in ends):
        if not {(dataset, "cfcql"), (dataset, "icql-qs")} <= ends.keys():
            continue
        (all_mean, all_std), (one_mean, one_std) = ends[dataset, "cfcql"], ends[dataset, "icql-qs"]
        noise = float(np.hypot(all_std, one_std))
        apart[dataset] = (all_mean - one_mean) / noise if noise else 0.0
        parts.append(
            f"on {dataset} ten critics disagree by {all_mean:.2f} ± {all_std:.2f} where all "
            f"agents are replaced and by {one_mean:.2f} ± {one_std:.2f} where one is"
        )
    if not parts:
        raise InputError("No run of figure2 is finished.")
    random, expert = apart.get("spread-random", 0.0), apart.get("spread-expert", 0.0)
    verdict = HELD if random > 1 > abs(expert) else PART if random > 1 else UNSEEN
    claim = (
        "Partial targets have less ensemble spread on random data, a similar one on expert data."
    )
    text = f"At the end of training {'; '.join(parts)}."
    return Claim(3, claim, verdict, text, "spacql reproduce figure2 --stored")


def first_weight(store: Store) -> Claim:
    weights = figures.draw(make_plan("figure3"), store, None)["weights"]
    low = [w for w in weights if w["dataset"].partition("-")[2] in LOW]
    expert = [w for w in weights if w["dataset"].endswith("-expert")]
    first = [w["dataset"] for w in low if np.argmax(w["mean"]) == 0]
    gives_way = [w["dataset"] for w in expert if np.argmax(w["mean"]) != 0]
    values = [value for w in weights for value in w["mean"]]
    ordered = len(first) == len(low) and len(gives_way) == len(expert)
    dominant = all(w["mean"][0] > 0.5 for w in low)
    verdict = HELD if ordered and dominant else PART if 2 * len(first) >= len(low) else UNSEEN
    text = (
        f"w_1 is the largest weight on {len(first)} of {len(low)} random and medium-replay "
        f"datasets, and not the largest on {len(gives_way)} of {len(expert)} expert ones. "
    )
    if not dominant:
        text += (
            f"It does not dominate: all weights lie between {min(values):.2f} and "
            f"{max(values):.2f}, where a plain average has 0.33. The paper shows weights after a "
            "min-max normalisation, which makes any difference look like 0 against 1."
        )
    claim = (
        "The weight w_1 dominates on random and medium-replay data and gives way on expert data."
    )
    return Claim(4, claim, verdict, text, "spacql reproduce figure3 --stored")


def cloning(store: Store) -> Claim:
    """What the paper leaves out."""
    columns = [c for c in cells_of(make_plan("table2"), store) if _quality(c[0]) == "expert"]
    near, parts = 0, []
    for column in columns:
        clone = [cell for cell in column if cell.method.algorithm == "bc"]
        ours = [cell for cell in column if cell.method.algorithm == "spacql"]
        near += any(cell.best for cell in clone)
        if clone and ours:
            pair = f"{_iqm(clone[0]):.0f} beside SPaCQL's {_iqm(ours[0]):.0f}"
            parts.append(f"{pair} on {clone[0].column.dataset}")
    if not parts:
        raise InputError("No run of bc is finished.")
    text = (
        f"Cloning is the highest, or its interval overlaps with that of the highest, on {near} of "
        f"{len(columns)}: {', '.join(parts)}."
    )
    claim = "Ours, the paper does not show it: on expert data plain cloning is as good as any."
    verdict = HELD if near == len(columns) else PART if 2 * near >= len(columns) else UNSEEN
    return Claim(5, claim, verdict, text, "spacql reproduce scores --stored")


def brief(store: Store) -> str:
    """The verdicts on the paper's claims in a sentence, and what a training takes."""
    found = [one for one in claims(store) if not one.claim.startswith("Ours")]
    names = {HELD: "held", PART: "held in part", UNSEEN: "not seen"}
    counts = {word: sum(one.verdict == verdict for one in found) for verdict, word in names.items()}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    plan = make_plan("table2")
    runs = [run for _, m, c in plan.cells() for run in plan.stored(store, m, c)]
    seconds = [r.seconds for r in runs if (r.dataset, r.algorithm) == ("spread-random", "spacql")]
    hours = sum(run.seconds for run in runs) / 3600
    lines = [
        f"- **The paper's claims are tried, not repeated.** Of {len(found)} claims on our data: "
        f"{said}. `spacql reproduce claims`"
    ]
    if seconds:
        lines.append(
            f"- **Minutes, not days.** A training of SPaCQL on spread-random took "
            f"{np.median(seconds):.0f} seconds of one core, and all {len(runs)} trainings of the "
            f"figure took {hours:.0f} hours. `spacql report results --out results.html`"
        )
    return "\n".join(lines) + "\n"


def markdown(store: Store) -> str:
    """A table of verdicts, then what they rest on."""
    found = claims(store)
    if not found:
        raise InputError(f"No run is finished in {store.results}.")
    lines = ["| | claim | here |", "| --- | --- | --- |"]
    lines += [f"| {one.number} | {one.claim} | **{one.verdict}** |" for one in found]
    lines.append("")
    for one in found:
        lines += [f"**{one.number}. {one.verdict.capitalize()}.** {one.found}", ""]
    return "\n".join(lines).rstrip() + "\n"
