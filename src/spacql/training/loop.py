"""Training one seed of any algorithm: rounds in compiled chunks, each chunk's data from the host.

Everything that a round sees is a function of (seed, round): the rows of its batches, by a
counter-based generator on the host, and the key of its random numbers. So a run that continues
from a checkpoint does what the uninterrupted run would have done, to the bit.
"""

import time
from collections.abc import Callable
from functools import partial
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from spacql.algorithms.config import Training
from spacql.algorithms.registry import Algorithm
from spacql.data import Batch, Dataset
from spacql.errors import InputError
from spacql.policies import Policy
from spacql.training.checkpoints import Checkpoints, say_on_stderr
from spacql.training.metrics import (
    Loggers,
    MetricsFile,
    refuse_non_finite,
    rows_of,
    whole_rounds,
)

CHUNK = 10  # most rounds in one compiled call


class Schedule(NamedTuple):
    """When to do what, in rounds."""

    evaluate_every: int
    checkpoint_every: int


class Progress(NamedTuple):
    """What a run reports after every chunk."""

    round: int
    rounds: int
    rounds_per_second: float  # 0 while it is not known
    score: float | None  # the latest


def fit(
    algorithm: Algorithm,
    config: Training,
    dataset: Dataset,
    seed: int,
    folder: Path,
    *,
    schedule: Schedule,
    evaluate: Callable[[Policy], dict[str, float]] | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    loggers: tuple[str, ...] = (),
    say: Callable[[str], None] = say_on_stderr,
) -> Policy:
    """Train to `config.rounds`, from the newest checkpoint in `folder` if there is one.

    `evaluate` returns what joins the metrics of the round it follows, under "score" if it is one.
    `say` is told what the user should know although the training goes on.
    """
    rows = usable_rows(algorithm, dataset)
    init = jax.jit(partial(algorithm.init, spec=dataset.spec, config=config,
                           statistics=dataset.statistics()))  # fmt: skip
    state = init(jax.random.key(seed))
    checkpoints = Checkpoints(folder / "checkpoints", say)
    # What the metrics lack, too, is done again: to the same bits.
    done = checkpoints.latest(at_most=whole_rounds(folder / "metrics.jsonl")) or 0
    if done:
        state = checkpoints.restore(done, state)
    chunk = chunk_length(config.rounds, schedule, done)
    metrics_file = MetricsFile(folder / "metrics.jsonl", after=done)
    log = Loggers(loggers, folder, {"seed": seed, **vars(config)})
    run_chunk = compiled_chunk(algorithm, config)
    key = jax.random.key(seed, impl="rbg")  # compiles in half the time of the default generator
    saved = done or None
    score, compiled_at, began_at = None, 0.0, done
    batches = gather(dataset, rows, seed, done, chunk, config)
    try:
        while done < config.rounds:
            state, metrics = run_chunk(state, batches, key, jnp.arange(done, done + chunk))
            # The chunk computes in the background while the next one's data is gathered.
            if done + chunk < config.rounds:
                batches = gather(dataset, rows, seed, done + chunk, chunk, config)
            new = rows_of(metrics, done + 1)
            refuse_non_finite(new, saved)
            done += chunk
            last = done >= config.rounds
            if evaluate is not None and (last or done % schedule.evaluate_every == 0):
                new[-1] |= evaluate(algorithm.policy(state))
                score = new[-1].get("score", score)
            metrics_file.write(new)
            log.write(new)
            if last or done % schedule.checkpoint_every == 0:
                # The policy first: what a checkpoint stands for is not done again.
                algorithm.policy(state).save(folder / "policy")
                checkpoints.save(done, state)
                saved = done
            now = time.monotonic()
            if not compiled_at:  # the first chunk is mostly compiling, and says nothing of speed
                compiled_at, began_at = now, done
            speed = (done - began_at) / max(now - compiled_at, 1e-9)
            report(Progress(done, config.rounds, speed, score))
    finally:
        metrics_file.close()
        log.close()
        checkpoints.close()
    return algorithm.policy(state)


def compiled_chunk(algorithm: Algorithm, config: Training) -> Callable[..., Any]:
    """A jitted function of (state, batches, key, round numbers). Data is an argument: closed over
    it would become a constant of the program."""

    def run_chunk(state: Any, batches: Batch, key: Array, rounds: Array) -> Any:
        def one(state: Any, inputs: tuple[Batch, Array]) -> Any:
            batch, round_ = inputs
            return algorithm.update(state, batch, jax.random.fold_in(key, round_), config)

        return jax.lax.scan(one, state, (batches, rounds))

    return jax.jit(run_chunk, donate_argnums=0)


def usable_rows(algorithm: Algorithm, dataset: Dataset) -> np.ndarray:
    """The transitions to train on: those whose target can be computed."""
    needs = algorithm.NEEDS_NEXT_ACTION
    rows = dataset.target_rows() if needs else dataset.transition_rows()
    if not len(rows):
        raise InputError(
            "No transition of the dataset has a known next joint action, which this algorithm's "
            "target needs. Episodes of two steps or more have them; or use cfcql or macql."
        )
    return rows


def chunk_length(rounds: int, schedule: Schedule, done: int = 0) -> int:
    """Rounds per compiled call: a divisor of everything that happens between chunks, so that one
    compiled length serves a run, whether or not it was interrupted; and of what is `done`, where a
    shorter run ended that is lengthened."""
    common = gcd(rounds, schedule.evaluate_every, schedule.checkpoint_every, done)
    return max(length for length in range(1, CHUNK + 1) if common % length == 0)


def sampled(rows: np.ndarray, seed: int, round_: int, config: Training) -> np.ndarray:
    """The rows of one round's batches, (updates, batch_size), uniform with replacement."""
    generator = np.random.Generator(np.random.Philox(key=[seed, round_]))
    return rows[generator.integers(0, len(rows), (config.updates, config.batch_size))]


def gather(
    dataset: Dataset, rows: np.ndarray, seed: int, start: int, chunk: int, config: Training
) -> Batch:
    """Batches for rounds start, start + 1, ...: leading axes (chunk, updates, batch_size)."""
    return dataset.batch(np.stack([sampled(rows, seed, start + k, config) for k in range(chunk)]))
