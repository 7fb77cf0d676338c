"""`spacql bench data`: how long a dataset takes to load, and how much memory it holds."""

import os
import sys
import time
from pathlib import Path
from typing import Any

BATCHES, BATCH_SIZE = 200, 1024


def bench_data(
    folder: Path | None = None, transitions: int = 1_000_000, json: bool = False
) -> None:
    """Measure how long a dataset takes to load and to draw batches from, and its memory.

    Arrays are mapped from the disk: memory holds what was touched. It is measured in a process of
    its own, where nothing else has been loaded. Without a folder, data of uniform actions in spread
    is made in a temporary place first.

    Example: spacql bench data --transitions 100000

    Args:
        folder: A dataset.
        transitions: How many to make without one.
        json: Print JSON instead of lines.
    """
    import subprocess
    import tempfile
    from json import dumps, loads

    from spacql import arguments

    arguments.whole("--transitions", transitions)

    from spacql.data import collect
    from spacql.errors import InputError

    if folder is not None and not (folder / "dataset.json").is_file():
        raise InputError(f"{folder} is no dataset folder: it holds no dataset.json.")
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary) / "spread-random"
        if folder is None:
            collect.make_dataset("spread-random", place, transitions=transitions)
        command = [sys.executable, "-m", "spacql.commands.bench_data", str(place)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise InputError(f"Measuring {place} failed: {done.stderr.strip()[-500:]}")
    found = loads(done.stdout)
    if json:
        print(dumps(found))
        return
    print(f"load {found['transitions']:,} transitions: {1e3 * found['load_s']:.1f} ms")
    print(f"batch of {BATCH_SIZE}: {found['batch_ms']:.3f} ms")
    print(f"memory after loading: {found['memory_loaded'] / 1e6:+.1f} MB")
    print(f"memory with all of {found['bytes'] / 1e6:.1f} MB touched: "
          f"{found['memory_touched'] / 1e6:+.1f} MB")  # fmt: skip


def measure(folder: str) -> dict[str, Any]:
    import numpy as np

    from spacql.data import load_dataset

    before, started = _resident(), time.perf_counter()
    dataset = load_dataset(folder)
    loaded, memory = time.perf_counter() - started, _resident() - before
    rows, rng = dataset.target_rows(), np.random.default_rng(0)
    draws = [rows[rng.integers(len(rows), size=BATCH_SIZE)] for _ in range(BATCHES)]
    dataset.batch(draws[0])
    started = time.perf_counter()
    for draw in draws:
        dataset.batch(draw)
    drawn = (time.perf_counter() - started) / len(draws)
    size = 0
    for _, array in dataset.arrays():
        array.max()
        size += array.nbytes
    return {
        "transitions": dataset.n_transitions,
        "load_s": loaded,
        "batch_ms": 1e3 * drawn,
        "bytes": size,
        "memory_loaded": memory,
        "memory_touched": _resident() - before,
    }


def _resident() -> int:
    """Bytes of this process in memory; the most so far where the system does not say."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    from json import dumps

    print(dumps(measure(sys.argv[1])))
