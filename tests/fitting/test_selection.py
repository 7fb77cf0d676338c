import math

import pytest

from spacql.errors import InputError
from spacql.evaluation.intervals import Interval
from spacql.evaluation.offline import ESTIMATORS
from spacql.files import write_json
from spacql.fitting.pools import POOL, complete
from spacql.fitting.selection import (
    DATASETS,
    NAMES,
    Entry,
    markdown,
    statistics,
    stored,
    summary,
)

NAN = float("nan")


def entry(score, estimate, low=NAN, high=NAN, own=NAN):
    estimates = {
        "model": Interval(estimate, low, high),
        "critic's own value": Interval(own, NAN, NAN),
    }
    return Entry(f"of {score}", score, estimates)


def test_a_perfect_estimator_has_correlation_one_and_no_regret():
    pool = [entry(s, s, s - 5, s + 5) for s in (10.0, 50.0, 30.0)]
    found = statistics(pool)["model"]
    assert found["rank_correlation"] == pytest.approx(1)
    assert found["regret"] == 0
    assert found["coverage"] == 1


def test_the_choice_is_by_the_bound_and_costs_what_the_best_is_ahead():
    pool = [entry(80, 90, -300, 95), entry(60, 70, 65, 75), entry(0, 20, 15, 25)]
    found = statistics(pool)["model"]
    assert found["regret"] == 20
    assert found["coverage"] == pytest.approx(1 / 3)


def test_a_pool_keeps_the_bound_that_a_choice_was_by():
    pool = [entry(80, 20, -260, 20), entry(60, 18, 15, 21), entry(0, 2, 1, 3)]
    estimates = pool[0].estimates
    estimates["model"] = estimates["model"]._replace(bound=20.0)  # what is possible cut it off
    assert statistics(pool)["model"]["regret"] == 0


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
    good = [
        Entry(label, score, {"model": Interval(score, score - 5, score + 5)})
        for label, score in (("bc", 50), ("x", 80), ("y", 10))
    ]
    bad = [Entry(e.label, e.score, {"model": Interval(*[-e.score] * 3)}) for e in good]
    found = summary({"a": statistics(good), "b": statistics(bad)})["model"]
    assert (found["close"], found["datasets"]) == (1, 2)
    assert found["below_cloning"] == 40
    assert found["regret"] == 35


def record(scores):
    """What a measured pool has on disk: every estimator is right to the point."""
    interval = {"mean": 0.0, "low": 0.0, "high": 0.0}
    return {
        "format": 1,
        "reference": {"random": 0.0, "expert": 200.0},
        "policies": {
            label: {
                "score": score,
                "distance": {"a": 1.0, "b": 3.0},
                "outside": {"a": 0.0, "b": 0.0},
                "training": {"td_error": 2.0},
                "estimates": {
                    name: interval | {"mean": 2 * score, "low": 2 * score - 4, "high": 2 * score}
                    for name in ESTIMATORS
                },
            }
            for label, score in scores.items()
        },
    }


def test_a_stored_pool_is_read_as_scores_and_is_complete_when_every_policy_is_there(tmp_path):
    path = tmp_path / "selection" / "tag-expert-0.json"
    labels = [pooled.label for pooled in POOL]
    write_json(path, record({label: float(k) for k, label in enumerate(labels[1:])}))
    assert not complete(path)
    write_json(path, record({label: float(k) for k, label in enumerate(labels)}))
    assert complete(path)
    pools = stored(tmp_path)
    assert list(pools) == ["tag-expert"]
    assert stored(tmp_path, ["spread"]) == {}
    entry = pools["tag-expert"][3]
    assert entry.estimates["fqe"][:3] == pytest.approx((3.0, 1.0, 3.0))
    assert entry.estimates["TD error"][0] == -2
    assert entry.estimates["distance to the data"][0] == -2
    found = statistics(pools["tag-expert"])["fqe"]
    assert found["regret"] == 0
    assert found["above_cloning"] == len(POOL) - 1


def test_the_command_prints_what_is_stored_and_says_what_is_missing(tmp_path, capsys):
    from spacql.cli import main

    def run(*more):
        with pytest.raises(SystemExit) as end:
            main(["reproduce", "selection", "--stored", "--results", str(tmp_path), *more])
        return end.value.code

    assert run() == 2
    assert "Leave out --stored" in capsys.readouterr().err
    pool = record({pooled.label: float(k) for k, pooled in enumerate(POOL)})
    write_json(tmp_path / "selection" / "tag-expert-0.json", pool)
    assert run("--only", "tag") == 0
    assert "| tag-expert | 12 |" in capsys.readouterr().out
    assert run("--only", "chess") == 2
    assert "no such dataset" in capsys.readouterr().err


@pytest.mark.parametrize("bad", [{}, {"format": 1, "reference": 3, "policies": {}}])
def test_a_file_that_is_no_pool_is_a_sentence(bad, tmp_path):
    write_json(tmp_path / "selection" / "spread-random-0.json", bad)
    with pytest.raises(InputError, match=r"spread-random-0\.json"):
        stored(tmp_path)
