"""Where planned runs are executed. One interface; local processes behind it.

An executor is given runs and reports what happens to each, in any order:

    {"kind": "progress", "round": 300, "score": 71.2}
    {"kind": "done", "folder": RUN_FOLDER}
    {"kind": "diverged", "folder": RUN_FOLDER, "error": SENTENCE}
    {"kind": "failed", "error": SENTENCE}

Every run ends with one of the last three. A diverged training has no score and would diverge
again; it is a result. A failed one does not stop the others, and an interrupted one
goes on from its newest checkpoint when it is executed again.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from spacql.errors import InputError, SpacqlError
from spacql.experiments.plans import PlannedRun
from spacql.experiments.store import DIVERGED, finished
from spacql.training.seeds import Job, run_jobs, this_python

Report = Callable[[PlannedRun, Mapping[str, Any]], None]


class Executor(Protocol):
    def execute(self, runs: Sequence[PlannedRun], report: Report) -> None:
        """Run them all. Returns when the end of each has been reported."""


class Local:
    """Processes on this machine, one single-threaded process a core."""

    def __init__(self, folder: Path, workers: int = 0):
        self.folder = folder
        self.workers = workers or len(os.sched_getaffinity(0))

    def execute(self, runs: Sequence[PlannedRun], report: Report) -> None:
        planned: dict[str, PlannedRun] = {}
        jobs = []
        for run in runs:
            folder = self.folder / run.name
            if finished(folder):
                report(run, {"kind": "done", "folder": folder})
                continue
            planned[run.name] = run
            jobs.append(Job(run.name, self.command(run, folder)))

        def on_event(job: Job, event: Mapping[str, Any]) -> None:
            if "round" in event:
                report(planned[job.name], {"kind": "progress"} | dict(event))
            elif event.get("done"):
                report(planned[job.name], {"kind": "done", "folder": self.folder / job.name})

        def on_failure(job: Job) -> None:
            event: dict[str, Any] = {"kind": "failed", "error": job.error}
            if job.error.startswith(DIVERGED):
                event |= {"kind": "diverged", "folder": self.folder / job.name}
            report(planned[job.name], event)

        if jobs:
            run_jobs(jobs, min(self.workers, len(jobs)), on_event, on_failure)

    def command(self, run: PlannedRun, folder: Path) -> list[str]:
        what = {"algorithm": run.algorithm, "dataset": run.dataset, "seed": run.seed}
        text = json.dumps(what | {"config": asdict(run.config)})
        return this_python("-m", "spacql.experiments.executors", str(folder), text)


def work(folder: Path, what: Mapping[str, Any]) -> int:
    """What a worker process does: make or find the data, open the folder, train."""
    from spacql import runs
    from spacql.data.cache import resolve

    _end_with_parent()
    try:
        lock = _lock(folder)
        config = runs.config_of(dict(what))
        dataset = resolve(what["dataset"], what["seed"])
        described = runs.describe(
            what["algorithm"], config, dataset, what["seed"], data=what["dataset"]
        )
        runs.open_folder(folder, described, resume=True)
    except SpacqlError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    with lock:
        return runs.main(str(folder))


def _end_with_parent() -> None:
    """A worker whose reproduction was killed does not go on unseen; its checkpoints stay."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _lock(folder: Path) -> Any:
    """Held until this process ends, so that two reproductions do not train in one folder."""
    import fcntl

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = open(folder.with_name(f".{folder.name}.lock"), "w")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"Cannot write in {folder.parent}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(f"Another process is training in {folder}.") from error
    return lock


if __name__ == "__main__":
    sys.exit(work(Path(sys.argv[1]), json.loads(sys.argv[2])))
