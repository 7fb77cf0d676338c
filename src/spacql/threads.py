"""One thread a process: faster for many small runs side by side, and the same bits everywhere.

A product of matrices that several threads share is summed in another order, and so is a loop that
was compiled for several cores. So every command computes on one thread, and more cores are used by
more processes.

NumPy's products are sums of another order on every kind of processor that its OpenBLAS knows. A
training that is run again, as HalfCheetah's medium-replay is, drifts apart by that last bit. So all
processors that can run it use the code for Cooperlake, with which the stored results were made.
"""

import os
from collections.abc import Mapping
from pathlib import Path

PROCESSOR = Path("/proc/cpuinfo")
NEEDED = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"}
FLAG = "--xla_cpu_multi_thread_eigen=false"


def one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that computes on one thread; JAX reads it when it starts."""
    flags = environment.get("XLA_FLAGS", "")
    return {
        **environment,
        "XLA_FLAGS": flags if "xla_cpu_multi_thread_eigen" in flags else f"{flags} {FLAG}".strip(),
        "NPROC": "1",  # XLA splits loops, sums among them, for as many cores as it sees
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def same_products(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process of this machine; OpenBLAS reads it when NumPy is imported."""
    try:
        able = set(PROCESSOR.read_text().split()) >= NEEDED
    except OSError:  # no Linux
        able = False
    return {**({"OPENBLAS_CORETYPE": "Cooperlake"} if able else {}), **environment}


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
