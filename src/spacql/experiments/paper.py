"""The paper's tables and figures, and our own beside them, as data: which runs each needs."""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

from spacql.errors import InputError, suggestion
from spacql.experiments.plans import (
    QUALITIES,
    SEEDS,
    Block,
    Column,
    Method,
    Plan,
    narrow,
    registered,
)
from spacql.files import read_json
from spacql.worlds import TASKS

PENALISED = ("spacql", "icql-qs", "cfcql")
# ASPAC's alpha, or the weight of its anchor, where its sweeps (`spacql results sweeps aspac`) say
# another than the one for all data.
OWN: dict[str, dict[str, float]] = {
    "tag-medium": {"anchor_weight": 3.4e-6},
    "world-expert": {"alpha": 0.3},
    "halfcheetah-medium": {"alpha": 0.05},
}
FIGURE3 = ("spread", "world")  # tasks
ABLATION = ("spread", "halfcheetah")  # episodes of 25 steps, and of 1,000


def columns(task: str) -> tuple[Column, ...]:
    return tuple(Column(quality, f"{task}-{quality}") for quality in QUALITIES)


def random_and_expert(penalty: str = "") -> tuple[Column, ...]:
    """In spread, with the penalty of the settings or with another."""
    label, overrides = (f", {penalty}", {"penalty": penalty}) if penalty else ("", {})
    return tuple(Column(q + label, f"spread-{q}", overrides) for q in ("random", "expert"))


def plain(names: Iterable[str]) -> tuple[Method, ...]:
    """Algorithms with the settings that they have anyway."""
    return tuple(Method(name, name) for name in names)


def critics(algorithm: str, count: int) -> Method:
    return Method(f"{algorithm}, {count} critics", algorithm, {"critics": count})


def table1() -> tuple[Block, ...]:
    methods = plain(("cfcql", "icql-qs"))
    return tuple(
        Block(task, methods, columns(task), published=True) for task in ("spread", "world")
    )


def table2() -> tuple[Block, ...]:
    return tuple(Block(task, plain(registered()), columns(task), published=True) for task in TASKS)


def own_strengths() -> tuple[Block, ...]:
    """Table 2, and in it ASPAC with an alpha or an anchor of its own per dataset, as the others
    have."""
    others = plain(name for name in registered() if name != "aspac")
    methods = (*others, Method("aspac, own strengths", "aspac", by_dataset=OWN))
    return tuple(Block(task, methods, columns(task), published=True) for task in TASKS)


def differences() -> tuple[Block, ...]:
    pairs = (("spacql", "cfcql"), ("spacql", "icql-qs"), ("icql-qs", "cfcql"))
    return tuple(Block(task, plain(PENALISED), columns(task), pairs=pairs) for task in TASKS)


def pairs(against: str = "aspac") -> tuple[Block, ...]:
    """One algorithm against every other, seed by seed."""
    names = registered()
    if against not in names:
        raise InputError(
            f"There is no algorithm {against!r} to compare with.{suggestion(against, names)} "
            f"There are: {', '.join(names)}."
        )
    others = tuple((against, name) for name in names if name != against)
    return tuple(Block(task, plain(names), columns(task), pairs=others) for task in TASKS)


def ablation() -> tuple[Block, ...]:
    """Each target with few critics and with many; and each algorithm with the paper's penalty."""
    cfcql, icql_qs, spacql = critics("cfcql", 2), critics("icql-qs", 2), critics("spacql", 10)
    methods = (
        cfcql,
        critics("cfcql", 10),
        icql_qs,
        critics("icql-qs", 10),
        critics("spacql", 2),
        spacql,
        Method("spacql, uniform weights", "spacql", {"critics": 10, "mixing": "uniform"}),
    )
    return (
        Block("spread", methods, random_and_expert()),
        Block("spread, policy penalty", (cfcql, icql_qs, spacql), random_and_expert("policy")),
    )


def aspac() -> tuple[Block, ...]:
    """Each of its parts taken out, one at a time, and the two that it is built on: where episodes
    are short, and where they are long."""
    methods = (
        Method("aspac", "aspac"),
        Method("target: SPaCQL's weights", "aspac", {"mixing": "uncertainty"}),
        Method("actors: the others as logged", "aspac", {"others": "logged"}),
        Method("no anchor", "aspac", {"anchor_weight": 0.0}),
        Method("no penalty", "aspac", {"alpha": 0.0}),
        # Either keeps policies near the log: without one, the other may be enough.
        Method("neither anchor nor penalty", "aspac", {"anchor_weight": 0.0, "alpha": 0.0}),
        *plain(("spacql", "cfcql")),
    )
    return tuple(Block(task, methods, columns(task)) for task in ABLATION)


def figure2() -> tuple[Block, ...]:
    methods = (critics("cfcql", 10), critics("icql-qs", 10), critics("spacql", 10))
    return (Block("spread", methods, random_and_expert()),)


def figure3() -> tuple[Block, ...]:
    return tuple(Block(task, plain(("spacql",)), columns(task)) for task in FIGURE3)


def figure4() -> tuple[Block, ...]:
    tasks = ("spread", "tag", "world")
    return tuple(Block(task, plain(("plcql",)), columns(task)) for task in tasks)


PLANS = {
    "table1": ("CFCQL and ICQL-QS: all agents replaced, or one", table1),
    "table2": ("All algorithms", table2),
    "own-strengths": ("All algorithms, ASPAC too with strengths per dataset", own_strengths),
    "differences": ("SPaCQL, ICQL-QS and CFCQL, seed by seed", differences),
    "pairs": ("One algorithm against every other, seed by seed", pairs),
    "ablation": ("Is it the replacement or the ensemble?", ablation),
    "aspac": ("aspac without each of its parts", aspac),
    "figure1": ("How the agents' actions hang together", tuple),
    "figure2": ("Spread of the ensemble's values at the target's actions", figure2),
    "figure3": ("Weights of the numbers of replaced agents", figure3),
    "figure4": ("How many agents PLCQL's bandit replaces", figure4),
    "scores": ("All scores in one picture", table2),
    "gaps": ("SPaCQL, ICQL-QS and CFCQL, seed by seed, in one picture", differences),
}


def make_plan(
    name: str,
    *,
    only: Sequence[str] = (),
    seeds: Sequence[int] = SEEDS,
    rounds: int | None = None,
    against: str = "aspac",
) -> Plan:
    """A table's or figure's plan, narrowed to what `only` names; pairs are with `against`."""
    if name not in PLANS:
        raise InputError(
            f"There is no {name!r} to reproduce.{suggestion(name, PLANS)} "
            f"There are: {', '.join(PLANS)}."
        )
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError("Seeds must be different numbers from 0 on, and at least one.")
    title, make = PLANS[name]
    blocks = partial(pairs, against) if name == "pairs" else make
    if only and not blocks():
        raise InputError(
            f"{name} is made from data alone: there are no runs to choose with --only."
        )
    narrowed = narrow(blocks(), only) if only else blocks()
    return Plan(name, title, narrowed, tuple(seeds), rounds)


@cache
def _published() -> dict[str, Any]:
    return read_json(str(files("spacql") / "assets" / "published-scores.json"))


def published(dataset: str, algorithm: str, table: str = "") -> tuple[float, float | None] | None:
    """The paper's score of an algorithm: mean, and deviation where it gives one.

    From Table 2, or Table 1 where that is asked for or has the only number.
    """
    order = ("table1", "table2") if table == "table1" else ("table2", "table1")
    for name in order:
        if found := _published()[name].get(dataset, {}).get(algorithm):
            return found[0], found[1] if len(found) > 1 else None
    return None


def in_the_paper() -> set[str]:
    """The algorithms of which the paper has a score."""
    tables = (_published()[name] for name in ("table1", "table2"))
    return {name for table in tables for row in table.values() for name in row}
