"""Where planned runs are executed. One interface; processes on this machine behind it.

An executor is given runs and reports events, in any order. A "note" is a sentence for the user
about a run that goes on. Every run ends with one event that is neither that nor "progress". "done"
and "diverged" carry the record that the store keeps, which is plain JSON and names no place of one
machine. A diverged training has no score and would diverge again: it is a result. A failed run does
not stop the others, and an interrupted one goes on from its newest checkpoint when it is executed
again. A run's files land in the folder `place`, below the executor's own.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from spacql import arguments, records
from spacql.algorithms.config import Training
from spacql.errors import SpacqlError
from spacql.experiments.store import digest, key, summary
from spacql.files import new_file
from spacql.runs import finished
from spacql.threads import cores, one_thread, same_products


@lru_cache(maxsize=8192)  # tables ask thousands of times for the same
def _key(algorithm: str, config: Training, dataset: str, seed: int) -> str:
    return key(algorithm, asdict(config), dataset, seed)


@dataclass(frozen=True)
class PlannedRun:
    """One training: everything that decides what comes out of it, and where it goes."""

    algorithm: str
    dataset: str  # a name, whose data is made where the run is executed; or a folder there
    seed: int
    config: Training
    folder: str = ""  # below that of all runs, if not the usual one
    episodes: int | None = None  # of the final evaluation, if not the usual number
    loggers: tuple[str, ...] = ()
    data_identity: str = ""  # of the data that it must see, if it is to be compared with other runs

    @property
    def key(self) -> str:
        return _key(self.algorithm, self.config, self.dataset, self.seed)

    @property
    def place(self) -> str:
        """Its folder, below that of all runs."""
        usual = f"{self.dataset}/{self.algorithm}-{digest(asdict(self.config))}/seed-{self.seed}"
        return self.folder or usual

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "PlannedRun":
        from spacql.algorithms.settings import config_from

        config = config_from(stored["algorithm"], stored["config"])
        return cls(**{**stored, "config": config, "loggers": tuple(stored["loggers"])})


@dataclass(frozen=True)
class Event:
    """What happened to a run."""

    kind: Literal["progress", "note", "done", "diverged", "failed"]
    # Of progress:
    round: int = 0
    rounds: int = 0
    rounds_per_second: float = 0.0
    score: float | None = None  # the latest
    # Of done and diverged: what the store keeps
    record: Mapping[str, Any] | None = None
    # Of failed: why
    error: str = ""
    # Of note: the sentence
    note: str = ""


Report = Callable[[PlannedRun, Event], None]


def finished_before(run: PlannedRun, folder: Path) -> Event | None:
    """The end of this very run, if its folder holds it, and the data has not been replaced since.
    What else may lie there is the worker's to judge."""
    from spacql.algorithms.settings import config_from

    try:
        if not finished(folder):
            return None
        there = records.run(folder)
        asked = (run.algorithm, run.seed, run.dataset)
        if (there["algorithm"], there["seed"], there["data"]) != asked:
            return None
        if config_from(run.algorithm, there["config"]) != run.config:
            return None
        if identity(run) not in (None, there["dataset"]["identity"]):
            return None
        return Event("done", record=summary(folder))
    except SpacqlError as error:
        return Event("failed", error=str(error))


def identity(run: PlannedRun) -> str | None:
    """Of the data that the run would be trained on, if that is here; nothing is made for it."""
    from spacql.data import cache, load_dataset
    from spacql.data.behaviours import dataset_seed
    from spacql.data.collect import NAMES

    places = [Path(run.dataset)]
    if run.dataset in NAMES:
        places.append(cache.place(run.dataset, dataset_seed(run.seed)))
    here = (place for place in places if (place / "dataset.json").is_file())
    return next((load_dataset(place).identity for place in here), None)


class Executor(Protocol):
    def execute(self, runs: Sequence[PlannedRun], report: Report) -> None:
        """Run them all. Returns when the end of each has been reported."""


class Local:
    """Processes on this machine: one single-threaded process per core. The system chooses the
    core of each: another command's may run beside them."""

    def __init__(self, folder: Path, workers: int = 0):
        self.folder = folder
        arguments.whole("workers", workers, 0)
        self.workers = workers or len(cores())

    def execute(self, runs: Sequence[PlannedRun], report: Report) -> None:
        """See `Executor`. One that dies stops no other; an interrupt ends all of them."""
        waiting, lock, stopping = deque(runs), threading.Lock(), threading.Event()
        running: set[subprocess.Popen[str]] = set()

        def tell(run: PlannedRun, event: Event) -> None:
            with lock:
                if not stopping.is_set():
                    report(run, event)

        def worker() -> None:
            while True:
                with lock:
                    if stopping.is_set() or not waiting:
                        return
                    run = waiting.popleft()
                if end := finished_before(run, self.folder / run.place):
                    tell(run, end)
                    continue
                with lock:
                    if stopping.is_set():
                        return
                    process = self._start(run)
                    running.add(process)
                place = self.folder / run.place
                _follow(process, place, lambda event, run=run: tell(run, event))  # type: ignore[misc]
                with lock:
                    running.discard(process)

        count = min(self.workers, len(runs))
        threads = [threading.Thread(target=worker, daemon=True) for _ in range(count)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(timeout=0.2)
        finally:  # an interrupt ends the workers too; their checkpoints stay
            with lock:
                stopping.set()
                left = list(running)
            for process in left:
                process.terminate()
            for process in left:
                _wait_or_kill(process)

    def command(self, run: PlannedRun) -> list[str]:
        text = json.dumps(run.to_json())
        place = str(self.folder / run.place)
        return [sys.executable, "-m", "spacql.experiments.worker", place, text]

    def _start(self, run: PlannedRun) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(run),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **same_products(one_thread(os.environ)),
                "SPACQL_PARENT": str(os.getpid()),  # without which it ends
                "JAX_TRACEBACK_FILTERING": "off",  # which would put its own words last
            },
        )


def _follow(process: "subprocess.Popen[str]", folder: Path, tell: Callable[[Event], None]) -> None:
    """Pass on the events of a worker, and how it died if it did not say how its run ended. All of
    its complaints are then in error.txt."""
    complaints: deque[str] = deque(maxlen=1000)
    reader = threading.Thread(
        target=lambda: complaints.extend(line for line in process.stderr or ()), daemon=True
    )
    reader.start()
    ended = False
    for line in process.stdout or ():
        try:
            event = Event(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue  # something else that a library printed
        ended = ended or event.kind not in ("progress", "note")
        tell(event)
    code = process.wait()
    reader.join(timeout=5)
    if not ended:
        said = [line.strip() for line in complaints if line.strip()]
        errors = [
            line for line in said if re.match(r"[\w.]*(Error|Exception|Exit|Iteration)\b", line)
        ]
        last = (errors or said or [""])[-1][:500]
        died = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if said and (folder / "run.json").exists():
            with suppress(SpacqlError, OSError), new_file(folder / "error.txt") as temporary:
                temporary.write_text("".join(complaints))
            last += f" (all of it is in {folder / 'error.txt'})"
        tell(Event("failed", error=f"The process {died}. {last}".strip()))


def _wait_or_kill(process: "subprocess.Popen[str]", seconds: float = 10) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
