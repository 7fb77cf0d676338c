"""Trains on a memory-mapped dataset of three times the memory that the process may have.

Prints what it took, as JSON. The limit holds for anonymous memory, on top of what Python and JAX
hold when the training begins; pages of the mapped files are the system's to drop. The files are
sparse, so that they take no disk.
"""

import json
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

LIMIT = 1 << 30  # bytes
STEPS = 1000  # of an episode


def main() -> int:
    from spacql.threads import one_thread

    os.environ.update(one_thread(os.environ))
    from spacql.data import load_dataset
    from spacql.runs import train

    with tempfile.TemporaryDirectory() as place:
        size = make(Path(place) / "data", 3 * LIMIT)
        dataset = load_dataset(Path(place) / "data")
        tiny = {"batch_size": 256, "hidden": (64, 64), "updates": 2}
        train("spacql", dataset, out=Path(place) / "first", rounds=10, **tiny)  # starts JAX
        before, peak, over = anonymous(), [0], threading.Event()
        used = int(field("VmData"))
        resource.setrlimit(resource.RLIMIT_DATA, (used + LIMIT, used + LIMIT))

        def watch() -> None:
            while not over.is_set():
                peak[0] = max(peak[0], anonymous())
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        train("spacql", dataset, out=Path(place) / "run", rounds=200, **tiny)
        over.set()
        watcher.join()
    found = {"dataset": size, "limit": LIMIT, "rows": dataset.n_rows, "anonymous_before": before,
             "anonymous_peak": peak[0]}  # fmt: skip
    print(json.dumps(found, indent=1))
    return 0


def field(name: str) -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name))
    return int(line.split()[1]) * 1024


def anonymous() -> int:
    return field("RssAnon")


def make(folder: Path, least: int) -> int:
    """A dataset folder of zeros, of at least so many bytes; returns how many."""
    import numpy as np

    from spacql.data import Dataset, save_dataset
    from spacql.data.dataset import identity
    from spacql.data.storage import _seal

    sizes = (17, 17)
    rows = least // (4 * (sum(sizes) + 6 + 2 + 1)) // (STEPS + 1) * (STEPS + 1) + STEPS + 1
    episode = {
        "observations": [np.zeros((STEPS + 1, s)) for s in sizes],
        "actions": [np.zeros((STEPS + 1, 3)) for _ in sizes],
        "rewards": np.zeros((STEPS, 2)),
    }
    save_dataset(Dataset.from_episodes([episode], task="large"), folder)
    small = {
        "starts": np.arange(0, rows + 1, STEPS + 1),
        "terminated": None,
        "final_action_known": None,
    }
    described = json.loads((folder / "dataset.json").read_text())
    for file in described["files"]:
        name, path = file.removesuffix(".npy"), folder / file
        if name in small:
            array = small[name]
            np.save(path, np.ones(rows // (STEPS + 1), bool) if array is None else array)
        else:
            width = np.load(path).shape[1:]
            with open(path, "wb") as stream:
                header = {"descr": "<f4", "fortran_order": False, "shape": (rows, *width)}
                np.lib.format.write_array_header_1_0(stream, header)
                stream.truncate(stream.tell() + 4 * rows * int(np.prod(width)))
        described["files"][file]["bytes"] = path.stat().st_size
    described["episodes"], described["transitions"] = (
        rows // (STEPS + 1),
        rows - rows // (STEPS + 1),
    )
    hashes = {name: entry["sha256"] for name, entry in described["files"].items()}
    described["identity"] = identity(hashes)  # of files that are not hashed here: not verified
    del described["seal"]
    (folder / "dataset.json").write_text(json.dumps({**described, "seal": _seal(described)}))
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    sys.exit(main())
