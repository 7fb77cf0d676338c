"""`spacql results add`, `list`, `sweeps` and `fits`: the store of finished runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

if TYPE_CHECKING:
    from spacql.experiments.store import Store


def results_add(
    folders: tyro.conf.Positional[tuple[Path, ...]],
    /,
    results: Path | None = None,
    json: bool = False,
) -> int:
    """Take finished runs (and sweeps of `spacql tune`) into the results folder.

    All run folders below the given ones are looked at. A run becomes one small file; a sweep's
    tune.json is kept under results/tuning, and its trainings are not taken. Other seeds or values
    of a sweep that is there join it, if nothing else differs and no training is missing then.

    Example: spacql results add runs/spacql-spread-random

    Args:
        folders: Where to look.
        results: Folder of finished runs; that of the checkout if not given.
        json: Print what happened as JSON.
    """
    from json import dumps

    from spacql import records
    from spacql.errors import InputError
    from spacql.experiments.store import Store, own_log, run_folders

    if not folders:
        raise InputError("Which folders? For example: spacql results add runs")
    store = Store(results)
    runs, sweeps = run_folders(folders)
    if not runs and not sweeps:
        raise InputError(f"There is no run below {', '.join(map(str, folders))}.")
    done = [{"folder": str(folder)} | take(store, folder) for folder in runs]
    for sweep in sweeps:
        if why := own_log(records.sweep(sweep)):
            done.append({"folder": str(sweep.parent), "status": "other data", "why": why})
            continue
        kept = store.add_sweep(sweep)
        done.append(
            {"folder": str(sweep.parent), "status": f"sweep: {kept}" if kept else "crashed"}
        )
    if json:
        print(dumps(done, indent=1))
    else:
        meaning = {
            "added": "added",
            "there": "there already",
            "unfinished": "unfinished, not taken",
            "no score": "has no score, not taken",
            "other data": "not taken: the same run on other data of that name is there. Remove its "
            "file from the results to take this one",
            "crashed": "not taken: a training of the sweep failed. Its `spacql tune` runs it again",
        }
        for entry in done:
            why = f"not taken, other data: {entry['why']}" if "why" in entry else ""
            print(f"{entry['folder']}: {why or meaning.get(entry['status'], entry['status'])}")
        count = sum(entry["status"] == "added" for entry in done)
        print(f"{count} added, {len(store)} in {store.results}")
    return 1 if any(entry["status"] in ("other data", "crashed") for entry in done) else 0


def take(store: "Store", folder: Path) -> dict[str, str]:
    """What becomes of a run folder: its status, and why it is not taken where that is not all."""
    from spacql.experiments.store import StoredRun, another_version, ended, other_seed, summary

    if not ended(folder):
        return {"status": "unfinished"}
    record = summary(folder)
    run = StoredRun.from_json(record)
    if why := other_seed(run) or another_version(run):
        return {"status": "other data", "why": why}
    return {"status": store.add(record)}


def results_list(
    only: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    results: Path | None = None,
    json: bool = False,
) -> None:
    """List the finished runs in the results folder, seeds together.

    Example: spacql results list spread-random

    Args:
        only: Parts of names of datasets and algorithms; all must fit.
        results: Folder of finished runs; that of the checkout if not given.
        json: Print JSON instead of a table.
    """
    from json import dumps

    import numpy as np
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from spacql.experiments.plans import unlike_settings
    from spacql.experiments.store import Store, StoredRun, digest, mixed_data, signature

    store = Store(results)
    groups: dict[tuple[str, ...], list[StoredRun]] = {}
    for run in store:
        name = f"{run.dataset} {run.algorithm}"
        if all(word in name for word in only):
            place = (run.dataset, run.algorithm, signature(run.config))
            groups.setdefault(place, []).append(run)
    rows: list[dict[str, Any]] = [
        {
            "dataset": dataset,
            "algorithm": algorithm,
            "configuration": digest(runs[0].config),
            "unlike_settings": unlike_settings(algorithm, dataset, runs[0].config),
            "seeds": sorted(run.seed for run in runs),
            "scores": [run.score for run in sorted(runs, key=lambda run: run.seed)],
            "diverged": sorted(run.seed for run in runs if run.score is None),
        }
        for (dataset, algorithm, _), runs in sorted(groups.items())
    ]
    warnings = mixed_data(run for runs in groups.values() for run in runs)
    if json:
        print(dumps({"runs": rows, "warnings": warnings}, indent=1))
        return
    table = Table("dataset", "algorithm", "seeds", "score", "unlike the settings", box=None)
    for row in rows:
        scores = np.array([score for score in row["scores"] if score is not None])
        text = f"{scores.mean():z.1f}" if len(scores) else ""
        text += f" ± {scores.std():z.1f}" if len(scores) > 1 else ""
        if row["diverged"]:
            text += f" diverged: {' '.join(map(str, row['diverged']))}"
        unlike = ", ".join(f"{n}={v}" for n, v in row["unlike_settings"].items())
        table.add_row(escape(row["dataset"]), row["algorithm"], " ".join(map(str, row["seeds"])),
                      text.strip(), unlike)  # fmt: skip
    if rows:
        Console().print(table)
    print(f"{sum(map(len, groups.values()))} runs in {store.results / 'runs'}")
    for warning in warnings:
        print(warning)


def results_sweeps(
    only: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    results: Path | None = None,
    json: bool = False,
) -> None:
    """List the sweeps in the results folder, and the value that is in use.

    Example: spacql results sweeps tag

    Args:
        only: Parts of names of datasets and algorithms; all must fit.
        results: Folder of finished runs; that of the checkout if not given.
        json: Print JSON instead of tables.
    """
    from json import dumps

    from spacql.experiments import sweeps
    from spacql.experiments.store import Store

    store = Store(results)
    found = sweeps.stored(store, only)
    if json:
        print(dumps(sweeps.records(found), indent=1))
    elif found:
        sweeps.show(found)
    else:
        print(f"There is no such sweep in {store.results / 'tuning'}.")


def results_fits(results: Path | None = None, json: bool = False) -> None:
    """List the fits whose policies were tried afterwards: what they promised, and the truth.

    Example: spacql results fits

    Args:
        results: Folder of finished runs; that of the checkout if not given.
        json: Print JSON instead of a table.
    """
    from json import dumps

    from spacql.experiments.store import Store
    from spacql.fitting import truth

    found = truth.stored(Store(results).results)
    print(dumps(found, indent=1) if json else truth.markdown(found))
