"""`spacql reproduce selection`: how well policies are chosen without a simulator."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacql.experiments.executors import Local
    from spacql.experiments.ray_executor import Ray


def select(
    only: Sequence[str],
    seed: int,
    executor: "Callable[[Path], Local | Ray]",
    runs: Path,
    results: Path,
    *,
    dry_run: bool,
    stored: bool,
    out: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Make the pools that are missing, estimate every policy from its log, print the table.

    Pools stay in the folder of runs, estimates in results/selection; both are found again.
    """
    from dataclasses import asdict
    from json import dumps

    from spacql.errors import InputError
    from spacql.files import new_file
    from spacql.fitting import selection

    names = [name for name in selection.DATASETS if not only or any(x in name for x in only)]
    if not names:
        raise InputError(f"--only {' '.join(only)}: there is no such dataset. Known: "
                         f"{', '.join(selection.DATASETS)}.")  # fmt: skip
    if dry_run:
        there = selection.stored(results, only, seed)
        print(f"selection: {len(names)} pools, {len(names) - len(there)} missing.")
        return 0
    failed = 0 if stored else sum(
        make(name, seed, executor, runs / f"{name}-{seed}", results, quiet) for name in names
    )  # fmt: skip
    pools = selection.stored(results, only, seed)
    if not pools:
        raise InputError(
            f"There is no pool in {results / 'selection'}. Leave out --stored to make them."
        )
    table = {name: selection.statistics(pool) for name, pool in pools.items()}
    text = selection.markdown(table)
    if out is not None:
        with new_file(out.with_name(out.name + ".md")) as temporary:
            temporary.write_text(text)
    found = {
        "name": "selection",
        "summary": selection.summary(table),
        "datasets": table,
        "pools": {name: [asdict(entry) for entry in pool] for name, pool in pools.items()},
    }
    print(dumps(found, indent=1) if json else text)
    return 1 if failed else 0


def make(
    name: str,
    seed: int,
    executor: "Callable[[Path], Local | Ray]",
    folder: Path,
    results: Path,
    quiet: bool,
) -> int:
    """One pool, from its log to its estimates. Returns how many trainings failed."""
    import sys

    from spacql.fitting import pools

    tell = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr))
    kept = results / "selection" / f"{name}-{seed}.json"
    if pools.complete(kept):
        return 0
    log = pools.make_log(name, seed, folder)
    outcomes = pools.train(log, seed, folder, executor, quiet)
    pools.measure(log, seed, folder, kept, tell=tell)
    return sum(outcome.record is None for outcome in outcomes)
