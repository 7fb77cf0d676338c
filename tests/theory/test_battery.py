from dataclasses import replace as with_fields

import numpy as np
import pytest

from spacql.errors import InputError
from spacql.theory import battery, shift, updates, values
from spacql.theory.check import Check
from spacql.theory.generators import random_instance
from spacql.theory.named import NAMED

BY_NAME = {s.name: s for s in battery.STATEMENTS}


def test_battery_finds_no_violation_and_every_counterexample_stands():
    rows = battery.run(150, seed=1)
    assert [row.name for row in rows if not row.ok] == []
    assert {row.tried for row in rows if row.should_hold} == {150 + len(NAMED)}


@pytest.fixture(scope="module")
def drawn():
    """The instances of `only`: drawing them takes longer than any statement about them."""
    return list(battery.draw(300, 0))


@pytest.fixture
def only(drawn, monkeypatch):
    def run(statement):
        with monkeypatch.context() as patch:
            patch.setattr(battery, "draw", lambda instances, seed: drawn)
            return battery.run(300, seed=0, statements=[statement], readings=[])[0]

    return run


# How much smaller the right side may be made before the battery notices.
@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("shift of k agents, linear bound", 0.99),
        ("shift of k agents, joint TV", 0.99),
        ("shift of k agents, sharp bound", 0.999),
        ("shift over states and actions", 0.99),
        ("kappa below one", 0.8),
        ("shift with correlations", 0.99),
        ("shift with correlations, as logged", 0.99),
        ("broken correlation at most 2 kappa", 0.95),
        ("shift of the mixture, sup k_eff", 0.99),
        ("shift of the mixture, mean k_eff", 0.99),
        ("value error without its last term", 0.99),
        ("Lipschitz constant of Q*", 0.99),
        ("Lipschitz constant, mixing", 0.99),
        ("T_i contracts", 0.99),
        ("T^(k) contracts", 0.99),
        ("T^SP contracts, fixed weights", 0.99),
        ("T^SP with min_j contracts likewise", 0.99),
    ],
)
def test_a_wrong_constant_is_caught(only, name, factor):
    right_one = BY_NAME[name]

    def wrong(x):
        check = right_one.check(x)
        return Check(check.left, factor * check.right)

    row = only(with_fields(right_one, check=wrong))
    assert row.violations > 0
    assert not row.ok
    assert not wrong(random_instance(np.random.default_rng([0, row.first_violation]))).holds


def test_a_forgotten_horizon_is_caught(only, monkeypatch):
    monkeypatch.setattr(shift, "horizon", lambda mdp: mdp.gamma)
    assert not only(BY_NAME["shift of k agents, linear bound"]).ok
    assert not only(BY_NAME["shift with correlations"]).ok
    assert not only(BY_NAME["shift of the mixture, mean k_eff"]).ok


def test_a_forgotten_kappa_is_caught(only, monkeypatch):
    monkeypatch.setattr(shift, "excess_correlation", lambda mu, actions: 0.0)
    assert not only(BY_NAME["shift with correlations"]).ok


def test_a_sum_over_agents_in_place_of_the_average_is_caught(only, monkeypatch):
    def wrong(Q, T, weight):
        return complex(0.5 * (weight * (Q - T.sum(0)) ** 2).sum())

    monkeypatch.setattr(updates, "centralised_loss", wrong)
    assert not only(BY_NAME["gradient of ICQL-QS"]).ok
    assert not only(BY_NAME["gradient of ICQL-QS on a batch"]).ok


def test_a_wrong_cost_of_shift_is_caught_where_the_error_is_measured_on_the_data(only, monkeypatch):
    monkeypatch.setattr(values, "repaired_cost", lambda gamma: 1.0 / (1.0 - gamma) ** 2)
    assert not only(BY_NAME["value error from error on the data"]).ok
    assert not only(BY_NAME["value error of the mixture, data"]).ok


@pytest.mark.parametrize(
    "name", ["value error", "value error with correlations", "value error of SPaCQL"]
)
def test_no_constant_can_be_wrong_in_the_papers_value_theorems_not_even_zero(
    only, monkeypatch, name
):
    monkeypatch.setattr(values, "shift_cost", lambda gamma: 0.0)
    assert only(BY_NAME[name]).ok


def test_a_counterexample_that_does_not_stand_is_reported():
    tame = with_fields(battery.READINGS[0], witness=lambda: Check(0.5, 1.0))
    (row,) = battery.run(1, statements=[], readings=[tame])
    assert not row.ok


def test_the_same_seed_gives_the_same_rows():
    first, second = (battery.run(5, seed=7) for _ in range(2))
    assert first == second
    assert first != battery.run(5, seed=8)


def test_progress_advances_once_per_instance():
    calls = []
    battery.run(3, statements=[], readings=[], advance=lambda: calls.append(1))
    assert len(calls) == battery.total(3)


@pytest.mark.parametrize(("instances", "seed"), [(0, 0), (-1, 0), (1, -1)])
def test_impossible_numbers_are_refused_with_a_reason(instances, seed):
    with pytest.raises(InputError, match=r"not -?[01]"):
        battery.run(instances, seed)


def test_a_bound_is_vacuous_from_its_trivial_bound_on():
    assert Check(0.2, 1.0, trivial=1.0).vacuous
    assert not Check(0.2, 0.9, trivial=1.0).vacuous
    assert Check(0.2, 0.9).slack == pytest.approx(0.7)
    assert not Check(0.2, 0.1).holds
