"""`spacql reproduce` and `spacql results`: what a user meets, without training."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from experiments_toy import fill, run_folder

from spacql.cli import main
from spacql.commands.reproduce import reproduce, run_missing
from spacql.commands.results import results_add, results_list
from spacql.errors import InputError, Interrupted
from spacql.experiments import tables
from spacql.experiments.executors import Event
from spacql.experiments.paper import make_plan
from spacql.experiments.store import Store, summary


class Fake:
    """An executor that makes run folders by hand; the seeds in `failing` fail."""

    def __init__(self, folder, failing=(), stop_after=None):
        self.folder, self.failing, self.stop_after = folder, failing, stop_after
        self.executed = []

    def execute(self, runs, report):
        for run in runs:
            if len(self.executed) == self.stop_after:
                raise KeyboardInterrupt
            self.executed.append(run)
            if run.seed in self.failing:
                report(run, Event("failed", error="no good"))
                continue
            report(run, Event("progress", 1, run.config.rounds, 1.0, 1.0))
            folder = run_folder(self.folder / run.place, algorithm=run.algorithm, seed=run.seed,
                                dataset=run.dataset, config=asdict(run.config),
                                score=10.0 + run.seed)  # fmt: skip
            report(run, Event("done", record=summary(folder)))


@pytest.fixture
def plan():
    return make_plan("table1", only=("spread-random",), seeds=(0, 1, 2), rounds=40)


def test_a_failed_run_is_said_and_does_not_stop_the_rest(tmp_path, plan, capsys) -> None:
    store = Store(tmp_path / "results")
    failed = run_missing(plan, store, Fake(tmp_path, failing=(1,)))
    assert [run.seed for run in failed] == [1, 1]
    assert len(Store(tmp_path / "results")) == 4
    said = capsys.readouterr().err
    assert "spread-random cfcql seed 1: failed: no good" in said
    assert "spread-random cfcql seed 2: score 12.0" in said


def test_after_an_interrupt_only_the_rest_is_run(tmp_path, plan) -> None:
    with pytest.raises(Interrupted, match="4 of 6 runs have ended"):
        run_missing(plan, Store(tmp_path / "results"), Fake(tmp_path, stop_after=4))
    again = Fake(tmp_path)
    assert run_missing(plan, Store(tmp_path / "results"), again) == []
    assert len(again.executed) == 2
    nothing = Fake(tmp_path)
    run_missing(plan, Store(tmp_path / "results"), nothing)
    assert nothing.executed == []


def test_results_that_cannot_be_written_are_refused_before_training(tmp_path, plan) -> None:
    store = Store(tmp_path / "results")
    (tmp_path / "results").write_text("in the way")
    executor = Fake(tmp_path)
    with pytest.raises(InputError, match="Cannot write results"):
        run_missing(plan, store, executor)
    assert executor.executed == []


def test_a_diverged_run_is_a_result_and_is_not_run_again(tmp_path, plan, capsys) -> None:
    store = Store(tmp_path / "results")
    sentence = "Not finite at round 31: td_error."

    class Diverging(Fake):
        def execute(self, runs, report):
            for run in runs:
                if run.seed != 1:
                    super().execute([run], report)
                    continue
                folder = run_folder(self.folder / run.place, algorithm=run.algorithm, seed=1,
                                    config=asdict(run.config), diverged=sentence)  # fmt: skip
                report(run, Event("diverged", record=summary(folder)))

    assert run_missing(plan, store, Diverging(tmp_path)) == []
    assert f"cfcql seed 1: diverged: {sentence}" in capsys.readouterr().err
    assert plan.missing(Store(tmp_path / "results")) == []
    assert "11.0 ± 1.4 (2, 1 diverged)" in tables.markdown(plan, Store(tmp_path / "results"))
    results_list(results=tmp_path / "results")
    assert "diverged: 1" in capsys.readouterr().out


def test_failures_are_the_exit_code(tmp_path, monkeypatch, capsys) -> None:
    class Failing(Fake):
        workers = 1

        def __init__(self, folder, workers):
            super().__init__(folder, failing=(0,))

    monkeypatch.setattr("spacql.experiments.executors.Local", Failing)
    options = {"only": ("spread-random",), "results": tmp_path / "results", "runs": tmp_path}
    assert reproduce("table1", seeds=(0, 1), **options) == 1
    assert reproduce("table1", seeds=(1,), **options) == 0
    assert "11.0 (1)" in capsys.readouterr().out


def test_a_stored_table_is_printed_and_written_without_running(tmp_path, capsys) -> None:
    plan, store = make_plan("table1"), Store(tmp_path / "results")
    fill(plan, store, {"random/cfcql": [60.0] * 3, "random/icql-qs": [78.0] * 3}, tmp_path)
    out = tmp_path / "tables" / "table1"
    options = {"stored": True, "results": tmp_path / "results", "runs": tmp_path / "none"}
    assert reproduce("table1", out=out, **options) == 0
    said = capsys.readouterr().out
    assert "78.0±0.0 (3)*" in said
    assert "–" in said
    assert "**78.0 ± 0.0 (3)**" in (tmp_path / "tables" / "table1.md").read_text()
    assert (tmp_path / "tables" / "table1.csv").read_text().startswith("block,dataset")
    reproduce("table1", json=True, **options)
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert len(cells) == 16
    assert sum(cell["seeds"] for cell in cells) == 12, "spread and world have a column 'random'"
    assert not (tmp_path / "none").exists()


def test_a_dry_run_counts_and_estimates(tmp_path, capsys) -> None:
    plan, store = make_plan("table1"), Store(tmp_path / "results")
    fill(plan, store, {"random/cfcql": [60.0, 62.0]}, tmp_path)
    reproduce("table1", dry_run=True, only=("spread-random",), results=tmp_path / "results",
              workers=2)  # fmt: skip
    said = capsys.readouterr().out
    assert "2 of 5" in said
    assert "10 runs, 2 finished, 8 missing" in said
    reproduce("table1", dry_run=True, results=tmp_path / "results", json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["missing"]) == (80, 76)
    by_cell = {(cell["dataset"], cell["method"]): cell for cell in found["cells"]}
    # Stored runs of this algorithm and task took 12.346 s each: so will the others.
    assert by_cell["spread-random", "cfcql"]["seconds"] == pytest.approx(3 * 12.346)


def refused(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.err + said.out


def test_mistakes_are_one_sentence(capsys, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    assert "table1" in refused(capsys, "reproduce", "table3")
    assert "nothing here" in refused(capsys, "reproduce", "table1", "--only", "sprad", "--stored")
    assert "is a file" in refused(
        capsys, "reproduce", "table1", "--stored", "--results", str(tmp_path / "file")
    )
    assert "no folder" in refused(capsys, "results", "add", str(tmp_path / "nowhere"))
    assert "no run below" in refused(capsys, "results", "add", str(tmp_path))
    assert "Which folders" in refused(capsys, "results", "add")


def test_results_add_says_what_happened_to_each(tmp_path, capsys) -> None:
    run_folder(tmp_path / "runs" / "a" / "seed-0")
    run_folder(tmp_path / "runs" / "a" / "seed-1", seed=1, done=False)
    run_folder(tmp_path / "runs" / "a" / "seed-2", seed=2, diverged="Not finite.")
    (tmp_path / "runs" / "tune").mkdir()
    sweep = {"algorithm": "cfcql", "data": "spread-random", "rounds": 40, "seeds": [100],
             "config": {"rounds": 40}, "hyperparameter": "alpha", "values": []}  # fmt: skip
    (tmp_path / "runs" / "tune" / "tune.json").write_text(json.dumps(sweep))
    results = tmp_path / "results"
    assert results_add((tmp_path / "runs",), results=results) == 0
    said = capsys.readouterr().out
    assert "a/seed-0: added" in said
    assert "a/seed-1: unfinished" in said
    assert "a/seed-2: added" in said
    assert "spread-random-cfcql.json" in said
    assert "2 added, 2 in" in said
    results_add((tmp_path / "runs",), results=results)
    assert "a/seed-0: there already" in capsys.readouterr().out
    run_folder(tmp_path / "other" / "seed-0", identity="ffff")
    assert results_add((tmp_path / "other",), results=results) == 1
    assert "other data" in capsys.readouterr().out


def test_results_add_refuses_what_is_not_the_data_of_its_name_or_no_result(
    tmp_path, capsys
) -> None:
    for name, change in (("seed", {"seed": 0}), ("short", {"transitions": 100_000})):
        folder = run_folder(tmp_path / "runs" / name, seed=3)
        described = json.loads((folder / "run.json").read_text())
        described["dataset"] |= change
        (folder / "run.json").write_text(json.dumps(described))
    entry = {"value": 1.0, "scores": [], "mean": None, "failed": [100], "crashed": [100]}
    sweep = {"algorithm": "cfcql", "data": "spread-random", "rounds": 40, "seeds": [100],
             "config": {"rounds": 40}, "hyperparameter": "alpha", "values": [entry]}  # fmt: skip
    (tmp_path / "runs" / "tune").mkdir()
    (tmp_path / "runs" / "tune" / "tune.json").write_text(json.dumps(sweep))
    assert results_add((tmp_path / "runs",), results=tmp_path / "results") == 1
    said = capsys.readouterr().out
    assert (
        "runs/seed: not taken, other data: seed 3 of spread-random is trained on dataset 3" in said
    )
    assert "this run saw dataset 0; --data spread-random finds the right one" in said
    assert (
        "short: not taken, other data: spread-random has more transitions than the 100,000" in said
    )
    assert "runs/tune: not taken: a training of the sweep failed" in said
    assert "0 added, 0 in" in said


def test_results_list_puts_seeds_together_and_says_what_is_unlike_the_settings(
    tmp_path, capsys
) -> None:
    store = Store(tmp_path / "results")
    for seed in (0, 1):
        folder = run_folder(tmp_path / f"seed-{seed}", seed=seed, score=50.0 + 2 * seed)
        store.add(summary(folder))
    with pytest.raises(SystemExit) as stop:
        main(["results", "list", "random", "--results", str(tmp_path / "results")])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "0 1" in said
    assert "51.0 ± 1.0" in said
    assert "rounds=40" in said
    assert "2 runs" in said
