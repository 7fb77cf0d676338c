"""`spacql bench executors`: what a run costs beside its training, here and as a task of Ray."""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacql.experiments.executors import Event, Executor, PlannedRun


def bench_executors(
    runs: int = 4,
    workers: int = 2,
    algorithm: str = "cfcql",
    rounds: int = 1000,
    transitions: int = 100_000,
    json: bool = False,
) -> None:
    """Measure what a run costs beside its training: in local processes, and as a task of Ray.

    The same runs on the same cores, first in processes, then on a Ray cluster that is started
    here. Programs are compiled before, so that both find them. What a run costs on the clock is the
    time from the first run's start to the last one's end, times the cores, per run; that needs a
    machine that does nothing else. The processor's time, of all processes that take part, hardly
    minds others. Runs of a few rounds show best what a run costs beside its training.

    Example: spacql bench executors --runs 8 --rounds 10

    Args:
        runs: How many; a multiple of the workers, so that no core is idle at the end.
        workers: How many cores to use.
        algorithm: What to train.
        rounds: How long.
        transitions: Of uniform actions in spread, made in a temporary place.
        json: Print JSON instead of lines.
    """
    from json import dumps

    from spacql.errors import InputError

    if min(runs, workers, rounds, transitions) < 1 or runs % workers:
        raise InputError("All numbers must be at least 1, and runs a multiple of the workers.")
    with tempfile.TemporaryDirectory() as temporary:
        before = dict(os.environ)
        os.environ["SPACQL_CACHE"] = f"{temporary}/cache"
        try:
            found = _compare(Path(temporary), runs, workers, algorithm, rounds, transitions)
        finally:
            os.environ.clear()
            os.environ.update(before)
    if json:
        print(dumps(found))
        return
    local, ray = found["local"], found["ray"]
    print(f"{runs} runs on {workers} cores; seconds of a core per run")
    print("                          local       ray    Ray adds")
    for name, label in (
        ("clock", "on the clock"),
        ("training", "  training, evaluation"),
        ("beside", "  beside it"),
        ("processor", "of the processor"),
    ):
        print(f"{label:<22}{local[name]:9.2f} {ray[name]:9.2f}   {ray[name] - local[name]:9.2f}")
    print(f"Starting Ray here took {found['start']:.1f} s, once.")


def _compare(
    place: Path, count: int, workers: int, algorithm: str, rounds: int, transitions: int
) -> dict[str, Any]:
    from spacql.algorithms.settings import configure
    from spacql.data import collect
    from spacql.experiments.executors import Local, PlannedRun
    from spacql.experiments.ray_executor import Ray

    data, ray = place / "data", Ray(place / "ray", workers, address="local")
    collect.make_dataset("spread-random", data, transitions=transitions)

    def planned(seed: int, rounds: int) -> PlannedRun:
        config = configure(algorithm, "spread-random", {"rounds": rounds})
        return PlannedRun(algorithm, str(data), seed, config, f"seed-{seed}")

    runs = [planned(seed, rounds) for seed in range(count)]
    _measure(Local(place / "compile", 1), [planned(0, 10 if rounds % 10 == 0 else rounds)], 1)
    local = _measure(Local(place / "local", workers), runs, workers)
    started = time.monotonic()
    with ray.connected():
        start = time.monotonic() - started
        tasks = _measure(ray, runs, workers)
    return {"local": local, "ray": tasks, "start": start}


def _measure(executor: "Executor", runs: "Sequence[PlannedRun]", workers: int) -> dict[str, float]:
    """Seconds of a core per run: on the clock, those of training and evaluation among them, the
    others; and of the processor."""
    from spacql.commands.bench_train import seconds_of
    from spacql.errors import InputError

    trained: list[float] = []
    problems: list[str] = []  # raised later: executors report from threads of their own

    def report(run: "PlannedRun", event: "Event") -> None:
        if event.kind == "done" and event.record is not None:
            trained.append(event.record["seconds"])
        elif event.kind in ("failed", "diverged"):
            problems.append(event.error or event.kind)

    started, used = time.monotonic(), seconds_of(os.getpid())
    executor.execute(runs, report)
    if problems:
        raise InputError(f"A run did not come to its end: {problems[0]}")
    clock = (time.monotonic() - started) * workers / len(runs)
    processor = (seconds_of(os.getpid()) - used) / len(runs)
    training = sum(trained) / len(runs)
    return {
        "clock": clock,
        "training": training,
        "beside": clock - training,
        "processor": processor,
    }
