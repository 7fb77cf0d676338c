"""`spacql bench sampling`: what an action costs, by the kind of actor."""

import os
import sys
from typing import Any

# label: diffusion steps (0 for a plain network), candidates
ACTORS = {
    "network, 2 x 64 units": (0, 1),
    "diffusion, 3 x 256 units, 10 steps": (10, 1),
    "diffusion, 10 steps, best of 10": (10, 10),
    "diffusion, 100 steps": (100, 1),
}
BATCHES = (1, 1000)


def bench_sampling(repeats: int = 20, json: bool = False) -> None:
    """Measure what an action of one agent costs, alone and in a batch, on one core.

    Observations have the size of spread's. Times are the processor's, the best of several, without
    compiling, and include the call from Python.

    Example: spacql bench sampling

    Args:
        repeats: Measurements per case; the best one counts.
        json: Print JSON instead of a table.
    """
    import subprocess
    from json import dumps, loads

    from spacql.errors import InputError
    from spacql.threads import one_thread

    if repeats < 1:
        raise InputError(f"repeats is {repeats}; it must be at least 1.")
    command = [sys.executable, "-m", "spacql.commands.bench_sampling", str(repeats)]
    done = subprocess.run(command, env=one_thread(os.environ), capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"Measuring failed: {done.stderr.strip()[-500:]}")
    found = loads(done.stdout.splitlines()[-1])
    if json:
        print(dumps(found, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("microseconds per action, one core", box=None)
    for batch in BATCHES:
        table.add_column("alone" if batch == 1 else f"in a batch of {batch:,}", justify="right")
    for label, times in found.items():
        table.add_row(label, *(f"{time:,.1f}" for time in times))
    Console().print(table)


def measure(repeats: int) -> dict[str, list[float]]:
    """Microseconds per action by actor, for every batch."""
    return {
        label: [_microseconds(_actor(*what), batch, repeats) for batch in BATCHES]
        for label, what in ACTORS.items()
    }


def _actor(steps: int, candidates: int) -> Any:
    import jax
    import numpy as np

    from spacql.algorithms import dof
    from spacql.data.dataset import Statistics
    from spacql.policies import init_mlp
    from spacql.spec import Spec, unit_box

    spec = Spec("bench", ("a", "b"), (18, 18), **unit_box([2, 2]), horizon=25)
    if not steps:
        return init_mlp(jax.random.key(0), 18, spec.action_low[0], spec.action_high[0])
    config = dof.Config(diffusion_steps=steps, candidates=candidates)
    mean, std = (np.zeros(18, np.float32),) * 2, (np.ones(18, np.float32),) * 2
    statistics = Statistics(mean, std, None, None, 0, 1)
    state = jax.jit(lambda key: dof.init(key, spec, config, statistics))(jax.random.key(0))
    return dof.policy(state).actors[0]


def _microseconds(actor: Any, batch: int, repeats: int) -> float:
    import time

    import equinox as eqx
    import jax
    import numpy as np

    act = eqx.filter_jit(lambda actor, observation, key: actor(observation, key))
    observation, key = np.zeros((batch, 18), np.float32), jax.random.key(0)
    calls = max(1, 200 // batch)  # enough for the clock of the processor's time
    jax.block_until_ready(act(actor, observation, key))
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        for _ in range(calls):
            jax.block_until_ready(act(actor, observation, key))
        times.append(time.process_time() - begun)
    return 1e6 * min(times) / calls / batch


if __name__ == "__main__":
    from json import dumps

    if hasattr(os, "sched_setaffinity"):  # before JAX counts the cores and starts its threads
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(dumps(measure(int(sys.argv[1]))))
