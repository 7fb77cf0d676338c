"""How long a dataset of 1,000,000 spread transitions takes to load, and how much memory it holds.

    python benchmarks/dataset_load.py [DIR]

Without a folder, one is made from uniform actions in a temporary place first.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from spacql.data import DatasetWriter, load_dataset


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def make(folder: str) -> None:
    import jax

    from spacql.policies import uniform
    from spacql.worlds import make
    from spacql.worlds.rollout import episode_chunks

    world = make("spread")
    with DatasetWriter(folder, world.spec, {"name": "spread-random"}) as writer:
        for chunk in episode_chunks(world, uniform(world.spec), jax.random.key(0), 40_000):
            writer.add(chunk)


def measure(folder: str) -> None:
    before = resident()
    started = time.perf_counter()
    dataset = load_dataset(folder)
    print(f"load: {dataset.n_transitions} transitions in {time.perf_counter() - started:.4f} s")
    print(f"resident memory after loading: +{(resident() - before) / 1e6:.1f} MB")

    rows = dataset.target_rows()
    rng = np.random.default_rng(0)
    draws = [rows[rng.integers(len(rows), size=1024)] for _ in range(200)]
    dataset.batch(draws[0])
    started = time.perf_counter()
    for draw in draws:
        dataset.batch(draw)
    print(f"batch of 1024: {(time.perf_counter() - started) / len(draws) * 1e3:.3f} ms")

    touched = 0
    for _, array in dataset.arrays():
        array.max()
        touched += array.nbytes
    dataset.returns  # noqa: B018
    growth = resident() - before
    print(
        f"all arrays touched: {touched / 1e6:.1f} MB; resident memory +{growth / 1e6:.1f} MB "
        f"since before loading ({growth / touched:.2f} of it)"
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = str(Path(temporary) / "spread-random")
            make(folder)
            # A process of its own, so that what making left in memory is not measured.
            subprocess.run([sys.executable, __file__, folder], check=True)
