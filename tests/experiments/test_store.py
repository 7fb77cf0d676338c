"""The store of finished runs: what is kept, and by what a run is found."""

import json
from dataclasses import asdict, replace

import pytest
from experiments_toy import IDENTITY, run_folder

from spacql.errors import InputError
from spacql.experiments.plans import configured
from spacql.experiments.store import (
    Store,
    StoredRun,
    digest,
    mixed_data,
    run_folders,
    signature,
    summary,
    thinned,
)
from spacql.files import write_json


def config(**values):
    return asdict(configured("cfcql", "spread-random", {"rounds": 40, **values}))


def test_a_run_is_kept_in_a_small_file_and_read_again(tmp_path) -> None:
    store = Store(tmp_path / "results")
    assert store.add(run_folder(tmp_path / "seed-0")) == "added"
    [path] = (tmp_path / "results" / "runs" / "spread-random").iterdir()
    assert path.name == f"cfcql-{digest(config())}-seed-0.json"
    assert path.stat().st_size < 5000
    (path.parent / ".cfcql-being-written.json").write_text("")  # by another process
    [run] = Store(tmp_path / "results")
    assert (run.algorithm, run.dataset, run.seed, run.score) == ("cfcql", "spread-random", 0, 50)
    assert run.config == json.loads(json.dumps(config()))
    assert run.data == ("spread-random", 0, IDENTITY)
    assert run.seconds == 12.346, "five digits"
    assert run.record["evaluation"]["return"] == {"mean": 150.12, "std": 3.0}
    assert "returns" not in run.record["evaluation"]
    assert run.record["dataset"]["reference"]["expert"] == 300


def test_a_curve_holds_scores_and_the_means_of_metrics_since_the_point_before(tmp_path) -> None:
    curve = summary(run_folder(tmp_path / "run"))["curve"]
    assert [point["round"] for point in curve] == [10, 20, 30, 40]
    assert [point["score"] for point in curve] == [3.3333, 6.6667, 10.0, 13.333]
    assert [point["td_error"] for point in curve] == [5.5, 15.5, 25.5, 35.5]
    assert curve[1]["u"] == [15.5, 2.0]
    assert "actor_gradient" not in curve[0]


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    rows = [{"round": r, "score": float(r), "td_error": 1.0} for r in range(1, 92)]
    curve = thinned(rows)
    assert len(curve) == 20
    assert curve[-1]["round"] == 91
    assert all(point["td_error"] == 1 for point in curve)


def test_a_run_is_found_by_every_value_of_its_configuration(tmp_path) -> None:
    store = Store(tmp_path / "results")
    store.add(run_folder(tmp_path / "run", config=config(alpha=1.0)))
    assert store.find("cfcql", config(alpha=1), "spread-random", 0) is not None
    assert store.find("cfcql", config(alpha=1), "spread-random", 0, IDENTITY) is not None
    assert store.find("cfcql", config(alpha=1), "spread-random", 0, "other") is None
    assert store.find("cfcql", config(alpha=1.1), "spread-random", 0) is None
    assert store.find("cfcql", config(alpha=1), "spread-random", 1) is None
    assert store.find("cfcql", config(alpha=1), "spread-expert", 0) is None
    assert store.find("macql", config(alpha=1), "spread-random", 0) is None
    changed = config(alpha=1) | {"target_noise": 0.06}  # as if a default had changed since
    assert store.find("cfcql", changed, "spread-random", 0) is None
    assert store.find("cfcql", config(alpha=1) | {"new": 3}, "spread-random", 0) is None


def test_a_later_hyperparameter_matches_at_the_value_that_changes_nothing() -> None:
    now = asdict(configured("spacql", "spread-random", {}))
    before = {name: value for name, value in now.items() if name != "mixing"}
    assert signature(now) == signature(before)
    assert signature(now | {"mixing": "uniform"}) != signature(before)


def test_what_is_there_is_not_replaced_and_other_data_is_noticed(tmp_path) -> None:
    store = Store(tmp_path / "results")
    store.add(run_folder(tmp_path / "a"))
    assert store.add(run_folder(tmp_path / "b", score=99.0)) == "there"
    assert store.add(run_folder(tmp_path / "c", identity="ffff")) == "other data"
    assert [run.score for run in Store(tmp_path / "results")] == [50]


def test_unfinished_and_unscored_runs_are_not_taken(tmp_path) -> None:
    store = Store(tmp_path / "results")
    assert store.add(run_folder(tmp_path / "a", done=False)) == "unfinished"
    longer = run_folder(tmp_path / "b")
    described = json.loads((longer / "run.json").read_text())
    described["config"]["rounds"] = 80  # to be continued
    write_json(longer / "run.json", described)
    assert store.add(longer) == "unfinished"
    assert store.add(run_folder(tmp_path / "c", score=None)) == "no score"
    assert not (tmp_path / "results").exists()


def test_different_data_under_one_name_is_said(tmp_path) -> None:
    runs = [
        StoredRun(summary(run_folder(tmp_path / name, algorithm=name, seed=seed, identity=data)))
        for name, seed, data in (("cfcql", 0, "aaaaaaaaaa"), ("macql", 0, "bbbbbbbbbb"),
                                     ("cfcql", 1, "cccccccccc"))
    ]  # fmt: skip
    [sentence] = mixed_data(runs)
    assert "spread-random, seed 0" in sentence
    assert "aaaaaaaa cfcql" in sentence
    assert "bbbbbbbb macql" in sentence
    assert mixed_data(runs[1:]) == []


def test_a_sweep_is_kept_thin_and_its_trainings_are_no_results(tmp_path) -> None:
    run_folder(tmp_path / "tune" / "alpha-1" / "seed-100", seed=100)
    run_folder(tmp_path / "plain" / "seed-0")
    sweep = {"algorithm": "cfcql", "data": "spread-random", "config": {"penalty": "policy"},
             "alphas": [{"alpha": 1.0, "mean": 1.23456789}], "best": 1.0}  # fmt: skip
    write_json(tmp_path / "tune" / "tune.json", sweep)
    runs, sweeps = run_folders([tmp_path])
    assert runs == [tmp_path / "plain" / "seed-0"]
    assert sweeps == [tmp_path / "tune" / "tune.json"]
    tuning = tmp_path / "results" / "tuning"
    place = Store(tmp_path / "results").add_sweep(sweeps[0])
    assert place == tuning / "spread-random-cfcql-policy.json"
    write_json(sweeps[0], sweep | {"config": {"critics": 11}})
    other = Store(tmp_path / "results").add_sweep(sweeps[0])
    assert other == tuning / "spread-random-cfcql-11-critics.json"
    assert json.loads(place.read_text())["alphas"][0]["mean"] == 1.2346


def test_damaged_and_foreign_files_are_named(tmp_path) -> None:
    place = tmp_path / "runs" / "spread-random" / "cfcql-0-seed-0.json"
    write_json(place, {"format": 1, "algorithm": "cfcql"})
    with pytest.raises(InputError, match=r"cfcql-0-seed-0\.json is no stored run"):
        Store(tmp_path)
    place.write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        Store(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        Store(place)
    with pytest.raises(InputError, match="no folder"):
        run_folders([tmp_path / "nowhere"])


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(InputError, match="Cannot write"):
        Store(tmp_path).add(run_folder(tmp_path / "run"))


def test_configurations_are_equal_however_numbers_are_written() -> None:
    one = configured("cfcql", "spread-random", {})
    same = replace(one, alpha=int(one.alpha) if one.alpha == int(one.alpha) else one.alpha)
    assert signature(asdict(one)) == signature(json.loads(json.dumps(asdict(same))))
