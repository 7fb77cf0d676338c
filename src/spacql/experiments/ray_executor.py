"""Planned runs on a Ray cluster: a task of one core each, wherever there is room.

Tasks are spread over the nodes, and one whose node or process dies is begun again elsewhere. The
files of a run come back when it has ended and land where local processes would have put them.
"""

import json
import logging
import os
import socket
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from spacql.errors import InputError, MissingExtra, SpacqlError
from spacql.experiments.executors import Event, PlannedRun, Report, finished_before
from spacql.experiments.packing import Storage, pack, read_dataset, unpack
from spacql.experiments.ray_task import Answer, Mailbox, Task, run_task, versions
from spacql.files import safe_name
from spacql.runs import locked
from spacql.threads import cores, one_thread

RETRIES = 3  # of a task whose node or process died; an error of its own is an answer
CALLS = 10  # runs of a process; a fresh one then forgets what JAX has kept in memory
SECONDS = 0.5  # between two looks into the mailbox


class Ray:
    """An executor. `address` is a cluster's, by default that of $RAY_ADDRESS; without either, a
    cluster of this machine's cores is started and ended. `workers` is how many tasks at a time,
    0 as many as there is room for. `storage`, a folder or a URI, keeps checkpoints of tasks."""

    def __init__(
        self, folder: Path, workers: int = 0, address: str | None = None, storage: str | None = None
    ):
        try:
            import ray  # noqa: F401
            from fsspec.core import url_to_fs  # noqa: F401
        except ImportError as error:
            raise MissingExtra("The Ray executor", "ray") from error
        self.folder, self._limit = folder, workers
        self.address = address or os.environ.get("RAY_ADDRESS") or "local"
        if self.address.startswith("ray://"):
            raise InputError(
                f"{self.address} is the address of a Ray client. Start the command on a node of "
                "the cluster, with --ray-address auto."
            )
        self.storage = storage or ""
        if storage:
            if "://" not in storage:
                self.storage = str(Path(storage).expanduser().resolve())
            Storage(self.storage).check()
        self.unfinished = (
            f"the others go on from their newest checkpoints in {self.storage}"
            if storage
            else "the others begin anew, as there is no --storage for their checkpoints"
        )

    @property
    def workers(self) -> int:
        """How many runs at a time, with the nodes that are there now."""
        if self.address == "local":
            return self._limit or len(cores())
        with self.connected() as ray:
            count = int(ray.cluster_resources().get("CPU", 0))
        return max(1, min(count, self._limit or count))

    def execute(self, runs: Sequence[PlannedRun], report: Report) -> None:
        """See `Executor`. An interrupt cancels what runs; what has come back is kept."""
        left: deque[PlannedRun] = deque()
        for run in runs:
            if end := finished_before(run, self.folder / run.place):
                report(run, end)
            else:
                left.append(run)
        if not left:
            return
        with self.connected() as ray:
            if not ray.cluster_resources().get("CPU"):
                print("spacql: the cluster has no cores yet; waiting.", file=sys.stderr)
            jobs = _Jobs(ray, self)
            try:
                while left or jobs.pending:
                    while left and len(jobs.pending) < (self._limit or len(runs)):
                        run = left.popleft()
                        try:
                            jobs.submit(run, report)
                        except SpacqlError as error:
                            report(run, Event("failed", error=str(error)))
                    for run, event in jobs.news():
                        report(run, event)
            finally:
                jobs.cancel()

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Ray, connected to the cluster; as it was before when the block ends."""
        import ray

        if ray.is_initialized():
            yield ray
            return
        options: dict[str, Any] = {}
        if self.address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options = {"num_cpus": self._limit or len(cores()), "include_dashboard": False}
        try:
            _knock(self.address)
            with warnings.catch_warnings():  # what Ray starts is another program at once
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # of many kinds: no cluster, another version, a port in use
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            raise InputError(
                f"There is no way to the Ray cluster {self.address!r}: {reason}. Start this "
                "command on one of its nodes; `ray status` shows them."
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()


class _Jobs:
    """The tasks that are under way."""

    def __init__(self, ray: Any, executor: Ray):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._folder, self._storage = ray, executor.folder, executor.storage
        self.pending: dict[Any, tuple[PlannedRun, str]] = {}  # and its place in the storage
        self._sent: dict[str, tuple[str, list[Any]]] = {}
        flags = {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}
        self._task = ray.remote(
            num_cpus=1,
            max_retries=RETRIES,
            max_calls=CALLS,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": one_thread(flags)},
        )(run_task)
        # Beside us, so that the death of another node does not take it.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(num_cpus=0, scheduling_strategy=here)(Mailbox).remote()

    def submit(self, run: PlannedRun, report: Report) -> None:
        folder = self._folder / run.place
        with locked(folder):
            set_damaged_aside(folder, lambda text: report(run, Event("note", note=text)))
            begun = pack(folder)
        data, sent = self._data(run.dataset)
        kept = _kept(run, data)
        task = Task(run.to_json(), begun, data, sent, self._storage, kept, versions())
        self.pending[self._task.remote(task, self._mailbox)] = run, kept

    def news(self) -> Iterator[tuple[PlannedRun, Event]]:
        """What has happened; waits a moment for it."""
        if not self.pending:
            return
        ready, _ = self._ray.wait(list(self.pending), timeout=SECONDS)
        places = {run.place: run for run, _ in self.pending.values()}
        with suppress(self._ray.exceptions.RayError):  # progress is not worth a failure
            for place, event in self._ray.get(self._mailbox.take.remote(), timeout=10).items():
                if place in places:
                    yield places[place], Event(**event)
        for reference in ready:
            run, kept = self.pending.pop(reference)
            event, note = self._landed(run, reference)
            if note:
                yield run, Event("note", note=note)
            if self._storage and event.kind != "failed":
                Storage(self._storage, kept).clear()
            yield run, event

    def cancel(self) -> None:
        for reference in self.pending:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(reference, force=True)
        self._ray.kill(self._mailbox)

    def _landed(self, run: PlannedRun, reference: Any) -> tuple[Event, str]:
        """How a task ended, its files in their place; and what there is to say besides."""
        try:
            answer = Answer(*self._ray.get(reference))
        except self._ray.exceptions.RayTaskError as error:  # a fault of ours
            last = str(error).strip().splitlines()[-1]
            return Event("failed", error=f"The task ended with an error. {last}"), ""
        except self._ray.exceptions.RayError as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            return Event("failed", error=f"The task was lost {RETRIES + 1} times. {first}"), ""
        try:
            with locked(self._folder / run.place):
                unpack(answer.files, self._folder / run.place)
        except SpacqlError as error:
            return Event("failed", error=str(error)), answer.note
        return Event(**answer.event), answer.note

    def _data(self, dataset: str) -> tuple[str, list[Any]]:
        """Digest and object of a dataset folder here; nothing for a name, which nodes make."""
        from spacql.data.cache import is_folder

        if dataset not in self._sent:
            self._sent[dataset] = "", []
            if is_folder(dataset):
                files = read_dataset(Path(dataset))
                # dataset.json holds the checksum of every other file.
                name = sha256(files["dataset.json"]).hexdigest()[:32]
                self._sent[dataset] = name, [self._ray.put(files)]
        return self._sent[dataset]


def set_damaged_aside(folder: Path, say: Callable[[str], None]) -> None:
    """Of a run that was begun here: what is sent is its newest whole checkpoint."""
    if (folder / "checkpoints").is_dir():
        from spacql.training.checkpoints import Checkpoints

        checkpoints = Checkpoints(folder / "checkpoints", say)
        checkpoints.latest()
        checkpoints.close()


def _knock(address: str) -> None:
    """Raise at once where nobody answers; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=5).close()


def _kept(run: PlannedRun, data: str) -> str:
    """The place in a storage that is this run's own, on this very data."""
    from spacql.data.collect import edition

    whole = json.dumps([run.to_json(), data or edition(run.dataset)], sort_keys=True)
    return f"{safe_name(run.place)}-{sha256(whole.encode()).hexdigest()[:16]}"
