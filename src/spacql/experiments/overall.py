"""What stands below a table of many datasets: means over them, who is best how often, what a run
costs, whether it was long enough, how often the paper's numbers are reached, and two algorithms
compared over all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

from spacql.experiments.pairs import ENOUGH, Estimate, Scores, differences, improvement, mean_over
from spacql.experiments.paper import published
from spacql.experiments.plans import Plan
from spacql.experiments.store import Store
from spacql.experiments.tables import by_dataset_seed, by_seed, grid, markdown_row, plain_zero
from spacql.reference import stored as references

OURS = ("spacql", "aspac")  # whose scores are held against SPaCQL's published ones
SAME_WORLD = "spread"  # where a published return is the same return here
WHOLE = {"aspac": "aspac"}  # of an ablation: the method that the others lack a part of


@dataclass(frozen=True)
class Extra:
    """A small table of texts, and the numbers behind it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a line break within a text is kept
    numbers: tuple[dict[str, Any], ...]


def scores_of(plan: Plan, store: Store) -> dict[str, dict[str, dict[int, float]]]:
    """By method, then dataset, then seed."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for _, method, column in plan.cells():
        scores = by_seed(plan.stored(store, method, column))
        found.setdefault(method.label, {})[column.dataset] = scores
    return found


def tasks_of(plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column.task for _, _, column in plan.cells()))


def by_tasks(values: Scores, tasks: tuple[str, ...]) -> dict[str, Estimate | None]:
    """The mean over each task's datasets."""
    return {
        task: mean_over({d: x for d, x in values.items() if d.startswith(f"{task}-")})
        for task in tasks
    }


def extras(plan: Plan, store: Store) -> list[Extra]:
    """What belongs below a plan's own tables; nothing where there is no run."""
    if against(plan):
        if not any(_gaps(plan, store).values()):
            return []
        return [by_task(plan, store), over_all(plan, store)]
    if plan.name not in ("table2", "own-strengths") or not any(
        plan.stored(store, m, c) for _, m, c in plan.cells()
    ):
        return []
    return [means(plan, store), costs(plan, store), rises(plan, store)]


def lines(plan: Plan, store: Store) -> list[str]:
    """Sentences below those."""
    if not extras(plan, store):
        return []
    if against(plan):
        return [
            "By task and over all: the mean within a seed of a task, then over tasks, with its "
            "95 % t interval; only datasets that both have. More likely higher: in how many of "
            "the pairs (a dataset and a seed) the first is, with Wilson's 95 % interval, which "
            "takes pairs for independent. This and the counts are of datasets with three seeds or "
            "more."
        ]
    runs, hours = time_taken(plan, store)
    return [
        *reached(plan, store),
        f"These {runs} trainings took {hours:.1f} hours of one core. They were made on machines of "
        "unequal speed: `spacql bench train` compares algorithms' costs on one.",
    ]


def time_taken(plan: Plan, store: Store) -> tuple[int, float]:
    """How many trainings are stored, and the hours of one core that they took."""
    runs = [run for _, m, c in plan.cells() for run in plan.stored(store, m, c)]
    return len(runs), sum(run.seconds for run in runs) / 3600


def shared(scores: Mapping[str, Scores]) -> tuple[dict[str, set[int]], list[str]]:
    """The datasets that all methods have, each with the seeds that all have there; and the methods
    that are left out of that: those with enough seeds on fewer than half of the datasets that the
    fullest has. Where nobody has enough, one seed will do."""
    full = max((len(cell) for cells in scores.values() for cell in cells.values()), default=0)
    enough = min(ENOUGH, full)
    many = {name: sum(len(x) >= enough for x in cells.values()) for name, cells in scores.items()}
    absent = [name for name, count in many.items() if not count or 2 * count < max(many.values())]
    there = [cells for name, cells in scores.items() if name not in absent]
    seeds = (
        {d: set.intersection(*(set(cells.get(d, ())) for cells in there)) for d in there[0]}
        if there
        else {}
    )
    return {d: common for d, common in seeds.items() if len(common) >= max(enough, 1)}, absent


def means(plan: Plan, store: Store) -> Extra:
    """By task and over all, on the datasets and the seeds that all methods have: other seeds are
    other datasets."""
    scores = scores_of(plan, store)
    datasets, absent = shared(scores)
    tasks = tasks_of(plan)
    rows, numbers = [], []
    for name, cells in scores.items():
        here = {
            d: {seed: cells[d][seed] for seed in seeds}
            for d, seeds in datasets.items()
            if name not in absent
        }
        estimates = by_tasks(here, tasks) | {"all": mean_over(here)}
        rows.append((name, *(_interval(found) for found in estimates.values())))
        numbers += [{"method": name, "over": where, **_json(x)} for where, x in estimates.items()]
    rest = "the methods with a number here" if absent else "all"
    title = (
        f"Mean over the {len(datasets)} datasets that {rest} share, on the seeds that they share, "
        "with its 95 % interval"
    )
    return Extra(title, ("", *tasks, "all"), tuple(rows), tuple(numbers))


def costs(plan: Plan, store: Store) -> Extra:
    """How often no other is significantly better than a method, and seconds of a run."""
    blocks = [grid(plan, block, store) for block in plan.blocks]
    columns = [column for rows in blocks for column in zip(*rows, strict=True)]
    judged = [column for column in columns if any(cell.best for cell in column)]
    tasks = tasks_of(plan)
    seconds: dict[tuple[str, str], list[float]] = {}
    for _, method, column in plan.cells():
        runs = plan.stored(store, method, column)
        seconds.setdefault((method.label, column.task), []).extend(run.seconds for run in runs)
    rows, numbers = [], []
    for name in dict.fromkeys(method.label for _, method, _ in plan.cells()):
        mine = [(cell, column) for column in judged for cell in column if cell.method.label == name]
        best = sum(cell.best for cell, _ in mine)
        alone = sum(cell.best and sum(c.best for c in column) == 1 for cell, column in mine)
        compared = sum(c.statistics is not None and c.statistics.seeds >= ENOUGH for c, _ in mine)
        took = {task: median(seconds[name, task]) for task in tasks if seconds.get((name, task))}
        times = [f"{took[task]:,.0f}" if task in took else "–" for task in tasks]
        rows.append((name, f"{best} of {compared}" if compared else "–", str(alone), *times))
        numbers.append({"method": name, "best_or_tied": best, "best_alone": alone,
                        "compared": compared, "seconds": took})  # fmt: skip
    head = ("", "best or tied", "alone", *(f"{task}, s" for task in tasks))
    title = (
        "Best or tied: no other is significantly better, of those that have three seeds or more "
        "there; alone; seconds of one run on one core, median"
    )
    return Extra(title, head, tuple(rows), tuple(numbers))


def rises(plan: Plan, store: Store) -> Extra:
    """Whether trainings are long enough: how much scores still rise at their end, by task."""
    tasks, rows, numbers = tasks_of(plan), [], []
    by_method: dict[str, dict[str, dict[int, float]]] = {}
    for _, method, column in plan.cells():
        runs = [run for run in plan.stored(store, method, column) if run.score is not None]
        ends = [(run.seed, last_rise(run.curve)) for run in runs]
        known = by_dataset_seed((seed, rise) for seed, rise in ends if rise is not None)
        by_method.setdefault(method.label, {})[column.dataset] = known
    for name, gains in by_method.items():
        found = by_tasks(gains, tasks)
        rows.append((name, *map(_interval, found.values())))
        numbers += [{"method": name, "over": task, **_json(x)} for task, x in found.items()]
    title = "Mean score of a training's last tenth, minus that of the tenth before"
    return Extra(title, ("", *tasks), tuple(rows), tuple(numbers))


def last_rise(curve: Sequence[Mapping[str, Any]]) -> float | None:
    """The mean score of a curve's last tenth minus that of the tenth before."""
    scores = [point["score"] for point in curve]
    tenth = len(scores) // 10
    if not tenth:
        return None
    return mean(scores[-tenth:]) - mean(scores[-2 * tenth : -tenth])


def here(dataset: str, score: float) -> float:
    """A published score on our scale, in the one world where both have the same returns."""
    task = dataset.partition("-")[0]
    if task != SAME_WORLD:
        return score
    ours, *_, theirs = references(task)
    return ours.score(theirs.random + score / 100 * theirs.span)


def reached(plan: Plan, store: Store) -> list[str]:
    """On how many datasets SPaCQL's published score is reached or passed, and by whom; of those
    with enough seeds."""
    scores = scores_of(plan, store)
    ours, *_, theirs = references(SAME_WORLD)
    found = []
    labels = {method.algorithm: method.label for _, method, _ in plan.cells()}
    for name in (labels.get(algorithm, algorithm) for algorithm in OURS):
        cells = {d: mean(x.values()) for d, x in scores.get(name, {}).items() if len(x) >= ENOUGH}
        goals = {d: here(d, goal[0]) for d in cells if (goal := published(d, "spacql"))}
        if not goals:
            found.append(f"{name}: too few seeds.")
            continue
        above = [d for d, goal in goals.items() if cells[d] >= goal]
        of = f"{len(above)} of {len(goals)}"
        of += "" if len(goals) == 16 else " with three seeds or more"
        found.append(f"{name}: {of}{': ' if above else ''}{', '.join(above)}.")
    factor = theirs.span / ours.span
    return [
        f"SPaCQL's published scores ({SAME_WORLD}'s times {factor:.3f}, for our expert is better; "
        "those of the other tasks as they are, on a scale that is not quite ours), reached or "
        f"passed by the mean of {' '.join(found)}"
    ]


def against(plan: Plan) -> str:
    """The method that all others are compared with below the tables, if there is one."""
    if plan.name == "pairs":
        return next((first for block in plan.blocks for first, _ in block.pairs), "")
    return WHOLE.get(plan.name, "")


def _gaps(plan: Plan, store: Store) -> dict[str, dict[str, dict[int, float]]]:
    scores, first = scores_of(plan, store), against(plan)
    mine = scores.get(first, {})
    return {name: differences(mine, x) for name, x in scores.items() if name != first}


def by_task(plan: Plan, store: Store) -> Extra:
    tasks, rows, numbers = tasks_of(plan), [], []
    for name, gaps in _gaps(plan, store).items():
        found = by_tasks(gaps, tasks)
        rows.append((f"- {name}", *(_interval(x, mark=True) for x in found.values())))
        numbers += [{"method": name, "over": task, **_json(x)} for task, x in found.items()]
    head = (against(plan), *tasks)
    return Extra("By task", head, tuple(rows), tuple(numbers))


def over_all(plan: Plan, store: Store) -> Extra:
    rows, numbers = [], []
    for name, gaps in _gaps(plan, store).items():
        judged = {dataset: gap for dataset, gap in gaps.items() if len(gap) >= ENOUGH}
        found, share = mean_over(gaps), improvement(judged)
        cells = [mean_over({dataset: gap}) for dataset, gap in judged.items()]
        decided = [c for c in cells if c is not None and c.significant]
        ahead, behind = (sum(sign * c.mean > 0 for c in decided) for sign in (1, -1))
        likely = "–"
        if share is not None:
            likely = f"{share.share:.0%} [{share.low:.0%}, {share.high:.0%}] of {share.pairs}"
        counts = f"{ahead}, {len(cells) - len(decided)}, {behind}"
        rows.append((f"- {name}", _interval(found, mark=True), likely, counts if cells else "–"))
        numbers.append({"method": name, **_json(found), "ahead": ahead, "behind": behind,
                        "undecided": len(cells) - len(decided),
                        "improvement": None if share is None else share._asdict()})  # fmt: skip
    head = (against(plan), "mean difference", "more likely higher", "ahead, undecided, behind")
    return Extra("Over all datasets", head, tuple(rows), tuple(numbers))


def _interval(found: Estimate | None, mark: bool = False) -> str:
    if found is None:
        return "–"
    text = plain_zero(found.mean, 1)
    if found.low is not None and found.high is not None:
        text += f" [{plain_zero(found.low, 1)}, {plain_zero(found.high, 1)}]"
    return f"**{text}**" if mark and found.significant else text


def _json(found: Estimate | None) -> dict[str, Any]:
    return {} if found is None else asdict(found)


def markdown(plan: Plan, store: Store) -> str:
    """The extras of a plan, behind its tables."""
    parts = []
    for extra in extras(plan, store):
        table = [markdown_row(extra.head), markdown_row(["---", *["---:"] * (len(extra.head) - 1)])]
        parts += [f"{extra.title}:", "\n".join([*table, *map(markdown_row, extra.rows)])]
    return "".join(f"\n{part}\n" for part in [*parts, *lines(plan, store)])


def show(plan: Plan, store: Store) -> None:
    """In the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for extra in extras(plan, store):
        console.print(extra.title, highlight=False, markup=False)
        table = Table(extra.head[0], box=None, padding=(0, 1, 0, 0), header_style="underline")
        for title in extra.head[1:]:
            table.add_column(title, justify="right")
        for row in extra.rows:
            table.add_row(*(_text(cell, Text) for cell in row))
        console.print(table)
        console.print()
    for line in lines(plan, store):
        console.print(line, highlight=False, markup=False)


def _text(cell: str, make: Callable[..., Any]) -> Any:
    """A marked cell in bold and with a star; an interval below its number."""
    plain = cell.strip("*")
    marked = plain != cell
    return make(plain.replace(" [", "\n[") + ("*" if marked else ""), "bold" if marked else "")


def numbers(plan: Plan, store: Store) -> list[dict[str, Any]]:
    """As JSON."""
    return [{"title": x.title, "rows": list(x.numbers)} for x in extras(plan, store)]
