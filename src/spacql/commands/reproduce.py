"""`spacql reproduce NAME`: a table or figure of the paper, from stored runs and new ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from spacql.commands.where import HERE, Where

if TYPE_CHECKING:
    from spacql.experiments.executors import Executor, PlannedRun
    from spacql.experiments.plans import Plan
    from spacql.experiments.store import Store

Name = Literal["table1", "table2", "own-strengths", "pairs", "differences", "ablation", "aspac",
               "figure1", "figure2", "figure3", "figure4", "scores", "gaps", "claims", "selection",
               "sweeps"]  # fmt: skip
PICTURES = ("figure1", "figure2", "figure3", "figure4", "scores", "gaps")


def reproduce(
    name: tyro.conf.Positional[Name],
    /,
    only: tuple[str, ...] = (),
    against: str = "aspac",
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    rounds: int | None = None,
    workers: int = 0,
    results: Path | None = None,
    runs: Path = Path("runs/reproduce"),
    dry_run: bool = False,
    stored: bool = False,
    out: Path | None = None,
    quiet: bool = False,
    json: bool = False,
    where: tyro.conf.OmitArgPrefixes[Where] = HERE,
) -> int:
    """Reproduce a table or figure of the paper: run what is missing, then print or draw it.

    Finished runs are found in the results folder by their whole configuration and are not run
    again. An interrupted reproduction goes on where it stopped, and a failed run stops no other.

    table1: CFCQL and ICQL-QS. table2: all algorithms and datasets, their means, how often each is
    best, and what a run costs. own-strengths: the same, with an alpha or anchor per dataset for
    aspac too. pairs: one algorithm against every other, seed by seed. differences: SPaCQL, ICQL-QS
    and CFCQL compared seed by seed. ablation: is it the replacement or the ensemble? aspac: without
    each of its parts. figure1: how agents' actions hang together. figure2: spread of the ensemble
    during training. figure3: weights w_k. figure4: how many agents PLCQL's bandit replaces. scores:
    table2 as a picture. gaps: differences as a picture. claims: what the paper claims, and whether
    it held (always from stored runs). selection: how well policies are chosen without a simulator,
    with the first of the seeds. sweeps: the trainings by which hyperparameters were chosen, on
    seeds of their own.

    Example: spacql reproduce table1 --only spread-random --seeds 0 1

    Args:
        name: Which table or figure.
        only: Tasks, qualities, datasets or methods to narrow it to; parts of names will do.
        against: Of pairs: the algorithm that the others are compared with.
        seeds: Which seeds.
        rounds: Another length of training than the settings'.
        workers: Processes at a time; 0 is one per core.
        results: Folder of finished runs; that of the checkout if not given.
        runs: Folder for the runs' own folders.
        dry_run: Only say what is finished and what is missing, and how long it will take.
        stored: Run nothing; what is missing is a dash.
        out: Write files: OUT.md and OUT.csv, or OUT.png and OUT.svg. A figure without it is
            written here under its own name, unless its numbers are asked for.
        quiet: No progress; failures are still told.
        json: Print the numbers as JSON.
        where: On this machine, or on a Ray cluster.
    """
    from spacql import arguments
    from spacql.errors import InputError
    from spacql.experiments.paper import make_plan
    from spacql.experiments.plans import SEEDS
    from spacql.experiments.store import Store

    arguments.seeds(seeds)
    arguments.whole("--rounds", rounds)
    arguments.whole("--workers", workers, 0)
    arguments.place(runs)
    if out is not None:
        if not out.name:
            raise InputError(f"--out {out} is a folder; name the files in it, as {out / name}.")
        arguments.place(out.absolute().parent)
    if name == "claims" and (only or out is not None or rounds is not None or seeds != SEEDS):
        raise InputError(
            "Claims are judged by all stored runs and printed: leave out --only, --seeds, "
            "--rounds and --out."
        )
    if against != "aspac" and name != "pairs":
        raise InputError("--against is for pairs: the algorithm that the others are compared with.")
    if name == "selection" and rounds is not None:
        raise InputError("Selection has a length of its own: leave out --rounds.")
    from_store = stored and name not in ("selection", "sweeps")  # which have folders of their own
    if (from_store or name == "claims") and not dry_run and not len(Store(results)):
        raise InputError(
            f"There are no stored runs in {Store(results).results}. Those of this version are in "
            "the folder `results` of its source repository, not in the installed package: name "
            "it with --results, or leave out --stored to train what is missing."
        )
    if name == "claims":
        return print_claims(Store(results), json)
    if name == "selection":
        from spacql.commands.selection import select

        return select(only, seeds[0], lambda folder: where.make(folder, workers),
                      runs / "selection", Store(results).results, dry_run=dry_run, stored=stored,
                      out=out, quiet=quiet, json=json)  # fmt: skip
    if name == "sweeps":
        from spacql.commands.sweeps import sweep_all

        if rounds is not None or out is not None or seeds != SEEDS:
            raise InputError(
                "Sweeps have seeds and a length of their own and print one table: leave out "
                "--seeds, --rounds and --out. `spacql tune` sweeps as you like."
            )
        return sweep_all(only, where, runs, workers, Store(results), dry_run=dry_run,
                         stored=stored, quiet=quiet, json=json)  # fmt: skip
    plan = make_plan(name, only=only, seeds=seeds, rounds=rounds, against=against)
    store = Store(results)
    executor = where.make(runs, workers)
    if dry_run:
        show_plan(plan, store, executor.workers, json)
        return 0
    failed = [] if stored else run_missing(plan, store, executor, quiet)
    if name in PICTURES:
        draw(plan, store, out or (None if json else Path(name)), json)
    else:
        print_table(plan, store, out, json)
    return 1 if failed else 0


def run_missing(
    plan: "Plan", store: "Store", executor: "Executor", quiet: bool = False
) -> "list[PlannedRun]":
    """Run what the store lacks, and store each run when it has ended. Returns the failed ones."""
    from dataclasses import replace

    from spacql.errors import SpacqlError
    from spacql.experiments.estimate import seconds
    from spacql.experiments.running import execute

    missing = [
        replace(run, data_identity=store.identity_of(run.dataset, run.seed))
        for run in plan.missing(store)
    ]
    if not missing:
        return []
    store.check_writable()
    finished = list(store)

    def keep(record: Mapping[str, Any]) -> str:
        try:
            status = store.add(record)
        except SpacqlError as error:
            return str(error)
        return "" if status in ("added", "there") else f"not stored: {status}."

    outcomes = execute(
        missing,
        executor,
        label=lambda run: f"{run.dataset} {run.algorithm} seed {run.seed}",
        title=f"{plan.name}: {len(missing)} runs",
        expected=lambda run: seconds(run, finished),
        keep=keep,
        quiet=quiet,
    )
    return [outcome.run for outcome in outcomes if outcome.record is None]


def show_plan(plan: "Plan", store: "Store", workers: int, json: bool) -> None:
    """What is finished, what is missing, and how long the rest will take."""
    from json import dumps

    from rich.console import Console
    from rich.table import Table

    from spacql.experiments.estimate import seconds
    from spacql.progress import duration

    missing, everything, finished = plan.missing(store), plan.runs(), list(store)
    expected = {run.key: seconds(run, finished) for run in missing}
    total, longest = sum(expected.values()), max(expected.values(), default=0.0)
    cells = []
    for block in plan.blocks:
        table = Table(block.title, box=None, padding=(0, 1), header_style="underline")
        for column in block.columns:
            table.add_column(column.label, justify="right")
        for method in block.methods:
            row = []
            for column in block.columns:
                runs = plan.cell(method, column)
                left = [expected[run.key] for run in runs if run.key in expected]
                cell = {"dataset": column.dataset, "column": column.label, "method": method.label}
                counts = {"runs": len(runs), "missing": len(left), "seconds": sum(left)}
                cells.append(cell | {"rounds": runs[0].config.rounds} | counts)
                time = f", {duration(sum(left))}" if left else ""
                row.append(f"{len(runs) - len(left)} of {len(runs)}{time}")
            table.add_row(method.label, *row)
        if not json:
            Console().print(table)
    if json:
        found = {"name": plan.name, "runs": len(everything), "missing": len(missing)}
        times = {"seconds_of_a_core": total, "longest_run_seconds": longest}
        print(dumps(found | times | {"cells": cells}, indent=1))
        return
    print(
        f"{plan.name}: {len(everything)} runs, {len(everything) - len(missing)} finished, "
        f"{len(missing)} missing; about {duration(total)} on one core, "
        f"{duration(max(total / workers, longest))} with {workers} workers."
    )


def print_claims(store: "Store", json: bool) -> int:
    from dataclasses import asdict
    from json import dumps

    from rich.console import Console
    from rich.markdown import Markdown

    from spacql.experiments import claims

    if json:
        print(dumps([asdict(claim) for claim in claims.claims(store)], indent=1))
    else:
        Console().print(Markdown(claims.markdown(store)))
    return 0


def print_table(plan: "Plan", store: "Store", out: Path | None, json: bool) -> None:
    from json import dumps

    from spacql.experiments import overall, tables
    from spacql.files import new_file

    if out is not None:
        text = tables.markdown(plan, store) + overall.markdown(plan, store)
        texts = {".md": text, ".csv": tables.to_csv(plan, store)}
        for suffix, text in texts.items():
            with new_file(out.with_name(out.name + suffix)) as temporary:
                temporary.write_text(text)
    if json:
        found = {"name": plan.name, "cells": tables.records(plan, store)}
        notes = [*tables.notes(plan, store), *overall.lines(plan, store)]
        print(dumps(found | {"overall": overall.numbers(plan, store), "notes": notes}, indent=1))
        return
    tables.show(plan, store)
    overall.show(plan, store)
    if out is not None:
        print(f"Wrote {out}.md and {out}.csv")


def draw(plan: "Plan", store: "Store", out: Path | None, json: bool) -> None:
    from json import dumps

    from spacql.experiments import figures

    data = figures.draw(plan, store, out)
    if json:
        print(dumps(data, indent=1))
        return
    print(data["caption"])
    print(f"Wrote {out}.png and {out}.svg")
