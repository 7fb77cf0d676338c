"""`spacql reproduce selection`: how well policies are chosen without a simulator."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacql.experiments.executors import Local
    from spacql.experiments.ray_executor import Ray


def select(
    only: Sequence[str],
    seeds: Sequence[int],
    rounds: int | None,
    executor: "Local | Ray",
    results: Path,
    *,
    dry_run: bool,
    stored: bool,
    out: Path | None,
    quiet: bool,
    json: bool,
) -> int:
    """Train the pools that are missing, estimate every policy from its log, print the table.

    Pools stay in the folder of runs, estimates in results/selection; both are found again.
    """
    from json import dumps

    from spacql.errors import InputError
    from spacql.experiments import selection
    from spacql.experiments.estimate import seconds
    from spacql.experiments.plans import Plan, narrow
    from spacql.experiments.running import execute
    from spacql.files import new_file
    from spacql.progress import duration
    from spacql.runs import finished

    blocks = narrow(selection.blocks(), only) if only else selection.blocks()
    plan = Plan("selection", "Choosing without a simulator", blocks, tuple(seeds), rounds)
    runs = plan.runs()
    missing = [run for run in runs if not finished(executor.folder / run.place)]
    if dry_run:
        time = duration(sum(seconds(run, ()) for run in missing))
        print(f"selection: {len(runs)} runs, {len(missing)} missing: about {time} on one core.")
        return 0
    outcomes = [] if stored or not missing else execute(
        missing, executor, title=f"selection: {len(missing)} runs", quiet=quiet,
        label=lambda run: f"{run.dataset} {run.algorithm} seed {run.seed}",
        expected=lambda run: seconds(run, ()))  # fmt: skip
    table, pools = measured(runs, executor.folder, results, quiet)
    if not table:
        raise InputError(
            f"There is no pool of three finished policies in {executor.folder}. Leave out --stored "
            "to train them."
        )
    text = selection.markdown(table)
    if out is not None:
        with new_file(out.with_name(out.name + ".md")) as temporary:
            temporary.write_text(text)
    found = {"name": "selection", "datasets": table, "pools": pools}
    print(dumps(found, indent=1) if json else text)
    return 1 if any(outcome.record is None for outcome in outcomes) else 0


def measured(
    runs: Sequence[Any], folder: Path, results: Path, quiet: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The statistics of every dataset whose pool is there, and the pools."""
    import sys
    from dataclasses import asdict

    from spacql.data.cache import resolve
    from spacql.evaluation.offline import Evaluator
    from spacql.experiments import selection
    from spacql.runs import finished

    by_data: dict[tuple[str, int], list[Path]] = {}
    for run in runs:
        if finished(folder / run.place):
            by_data.setdefault((run.dataset, run.seed), []).append(folder / run.place)
    table, pools = {}, {}
    tell = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr))
    for (name, seed), folders in by_data.items():
        if len(folders) < 3:
            continue
        evaluator = Evaluator(resolve(name, seed), seed=seed)
        kept = results / "selection" / f"{name}-{seed}.json"
        pool = selection.measure(folders, evaluator, kept, tell=tell)
        label = name if sum(n == name for n, _ in by_data) == 1 else f"{name}, seed {seed}"
        table[label] = selection.statistics(pool)
        pools[label] = [asdict(entry) for entry in pool]
    return table, pools
