"""`spacql reproduce sweeps`: the trainings behind the settings of the benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spacql.commands.where import Where

if TYPE_CHECKING:
    from spacql.experiments.store import Store


def sweep_all(
    only: Sequence[str],
    where: Where,
    runs: Path,
    workers: int,
    store: "Store",
    *,
    dry_run: bool,
    stored: bool,
    quiet: bool,
    json: bool,
) -> int:
    """Run the sweeps that the results lack, store each when it has ended, show all."""
    import sys
    from dataclasses import replace
    from json import dumps

    from spacql.commands.tune import Options, sweep
    from spacql.errors import InputError
    from spacql.experiments import grids, sweeps
    from spacql.experiments.estimate import seconds
    from spacql.experiments.executors import PlannedRun
    from spacql.progress import duration

    planned = grids.planned(only)
    missing = [(one, *left) for one in planned if any(left := one.left(store))]
    if dry_run:
        finished = list(store)
        total = 0.0
        for one, values, seeds in missing:
            trial = replace(one.config, rounds=one.rounds)
            run = PlannedRun(one.algorithm, one.dataset, seeds[0], trial)
            total += len(values) * len(seeds) * seconds(run, finished)
        found = {"name": "sweeps", "sweeps": len(planned), "missing": len(missing)}
        if json:
            print(dumps(found | {"seconds_of_a_core": total}, indent=1))
        else:
            print(f"sweeps: {len(planned)}, {len(planned) - len(missing)} finished, "
                  f"{len(missing)} missing; about {duration(total)} on one core.")  # fmt: skip
        return 0
    failed = False
    if not stored and missing:
        store.check_writable()
        for one, values, seeds in missing:
            out = runs / "sweeps" / one.name.replace(" ", "-")
            options = Options(
                data=one.dataset,
                vary=one.hyperparameter,
                values=tuple(map(str, values)),
                seeds=seeds,
                out=out,
                workers=workers,
                share=one.share,
                quiet=quiet,
                where=where,
            )
            result = sweep(one.algorithm, one.config, options)
            failed |= any(entry["failed"] for entry in result["values"])
            if store.add_sweep(out / "tune.json") is None:
                print(f"{one.name}: not stored, as trainings failed. The same command runs them "
                      "again.", file=sys.stderr)  # fmt: skip
    named = {(one.dataset, one.algorithm, one.hyperparameter) for one in planned}
    shown = [sweep for sweep in sweeps.stored(store)
             if (sweep.dataset, sweep.algorithm, sweep.hyperparameter) in named]  # fmt: skip
    if json:
        print(dumps(sweeps.records(shown), indent=1))
    elif shown:
        sweeps.show(shown)
    elif not failed:
        raise InputError(f"There is no such sweep in {store.results / 'tuning'}.")
    return 1 if failed else 0
