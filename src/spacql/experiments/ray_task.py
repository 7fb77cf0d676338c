"""What a node of a Ray cluster does: one run, in a process of one thread.

Nothing here imports JAX when it is imported: the task does, in its own process, whose environment
says one thread. No disk is shared with the machine that planned the run.
"""

import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spacql.errors import InputError, SpacqlError
from spacql.experiments.packing import Files, Storage, newest_checkpoint, pack, unpack

if TYPE_CHECKING:
    from spacql.experiments.executors import Event, PlannedRun

PACKAGES = ("spacql", "jax", "jaxlib", "numpy", "optax", "equinox")
SECONDS = 1.0  # between two messages of progress


class Task(NamedTuple):
    """All that a node is told: plain values and bytes."""

    run: dict[str, Any]  # a planned run as JSON
    begun: Files  # what there is of it already
    data: str  # digest of a dataset that is sent along; empty: made on the node by its name
    sent: list[Any]  # that dataset, as an object that is fetched once per node
    storage: str
    kept: str  # the run's own place in the storage
    versions: dict[str, str]


class Answer(NamedTuple):
    """What comes back."""

    event: dict[str, Any]  # the last one, as JSON
    files: Files
    note: str  # what the user should know although the run went on


class Mailbox:
    """Progress on its way to whoever planned the runs: the latest of each."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, Any]] = {}

    def put(self, place: str, event: dict[str, Any]) -> None:
        self._latest[place] = event

    def take(self) -> dict[str, dict[str, Any]]:
        latest, self._latest = self._latest, {}
        return latest


def versions() -> dict[str, str]:
    """What decides the bits of a result, besides the processor."""
    return {name: version(name) for name in PACKAGES}


def run_task(task: Task, mailbox: Any) -> Answer:
    """One run, from its data to its files."""
    from spacql.experiments.executors import Event, PlannedRun
    from spacql.experiments.worker import keep_compiled, work

    run = PlannedRun.from_json(task.run)
    ended: list[Event] = []
    notes: list[str] = []
    storage = Storage(task.storage, task.kept) if task.storage else None
    with tempfile.TemporaryDirectory(prefix="spacql-") as temporary:
        folder = Path(temporary) / "run"
        keeper = _Keeper(storage, folder)

        def report(event: Event) -> None:
            if event.kind == "progress":
                keeper.look()
                tell(event)
            elif event.kind == "note":
                notes.append(event.note)
            else:
                ended.append(event)

        tell = _throttled(lambda event: mailbox.put.remote(run.place, asdict(event)))
        tell(Event("progress", rounds=run.config.rounds))
        keep_compiled()
        try:
            _check_versions(task.versions)
            unpack(task.begun, folder)
            if storage:
                storage.load(folder)
            work(run, folder, report, data=_data(run, task))
        except SpacqlError as error:
            ended.append(Event("failed", error=str(error)))
        [event] = ended
        if event.kind == "failed":
            event = Event("failed", error=f"{event.error} (On the node {platform.node()}.)")
        notes += [keeper.problem] if keeper.problem else []
        return Answer(asdict(event), pack(folder), " ".join(notes))


class _Keeper:
    """Keeps each new checkpoint in the storage. One that cannot be kept stops no training."""

    def __init__(self, storage: Storage | None, folder: Path):
        self._storage, self._folder = storage, folder
        self._newest: Path | None = None
        self.problem = ""

    def look(self) -> None:
        newest = newest_checkpoint(self._folder)
        if self._storage is None or newest == self._newest:
            return
        self._newest = newest
        try:
            self._storage.save(self._folder)
            self.problem = ""
        except InputError as error:
            self.problem = str(error)


def _throttled(tell: "Callable[[Event], Any]") -> "Callable[[Event], None]":
    """At most one in a while: a thousand runs share the mailbox."""
    last = 0.0

    def sometimes(event: "Event") -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS or event.round >= event.rounds:
            last = time.monotonic()
            tell(event)

    return sometimes


def _check_versions(expected: Mapping[str, str]) -> None:
    for name, mine in versions().items():
        if mine != expected[name]:
            raise InputError(
                f"This node has {name} {mine}, and the runs are planned with {expected[name]}. "
                "Install the same versions on all nodes."
            )


def _data(run: "PlannedRun", task: Task) -> Path:
    """The run's dataset on this node, made or fetched once."""
    from filelock import FileLock

    from spacql.data.cache import folder, resolve_folder
    from spacql.experiments.packing import write_dataset
    from spacql.files import new_folder

    if not task.data:
        return resolve_folder(run.dataset, run.seed, workers=1)
    import ray

    place = folder() / "sent" / task.data
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_name(f".{place.name}.lock")):
        if not place.exists():
            with new_folder(place) as temporary:
                write_dataset(ray.get(task.sent[0]), temporary)
    return place
