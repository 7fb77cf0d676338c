"""Runs on machines of your own: an executor is one method.

    python examples/own_executor.py

`train`, `tune`, `fit` and `reproduce` hand planned runs to an executor and get events back. This
one uses threads of this process; one for a cluster sends `run.to_json()` to a node, calls `work`
there, and sends back the events, which are plain JSON, and the files of the run's folder, as
`spacql/experiments/ray_executor.py` does.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tyro

from spacql.algorithms.settings import configure
from spacql.experiments.executors import Event, PlannedRun, Report
from spacql.experiments.running import Outcome, execute
from spacql.experiments.store import Store
from spacql.experiments.worker import work


class Threads:
    """An executor. Its runs' files land below `folder`, as everybody's do."""

    def __init__(self, folder: Path, count: int):
        self.folder, self.count = folder, count

    def execute(self, runs: Sequence[PlannedRun], report: Report) -> None:
        def one(run: PlannedRun) -> None:
            def tell(event: Event) -> None:
                report(run, event)

            work(run, self.folder / run.place, tell)

        with ThreadPoolExecutor(self.count) as pool:
            list(pool.map(one, runs))


def main(
    algorithm: str = "bc",
    data: str = "spread-random",
    seeds: tuple[int, ...] = (0, 1),
    rounds: int = 100,
    episodes: int = 500,
    out: Path = Path("runs/threads"),
) -> list[Outcome]:
    config = configure(algorithm, data, {"rounds": rounds})
    runs = [PlannedRun(algorithm, data, seed, config, episodes=episodes) for seed in seeds]

    # `execute` shows the progress; `executor.execute(runs, report)` alone does the work.
    outcomes = execute(
        runs,
        Threads(out, 2),
        label=lambda run: f"seed {run.seed}",
        title=f"{algorithm} on {data}",
    )

    # A record is what the tables are made of.
    store = Store(out / "results")
    for outcome in outcomes:
        print(f"seed {outcome.run.seed}: {outcome.text}")
        if outcome.record is not None:
            store.add(outcome.record)
    print(f"{len(store)} runs in {store.results}: spacql results list --results {store.results}")
    return outcomes


if __name__ == "__main__":
    tyro.cli(main)
