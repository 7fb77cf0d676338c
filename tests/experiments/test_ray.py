"""Runs on a Ray cluster: a head without cores and two nodes of one core, all on this machine, each
node with a cache of its own. The same bits as local processes, also when a node dies."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from experiments_toy import run_folder
from training_toy import TINY, toy_dataset

from spacql.algorithms.settings import configure
from spacql.commands.where import Where
from spacql.data import save_dataset
from spacql.errors import InputError, MissingExtra
from spacql.experiments import ray_task, running
from spacql.experiments.executors import Event, Local, PlannedRun
from spacql.experiments.packing import Storage, pack, unpack
from spacql.experiments.ray_task import Answer, Task, run_task, versions
from spacql.experiments.store import summary
from spacql.experiments.worker import work
from spacql.training.checkpoints import Checkpoints
from spacql.training.metrics import read_metrics

pytest.importorskip("ray")
pytest.importorskip("fsspec")

from spacql.experiments.ray_executor import Ray, set_damaged_aside

pytestmark = pytest.mark.filterwarnings("ignore:os.fork")
SMALL = 80 * 1024**2  # bytes of a node's object store
BITS = ("metrics.jsonl", "policy.safetensors", "policy.json", "run.json")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("own") / "data"
    save_dataset(toy_dataset(), folder)
    return str(folder)


def planned(data: str, seed: int = 0, **values: Any) -> PlannedRun:
    config = configure("spacql", overrides={**TINY, **values})
    return PlannedRun("spacql", data, seed, config, f"seed-{seed}")


def bc(data: str, seed: int = 0, **values: Any) -> PlannedRun:
    """A run that compiles in no time."""
    small = {"rounds": 20, "batch_size": 16, "hidden": (8, 8), "updates": 1}
    return PlannedRun("bc", data, seed, configure("bc", "", small | values), f"seed-{seed}")


def same_bits(runs: list[PlannedRun], one: Path, other: Path) -> None:
    for run in runs:
        for file in BITS:
            mine, others = one / run.place / file, other / run.place / file
            assert mine.read_bytes() == others.read_bytes(), f"{run.place}: {file}"
        assert len(read_metrics(one / run.place / "metrics.jsonl")) == run.config.rounds
        records = [summary(folder / run.place) | {"seconds": 0} for folder in (one, other)]
        assert records[0] == records[1]


# Packing


def test_a_run_folder_arrives_as_it_was_with_its_newest_checkpoint(tmp_path) -> None:
    there = run_folder(tmp_path / "there")
    for name in ("00000020.checkpoint", "00000040.checkpoint"):
        (there / "checkpoints").mkdir(exist_ok=True)
        (there / "checkpoints" / name).write_bytes(name.encode())
    (there / "stranger").write_text("not ours")
    here = run_folder(tmp_path / "here", diverged="then")
    unpack(pack(there), here)
    assert pack(here) == pack(there)
    assert sorted(path.name for path in here.rglob("*") if path.is_file()) == [
        "00000040.checkpoint", "metrics.jsonl", "result.json", "run.json"
    ]  # fmt: skip
    assert pack(tmp_path / "nowhere") == {}


def test_what_is_sent_of_a_begun_run_is_its_newest_whole_checkpoint(tmp_path) -> None:
    folder = run_folder(tmp_path / "run", done=False)
    said: list[str] = []
    set_damaged_aside(folder, said.append)  # it has no checkpoints
    checkpoints = Checkpoints(folder / "checkpoints")
    for round_ in (10, 20):
        checkpoints.save(round_, {"x": np.array(round_)})
    (folder / "checkpoints" / "00000020.checkpoint").write_bytes(b"")
    set_damaged_aside(folder, said.append)
    assert len(said) == 1
    assert "set aside as damaged-00000020.checkpoint" in said[0]
    assert [name for name in pack(folder) if "points" in name] == [
        "checkpoints/00000010.checkpoint"
    ]


@pytest.mark.parametrize("name", ["../run.json", "/etc/x", "checkpoints/../run.json", "x.py"])
def test_files_that_no_run_folder_has_are_refused(name, tmp_path) -> None:
    with pytest.raises(InputError, match="no file"):
        unpack({name: b""}, tmp_path / "run")
    assert not list(tmp_path.rglob("*.*"))


def test_a_storage_gives_the_newest_whole_state(tmp_path) -> None:
    storage = Storage(str(tmp_path / "storage"), "a-run")
    storage.load(tmp_path / "empty")
    assert pack(tmp_path / "empty") == {}
    folder = run_folder(tmp_path / "run", done=False)
    states = []
    for round_ in (10, 20, 30):
        (folder / "checkpoints").mkdir(exist_ok=True)
        (folder / "checkpoints" / f"{round_:08d}.checkpoint").write_bytes(b"x" * round_)
        states.append(pack(folder))
        storage.save(folder)
    kept = sorted((tmp_path / "storage" / "a-run").iterdir())
    assert [path.name for path in kept] == ["00000020.run", "00000030.run"]
    storage.load(tmp_path / "newest")
    assert pack(tmp_path / "newest") == states[2]
    kept[1].write_bytes(kept[1].read_bytes()[:-1])  # a node died while it wrote
    storage.load(tmp_path / "before")
    assert pack(tmp_path / "before") == states[1]
    storage.clear()
    assert list((tmp_path / "storage").iterdir()) == []


def test_an_older_state_in_the_storage_replaces_nothing_newer(tmp_path) -> None:
    storage = Storage(str(tmp_path / "storage"), "a-run")
    folder = run_folder(tmp_path / "run", done=False)
    (folder / "checkpoints").mkdir()
    for round_ in (10, 20):
        (folder / "checkpoints" / f"{round_:08d}.checkpoint").write_bytes(b"x" * round_)
        storage.save(folder)
    (folder / "checkpoints" / "00000030.checkpoint").write_bytes(b"newer")
    before = pack(folder)
    storage.load(folder)
    assert pack(folder) == before
    (folder / "checkpoints" / "00000030.checkpoint").unlink()
    (folder / "checkpoints" / "00000020.checkpoint").unlink()
    storage.load(folder)
    assert "checkpoints/00000020.checkpoint" in pack(folder)


def test_a_storage_may_be_a_uri(tmp_path) -> None:
    folder = run_folder(tmp_path / "run")
    storage, other = (Storage("memory://bucket/spacql", name) for name in ("a", "b"))
    storage.check()
    storage.save(folder)
    other.load(tmp_path / "other")
    assert pack(tmp_path / "other") == {}
    storage.load(tmp_path / "again")
    assert pack(tmp_path / "again") == pack(folder)
    storage.clear()
    storage.load(tmp_path / "cleared")
    assert pack(tmp_path / "cleared") == {}


def test_a_storage_that_cannot_be_used_is_one_sentence(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"storage .*file/x cannot be used"):
        Ray(tmp_path, storage=str(tmp_path / "file" / "x"))
    with pytest.raises(InputError, match="nonsense://x cannot be used as a storage"):
        Ray(tmp_path, storage="nonsense://x")


# Options


def test_the_options_choose_the_executor_and_mistakes_are_answered(tmp_path, monkeypatch) -> None:
    assert isinstance(Where().make(tmp_path), Local)
    monkeypatch.setenv("RAY_ADDRESS", "1.2.3.4:5")
    chosen = Where("ray").make(tmp_path)
    assert isinstance(chosen, Ray)
    assert chosen.address == "1.2.3.4:5"
    assert Where("ray", "auto").make(tmp_path).address == "auto"
    with pytest.raises(InputError, match="are for --executor ray"):
        Where(storage="x").make(tmp_path)
    with pytest.raises(InputError, match="on a node of the cluster"):
        Where("ray", "ray://1.2.3.4:5").make(tmp_path)
    with pytest.raises(InputError, match="Did you mean 'spread-random'"):
        Where("ray").prepare("spread-randm", 0, configure("bc"))
    with pytest.raises(InputError, match=r"no way to the Ray cluster '127.0.0.1:1': .*refused"):
        _ = Where("ray", "127.0.0.1:1").make(tmp_path).workers
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'spacql\[ray\]'"):
        Where("ray").make(tmp_path)


def test_fit_trains_where_it_is_told(tmp_path, monkeypatch) -> None:
    from spacql.commands.fit import fit

    asked = {}

    def run(data: str, out: Path, **options: Any) -> None:
        asked.update(options)
        raise InputError("enough")

    monkeypatch.setattr("spacql.fitting.pipeline.fit", run)
    with pytest.raises(InputError, match="enough"):
        fit("data", tmp_path, where=Where("ray", "1.2.3.4:5"))
    made = asked["executor"](tmp_path / "runs", 2)
    assert isinstance(made, Ray)
    assert (made.folder, made.address) == (tmp_path / "runs", "1.2.3.4:5")


def test_an_interrupt_says_what_becomes_of_unfinished_runs(tmp_path, data, monkeypatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Ray, "execute", interrupt)
    for storage, said in ((None, "begin anew"), (str(tmp_path / "s"), "go on from their newest")):
        with pytest.raises(KeyboardInterrupt, match=said):
            running.execute([planned(data)], Ray(tmp_path, storage=storage), label=str, title="")


# A task, in this process


def told_by(task: Task, monkeypatch) -> tuple[Answer, list[dict[str, Any]]]:
    monkeypatch.setattr(ray_task, "SECONDS", 0.0)
    told: list[dict[str, Any]] = []
    put = SimpleNamespace(remote=lambda place, event: told.append(event))
    return run_task(task, SimpleNamespace(put=put)), told


def test_a_task_whose_node_died_goes_on_from_the_storage(data, tmp_path, monkeypatch) -> None:
    run, storage = bc(data, rounds=60), str(tmp_path / "storage")
    task = Task(run.to_json(), {}, "", [], storage, "kept", versions())
    whole, told = told_by(task, monkeypatch)
    assert [event["round"] for event in told] == [0, 0, 10, 20, 30, 40, 50, 60]
    assert whole.event["kind"] == "done"
    # What a node leaves that dies after round 50: the storage, and nothing else.
    (tmp_path / "storage" / "kept" / "00000060.run").unlink()
    again, told = told_by(task, monkeypatch)
    assert [event["round"] for event in told] == [0, 0, 60]
    assert {name: again.files[name] for name in BITS} == {name: whole.files[name] for name in BITS}
    # Without a storage, what the planning machine has is where it goes on.
    begun = dict(again.files)
    del begun["result.json"]
    continued, told = told_by(task._replace(begun=begun, storage=""), monkeypatch)
    assert [event["round"] for event in told] == [0, 0]
    assert continued.files["policy.safetensors"] == whole.files["policy.safetensors"]


def test_a_task_that_fails_answers_with_a_sentence_and_its_node(data, monkeypatch) -> None:
    task = Task(planned(data).to_json(), {}, "", [], "", "", versions() | {"jax": "0.0.1"})
    answer, _ = told_by(task, monkeypatch)
    assert answer.event["kind"] == "failed"
    assert "planned with 0.0.1. Install the same versions" in answer.event["error"]
    assert "(On the node " in answer.event["error"]
    assert answer.files == {}


# A cluster


class Nodes:
    """A head without cores; nodes of one core, each with a cache of its own."""

    def __init__(self, folder: Path):
        from ray.cluster_utils import Cluster

        self.folder, self.nodes, self.count = folder, [], 0
        head = {"num_cpus": 0, "object_store_memory": SMALL, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.complete()

    def complete(self) -> None:
        """Two nodes, again."""
        while len(self.nodes) < 2:
            self.count += 1
            cache = {"SPACQL_CACHE": str(self.folder / f"node-{self.count}")}
            node = self.cluster.add_node(num_cpus=1, object_store_memory=SMALL, env_vars=cache)
            self.nodes.append(node)

    def kill(self) -> None:
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)

    def used(self) -> int:
        """How many nodes have fetched data."""
        return len(list(self.folder.glob("node-*/sent/[!.]*/dataset.json")))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory) -> Iterator[Nodes]:
    import ray

    nodes = Nodes(tmp_path_factory.mktemp("cluster"))
    yield nodes
    ray.shutdown()
    nodes.cluster.shutdown()


def test_both_nodes_are_used_and_give_the_bits_of_this_machine(nodes, data, tmp_path) -> None:
    runs = [bc(data, seed) for seed in (0, 1)]
    executor = Ray(tmp_path / "ray", address=nodes.cluster.address)
    assert executor.workers == 2
    told: list[tuple[str, Event]] = []
    executor.execute(runs, lambda run, event: told.append((run.place, event)))
    assert nodes.used() == 2
    for run in runs:
        work(run, tmp_path / "local" / run.place, lambda event: None)
    same_bits(runs, tmp_path / "ray", tmp_path / "local")
    ends = {place: event for place, event in told if event.kind != "progress"}
    assert ends == {
        run.place: Event("done", record=summary(tmp_path / "ray" / run.place)) for run in runs
    }
    told.clear()
    executor.execute(runs, lambda run, event: told.append((run.place, event)))
    assert dict(told) == ends, "what is finished is not run again"


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True], ids=["without storage", "with storage"])
def test_a_sweep_is_complete_and_the_same_when_a_node_dies(kept, nodes, data, tmp_path) -> None:
    storage = tmp_path / "storage"
    nodes.complete()
    runs = [planned(data, seed, rounds=8000) for seed in range(4)]
    executor = Ray(
        tmp_path / "ray", address=nodes.cluster.address, storage=str(storage) if kept else None
    )
    rounds: dict[str, list[int]] = {run.place: [] for run in runs}
    ended: dict[str, Event] = {}
    states: list[Path] = []

    def report(run: PlannedRun, event: Event) -> None:
        if event.kind != "progress":
            ended[run.place] = event
            return
        rounds[run.place].append(event.round)
        under_way = [place for place in rounds if place not in ended and rounds[place]]
        if len(nodes.nodes) == 2 and all(rounds[p][-1] >= 1000 for p in under_way[:2]):
            assert len(under_way) >= 2
            states.extend(storage.glob("*/*.run"))
            nodes.kill()

    executor.execute(runs, report)
    assert len(nodes.nodes) == 1, "a node was killed while both were at work"
    assert {place: event.kind for place, event in ended.items()} == dict.fromkeys(rounds, "done")
    again = [place for place, seen in rounds.items() if seen != sorted(seen)]
    assert len(again) == 1, "one task was begun again"
    if kept:
        assert len({path.parent for path in states}) == 2
        seen = rounds[again[0]]
        begun_again = next(k for k in range(1, len(seen)) if seen[k] < seen[k - 1])
        resumed = next(round_ for round_ in seen[begun_again:] if round_)
        assert resumed > 800, "it went on from the checkpoint before round 1000"
        assert not list(storage.glob("*/*.run")), "nothing is left of runs that have ended"
    Local(tmp_path / "local").execute(runs, lambda run, event: None)
    same_bits(runs, tmp_path / "ray", tmp_path / "local")


def free_cores(nodes: Nodes) -> float:
    """Those of the cluster that no task holds, when nothing more is to be expected."""
    import ray

    ray.init(address=nodes.cluster.address, log_to_driver=False, logging_level="error")
    deadline = time.monotonic() + 60
    while (free := ray.available_resources().get("CPU", 0)) < 2 and time.monotonic() < deadline:
        time.sleep(0.5)
    ray.shutdown()
    return free


@pytest.mark.slow
def test_an_interrupt_cancels_what_runs_and_keeps_what_is_done(nodes, data, tmp_path) -> None:
    nodes.complete()
    short, long = bc(data, 0), bc(data, 1, rounds=1_000_000)
    ended = []

    def report(run: PlannedRun, event: Event) -> None:
        if event.kind != "progress":
            ended.append(run)
        elif run == long and event.round and ended:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ray(tmp_path, address=nodes.cluster.address).execute([short, long], report)
    assert ended == [short]
    assert summary(tmp_path / short.place)["rounds"] == short.config.rounds
    assert not (tmp_path / long.place).exists()
    assert free_cores(nodes) == 2


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_its_tasks(nodes, data, tmp_path) -> None:
    nodes.complete()
    words = ["train", "bc", "--data", data, "--seeds", "0", "1", "--rounds", "1000000",
             "--batch-size", "16", "--hidden", "8", "8", "--out", str(tmp_path / "run"),
             "--executor", "ray", "--ray-address", nodes.cluster.address]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "spacql", *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert any(line.startswith("seed 1: ") for line in process.stderr), "it began"
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(60) == 130
    assert "0 of 2 runs have ended; the others begin anew" in said
    assert free_cores(nodes) == 2
