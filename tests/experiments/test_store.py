"""The store of finished runs: what is kept, and by what a run is found."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from experiments_toy import IDENTITY, run_folder

from spacql.algorithms.settings import REMOVED, config_from, configure
from spacql.errors import InputError
from spacql.experiments.store import (
    Store,
    StoredRun,
    another_version,
    digest,
    ended,
    key,
    mixed_data,
    other_seed,
    own_log,
    run_folders,
    signature,
    summary,
    thinned,
)
from spacql.files import write_json

RESULTS = Path(__file__).parents[2] / "results"


def config(**values):
    return asdict(configure("cfcql", "spread-random", {"rounds": 40, **values}))


def test_a_run_is_kept_in_a_small_file_and_read_again(tmp_path) -> None:
    store = Store(tmp_path / "results")
    assert store.add(summary(run_folder(tmp_path / "seed-0"))) == "added"
    [path] = (tmp_path / "results" / "runs" / "spread-random").iterdir()
    assert path.name == f"cfcql-{digest(config())}-seed-0.json"
    assert path.stat().st_size < 5000
    (path.parent / ".cfcql-being-written.json").write_text("")  # by another process
    [run] = Store(tmp_path / "results")
    assert (run.algorithm, run.dataset, run.seed, run.score) == ("cfcql", "spread-random", 0, 50)
    assert run.config == json.loads(json.dumps(config()))
    assert (run.dataset, run.dataset_seed, run.identity) == ("spread-random", 0, IDENTITY)
    assert run.seconds == 12.346, "five digits"
    assert run.record["evaluation"]["return"] == {"mean": 150.12, "std": 3.0}
    assert "returns" not in run.record["evaluation"]
    assert run.record["dataset"]["reference"]["expert"] > 500


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


def test_a_metric_of_another_shape_under_a_known_name_is_left_out(tmp_path) -> None:
    folder = run_folder(tmp_path / "run")
    row = {"round": 10, "score": 1.0, "penalty": [1.0, 2.0], "u": 3.0, "td_error": 4.0}
    (folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    record = summary(folder)
    assert record["curve"] == [{"round": 10, "score": 1.0, "td_error": 4.0}]
    assert Store(tmp_path / "results").add(record) == "added"
    assert len(Store(tmp_path / "results")) == 1


def test_a_record_that_could_not_be_read_again_is_not_written(tmp_path) -> None:
    store, record = Store(tmp_path / "results"), summary(run_folder(tmp_path / "run"))
    for wrong, said in (
        ({"penalty": [1.0]}, r"curve\[.*\]\.penalty"),
        ({"k_eff": float("nan")}, "JSON"),
    ):
        with pytest.raises(InputError, match=said):
            store.add(record | {"curve": [{"round": 1, "score": 1.0} | wrong]})
    assert not (tmp_path / "results").exists()


def test_a_run_is_found_by_every_value_of_its_configuration(tmp_path) -> None:
    store = Store(tmp_path / "results")
    store.add(summary(run_folder(tmp_path / "run", config=config(alpha=1.0))))

    def found(algorithm="cfcql", dataset="spread-random", seed=0, **values):
        return key(algorithm, config(alpha=1) | values, dataset, seed) in store.runs

    assert found()
    assert not found(alpha=1.1)
    assert not found(seed=1)
    assert not found(dataset="spread-expert")
    assert not found("macql")
    assert not found(target_noise=0.06), "as if a default had changed since"
    assert not found(new=3)


def test_a_later_hyperparameter_matches_at_the_value_that_changes_nothing() -> None:
    now = asdict(configure("spacql", "spread-random", {}))
    before = {name: value for name, value in now.items() if name != "mixing"}
    assert signature(now) == signature(before)
    assert signature(now | {"mixing": "uniform"}) != signature(before)


def test_a_removed_hyperparameter_matches_at_the_value_that_all_runs_had() -> None:
    now = config()
    for gone in REMOVED:
        now.pop(gone, None)
    before = now | REMOVED
    assert signature(now) == signature(before)
    assert signature(before | {"tau": 2.0}) != signature(now)
    assert asdict(config_from("cfcql", before)).items() >= now.items()
    with pytest.raises(InputError, match="no hyperparameter 'tau'"):
        config_from("bc", {"rounds": 3, "tau": 2.0})


def test_a_run_from_before_a_hyperparameter_was_removed_is_found() -> None:
    values = asdict(configure("cfcql", "spread-random"))
    now = key("cfcql", values, "spread-random", 0)
    assert key("cfcql", values | REMOVED, "spread-random", 0) == now
    assert key("cfcql", values | {"tau": 2.0}, "spread-random", 0) != now


def test_a_name_from_a_file_is_no_path(tmp_path) -> None:
    store = Store(tmp_path / "results")
    assert store.add(summary(run_folder(tmp_path / "run", dataset="../../up"))) == "added"
    [path] = (tmp_path / "results").rglob("*.json")
    assert path.parent.name.startswith("-..-up-")
    assert path.parent.parent == tmp_path / "results" / "runs"


def test_what_is_there_is_not_replaced_and_other_data_is_noticed(tmp_path) -> None:
    store = Store(tmp_path / "results")
    store.add(summary(run_folder(tmp_path / "a")))
    assert store.add(summary(run_folder(tmp_path / "b", score=99.0))) == "there"
    assert store.add(summary(run_folder(tmp_path / "c", identity="ffff"))) == "other data"
    assert [run.score for run in Store(tmp_path / "results")] == [50]


def test_runs_that_would_be_compared_have_seen_the_same_data(tmp_path) -> None:
    """Another machine may make other data with the same command."""
    store = Store(tmp_path / "results")
    assert store.identity_of("spread-random", 1) == ""
    assert store.add(summary(run_folder(tmp_path / "a", seed=1, identity="aaaa"))) == "added"
    assert store.identity_of("spread-random", 1) == store.identity_of("spread-random", 6) == "aaaa"
    other = run_folder(tmp_path / "b", seed=1, algorithm="macql", identity="bbbb")
    assert store.add(summary(other)) == "other data"
    another_seed = run_folder(tmp_path / "c", seed=2, algorithm="macql", identity="cccc")
    assert store.add(summary(another_seed)) == "added"
    for name in ("cfcql", "macql"):  # of an own log there is nothing to know
        own = run_folder(tmp_path / name, algorithm=name, dataset="my-log", identity=name)
        assert store.add(summary(own)) == "added"


def test_unfinished_and_unscored_runs_are_not_taken(tmp_path) -> None:
    store = Store(tmp_path / "results")
    with pytest.raises(InputError, match="not finished"):
        summary(run_folder(tmp_path / "a", done=False))
    longer = run_folder(tmp_path / "b")
    assert ended(longer)
    described = json.loads((longer / "run.json").read_text())
    described["config"]["rounds"] = 80  # to be continued
    write_json(longer / "run.json", described)
    assert not ended(longer)
    assert store.add(summary(run_folder(tmp_path / "c", score=None))) == "no score"
    assert not (tmp_path / "results").exists()


def test_different_data_under_one_name_is_said(tmp_path) -> None:
    folders = [
        run_folder(tmp_path / f"{name}-{seed}", algorithm=name, seed=seed, identity=data)
        for name, seed, data in (("cfcql", 0, "aaaaaaaaaa"), ("macql", 0, "bbbbbbbbbb"),
                                     ("cfcql", 1, "cccccccccc"))
    ]  # fmt: skip
    runs = [StoredRun.from_json(summary(folder)) for folder in folders]
    [sentence] = mixed_data(runs)
    assert "spread-random, seed 0" in sentence
    assert "aaaaaaaa cfcql" in sentence
    assert "bbbbbbbb macql" in sentence
    assert mixed_data(runs[1:]) == []


def saw(record: dict, **data) -> dict:
    return record | {"dataset": record["dataset"] | data}


def test_a_benchmark_s_name_is_for_runs_on_the_dataset_of_their_seed(tmp_path) -> None:
    store = Store(tmp_path / "results")
    third = summary(run_folder(tmp_path / "a", seed=3))
    for seed in (0, None):
        assert store.add(saw(third, seed=seed)) == "other data"
    assert len(store) == 0
    sixth = summary(run_folder(tmp_path / "b", seed=5))
    assert store.add(saw(sixth, seed=0)) == "added"
    own = summary(run_folder(tmp_path / "c", seed=3, dataset="my-log"))
    assert store.add(saw(own, seed=None)) == "added", "one log for all seeds"


def test_runs_on_one_dataset_for_all_seeds_are_said_to_have_seen_other_data(tmp_path) -> None:
    right = summary(run_folder(tmp_path / "a", seed=1, identity="1111111111"))
    wrong = saw(summary(run_folder(tmp_path / "b", seed=1, algorithm="macql")), seed=0)
    [sentence] = mixed_data(map(StoredRun.from_json, (right, wrong)))
    assert "spread-random, seed 1" in sentence
    own = [saw(r, name="my-log", seed=None) | {"seed": k} for k, r in enumerate((right, wrong))]
    assert len(mixed_data(map(StoredRun.from_json, own))) == 1, "replaced between two seeds"


def test_every_stored_run_saw_the_whole_dataset_of_its_seed() -> None:
    runs = list(Store(RESULTS))
    assert runs
    assert not [run.name for run in runs if other_seed(run) or another_version(run)]
    short = StoredRun.from_json(saw(dict(runs[0].record), transitions=50_000))
    assert "has more transitions than the 50,000 that this run saw" in another_version(short)


def test_a_run_with_another_prey_is_said_to_have_seen_another_version() -> None:
    run = next(run for run in Store(RESULTS) if run.dataset == "tag-random")
    assert another_version(run) == ""
    for reference in (None, run.record["dataset"]["reference"] | {"expert": 100.0}):
        other = StoredRun.from_json(saw(dict(run.record), reference=reference))
        assert "made with another prey" in another_version(other)


def test_a_score_of_few_episodes_answers_for_no_other() -> None:
    run = next(run for run in Store(RESULTS) if run.dataset == "spread-random")
    record = {**run.record, "evaluation": {**run.record["evaluation"], "episodes": 1}}
    assert "scored in 1 episodes" in another_version(StoredRun.from_json(record))


def test_datasets_whose_names_make_one_path_have_files_of_their_own(tmp_path) -> None:
    store = Store(tmp_path / "results")
    for name in ("my log", "my-log"):
        store.add(summary(run_folder(tmp_path / name, dataset=name)))
    assert len(Store(tmp_path / "results")) == len(store) == 2


def test_a_sweep_on_a_folder_with_a_benchmarks_name_is_not_the_benchmarks() -> None:
    assert own_log({"data": "spread-random", "folder": True})
    assert not own_log({"data": "spread-random", "folder": False})
    assert not own_log({"data": "my-log", "folder": True})


def test_a_sweep_with_a_training_that_crashed_is_not_taken(tmp_path) -> None:
    entry = {"value": 1.0, "mean": 2.0, "scores": [2.0], "failed": [101]}
    sweep = {"algorithm": "cfcql", "data": "spread-random", "rounds": 10, "seeds": [100, 101],
             "config": {"rounds": 10}, "hyperparameter": "alpha", "values": [entry]}  # fmt: skip
    store, path = Store(tmp_path / "results"), tmp_path / "tune.json"
    write_json(path, sweep | {"values": [entry | {"crashed": [101]}]})
    assert store.add_sweep(path) is None
    assert not (tmp_path / "results").exists()
    write_json(path, sweep)  # it diverged, which is a result
    assert store.add_sweep(path).is_file()
    write_json(path, sweep | {"values": [entry | {"failed": 101}]})
    with pytest.raises(InputError, match=r"field values\[.*\]\.failed"):
        store.add_sweep(path)


def test_a_sweep_is_kept_thin_and_its_trainings_are_no_results(tmp_path) -> None:
    run_folder(tmp_path / "tune" / "alpha-1" / "seed-100", seed=100)
    run_folder(tmp_path / "plain" / "seed-0")
    sweep = {"algorithm": "cfcql", "data": "spread-random", "rounds": 10, "seeds": [100],
             "config": {"penalty": "policy", "rounds": 10}, "best": 1.0,
             "hyperparameter": "alpha",
             "values": [{"value": 1.0, "mean": 1.23456789, "scores": [1.23456789]}]}  # fmt: skip
    write_json(tmp_path / "tune" / "tune.json", sweep)
    runs, sweeps = run_folders([tmp_path])
    assert runs == [tmp_path / "plain" / "seed-0"]
    assert sweeps == [tmp_path / "tune" / "tune.json"]
    tuning = tmp_path / "results" / "tuning"
    place = Store(tmp_path / "results").add_sweep(sweeps[0])
    assert place == tuning / "spread-random-cfcql-policy.json"
    write_json(sweeps[0], sweep | {"config": {"critics": 11, "rounds": 10}})
    other = Store(tmp_path / "results").add_sweep(sweeps[0])
    assert other == tuning / "spread-random-cfcql-11-critics.json"
    assert json.loads(place.read_text())["values"][0]["mean"] == 1.2346


def test_parts_of_a_sweep_are_joined_if_they_have_every_seed_of_every_value(tmp_path) -> None:
    store, path = Store(tmp_path / "results"), tmp_path / "tune.json"

    def added(seeds: list[int], scores: dict[float, list[float | None]], **changed) -> dict:
        values = [
            {
                "value": value,
                "scores": [score for score in row if score is not None],
                "mean": 0.0,
                "failed": [s for s, score in zip(seeds, row, strict=True) if score is None],
            }
            for value, row in scores.items()
        ]
        config = {"rounds": 10, "alpha": float(len(seeds))}  # which the sweep varies
        write_json(path, {"algorithm": "cfcql", "data": "spread-random", "rounds": 5,
                          "seeds": seeds, "config": config, "hyperparameter": "alpha",
                          "values": values} | changed)  # fmt: skip
        return json.loads(store.add_sweep(path).read_text())

    def table(sweep: dict) -> dict:
        return {entry["value"]: entry["scores"] for entry in sweep["values"]}

    added([101], {0.1: [1.0], 0.5: [2.0]})
    both = added([100, 102], {0.1: [30.0, 4.0], 0.5: [None, 5.0]})
    assert both["seeds"] == [100, 101, 102]
    assert table(both) == {0.1: [30.0, 1.0, 4.0], 0.5: [2.0, 5.0]}
    assert [entry["failed"] for entry in both["values"]] == [[], [100]]
    assert both["values"][0]["mean"] == pytest.approx(35 / 3, abs=1e-3)
    assert both["best"] == 0.1
    wider = added([100, 101, 102], {2.5: [7.0, 8.0, 9.0]})
    assert table(wider) == {0.1: [30.0, 1.0, 4.0], 0.5: [2.0, 5.0], 2.5: [7.0, 8.0, 9.0]}
    assert table(added([101], {0.1: [6.0]}))[0.1] == [30.0, 6.0, 4.0]
    kept = added([101, 103], {5.0: [1.0, 1.0], 0.1: [3.0, 1.0]})
    assert kept["seeds"] == [101], "other values lack seed 103, and 5 the others"
    assert table(kept) == {0.1: [3.0], 0.5: [2.0], 2.5: [8.0], 5.0: [1.0]}
    assert table(added([105], {9.0: [1.0]})) == {9.0: [1.0]}, "no seed in common"
    assert table(added([104], {0.1: [2.0]}, rounds=6)) == {0.1: [2.0]}  # another length


def test_damaged_and_foreign_files_are_named(tmp_path) -> None:
    place = tmp_path / "runs" / "spread-random" / "cfcql-0-seed-0.json"
    write_json(place, {"format": 1, "algorithm": "cfcql"})
    with pytest.raises(InputError, match=r"cfcql-0-seed-0\.json: .* missing .* `seed`"):
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
        Store(tmp_path).add(summary(run_folder(tmp_path / "run")))


def test_configurations_are_equal_however_numbers_are_written() -> None:
    one = configure("cfcql", "spread-random", {})
    same = replace(one, alpha=int(one.alpha) if one.alpha == int(one.alpha) else one.alpha)
    assert signature(asdict(one)) == signature(json.loads(json.dumps(asdict(same))))
