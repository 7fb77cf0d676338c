import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacql.errors import InputError
from spacql.evaluation import bootstrap_interval, interquartile_mean, summarise

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(values)
def test_the_interquartile_mean_lies_among_the_values(row):
    assert min(row) - 1e-6 <= interquartile_mean(row) <= max(row) + 1e-6


@given(st.integers(1, 8), st.randoms())
def test_the_interquartile_mean_ignores_order_and_the_outer_quarters(quarter, random):
    row = np.sort(np.random.default_rng(quarter).normal(size=4 * quarter))
    wild = row.copy()
    wild[:quarter] -= 1e6
    wild[-quarter:] += 1e6
    shuffled = wild.tolist()
    random.shuffle(shuffled)
    assert interquartile_mean(shuffled) == pytest.approx(row[quarter:-quarter].mean())


def test_values_on_the_edge_of_the_middle_half_count_in_part():
    # The middle half of five values: three quarters of the 2nd and 4th, all of the 3rd.
    assert interquartile_mean([0, 1, 2, 4, 100]) == pytest.approx((0.75 + 2 + 3) / 2.5)


def test_the_bootstrap_interval_is_near_the_known_one_and_repeats_with_its_seed():
    row = np.random.default_rng(0).normal(10, 2, size=400)
    low, high = bootstrap_interval(row, seed=1)
    half = 1.96 * row.std() / 20
    assert low == pytest.approx(row.mean() - half, abs=0.03)
    assert high == pytest.approx(row.mean() + half, abs=0.03)
    assert (low, high) == bootstrap_interval(row, seed=1) != bootstrap_interval(row, seed=2)


def test_the_bootstrap_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 50))
    intervals = [bootstrap_interval(row, resamples=300, confidence=0.8) for row in rows]
    covered = np.mean([low <= 0 <= high for low, high in intervals])
    assert 0.7 < covered < 0.9


def test_one_value_has_no_interval_and_equal_values_have_a_point():
    assert summarise([3.0]).interval is None
    assert summarise([3.0, 3.0, 3.0]).interval == (3.0, 3.0)


@pytest.mark.parametrize("row", [[], [[1.0]], [1.0, float("nan")]])
def test_rows_without_statistics_are_refused(row):
    with pytest.raises(InputError):
        summarise(row)
