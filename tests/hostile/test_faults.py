"""Kills, signals, full disks and scripts without a main guard."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spacql.data import load_dataset
from spacql.errors import InputError, TrainingError
from spacql.files import new_file, new_folder
from spacql.runs import run_folder
from spacql.training.checkpoints import Checkpoints
from spacql.training.metrics import MetricsFile

HERE = Path(__file__).parent
PLAIN = """
import sys
from spacql.data.collect import make_dataset
make_dataset("halfcheetah-random", sys.argv[1], transitions=2000, workers=2)
print("made")
"""


@pytest.mark.parametrize("how", ["script", "standard input"])
def test_a_plain_script_without_a_main_guard_may_use_workers(tmp_path: Path, how: str) -> None:
    pytest.importorskip("gymnasium_robotics")
    script = tmp_path / "plain.py"
    script.write_text(PLAIN)
    command = [sys.executable, "-" if how == "standard input" else str(script)]
    done = subprocess.run(
        [*command, str(tmp_path / "data")],
        input=PLAIN if how == "standard input" else None,
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "made\n"
    assert (tmp_path / "data" / "dataset.json").is_file()


ENDS = [
    ("spread-random", signal.SIGINT),
    ("halfcheetah-random", signal.SIGTERM),
    pytest.param("spread-random", signal.SIGTERM, marks=pytest.mark.slow),
    pytest.param("halfcheetah-random", signal.SIGINT, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "number"), ENDS)
def test_a_signal_ends_data_make_at_once_and_leaves_nothing(
    tmp_path: Path, name: str, number: signal.Signals
) -> None:
    if name.startswith("half"):
        pytest.importorskip("gymnasium_robotics")
    command = [sys.executable, "-m", "spacql", "data", "make", name, "--workers", "2"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "data")], stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.iterdir()):  # until it writes
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    began = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert process.returncode == 128 + number
    assert said.startswith("spacql: ")
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


DYING = """
import os, sys
import numpy as np
from pathlib import Path
from spacql.runs import run_folder
from spacql.training.checkpoints import Checkpoints

place, dies_at, seen = Path(sys.argv[1]), 0, [0]
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.listdir", "os.scandir")

def hook(event, arguments):
    if dies_at and event in EVENTS:
        seen[0] += 1
        if seen[0] == dies_at:
            os._exit(9)

sys.addaudithook(hook)
state = lambda n: {"w": np.full((100, 100), n, np.float32), "n": np.array(n)}
steps = 0
while True:
    steps += 1
    folder = place / str(steps)
    before = Checkpoints(folder)
    for n in (10, 20, 30):
        before.save(n, state(n))
    child = os.fork()
    if child == 0:
        dies_at = steps
        Checkpoints(folder).save(40, state(40))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    after = Checkpoints(folder)
    newest = after.latest()
    assert newest in (30, 40), newest
    assert int(after.restore(newest, state(0))["n"]) == newest
    after.save(50, state(50))
    assert after.latest() == 50
    assert not list(folder.glob(".*")) or code == 9
    if code == 0:
        break
print(steps - 1)
"""


def test_a_kill_at_any_step_of_writing_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 5  # steps at which it was killed


def toy(n: int) -> dict[str, np.ndarray]:
    return {"w": np.full((20, 20), n, np.float32), "n": np.array(n)}


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "lengthened", "folder"])
def test_a_damaged_checkpoint_is_set_aside_for_the_one_before(tmp_path: Path, damage: str) -> None:
    said: list[str] = []
    checkpoints = Checkpoints(tmp_path, said.append)
    for n in (10, 20, 30):
        checkpoints.save(n, toy(n))
    newest = tmp_path / "00000030.checkpoint"
    spoil(newest, damage)
    again = Checkpoints(tmp_path, said.append)
    assert again.latest() == 20
    assert int(again.restore(20, toy(0))["n"]) == 20
    assert len(said) == 1
    assert "00000030.checkpoint" in said[0]
    assert "set aside" in said[0]
    assert (tmp_path / "damaged-00000030.checkpoint").exists()


def spoil(path: Path, damage: str) -> None:
    content = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
        return
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 4
    path.write_bytes(
        {
            "flipped": bytes(flipped),
            "cut": content[:100],
            "emptied": b"",
            "lengthened": content * 2,
        }[damage]
    )


def test_without_a_whole_checkpoint_the_run_says_how_to_begin_anew(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, lambda sentence: None)
    checkpoints.save(10, toy(10))
    spoil(tmp_path / "00000010.checkpoint", "cut")
    with pytest.raises(TrainingError, match="begins anew"):
        checkpoints.latest()
    assert checkpoints.latest() is None
    checkpoints.save(20, toy(20))
    with pytest.raises(TrainingError, match="another configuration"):
        checkpoints.restore(20, {"w": np.zeros(3, np.float32), "n": np.array(0)})


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_while_metrics_are_written_is_a_sentence(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    metrics._file = open("/dev/full", "wb")  # noqa: SIM115
    with pytest.raises(InputError, match=r"No space left on device\. The last checkpoint is kept"):
        metrics.write([{"round": 1}])
    metrics.close()


def test_a_folder_that_cannot_be_written_is_a_sentence() -> None:
    for make in (new_file, new_folder):
        with pytest.raises(InputError, match="Cannot write /proc/nowhere"), make("/proc/nowhere/x"):
            pass
    with pytest.raises(InputError, match="Cannot write"):
        Checkpoints(Path("/proc/nowhere/checkpoints"))


TRAIN = """
import resource, sys
from pathlib import Path
from spacql.data import load_dataset
from spacql.errors import SpacqlError
from spacql.runs import run_folder
folder, data, limit = sys.argv[1:]
if int(limit):  # no file may become larger: how a disk is full
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    run_folder(Path(folder), load_dataset(data), lambda now: print(now.round, flush=True))
except SpacqlError as error:
    print("said:", error)
    sys.exit(2)
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a described run, and what it comes to without any fault."""
    from hostile_doors import log

    from spacql.algorithms.settings import configure
    from spacql.data import Dataset, save_dataset
    from spacql.runs import describe

    place = tmp_path_factory.mktemp("faults")
    rng = np.random.default_rng(0)
    save_dataset(Dataset.from_episodes([log(rng) for _ in range(20)], task="toy"), place / "data")
    dataset = load_dataset(place / "data")
    tiny = {"rounds": 400, "batch_size": 16, "hidden": (4,), "updates": 1}
    described = describe("bc", configure("bc", "toy", tiny), dataset, 0, data=str(place / "data"))
    described["checkpoint_every"] = 10
    (place / "run.json").write_text(json.dumps(described))
    train(place, begin(place, place / "whole"))
    return place


def begin(place: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / "run.json").write_bytes((place / "run.json").read_bytes())
    return folder


def train(place: Path, folder: Path) -> None:
    run_folder(folder, load_dataset(place / "data"))


def same(place: Path, folder: Path) -> bool:
    names = ("metrics.jsonl", "policy.safetensors", "policy.json")
    return all((folder / n).read_bytes() == (place / "whole" / n).read_bytes() for n in names)


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "metrics"])
def test_a_run_goes_on_from_the_checkpoint_before_to_the_same_bits(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    folder = begin(prepared, tmp_path / "run")
    shutil.copytree(prepared / "whole" / "checkpoints", folder / "checkpoints")
    shutil.copy(prepared / "whole" / "metrics.jsonl", folder)
    if damage == "metrics":
        file = folder / "metrics.jsonl"
        file.write_bytes(file.read_bytes()[:-200])
    else:
        spoil(folder / "checkpoints" / "00000400.checkpoint", damage)
    train(prepared, folder)
    assert ("set aside" in capsys.readouterr().err) == (damage != "metrics")
    assert same(prepared, folder)


def command(place: Path, folder: Path, limit: int = 0) -> list[str]:
    return [sys.executable, "-c", TRAIN, str(folder), str(place / "data"), str(limit)]


def test_a_disk_that_fills_while_training_is_a_sentence_and_the_run_goes_on(
    prepared: Path, tmp_path: Path
) -> None:
    folder, whole = begin(prepared, tmp_path / "run"), prepared / "whole"
    # Checkpoints still fit, and the metrics at some time no longer do.
    limit = max(path.stat().st_size for path in (whole / "checkpoints").iterdir()) + 1000
    assert (whole / "metrics.jsonl").stat().st_size > limit + 1000
    full = subprocess.run(
        command(prepared, folder, limit), capture_output=True, text=True, check=False
    )
    assert full.returncode == 2, full.stderr
    assert "said: Cannot write" in full.stdout
    assert "Traceback" not in full.stderr
    kept = Checkpoints(folder / "checkpoints").latest() or 0
    assert 0 < kept < 400
    train(prepared, folder)
    assert same(prepared, folder)


@pytest.mark.slow
def test_kills_at_random_moments_cost_no_bit(prepared: Path, tmp_path: Path) -> None:
    rng, folder, kills = np.random.default_rng(0), begin(prepared, tmp_path / "run"), 0
    while not (folder / "result.json").exists():
        process = subprocess.Popen(command(prepared, folder), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()  # it has begun to train
        time.sleep(float(rng.uniform(0, 0.15)))
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        assert kills < 100
    print(f"{kills} kills")
    assert kills >= 3
    assert same(prepared, folder)


@pytest.mark.slow
def test_a_dataset_three_times_larger_than_memory_is_trained_on() -> None:
    """`memory.py` sets the limit; see there."""
    done = subprocess.run(
        [sys.executable, str(HERE / "memory.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["dataset"] >= 3 * found["limit"]
    assert found["anonymous_peak"] - found["anonymous_before"] < found["limit"]
