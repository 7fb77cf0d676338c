"""Executing planned runs before a user's eyes: a line for each that is under way, what came of
those that ended, and what is kept when the user stops it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spacql.errors import Interrupted
from spacql.experiments.executors import Event, Executor, PlannedRun
from spacql.interrupts import farewell
from spacql.progress import Board, board, duration
from spacql.runs import newest_checkpoint


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run: PlannedRun
    record: Mapping[str, Any] | None  # what the store keeps; None if it failed
    error: str = ""  # why it failed or diverged

    @property
    def score(self) -> float | None:
        evaluation = self.record["evaluation"] if self.record else None
        return None if evaluation is None else evaluation["score"]

    @property
    def text(self) -> str:
        """For the user."""
        if self.record is None:
            return f"failed: {self.error}"
        if self.error:
            return f"diverged: {self.error}"
        score = "no score" if self.score is None else f"score {self.score:z.1f}"
        return f"{score} ({duration(self.record['seconds'])})"


def execute(
    runs: Sequence[PlannedRun],
    executor: Executor,
    *,
    label: Callable[[PlannedRun], str],
    title: str,
    expected: Callable[[PlannedRun], float] = lambda run: run.config.rounds,
    keep: Callable[[Mapping[str, Any]], str] = lambda record: "",
    again: str = "",
    quiet: bool = False,
) -> list[Outcome]:
    """Execute runs and say how they get on. The outcomes are in the order of the runs.

    `keep` takes in the record of a run that ended, or returns why it cannot. `expected` is how much
    of the work each run is. `again` is what the same command needs to continue after an interrupt.
    """
    outcomes: dict[str, Outcome] = {}
    weights = {run.place: expected(run) for run in runs}
    total = _Total(title, weights)

    def stopped() -> Interrupted:
        left = [run for run in runs if run.place not in outcomes]
        others = getattr(executor, "unfinished", "") or _kept(executor, left)
        return Interrupted(f"{len(outcomes)} of {len(runs)} runs have ended; {others}.", again)

    with board(quiet) as lines, farewell(stopped):

        def report(run: PlannedRun, event: Event) -> None:
            if event.kind == "progress":
                lines.show(label(run), event.round / max(1, event.rounds), _text(event))
                if event.round:
                    total.show(lines, run.place, event.round / max(1, event.rounds), len(outcomes))
                return
            if event.kind == "note":
                lines.say(label(run), event.note)
                return
            record = event.record
            error = event.error if record is None else str(record.get("diverged", ""))
            if record is not None and (problem := keep(record)):
                record, error = None, problem
            outcomes[run.place] = ended = Outcome(run, record, error)
            lines.end(label(run), ended.text)
            if quiet and record is None:
                lines.say(label(run), ended.text)
            total.show(lines, run.place, 1.0, len(outcomes))

        try:
            executor.execute(runs, report)
        except KeyboardInterrupt as stop:
            raise stopped() from stop
    lost = "The executor did not say how it ended."
    return [outcomes.get(run.place, Outcome(run, None, lost)) for run in runs]


def _kept(executor: Executor, left: Sequence[PlannedRun]) -> str:
    """What an executor that does not say it itself keeps of runs that have not ended."""
    folder = getattr(executor, "folder", None)
    if folder is None:
        return "the others keep their newest checkpoints"
    count = sum(newest_checkpoint(folder / run.place) > 0 for run in left)
    if not count:
        return "the others have no checkpoint yet and begin anew"
    if count < len(left):
        return f"the newest checkpoints of {count} of the others are kept, the rest begin anew"
    return "the others keep their newest checkpoints"


def _text(event: Event) -> str:
    """Score, rate and time left."""
    parts = [] if event.score is None else [f"score {event.score:z.1f}"]
    if event.rounds_per_second > 0:
        left = (event.rounds - event.round) / event.rounds_per_second
        parts += [f"{event.rounds_per_second:z.2f} rounds/s", f"{duration(left)} left"]
    return "  ".join(parts)


class _Total:
    """The line of all runs together, where there are several."""

    def __init__(self, title: str, weights: Mapping[str, float]):
        self._title, self._weights = title, weights
        self._shares = dict.fromkeys(weights, 0.0)
        self._started = time.monotonic()
        self._began_at: float | None = None  # what resumed runs had done before

    def show(self, lines: Board, place: str, share: float, ended: int) -> None:
        if len(self._weights) < 2:
            return
        self._shares[place] = share
        done = sum(self._weights[p] * share for p, share in self._shares.items())
        done /= sum(self._weights.values())
        if self._began_at is None:
            self._began_at = done
        text, gained = f"{ended} of {len(self._weights)} ended", done - self._began_at
        if gained > 0 and done < 1:
            left = (1 - done) * (time.monotonic() - self._started) / gained
            text += f"  {duration(left)} left"
        if done < 1:
            lines.show(self._title, done, text)
        else:
            lines.end(self._title, "")
