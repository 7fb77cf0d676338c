"""What stands below the table of all algorithms, against numbers worked out by hand."""

from dataclasses import replace

import pytest
from experiments_toy import fill

from spacql.commands.reproduce import reproduce
from spacql.errors import InputError
from spacql.experiments import overall, tables
from spacql.experiments.paper import make_plan
from spacql.experiments.store import Store

ONLY = ("spread-random", "spread-expert", "world-random", "spacql", "cfcql", "aspac", "bc")


@pytest.fixture
def stored(tmp_path):
    """On spread-expert and both random sets; bc has no run, and cfcql none on expert data."""
    store = Store(tmp_path / "results")
    scores = {
        "random/spacql": [60.0, 70.0, 80.0],
        "random/cfcql": [50.0, 61.0, 69.0],
        "random/aspac": [90.0, 99.0, 111.0],
        "expert/spacql": [100.0, 101.0, 102.0],
        "expert/aspac": [100.0, 102.0, 100.0],
    }
    fill(make_plan("table2", only=ONLY), store, scores, tmp_path)
    return store


def numbers(extra):
    return {(row["method"], row.get("over")): row for row in extra.numbers}


def test_means_are_over_the_datasets_that_all_have(stored) -> None:
    extra = overall.means(make_plan("table2", only=ONLY), stored)
    assert "the 2 datasets" in extra.title
    found = numbers(extra)
    assert found["spacql", "all"]["mean"] == pytest.approx(70)
    # Two tasks with scores of deviation 10: variance 2 * (1/4 * 100/3), four degrees of freedom.
    reach = found["spacql", "all"]["high"] - 70
    assert reach == pytest.approx(2.776445 * (2 * 0.25 * 100 / 3) ** 0.5, abs=1e-4)
    assert found["bc", "all"] == {"method": "bc", "over": "all"}, "no run"
    assert [row[0] for row in extra.rows] == ["spacql", "cfcql", "bc", "aspac"]


def test_means_compare_the_same_seeds(stored, tmp_path) -> None:
    """Two more seeds of aspac, far lower, are on other datasets than spacql has seen."""
    plan = make_plan("table2", only=ONLY)
    before = numbers(overall.means(plan, stored))["aspac", "all"]["mean"]
    fill(plan, stored, {"random/aspac": [90.0, 99.0, 111.0, -50.0, -70.0],
                        "random/bc": [99.0]}, tmp_path / "more")  # fmt: skip
    after = numbers(overall.means(plan, stored))
    assert after["aspac", "all"]["mean"] == pytest.approx(before)
    assert after["bc", "all"] == {"method": "bc", "over": "all"}, "one seed is not compared"


def test_curves_of_diverged_trainings_rise_and_fall_for_nothing(stored) -> None:
    plan = make_plan("table2", only=("spread-random", "aspac"))
    there = [run for run in plan.runs() if run.key in stored.runs]
    for k, run in enumerate(there):
        scores = [float(r > 8) * -1000.0 * (k == 0) for r in range(10)]
        curve = [{"round": r, "score": score} for r, score in enumerate(scores)]
        lost = {"score": None, "diverged": "NaN"} if k == 0 else {}
        stored.runs[run.key] = replace(stored.runs[run.key], curve=curve, **lost)
    assert numbers(overall.rises(plan, stored))["aspac", "spread"]["mean"] == 0


def test_who_is_best_how_often_and_what_a_run_costs(stored) -> None:
    found = numbers(overall.costs(make_plan("table2", only=ONLY), stored))
    aspac, spacql = found["aspac", None], found["spacql", None]
    assert (aspac["best_or_tied"], aspac["best_alone"], aspac["compared"]) == (3, 2, 3)
    assert (spacql["best_or_tied"], spacql["best_alone"]) == (1, 0), "expert cannot be told apart"
    assert aspac["seconds"] == {"spread": pytest.approx(12.346), "world": pytest.approx(12.346)}
    assert found["bc", None]["seconds"] == {}


def test_how_much_scores_still_rise_at_the_end_of_a_training(stored) -> None:
    curve = [{"round": k, "score": score} for k, score in enumerate([*[0.0] * 16, 1, 3, 4, 8])]
    assert overall.last_rise(curve) == 4, "two points of twenty, and the two before"
    assert overall.last_rise(curve[:9]) is None, "too short to have tenths"
    plan = make_plan("table2", only=("spread-random", "aspac"))
    for run in set(plan.runs()) - set(plan.missing(stored)):
        stored.runs[run.key] = replace(stored.runs[run.key], curve=curve)
    found = numbers(overall.rises(plan, stored))
    assert found["aspac", "spread"]["mean"] == 4
    assert overall.rises(make_plan("table2", only=("spread-random", "bc")), stored).rows == (
        ("bc", "–"),
    )


def test_the_papers_numbers_on_our_scale(stored) -> None:
    """78.2 and 111.9 in spread, times (516.8 - 159.8) / (533.8 - 159.7); 94.3 in world as it is."""
    assert overall.here("spread-random", 78.2) == pytest.approx(74.7, abs=0.1)
    assert overall.here("world-random", 94.3) == 94.3
    [line] = overall.reached(make_plan("table2", only=ONLY), stored)
    assert "spread's times 0.954" in line
    assert "spacql: 0 of 3 with three seeds or more." in line
    assert "aspac: 2 of 3 with three seeds or more: spread-random, world-random." in line


def test_pairs_over_all_datasets(stored) -> None:
    plan = make_plan("pairs", only=ONLY, against="aspac")
    row = numbers(overall.over_all(plan, stored))["spacql", None]
    # Within a seed of spread: (30 + 0) / 2, (29 + 1) / 2, (31 - 2) / 2; of world: 30, 29, 31.
    assert row["mean"] == pytest.approx((2 * (15 + 15 + 14.5) / 3 + 30) / 3)
    assert (row["ahead"], row["undecided"], row["behind"]) == (2, 1, 0)
    assert row["improvement"]["share"] == pytest.approx((6 + 0.5 + 1 + 0) / 9)
    found = numbers(overall.by_task(plan, stored))
    assert found["cfcql", "world"]["mean"] == pytest.approx(40)
    assert found["bc", "world"] == {"method": "bc", "over": "world"}
    assert tables.grid(plan, plan.blocks[0], stored)[0][0].method.label == "- spacql"


def test_an_ablation_says_what_each_part_is_worth_seed_by_seed(tmp_path) -> None:
    store, plan = Store(tmp_path / "results"), make_plan("aspac", only=("random",))
    assert overall.markdown(plan, store) == "", "nothing to say without runs"
    scores = {"random/aspac": [90.0, 99.0, 111.0], "random/no anchor": [80.0, 90.0, 100.0]}
    fill(plan, store, scores, tmp_path)
    row = numbers(overall.over_all(plan, store))["no anchor", None]
    assert row["mean"] == pytest.approx(10)
    assert (row["ahead"], row["undecided"], row["behind"]) == (2, 0, 0), "in every task"
    said = overall.markdown(plan, store)
    assert "| - no anchor | **10.0 [" in said
    assert "| - no penalty | – |" in said
    assert overall.extras(make_plan("aspac", only=("random", "no anchor")), store) == []


@pytest.mark.parametrize("name", ["table2", "pairs", "aspac"])
def test_tables_of_all_algorithms_fit_a_terminal(stored, name, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert reproduce(name, stored=True, results=stored.results) == 0
    said = capsys.readouterr().out.splitlines()
    assert max(map(len, said)) <= 80
    assert not any("…" in line for line in said)
    assert reproduce(name, stored=True, results=stored.results, json=True) == 0
    assert '"overall"' in capsys.readouterr().out


def test_one_seed_is_said_to_tell_nothing(tmp_path, capsys) -> None:
    store, plan = Store(tmp_path / "results"), make_plan("table2", only=ONLY)
    fill(plan, store, {"random/spacql": [60.0], "random/cfcql": [10.0]}, tmp_path)
    assert tables.ONE_SEED in tables.notes(plan, store)
    assert "**" not in tables.markdown(plan, store) + overall.markdown(plan, store)


def test_an_unknown_algorithm_to_compare_with_is_refused() -> None:
    with pytest.raises(InputError, match=r"no algorithm 'aspic'.*aspac"):
        make_plan("pairs", against="aspic")
