"""`spacql bench act`: what one call of `Policy.act` takes."""

import time
from collections.abc import Callable
from pathlib import Path


def bench_act(policy: Path | None = None, calls: int = 20_000, json: bool = False) -> None:
    """Measure `Policy.act`: the first call, one team after warm-up, and a batch of a new size.

    Without a policy, a fresh team of spread's size acts: three agents that see 18 numbers, two
    hidden layers of 64 units. Time is the processor's, so that other programs do not count.

    Example: spacql bench act

    Args:
        policy: A policy file, or a folder that holds one.
        calls: How many calls to take the mean of.
        json: Print JSON.
    """
    from json import dumps

    import jax
    import numpy as np

    from spacql.errors import InputError
    from spacql.policies import Policy, init_mlp

    if calls < 10:
        raise InputError("At least 10 calls are needed for a mean.")
    if policy is None:
        keys = jax.random.split(jax.random.key(0), 3)
        actors = tuple(init_mlp(key, 18, (-1.0, -1.0), (1.0, 1.0)) for key in keys)
        team = Policy(actors, name="fresh", agents=("agent_0", "agent_1", "agent_2"))
    else:
        team = Policy.load(policy)
    random = np.random.default_rng(0)
    sizes = [actor.observation_size for actor in team.actors]

    def observations(*batch: int) -> list[np.ndarray]:
        return [random.normal(size=(*batch, size)).astype(np.float32) for size in sizes]

    one, many = observations(), observations(1000)
    found = {
        "first_call": _mean(lambda: team.act(one), 1),
        "one_team": min(_mean(lambda: team.act(one), calls // 10) for _ in range(10)),
        "first_batch_of_1000": _mean(lambda: team.act(many), 1),
        "batch_of_1000": min(
            _mean(lambda: team.act(many), max(1, calls // 2000)) for _ in range(5)
        ),
    }
    if json:
        print(dumps({"policy": team.name, "microseconds": found}, indent=1))
        return
    for name, value in found.items():
        print(f"{name.replace('_', ' '):<22}{value:>10,.1f} microseconds")


def _mean(call: Callable[[], object], times: int) -> float:
    """Microseconds of processor time per call."""
    start = time.process_time()
    for _ in range(times):
        call()
    return 1e6 * (time.process_time() - start) / times
