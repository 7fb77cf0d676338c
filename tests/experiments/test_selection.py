import math

import pytest

from spacql.errors import InputError
from spacql.experiments.pools import POOL
from spacql.experiments.selection import DATASETS, NAMES, Entry, markdown, statistics, summary

NAN = float("nan")


def entry(score, estimate, low=NAN, high=NAN, own=NAN):
    estimates = {"model": (estimate, low, high), "critic's own value": (own, NAN, NAN)}
    return Entry("x", score, estimates)


def test_a_perfect_estimator_has_correlation_one_and_no_regret():
    pool = [entry(s, s, s - 5, s + 5) for s in (10.0, 50.0, 30.0)]
    found = statistics(pool)["model"]
    assert found["rank_correlation"] == pytest.approx(1)
    assert found["regret"] == 0
    assert found["coverage"] == 1


def test_the_choice_is_by_the_lower_bound_and_costs_what_the_best_is_ahead():
    pool = [entry(80, 90, 10, 95), entry(60, 70, 65, 75), entry(0, 20, 15, 25)]
    found = statistics(pool)["model"]
    assert found["regret"] == 20
    assert found["coverage"] == pytest.approx(1 / 3)


def test_policies_without_a_value_are_left_out_of_that_estimator_alone():
    pool = [entry(1, 1, own=3), entry(2, 2, own=2), entry(3, 3, own=1), entry(4, 4)]
    found = statistics(pool)
    assert found["critic's own value"]["policies"] == 3
    assert found["critic's own value"]["rank_correlation"] == pytest.approx(-1)
    assert found["critic's own value"]["regret"] == 3
    assert math.isnan(found["critic's own value"]["coverage"])
    assert found["model"]["policies"] == 4


def test_a_pool_of_two_has_no_ranking():
    with pytest.raises(InputError, match="no ranking"):
        statistics([entry(1, 1), entry(2, 2)])


def test_the_table_has_a_row_per_dataset_and_a_column_per_estimator():
    pool = [entry(s, s, s - 5, s + 5) for s in (10.0, 50.0, 30.0)]
    lines = markdown({"spread-random": statistics(pool)}).splitlines()
    assert lines[0].count("|") == len(NAMES) + 3
    assert "1.00 / 0.0 / 100 %" in lines[2]


def test_every_pool_has_at_least_twelve_policies_and_there_are_sixteen():
    labels = [pooled.label for pooled in POOL]
    assert len(set(labels)) == len(labels) >= 12
    assert "bc" in labels
    assert len(DATASETS) == 16


def test_the_summary_counts_choices_that_are_close_and_names_the_worst_beside_cloning():
    good = [Entry("bc", 50, {"model": (50, 45, 55)}), Entry("x", 80, {"model": (80, 75, 85)}),
            Entry("y", 10, {"model": (10, 5, 15)})]  # fmt: skip
    bad = [Entry(e.label, e.score, {"model": (-e.score, -e.score, -e.score)}) for e in good]
    found = summary({"a": statistics(good), "b": statistics(bad)})["model"]
    assert (found["close"], found["datasets"]) == (1, 2)
    assert found["below_cloning"] == 40
    assert found["regret"] == 35
