"""The paper's claims, one by one: held on our data or not, from the stored runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from spacql.errors import InputError
from spacql.experiments import figures
from spacql.experiments.overall import over_all, time_taken
from spacql.experiments.pairs import ENOUGH, differences, mean_over, significantly_better
from spacql.experiments.pairs import highest as rank_highest
from spacql.experiments.paper import FIGURE3, in_the_paper, make_plan
from spacql.experiments.plans import QUALITIES, Plan
from spacql.experiments.store import Store
from spacql.experiments.tables import Cell, by_seed, grid, plain_zero
from spacql.worlds import TASKS

MARGIN = 10.0  # points: a lead of another that would matter
HELD, PART, UNSEEN = "held", "held in part", "not seen here"
LOW = ("random", "medium-replay")  # the qualities for which the paper makes its claims
# In the paper's words, as short as they go.
CLAIMS = {
    1: "SPaCQL is the best of the paper's algorithms on every random and medium-replay dataset.",
    2: "Replacing one agent (ICQL-QS) is better than replacing all (CFCQL) on random and "
    "medium-replay data, and worse on expert and medium data.",
    3: "Partial targets have less ensemble spread on random data, a similar one on expert data.",
    4: "The weight w_1 dominates on random and medium-replay data and gives way on expert data.",
    5: "Ours, the paper does not show it: on expert data plain cloning is as good as any.",
    6: "Ours: on every dataset `aspac` with one configuration is best, or no other is "
    "significantly better.",
}


@dataclass(frozen=True)
class Claim:
    number: int
    claim: str
    verdict: str
    found: str  # the numbers behind it
    picture: str  # the command that draws them
    ours: bool = False  # not the paper's


def claims(store: Store) -> list[Claim]:
    """All that can be said of the stored runs; a claim whose runs are missing is left out."""
    found = []
    for judge in JUDGES:
        try:
            found.append(judge(store))
        except InputError:
            continue
    return found


def columns_of(plan: Plan, store: Store) -> list[tuple[Cell, ...]]:
    """All columns of a plan of which a run is finished."""
    columns = [c for b in plan.blocks for c in zip(*grid(plan, b, store), strict=True)]
    if not any(_seeds(cell) for column in columns for cell in column):
        raise InputError(f"No run of {plan.name} is finished in {store.results}.")
    return columns


def _seeds(cell: Cell) -> int:
    """How many have a score."""
    return 0 if cell.statistics is None else cell.statistics.seeds


def _quality(cell: Cell) -> str:
    return cell.column.dataset.partition("-")[2]


def _mean(cell: Cell) -> float:
    assert cell.statistics is not None
    return cell.statistics.mean


def _of(column: Sequence[Cell], algorithm: str) -> Cell:
    return next(cell for cell in column if cell.method.algorithm == algorithm)


def _tried(cell: Cell) -> bool:
    """Whether enough seeds were trained; those that diverged count as such."""
    return _seeds(cell) + cell.diverged >= ENOUGH


def _compared(
    store: Store, qualities: Sequence[str], algorithm: str, of_the_paper: bool = False
) -> list[tuple[Cell, ...]]:
    """Columns of table2 with a verdict about this algorithm: three seeds of it and of another, of
    SPaCQL at least. To be ahead of plain cloning alone says nothing."""
    columns = [c for c in columns_of(make_plan("table2"), store) if _quality(c[0]) in qualities]
    if of_the_paper:
        columns = [
            tuple(c for c in column if c.method.algorithm in in_the_paper()) for column in columns
        ]
    return [
        column
        for column in columns
        if sum(_seeds(cell) >= ENOUGH for cell in column) > 1
        and all(_tried(_of(column, name)) for name in (algorithm, "spacql"))
    ]


def _doubts(columns: Sequence[Sequence[Cell]], algorithm: str) -> str:
    """What stands against a verdict that holds everywhere: algorithms with too few seeds, and
    trainings of this one that diverged."""
    few: dict[str, int] = {}
    for cell in (cell for column in columns for cell in column):
        if _seeds(cell) < ENOUGH:
            few[cell.method.label] = few.get(cell.method.label, 0) + 1
    text = ""
    if few:
        names = (f"{name} on {count}" for name, count in few.items())
        text += f" Not compared, with fewer than three seeds: {', '.join(names)}."
    if lost := sum(_of(column, algorithm).diverged for column in columns):
        text += f" {lost} of its trainings diverged."
    return text


def best_of_all(store: Store) -> Claim:
    """Among the algorithms that the paper compares; where others stand is said beside it."""
    standing = _standing(store, LOW, "spacql", "SPaCQL", of_the_paper=True)
    verdict = _verdict(standing.highest, standing.total, LOW, standing.doubts)
    text = f"Among the paper's algorithms: {standing.text}"
    try:
        beside = _standing(store, LOW, "spacql", "SPaCQL")
    except InputError:
        beside = None
    if beside:
        text += (
            f" Among all here it has the highest score on {beside.highest}, and on {beside.near} "
            "no other is significantly better."
        )
    return Claim(1, CLAIMS[1], verdict, text, "spacql reproduce scores --stored")


def best_by_anchoring(store: Store) -> Claim:
    standing = _standing(store, QUALITIES, "aspac", "`aspac`")
    verdict = _verdict(standing.near, standing.total, QUALITIES, standing.doubts)
    text = (
        f"{standing.text} That another is ahead by more than {MARGIN:g} points is ruled out on "
        f"{standing.safe} of {standing.total}; elsewhere too few seeds, or scores that vary much, "
        "leave it open."
    )
    return Claim(6, CLAIMS[6], verdict, text, "spacql reproduce scores --stored", ours=True)


def _verdict(good: int, total: int, qualities: Sequence[str], doubts: str) -> str:
    """On so many of those that could be compared. Held is what was seen on every dataset, beside
    every algorithm and with every training."""
    if good == total == len(TASKS) * len(qualities) and not doubts:
        return HELD
    return PART if 2 * good >= total else UNSEEN


def _at_least_half(total: int, of: int) -> None:
    """Fewer datasets are no ground for a verdict."""
    if 2 * total < of:
        raise InputError(f"Only {total} of {of} datasets have enough seeds.")


def _left(total: int, qualities: Sequence[str]) -> str:
    left = len(TASKS) * len(qualities) - total
    return f" {left} more have too few seeds yet." if left else ""


@dataclass(frozen=True)
class Standing:
    """Where one algorithm stands among others: on how many datasets it is highest, no other is
    significantly better, and none can be ahead by more than `MARGIN`; of how many."""

    highest: int
    near: int
    safe: int
    total: int
    text: str  # the same in words
    doubts: str  # what speaks against a verdict


def _standing(
    store: Store,
    qualities: Sequence[str],
    algorithm: str,
    name: str,
    of_the_paper: bool = False,
) -> Standing:
    columns, plan = _compared(store, qualities, algorithm, of_the_paper), make_plan("table2")
    _at_least_half(len(columns), len(TASKS) * len(qualities))
    highest, near, safe = 0, 0, 0
    above: list[str] = []
    for column in columns:
        scores = {
            cell.method.algorithm: by_seed(plan.stored(store, cell.method, cell.column))
            for cell in column
        }
        ranks = [scores[cell.method.algorithm] for cell in column]
        best, mine = column[cast(int, rank_highest(ranks))], _of(column, algorithm)
        own = scores[algorithm]
        highest += best is mine
        beaten = any(significantly_better(other, own) for other in ranks)
        near += len(own) >= ENOUGH and not beaten
        safe += all(_lead(other, own) <= MARGIN for other in ranks if other is not own)
        if best is not mine:
            told = significantly_better(scores[best.method.algorithm], own)
            where = f"{best.method.label} on {best.column.dataset}"
            above.append(where + ("" if told else " (not significantly)"))
    text = (
        f"{name} has the highest score on {highest} of {len(columns)} such datasets, and on {near} "
        "no other is significantly better seed by seed."
    )
    if above:
        text += f" Above it: {', '.join(above)}."
    doubts = _doubts(columns, algorithm)
    text += _left(len(columns), qualities) + doubts
    return Standing(highest, near, safe, len(columns), text, doubts)


def _lead(other: Mapping[int, float], own: Mapping[int, float]) -> float:
    """How far the other may be ahead: the upper end of the interval; none of too few seeds."""
    gap = mean_over(differences({"": other}, {"": own}))
    return -np.inf if gap is None or gap.high is None else gap.high


def one_against_all(store: Store) -> Claim:
    """Intervals of the differences, seed by seed, that speak for the claim, against it, neither."""
    words: dict[str, list[str]] = {"for": [], "against": [], "neither": []}
    for column in columns_of(make_plan("differences"), store):
        for cell in column:
            if cell.method.label != "icql-qs - cfcql" or cell.statistics is None:
                continue
            if cell.statistics.seeds < ENOUGH:
                continue
            sign = 1 if _quality(cell) in LOW else -1
            side = "neither" if not cell.best else "for" if sign * _mean(cell) > 0 else "against"
            mean, low, high = (plain_zero(x, 1) for x in (_mean(cell), *cell.statistics.range))
            words[side].append(f"{cell.column.dataset}, {mean} [{low}, {high}]")
    agree, against, unclear = (len(words[side]) for side in ("for", "against", "neither"))
    total = agree + against + unclear
    _at_least_half(total, len(TASKS) * len(QUALITIES))
    verdict = (
        HELD if agree == 4 * len(TASKS) else PART if 2 * agree >= total > 2 * against else UNSEEN
    )
    text = (
        f"Of {total} differences, seed by seed, {_said(words['for'], 'speak', 'for it')}, "
        f"{_said(words['against'], 'speak', 'against it')}, and {unclear} have 0 in their "
        "interval."
    ) + _left(total, QUALITIES)
    return Claim(2, CLAIMS[2], verdict, text, "spacql reproduce gaps --stored")


def _said(names: Sequence[str], verb: str, what: str) -> str:
    listed = f" ({'; '.join(names)})" if names else ""
    return f"{len(names) or 'none'} {verb if len(names) != 1 else verb + 's'} {what}{listed}"


def less_spread(store: Store) -> Claim:
    """Differences of the ensembles' spread at the end of training, seed by seed."""
    plan = make_plan("figure2")
    ends: dict[str, dict[str, dict[int, float]]] = {}  # by algorithm, dataset, seed
    for _, method, column in plan.cells():
        for run in plan.stored(store, method, column):
            spread = figures.ensemble_spread(run)[1] if run.score is not None else []
            if spread:
                by_dataset = ends.setdefault(method.algorithm, {})
                by_dataset.setdefault(column.dataset, {})[run.seed] = spread[-1]
    gaps = differences(ends.get("icql-qs", {}), ends.get("cfcql", {}))
    found = {
        dataset: mean_over({dataset: gap}) for dataset, gap in gaps.items() if len(gap) >= ENOUGH
    }
    parts = [
        f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}] on {dataset}"
        for dataset, gap in found.items()
        if gap is not None and gap.low is not None and gap.high is not None
    ]
    if not parts:
        raise InputError("No three seeds of figure2 are finished.")
    random, expert = found.get("spread-random"), found.get("spread-expert")
    if random is None:
        raise InputError("Three seeds of figure2 on spread-random are not finished.")
    less = random.significant and random.mean < 0
    verdict = PART if less else UNSEEN
    if less and expert is not None and expert.low is not None and expert.high is not None:
        # Similar is what cannot be as different as on random data; not what is merely unsure.
        farthest = max(abs(expert.low), abs(expert.high))
        if not expert.significant and farthest < abs(random.mean):
            verdict = HELD
    text = (
        "At the end of training, where one agent is replaced beside all, ten critics disagree "
        f"more by, seed by seed: {'; '.join(parts)}."
    )
    return Claim(3, CLAIMS[3], verdict, text, "spacql reproduce figure2 --stored")


def first_weight(store: Store) -> Claim:
    weights = [
        w
        for w in figures.draw(make_plan("figure3"), store, None)["weights"]
        if w["seeds"] >= ENOUGH
    ]
    low = [w for w in weights if w["dataset"].partition("-")[2] in LOW]
    expert = [w for w in weights if w["dataset"].endswith("-expert")]
    first = [w["dataset"] for w in low if np.argmax(w["mean"]) == 0]
    gives_way = [w["dataset"] for w in expert if np.argmax(w["mean"]) != 0]
    _at_least_half(len(low), len(FIGURE3) * len(LOW))
    _at_least_half(len(expert), len(FIGURE3))
    values = [value for w in weights for value in w["mean"]]
    all_there = len(low) == len(FIGURE3) * len(LOW) and len(expert) == len(FIGURE3)
    ordered = all_there and len(first) == len(low) and len(gives_way) == len(expert)
    dominant = all(w["mean"][0] > 0.5 for w in low)
    verdict = HELD if ordered and dominant else PART if 2 * len(first) >= len(low) else UNSEEN
    text = (
        f"w_1 is the largest weight on {len(first)} of {len(low)} random and medium-replay "
        f"datasets, and not the largest on {len(gives_way)} of {len(expert)} expert ones. "
    )
    if not all_there:
        text += "The others have too few seeds yet. "
    if not dominant:
        text += (
            f"It does not dominate: all weights lie between {min(values):.2f} and "
            f"{max(values):.2f}, where a plain average has 0.33. The paper shows weights after a "
            "min-max normalisation, which makes any difference look like 0 against 1."
        )
    return Claim(4, CLAIMS[4], verdict, text.rstrip(), "spacql reproduce figure3 --stored")


def cloning(store: Store) -> Claim:
    """What the paper leaves out."""
    columns = _compared(store, ("expert",), "bc")
    _at_least_half(len(columns), len(TASKS))
    near, parts = 0, []
    for column in columns:
        clone, ours = _of(column, "bc"), _of(column, "spacql")
        near += clone.best
        scores = [f"{_mean(x):.0f}" if _seeds(x) else "diverged" for x in (clone, ours)]
        parts.append(f"{scores[0]} beside SPaCQL's {scores[1]} on {clone.column.dataset}")
    doubts = _doubts(columns, "bc")
    text = (
        f"Another is significantly better than cloning, seed by seed, on {len(columns) - near} of "
        f"{len(columns)}: {', '.join(parts)}."
    )
    text += _left(len(columns), ("expert",)) + doubts
    verdict = _verdict(near, len(columns), ("expert",), doubts)
    return Claim(5, CLAIMS[5], verdict, text, "spacql reproduce scores --stored", ours=True)


def standing_of_ours(store: Store) -> str:
    """Where ASPAC stands beside all others, in a sentence; nothing where that is not known."""
    try:
        standing = _standing(store, QUALITIES, "aspac", "`aspac`")
    except InputError:
        return ""
    rivals = over_all(make_plan("pairs"), store).numbers
    everywhere = len(TASKS) * len(QUALITIES)
    judged = [x for x in rivals if x.get("low") is not None and x["datasets"] == everywhere]
    if not judged:
        return ""
    closest = min(judged, key=lambda rival: rival["mean"])
    ahead = sum(rival["low"] > 0 for rival in judged)
    text = (
        f"- **One configuration for all data.** On {standing.near} of {standing.total} datasets "
        "no other algorithm is significantly better than ASPAC, and over all of them it is ahead "
        f"of {ahead} of {len(judged)} others, seed by seed: of {closest['method']}, the closest, "
        f"by {closest['mean']:.0f} points [{closest['low']:.0f}, {closest['high']:.0f}]."
    )
    few = [rival["method"] for rival in rivals if rival not in judged]
    text += f" Too few seeds yet: {', '.join(few)}." if few else ""
    return text + " `spacql reproduce pairs --stored`"


def brief(store: Store) -> str:
    """Where ours stands and the verdicts on the paper's claims, in a sentence each, and what a
    training takes."""
    found = [one for one in claims(store) if not one.ours]
    names = {HELD: "held", PART: "held in part", UNSEEN: "not seen"}
    counts = {word: sum(one.verdict == verdict for one in found) for verdict, word in names.items()}
    counts["not tried with enough runs yet"] = OF_THE_PAPER - len(found)
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    runs, hours = time_taken(make_plan("table2"), store)
    plan = make_plan("table2", only=("spread-random", "spacql"))
    seconds = [run.seconds for _, m, c in plan.cells() for run in plan.stored(store, m, c)]
    lines = [line] if (line := standing_of_ours(store)) else []
    if found:
        lines.append(
            f"- **The paper's claims are tried, not repeated.** Here, of the {OF_THE_PAPER}: "
            f"{said}. `spacql reproduce claims`"
        )
    if seconds:
        lines.append(
            f"- **Minutes, not days.** A training of SPaCQL on spread-random takes "
            f"{np.median(seconds) / 60:.0f} minutes of one core, and the {runs} trainings of the "
            f"figure took {hours:.0f} hours, half of that on two cores. "
            "`spacql reproduce table2 --stored`"
        )
    return "\n".join(lines) + "\n"


JUDGES = (best_of_all, one_against_all, less_spread, first_weight, cloning, best_by_anchoring)
OF_THE_PAPER = 4  # the first ones


def markdown(store: Store) -> str:
    """A table of verdicts, then what they rest on."""
    if not store.runs:
        raise InputError(f"No run is finished in {store.results}.")
    found = {one.number: one for one in claims(store)}
    lines = ["| | claim | here |", "| --- | --- | --- |"]
    for number, claim in CLAIMS.items():
        verdict = f"**{found[number].verdict}**" if number in found else "not enough runs yet"
        lines.append(f"| {number} | {claim} | {verdict} |")
    lines.append("")
    for one in found.values():
        lines += [f"**{one.number}. {one.verdict.capitalize()}.** {one.found}", ""]
    return "\n".join(lines).rstrip() + "\n"
