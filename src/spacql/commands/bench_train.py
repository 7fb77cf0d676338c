"""`spacql bench train`: where the time of whole trainings goes, on one core."""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ALGORITHMS = ("cfcql", "spacql", "aspac", "omar", "dof")
TASKS = ("spread", "halfcheetah")


def bench_train(
    algorithms: tuple[str, ...] = ALGORITHMS,
    tasks: tuple[str, ...] = TASKS,
    quality: str = "random",
    seed: int = 0,
    rounds: int = 80,
    start: bool = True,
    json: bool = False,
) -> None:
    """Measure trainings on one core: milliseconds per critic update, and where the time goes.

    A short training with the benchmark's settings is timed in parts, in a process of its own. Times
    are the processor's, with those of processes that it starts; waiting for the disk is not in
    them. What a training of full length takes is each part's time by how often it happens there.
    `of peak`: the matrix products of the compiled update, beside those of one large product.
    `first round`: from the command to the end of its first round, which was compiled before; ten
    come at once, and nine are taken off. On Linux.

    Example: spacql bench train --algorithms cfcql spacql --tasks spread

    Args:
        algorithms: Which algorithms.
        tasks: Which tasks; their data is made if it is not there.
        quality: Of which data.
        seed: Of the data and of the training.
        rounds: Length of the measured training, in whole tens.
        start: Measure the start as well, which runs the command twice.
        json: Print JSON instead of tables.
    """
    import subprocess
    import sys
    from json import dumps, loads

    from spacql import arguments
    from spacql.algorithms.registry import find
    from spacql.data.collect import parse
    from spacql.errors import InputError
    from spacql.threads import one_thread

    arguments.whole("--rounds", rounds)
    if rounds % 10 or rounds < 40:
        raise InputError(f"--rounds is {rounds}; it must be a multiple of ten, and at least 40.")
    for algorithm in algorithms:
        find(algorithm)
    for task in tasks:
        parse(f"{task}-{quality}")
    core = str(max(os.sched_getaffinity(0)))
    cases = []
    for task in tasks:
        for algorithm in algorithms:
            words = [algorithm, f"{task}-{quality}", str(seed), str(rounds), core]
            words += ["start"] if start else []
            command = [sys.executable, "-m", "spacql.commands.bench_train", *words]
            done = subprocess.run(command, env=one_thread(os.environ), capture_output=True,
                                  text=True)  # fmt: skip
            if done.returncode:
                raise InputError(
                    f"Measuring {algorithm} on {words[1]} failed: {done.stderr.strip()[-500:]}"
                )
            cases.append(loads(done.stdout.splitlines()[-1]))
            print(f"{algorithm} on {words[1]}: done", file=sys.stderr)
    if json:
        print(dumps(cases, indent=1))
    else:
        show(cases)


PARTS = ("update", "gather", "evaluate", "save", "compile", "start")


def show(cases: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    steps = ("milliseconds", "update", "critics", "actors", "of peak", "first round, s")
    shares = ("% of a training", "minutes", *PARTS, "around")
    for head, row in ((steps, _steps), (shares, _shares)):
        table = Table(head[0], box=None, padding=(0, 1, 0, 0), header_style="underline")
        for column in head[1:]:
            table.add_column(column, justify="right")
        for case in cases:
            table.add_row(f"{case['dataset'].partition('-')[0]} {case['algorithm']}", *row(case))
        console.print(table)
        console.print()
    console.print(
        "update: one critic update with its share of the actors' steps; critics, actors: one step. "
        "compile: of the first seed, for later ones find it in the cache. around: all but update "
        "and compile.",
        highlight=False,
    )


def _steps(case: dict[str, Any]) -> list[str]:
    first = case["first_round"]
    times = [f"{case[f'ms_{part}']:.2f}" for part in ("update", "critics", "actors")]
    return [*times, f"{case['of_peak']:.0%}", "–" if first is None else f"{first:.1f}"]


def _shares(case: dict[str, Any]) -> list[str]:
    share = case["share"]
    around = 1 - share["update"] - share["compile"]
    parts = [*(share[part] for part in PARTS), around]
    return [f"{case['seconds'] / 60:.1f}", *(f"{100 * part:.0f}" for part in parts)]


def processor() -> float:
    """Seconds of the processor that this process and those below it have had."""
    return time.process_time() + sum(map(seconds_of, _children(os.getpid())))


def seconds_of(pid: int) -> float:
    """Of a process, its children and theirs, those that have ended included; 0 without /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    ticks = sum(map(int, fields[11:15]))  # its own, and its ended children's
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(seconds_of, _children(pid)))


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    try:
        return [int(child) for path in listed for child in path.read_text().split()]
    except OSError:
        return []


class Clock:
    """Processor seconds of every call of what it has wrapped, by part."""

    def __init__(self) -> None:
        self.calls: dict[str, list[float]] = defaultdict(list)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        import jax

        def wrapped(*given: Any, **named: Any) -> Any:
            begun = processor()
            result = jax.block_until_ready(function(*given, **named))
            self.calls[part].append(processor() - begun)
            return result

        return wrapped

    def usual(self, part: str) -> float:
        """Of one call: the least, for other programs only add to it. The first one compiles."""
        return min(self.calls[part][1:])

    def first(self, part: str) -> float:
        """What the first call takes beyond a usual one."""
        return max(0.0, self.calls[part][0] - self.usual(part))


def _measure(algorithm: str, name: str, seed: int, rounds: int, *, start: bool) -> dict[str, Any]:
    import tempfile
    from dataclasses import replace

    import jax

    from spacql import runs
    from spacql.algorithms.registry import find
    from spacql.algorithms.settings import configure
    from spacql.data.cache import resolve
    from spacql.training import loop

    clock, config = Clock(), configure(algorithm, name)
    dataset = resolve(name, seed)
    for column in (dataset.joint_observations, dataset.joint_actions, dataset.rewards):
        column.sum()  # a training has soon read all of the file, and later batches are in memory
    module = find(algorithm)
    short = replace(config, rounds=rounds)
    full = runs.describe(algorithm, config, dataset, seed)
    plan = full["evaluation"]
    # The last evaluation is like the others here, and its time is multiplied.
    described = runs.describe(algorithm, short, dataset, seed, episodes=plan["episodes"])
    chunk = loop.chunk_length(rounds, loop.Schedule(10, 10))
    with tempfile.TemporaryDirectory() as folder:
        # What is compiled here is compiled anew, and once.
        jax.config.update("jax_compilation_cache_dir", str(Path(folder) / "compiled"))
        place = Path(folder) / "run"
        runs.open_folder(place, described, resume=False)
        with _timed(clock):
            runs.run_folder(place, dataset)
        started = clock.calls["begun"][0]
        peak = _peak()
        critics, actors, flop = _split(module, config, dataset, clock)
        first = _first_round(algorithm, name, seed, Path(folder)) if start else None
    times = config.rounds / plan["every"] + plan["final_episodes"] / plan["episodes"]
    per_round = clock.usual("update") / chunk
    seconds = {
        "update": config.rounds * per_round,
        "gather": config.rounds / chunk * (clock.usual("gather") + clock.usual("metrics")),
        "evaluate": times * clock.usual("evaluate"),
        "save": config.rounds / plan["every"] * (clock.usual("checkpoint") + clock.usual("policy")),
        "compile": clock.first("update") + clock.first("evaluate"),
        "start": started,
    }
    total = sum(seconds.values())
    return {
        "algorithm": algorithm,
        "dataset": name,
        "rounds": config.rounds,
        "ms_update": 1e3 * per_round / config.updates,
        "ms_critics": 1e3 * critics,
        "ms_actors": 1e3 * actors,
        "of_peak": flop / clock.usual("update") / peak,
        "peak": peak / 1e9,
        "first_round": None if first is None else first - (loop.CHUNK - 1) * per_round,
        "seconds": total,
        "share": {part: spent / total for part, spent in seconds.items()},
        "parts": seconds,
    }


def _timed(clock: Clock) -> Any:
    """Within it, the parts of a training are timed one by one."""
    from contextlib import ExitStack
    from unittest.mock import patch

    from spacql import runs
    from spacql.policies import Policy
    from spacql.training import loop
    from spacql.training.checkpoints import Checkpoints
    from spacql.training.metrics import MetricsFile

    compiled, scorer = loop.compiled_chunk, runs.scorer

    def chunk(*given: Any) -> Any:
        clock.calls["begun"].append(processor())
        return clock.timed("update", compiled(*given))

    def scored(*given: Any) -> Any:
        score, note = scorer(*given)
        return clock.timed("evaluate", score), note

    stack = ExitStack()
    for owner, name, new in (
        (loop, "compiled_chunk", chunk),
        (loop, "gather", clock.timed("gather", loop.gather)),
        (runs, "scorer", scored),
        (Checkpoints, "save", clock.timed("checkpoint", Checkpoints.save)),
        (Policy, "save", clock.timed("policy", Policy.save)),
        (MetricsFile, "write", clock.timed("metrics", MetricsFile.write)),
    ):
        stack.enter_context(patch.object(owner, name, new))
    return stack


def _peak(size: int = 2048) -> float:
    """Floating-point operations a second of one large product."""
    import jax
    import jax.numpy as jnp

    square = jnp.ones((size, size))
    clock = Clock()
    product = clock.timed("product", jax.jit(jnp.matmul))
    for _ in range(6):
        product(square, square)
    return 2 * size**3 / min(clock.calls["product"])


def _split(module: Any, config: Any, dataset: Any, clock: Clock) -> tuple[float, float, float]:
    """Seconds of a critic step and of an actor step, and the operations of a chunk's products.

    A second program with more or fewer critic steps a round, run in turn, tells what one costs.
    """
    from dataclasses import replace
    from functools import partial

    import jax
    import jax.numpy as jnp

    from spacql.training import loop

    rows, key = loop.usable_rows(module, dataset), jax.random.key(0, impl="rbg")
    numbers = jnp.arange(loop.CHUNK)

    def ready(config: Any) -> tuple[Any, Any]:
        init = partial(module.init, spec=dataset.spec, config=config,
                       statistics=dataset.statistics())  # fmt: skip
        state = jax.jit(init)(jax.random.key(0))
        return state, loop.gather(dataset, rows, 0, 0, loop.CHUNK, config)

    steps = {"usual": config.updates, "other": 1 if config.updates > 1 else 3}
    programs = {}
    for name, updates in steps.items():
        other = replace(config, updates=updates)
        programs[name] = (clock.timed(name, loop.compiled_chunk(module, other)), *ready(other))
    for _ in range(6):
        for name, (run, state, batches) in programs.items():
            state, _ = run(state, batches, key, numbers)
            programs[name] = (run, state, batches)
    traced = jax.make_jaxpr(loop.compiled_chunk(module, config))
    flop = products(traced(*ready(config), key, numbers).jaxpr)
    usual, other = (clock.usual(name) / loop.CHUNK for name in steps)
    critics = (usual - other) / (steps["usual"] - steps["other"])
    return critics, usual - config.updates * critics, flop


def products(program: Any) -> float:
    """Multiplications and additions in a program's matrix products, loops counted in full."""
    total = 0.0
    for line in program.eqns:
        if line.primitive.name == "dot_general":
            (contracted, _), _ = line.params["dimension_numbers"]
            inner = 1
            for axis in contracted:
                inner *= line.invars[0].aval.shape[axis]
            total += 2.0 * inner * line.outvars[0].aval.size
            continue
        times = line.params["length"] if line.primitive.name == "scan" else 1
        for value in line.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                inside = getattr(part, "jaxpr", part)
                if hasattr(inside, "eqns"):
                    total += times * products(inside)
    return total


def _first_round(algorithm: str, name: str, seed: int, folder: Path) -> float:
    """Processor seconds from the command to its first metrics; one before it has compiled."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "spacql", "train", algorithm, "--data", name, "--workers", "1",
               "--seeds", str(seed), "--out"]  # fmt: skip
    took = 0.0
    for attempt in ("cold", "warm"):
        place = folder / attempt
        process = subprocess.Popen([*command, str(place)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        metrics = place / f"seed-{seed}" / "metrics.jsonl"
        while process.poll() is None and not (metrics.is_file() and metrics.stat().st_size):
            time.sleep(0.02)
        took = seconds_of(process.pid)
        process.terminate()
        process.wait()
    return took


if __name__ == "__main__":
    import sys
    from json import dumps

    algorithm, name, *numbers = sys.argv[1:6]
    seed, rounds, core = map(int, numbers)
    os.sched_setaffinity(0, {core})  # before JAX starts its threads; what we start inherits it
    print(dumps(_measure(algorithm, name, seed, rounds, start="start" in sys.argv)))
