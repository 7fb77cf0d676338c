"""Comparisons in pairs, against numbers worked out by hand."""

import pytest

from spacql.experiments.pairs import (
    differences,
    highest,
    improvement,
    may_be_best,
    mean_over,
)

T2, T4 = 4.302653, 2.776445  # Student's t at 97.5 % with two and four degrees of freedom


def seeds(*values):
    return dict(enumerate(values))


def test_a_difference_on_one_dataset_is_a_paired_t_interval() -> None:
    gaps = differences({"tag-random": seeds(50, 80, 20)}, {"tag-random": seeds(48, 77, 16, 99)})
    assert gaps == {"tag-random": {0: 2, 1: 3, 2: 4}}, "the fourth seed has no partner"
    found = mean_over(gaps)
    assert (found.datasets, found.seeds, found.mean) == (1, 3, 3)
    assert found.low == pytest.approx(3 - T2 / 3**0.5, abs=1e-5)
    assert found.high == pytest.approx(3 + T2 / 3**0.5, abs=1e-5)
    assert found.significant


def test_datasets_of_a_task_are_averaged_within_a_seed_first() -> None:
    """What one dataset gains in a seed the other loses: the mean of both is the same each time."""
    found = mean_over({"tag-random": seeds(10, 20, 30), "tag-expert": seeds(32, 20, 11)})
    within = (21, 20, 20.5)
    spread = sum((x - 20.5) ** 2 for x in within) / 2
    assert found.mean == pytest.approx(20.5)
    assert found.high - found.mean == pytest.approx(T2 * (spread / 3) ** 0.5, abs=1e-5)


def test_variances_of_tasks_add_up_with_satterthwaites_degrees_of_freedom() -> None:
    """Two tasks, one dataset each, with the same spread: twice as many degrees of freedom."""
    found = mean_over({"tag-random": seeds(1, 2, 3), "world-random": seeds(11, 12, 13)})
    assert found.mean == pytest.approx(7)
    assert found.high - found.mean == pytest.approx(T4 * (2 * 0.25 * 1 / 3) ** 0.5, abs=1e-5)
    # A task with three of four datasets weighs three quarters.
    three = {f"tag-{q}": seeds(1, 2, 3) for q in ("random", "medium", "expert")}
    assert mean_over(three | {"world-random": seeds(11, 12, 13)}).mean == pytest.approx(4.5)


def test_seeds_that_a_dataset_of_the_task_lacks_do_not_count() -> None:
    found = mean_over({"tag-random": seeds(1, 2, 300), "tag-expert": seeds(1, 4)})
    assert (found.seeds, found.mean) == (2, 2)
    apart = mean_over({"tag-random": {0: 1.0}, "tag-expert": {1: 3.0}})
    assert (apart.mean, apart.low) == (2, None)


def test_one_seed_and_no_spread_tell_nothing() -> None:
    one = mean_over({"tag-random": {0: 50.0}})
    assert (one.mean, one.low, one.significant) == (50, None, False)
    assert not mean_over({"tag-random": seeds(2, 2, 2)}).significant
    assert mean_over({"tag-random": {}}) is None
    assert mean_over({}) is None


def test_the_likelihood_of_being_higher_counts_pairs_and_ties_half() -> None:
    found = improvement({"tag-random": seeds(1, -2, 0), "world-random": seeds(5)})
    assert (found.pairs, found.share) == (4, 2.5 / 4)
    five = improvement({"tag-random": seeds(1, 1, 1, 1, 1)})
    z2 = 1.959964**2
    assert five.high == 1
    assert five.low == pytest.approx(5 / (5 + z2), abs=1e-5), "Wilson's: 0.57"
    assert improvement({}) is None


def test_the_best_and_only_what_cannot_be_told_from_it_is_marked() -> None:
    """The intervals of the first two overlap by far, and yet they differ by two in every seed."""
    best = seeds(60, 80, 100)
    behind = seeds(58, 78.1, 97.9)
    unclear = seeds(90, 50, 95)
    column = [best, behind, unclear, {}, seeds(99), seeds(90, 99)]
    assert may_be_best(column) == [True, False, True, False, False, False]
    assert may_be_best([{}, best]) == [False, False], "best of nothing"
    assert may_be_best([seeds(1), seeds(2)]) == [False, False], "one seed tells nothing"


def test_the_best_is_marked_beside_one_that_shares_no_seed_with_it() -> None:
    others = {5: 1.0, 6: 2.0, 7: 3.0}
    assert may_be_best([seeds(60, 80, 100), others]) == [True, True]


def test_the_highest_is_judged_on_the_seeds_that_all_have() -> None:
    more = seeds(10, 11, 10.5, 90, 95)
    fewer = seeds(20, 21.2, 20.4)
    assert highest([more, fewer]) == 1
    assert may_be_best([more, fewer]) == [False, True]
    assert highest([more, {5: 1.0, 6: 2.0, 7: 3.0}]) == 0, "none shared: by their own"
    assert highest([more, seeds(99)]) is None


def test_what_another_is_significantly_better_than_is_not_the_best() -> None:
    """The highest has too wide a spread to be told from the last; the one between has not."""
    wide, between, last = seeds(20, 60, 110), seeds(59, 60, 61), seeds(10, 11.5, 11)
    assert highest([wide, between, last]) == 0
    assert may_be_best([wide, between, last]) == [True, True, False]


def test_equal_differences_have_no_interval_whatever_rounding_makes_of_them() -> None:
    for gap in (2.0, 0.1):
        gaps = differences({"a": seeds(10 + gap, 20 + gap, 31 + gap)}, {"a": seeds(10, 20, 31)})
        assert mean_over(gaps).low is None
