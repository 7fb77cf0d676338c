"""Statistics, marking and formatting, against numbers worked out by hand."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from experiments_toy import fill

from spacql.algorithms import settings
from spacql.algorithms.settings import usual_rounds
from spacql.experiments import plans, tables
from spacql.experiments.paper import make_plan
from spacql.experiments.store import Store
from spacql.experiments.tables import statistics


def test_statistics_of_five_seeds() -> None:
    found = statistics([10.0, 0.0, 20.0, 30.0, 1000.0])
    assert (found.seeds, found.mean) == (5, 212.0)
    squares = 202**2 + 212**2 + 192**2 + 182**2 + 788**2
    assert found.std == pytest.approx((squares / 4) ** 0.5)
    # Student's t with four degrees of freedom is 2.776 at 97.5 %.
    assert found.high - found.mean == pytest.approx(2.7764 * (squares / 4 / 5) ** 0.5, rel=1e-4)
    assert found.high - found.mean == pytest.approx(found.mean - found.low)
    assert statistics([]) is None
    one, two = statistics([3.0]), statistics([3.0, 5.0])
    assert (one.mean, one.std, one.low, one.high) == (3.0, 0.0, None, None)
    assert (two.mean, two.std, two.low, two.high) == (4.0, 2**0.5, None, None), "too few"


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(0)
    for seeds in (3, 5):
        found = [statistics(random.normal(size=seeds).tolist()) for _ in range(1000)]
        assert 0.93 < np.mean([x.low < 0 < x.high for x in found]) < 0.97


def test_trainings_on_one_dataset_count_once_with_their_mean(tmp_path) -> None:
    """Seeds 0 to 4 have a dataset each, and 5 to 9 the same ones again."""
    plan = make_plan("table1", only=("spread-random", "cfcql"), seeds=tuple(range(10)))
    store = Store(tmp_path / "results")
    fill(plan, store, {"random/cfcql": [1.0, 2, 3, 4, 5, 3, 4, 5, 6, 7]}, tmp_path)
    [[cell]] = tables.grid(plan, plan.blocks[0], store)
    assert (cell.statistics.seeds, cell.statistics.mean, cell.diverged) == (5, 4.0, 0)
    assert tables.by_seed(list(store)) == {0: 2, 1: 3, 2: 4, 3: 5, 4: 6}
    assert tables.TWICE in tables.notes(plan, store)


@pytest.fixture
def table(tmp_path):
    """cfcql 62 in three seeds against icql-qs 77 to 79 in three."""
    plan = make_plan("table1", only=("spread-random", "spread-expert"), rounds=60)
    store = Store(tmp_path / "results")
    scores = {"random/cfcql": [60.0, 62.0, 64.0], "random/icql-qs": [77.0, 78.0, 79.0]}
    fill(plan, store, scores, tmp_path)
    return plan, store


def test_markdown_marks_the_best_and_shows_seeds_and_the_paper(table) -> None:
    text = tables.markdown(*table)
    lines = text.splitlines()
    assert "| spread | expert | random |" in lines
    [cfcql] = [line for line in lines if line.startswith("| cfcql")]
    assert "| –<br><sub>paper 112</sub> |" in cfcql
    assert "62.0 ± 2.0 (3)<br><sub>paper 62.2</sub>" in cfcql
    [icql] = [line for line in lines if line.startswith("| icql-qs")]
    assert "**78.0 ± 1.0 (3)**" in icql
    assert f"60 × 1 in spread INSTEAD OF {usual_rounds('spread'):,} rounds." in text
    assert "Penalty: " in text
    assert "Careful" not in text


def test_csv_has_a_line_a_cell(table) -> None:
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(*table))))
    assert len(rows) == 4
    by_cell = {(row["dataset"], row["method"]): row for row in rows}
    best = by_cell["spread-random", "icql-qs"]
    assert (best["seeds"], best["mean"], best["best"]) == ("3", "78.00", "*")
    assert best["paper_mean"] == "77.70"
    empty = by_cell["spread-expert", "cfcql"]
    assert (empty["seeds"], empty["mean"], empty["best"]) == ("0", "", "")


def test_the_terminal_shows_a_star(table, capsys) -> None:
    tables.show(*table)
    said = capsys.readouterr().out
    assert "78.0±1.0 (3)*" in said
    assert "62.0±2.0 (3) " in said
    assert "[57, 67]" in said  # 62 ± 4.303 times 2 / sqrt 3
    assert "paper 77.7" in said


def test_runs_on_other_data_of_the_same_name_are_said_below(table, tmp_path) -> None:
    plan, store = table
    run = next(iter(store))
    store.runs[run.key] = replace(run, identity="ffffffffffff")
    assert "Careful" in tables.markdown(plan, store)


def test_notes_say_whose_rounds_and_penalties_are_others(monkeypatch) -> None:
    rows = {("spread-random", name): {"rounds": 2000} for name in ("spacql", "cfcql", "icql-qs")}
    other = {"rounds": 5000, "updates": 1, "penalty": "policy"}
    monkeypatch.setattr(settings, "SETTINGS", rows | {("spread-random", "macql"): other})
    monkeypatch.setattr(plans, "_configured", plans._configured.__wrapped__)
    only = ("spread-random", "cfcql", "icql-qs", "macql")
    plan = make_plan("table2", only=only)
    assert tables.rounds(plan).endswith(": 2,000 × 5 in spread (macql 5,000 × 1).")
    assert tables.penalties(plan) == ["Penalty: log-sum-exp; policy for macql on spread-random."]
    shorter = make_plan("table2", only=only, rounds=100)
    expected = ": 100 × 5 in spread INSTEAD OF 2,000 rounds (macql 250 × 1)."
    assert tables.rounds(shorter).endswith(expected)
    ablation = make_plan("ablation")
    assert tables.penalties(ablation) == ["Penalty: log-sum-exp, or as the columns say."]
    policy = make_plan("ablation", only=("random, policy",))
    assert tables.penalties(policy) == ["Penalty: as the columns say."]


def test_differences_are_taken_seed_by_seed(tmp_path) -> None:
    plan = make_plan("differences", only=("spread-random", "spread-expert"), rounds=60)
    store = Store(tmp_path / "results")
    scores = {
        "random/spacql": [50.0, 80.0, 20.0],
        "random/cfcql": [48.0, 77.0, 16.0, 99.0],  # the last seed has no partner
        "expert/spacql": [90.0],
        "expert/icql-qs": [95.0],
    }
    fill(plan, store, scores, tmp_path)
    expert, random = tables.grid(plan, plan.blocks[0], store)[0]
    assert random.method.label == "spacql - cfcql"
    assert (random.statistics.seeds, random.statistics.mean) == (3, 3.0)
    # Of 2, 3 and 4 the standard error is 1 / sqrt 3, and Student's t with two degrees 4.303.
    assert random.statistics.low == pytest.approx(3 - 4.3027 / 3**0.5, abs=1e-3)
    assert random.best, "the interval is above 0"
    assert expert.statistics is None
    of_expert, of_random = tables.grid(plan, plan.blocks[0], store)[1]
    assert (of_expert.statistics.mean, of_expert.statistics.low) == (-5.0, None)
    assert not of_expert.best, "one seed shows nothing"
    assert of_random.statistics is None
    assert "seed by seed" in tables.markdown(plan, store)
    alone = make_plan("differences", only=("spread-random", "spacql", "cfcql"))
    assert len(tables.grid(alone, alone.blocks[0], store)) == 1


def test_rounding_makes_no_negative_zero() -> None:
    assert [tables.plain_zero(x, d) for x, d in ((-0.04, 1), (-0.4, 0), (-0.6, 0), (1.25, 1))] == [
        "0.0", "0", "-1", "1.2"]  # fmt: skip


def test_rows_without_a_run_are_named_below_their_table(tmp_path) -> None:
    plan = make_plan("table2", only=("spread-random", "cfcql", "bc"), rounds=60)
    store = Store(tmp_path / "results")
    fill(plan, store, {"random/cfcql": [50.0]}, tmp_path / "work")
    text = tables.markdown(plan, store)
    assert "| cfcql | 50.0 (1)" in text
    assert "| bc |" not in text
    assert "Not run yet in spread: bc." in text


def test_markdown_of_differences_shows_the_interval_and_no_deviation(tmp_path) -> None:
    plan = make_plan("differences", only=("spread-random",), rounds=60)
    store = Store(tmp_path / "results")
    scores = {"random/cfcql": [60.0, 62.0, 64.0], "random/icql-qs": [77.0, 78.0, 79.0]}
    fill(plan, store, scores, tmp_path)
    [line] = [x for x in tables.markdown(plan, store).splitlines() if x.startswith("| icql-qs")]
    assert "**16.0 [13.5, 18.5] (3)**" in line
    assert "±" not in line
