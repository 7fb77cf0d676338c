"""What a user sees of runs under way, and what is said when they are stopped."""

import pytest

from spacql.errors import Interrupted
from spacql.experiments import running
from spacql.experiments.executors import Event
from spacql.experiments.paper import make_plan
from spacql.experiments.running import execute
from spacql.progress import duration

RECORD = {"evaluation": {"score": 61.23}, "seconds": 200.0}


@pytest.fixture
def runs():
    return make_plan("table1", only=("spread-random", "cfcql"), seeds=(0, 1, 2)).runs()


class Scripted:
    """An executor that reports what it was given."""

    def __init__(self, *events):
        self.events = events

    def execute(self, runs, report):
        for number, event in self.events:
            if event == "kill":
                raise KeyboardInterrupt
            report(runs[number], event)


def go(runs, *events, **options):
    return execute(
        runs, Scripted(*events), label=lambda run: f"seed {run.seed}", title="all", **options
    )


def test_outcomes_are_in_the_order_of_runs_and_none_is_lost(runs, capsys) -> None:
    first, second, third = go(
        runs,
        (1, Event("diverged", record={**RECORD, "evaluation": None, "diverged": "Not finite."})),
        (0, Event("done", record=RECORD)),
    )
    assert (first.score, first.error) == (61.23, "")
    assert (second.score, second.error) == (None, "Not finite.")
    assert third.record is None
    assert "did not say" in third.error
    said = capsys.readouterr().err.splitlines()
    assert said == ["seed 1: diverged: Not finite.", "seed 0: score 61.2 (3 min)"]


def test_each_run_has_a_line_with_score_rate_and_time_left(runs, capsys, monkeypatch) -> None:
    monkeypatch.setattr("spacql.progress.QUIET_SECONDS", -1)
    event = Event("progress", 100, 500, 2.0, 12.34)
    go(runs, (0, event), (2, event), (0, Event("failed", error="no")))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "seed 0: 20 % score 12.3  2.00 rounds/s  3 min left"
    assert said[1].startswith("all: 7 % 0 of 3 ended")
    assert said[2].startswith("seed 2: 20 %")
    assert "seed 0: failed: no" in said


def test_quiet_tells_failures_alone(runs, capsys, monkeypatch) -> None:
    monkeypatch.setattr("spacql.progress.QUIET_SECONDS", -1)
    done = Event("done", record=RECORD)
    progress, failed = Event("progress", 1, 2), Event("failed", error="no good")
    go(runs, (0, progress), (0, done), (1, failed), (2, done), quiet=True)
    assert capsys.readouterr().err == "seed 1: failed: no good\n"


def test_a_note_is_read_quiet_or_not_and_ends_no_run(runs, capsys) -> None:
    note, done = Event("note", note="A checkpoint was set aside."), Event("done", record=RECORD)
    for quiet in (True, False):
        [outcome] = go(runs[:1], (0, note), (0, done), quiet=quiet)
        assert outcome.score == 61.23
        assert "seed 0: A checkpoint was set aside.\n" in capsys.readouterr().err


def test_a_record_that_cannot_be_kept_is_a_failure(runs) -> None:
    [outcome] = go(runs[:1], (0, Event("done", record=RECORD)), keep=lambda record: "disk full")
    assert (outcome.record, outcome.error) == (None, "disk full")


def test_a_kill_says_what_is_kept_and_what_goes_on(runs) -> None:
    with pytest.raises(Interrupted, match=r"1 of 3 runs have ended; .* checkpoints") as stop:
        go(runs, (0, Event("done", record=RECORD)), (0, "kill"), again="--resume")
    assert stop.value.again == "--resume"


def test_a_kill_promises_no_checkpoint_that_is_not_there(runs, tmp_path) -> None:
    for count, sentence in (
        (0, "1 of 3 runs have ended; the others have no checkpoint yet and begin anew."),
        (1, "; the newest checkpoints of 1 of the others are kept, the rest begin anew."),
        (2, "; the others keep their newest checkpoints."),
    ):
        if count:
            (tmp_path / runs[count].place / "checkpoints").mkdir(parents=True)
            (tmp_path / runs[count].place / "checkpoints" / "00000010.checkpoint").touch()
        executor = Scripted((0, Event("done", record=RECORD)), (0, "kill"))
        executor.folder = tmp_path
        with pytest.raises(Interrupted, match=sentence):
            execute(runs, executor, label=lambda run: run.place, title="all", quiet=True)


@pytest.mark.parametrize(("seconds", "text"), [(5, "5 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations_have_the_unit_of_their_size(seconds, text) -> None:
    assert duration(seconds) == text


def test_time_left_counts_from_where_resumed_runs_began(monkeypatch) -> None:
    clock = iter((0.0, 10.0, 20.0))
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    said = []

    class Lines:
        def show(self, name, share, text):
            said.append(text)

    total = running._Total("all", {"a": 1.0, "b": 1.0})
    total.show(Lines(), "a", 0.8, 0)  # resumed: 40 % of all were there before
    total.show(Lines(), "a", 1.0, 1)
    # 10 % in ten seconds, 50 % to go
    assert said == ["0 of 2 ended", "1 of 2 ended  50 s left"]
