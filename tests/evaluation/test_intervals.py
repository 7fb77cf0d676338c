import pytest

from spacql.evaluation.intervals import written


@pytest.mark.parametrize(
    ("low", "high", "values", "said"),
    [
        (299.5, 300.5, (299.5, 300.0, 300.5), ["299.50", "300.00", "300.50"]),
        (-5.0, -1.665e-07, (-2.5, -5.0, -1.665e-07), ["-2.50", "-5.00", "0.00"]),
        (-2097.0, -13.77, (-13.77, -2097.0), ["-14", "-2,097"]),
        (0.0101, 0.0129, (0.0101, 0.0129), ["0.01010", "0.01290"]),
        (240.0, 240.0 + 1e-9, (240.0,), ["240.0"]),
        (0.0, 0.0, (0.0,), ["0"]),
        (1.0e9, 1.2e9, (1.0e9, 1.1e9, 1.0), ["1.000e+09", "1.100e+09", "0"]),
        (-1e308, 1e308, (1e308,), ["1.000e+308"]),
        (1.0e-9, 3.0e-9, (1.0e-9, 0.0), ["1.00e-09", "0"]),
    ],
)
def test_an_interval_can_be_seen_in_its_digits_and_what_is_nothing_beside_it_is_0(
    low, high, values, said
):
    text = written(low, high)
    assert [text(value) for value in values] == said
