"""`spacql bench worlds`: how fast the worlds are, beside the usual implementation."""

import os
import sys
import time
from typing import Any

LABELS = {
    "returns": "spacql spread, returns",
    "trajectories": "spacql spread, all observations and actions kept",
    "mpe2": "MPE2 simple_spread (NumPy)",
}


def bench_worlds(steps: int = 2_000_000, mpe2_steps: int = 5_000, json: bool = False) -> None:
    """Measure steps per second of spread here and in MPE2, on one core each.

    A step moves all three agents of one world. Agents act uniformly at random. Each measurement
    runs in a process of its own that is bound to one core, one after another, and counts the
    processor's time; starting up and compiling are not counted. The ratio compares MPE2 with our
    rollouts that keep all observations and actions.

    Example: spacql bench worlds

    Args:
        steps: How many steps to take in our world.
        mpe2_steps: How many in MPE2's.
        json: Print JSON instead of a table.
    """
    from importlib.util import find_spec

    from spacql import arguments
    from spacql.errors import MissingExtra

    arguments.whole("--steps", steps)
    arguments.whole("--mpe2-steps", mpe2_steps)
    if find_spec("mpe2") is None:
        raise MissingExtra("The comparison with MPE2", "dev")
    speeds = {
        kind: _in_fresh_process(kind, mpe2_steps if kind == "mpe2" else steps) for kind in LABELS
    }
    ratio = speeds["trajectories"] / speeds["mpe2"]
    if json:
        from json import dumps

        print(dumps({"steps_per_second": speeds, "ratio": ratio}))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("spread, one core", box=None)
    table.add_column("steps per second", justify="right")
    for kind, label in LABELS.items():
        table.add_row(label, f"{speeds[kind]:,.0f}")
    table.add_row("ratio", f"{ratio:,.0f}")
    Console().print(table)


def _in_fresh_process(kind: str, steps: int) -> float:
    """Steps per second of one kind, measured where nothing else has started threads yet."""
    import subprocess

    from spacql.errors import InputError
    from spacql.threads import one_thread

    command = [sys.executable, "-m", "spacql.commands.bench", kind, str(steps)]
    done = subprocess.run(command, env=one_thread(os.environ), capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"Measuring {LABELS[kind]} failed: {done.stderr.strip()[-500:]}")
    return float(done.stdout)


def _measure(kind: str, steps: int) -> float:
    run = _mpe2(steps) if kind == "mpe2" else _ours(steps, trajectories=kind == "trajectories")
    # Processor time: on one core it is the time on the clock, less what other programs take.
    start = time.process_time()
    taken = run()
    return taken / (time.process_time() - start)


def _ours(steps: int, trajectories: bool) -> Any:
    import jax

    from spacql.policies import uniform
    from spacql.worlds import episode_chunks, make
    from spacql.worlds.rollout import CHUNK

    world = make("spread")
    horizon = world.spec.horizon
    chunks = -(-steps // (CHUNK * horizon))  # whole chunks, so that no step is thrown away

    def run(count: int = chunks) -> int:
        for _ in episode_chunks(
            world,
            uniform(world.spec),
            jax.random.key(0),
            count * CHUNK,
            trajectories=trajectories,
        ):
            pass
        return count * CHUNK * horizon

    run(1)  # compiles
    return run


def _mpe2(steps: int) -> Any:
    import numpy as np
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(N=3, max_cycles=25, continuous_actions=True)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(0, 1, (steps, 3, 5)).astype(np.float32)

    def run() -> int:
        for joint in actions:
            if not env.agents:
                env.reset()
            env.step(dict(zip(env.agents, joint, strict=True)))
        return steps

    return run


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):  # before JAX counts the cores and starts its threads
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(_measure(sys.argv[1], int(sys.argv[2])))
