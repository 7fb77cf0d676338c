"""Reading run folders and results."""

import json
from pathlib import Path

import pytest
from report_toy import three_seeds, write_run

from spacql.errors import InputError
from spacql.experiments.store import Store, summary
from spacql.report.overview import standings
from spacql.report.source import gather, thinned
from spacql.report.subject import Subject
from spacql.report.teams import compared, teams
from spacql.report.verdicts import headline

ROOT = Path(__file__).parents[2]


def test_a_run_folder_is_read_with_its_score_interval_and_curve(tmp_path):
    write_run(tmp_path / "a")
    (run,) = gather([tmp_path])
    assert (run.algorithm, run.dataset, run.seed, run.score) == ("spacql", "spread-random", 0, 60.0)
    assert run.interval == (56.0, 64.0)
    assert [point["round"] for point in run.curve] == [10, 20, 30, 40]


def test_a_run_under_way_has_a_curve_and_no_score(tmp_path):
    write_run(tmp_path / "a", finished=False)
    (run,) = gather([tmp_path])
    assert run.score is None
    assert run.rounds == 20


def test_a_training_that_diverged_says_so(tmp_path):
    folder = write_run(tmp_path / "a", finished=False)
    (folder / "diverged.json").write_text(json.dumps({"error": "Not finite at round 21."}))
    (run,) = gather([tmp_path])
    assert (run.score, run.note) == (None, "Not finite at round 21.")


def test_stored_results_are_the_same_runs(tmp_path):
    folder = write_run(tmp_path / "runs" / "a")
    assert Store(tmp_path / "results").add(summary(folder)) == "added"
    (stored,) = gather([tmp_path / "results"])
    (run,) = gather([folder])
    assert (stored.score, stored.config, stored.identity) == (run.score, run.config, run.identity)
    assert stored.folder is None


def test_our_results_give_every_dataset_its_own_level_where_it_was_measured():
    runs = gather([ROOT / "results"])
    levels = {run.dataset: run.level for run in runs if run.level is not None}
    assert levels["spread-expert"] == pytest.approx(100, abs=2)
    assert levels["spread-random"] == pytest.approx(0, abs=1)


def test_what_is_no_run_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(InputError, match="Which runs"):
        gather([])
    with pytest.raises(InputError, match="There is no folder"):
        gather([tmp_path / "none"])
    with pytest.raises(InputError, match="There is no run below"):
        gather([tmp_path])
    folder = write_run(tmp_path / "a")
    (folder / "run.json").write_text(json.dumps({"algorithm": "x"}))
    with pytest.raises(InputError, match=r"run\.json: Object missing required field"):
        gather([tmp_path])


def test_a_damaged_line_of_metrics_ends_the_curve_there(tmp_path):
    folder = write_run(tmp_path / "a")
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join([*lines[:2], "{not json\n", *lines[2:]]))
    (run,) = gather([tmp_path])
    assert [point["round"] for point in run.curve] == [10, 20]


def test_a_long_curve_is_thinned_to_its_end_and_averages_between():
    rows = [{"round": k, "loss": float(k), "name": "text"} for k in range(1, 1001)]
    curve = thinned(rows, points=10)
    assert [point["round"] for point in curve] == list(range(100, 1001, 100))
    assert curve[0]["loss"] == pytest.approx(50.5)
    assert "name" not in curve[0]


def test_seeds_make_a_team_and_settings_tell_teams_of_one_algorithm_apart(tmp_path):
    three_seeds(tmp_path / "a", "spacql", 60)
    three_seeds(tmp_path / "b", "spacql", 50, settings={"alpha": 99.0})
    shown, others = teams(gather([tmp_path]))
    assert not others
    assert [len(team.runs) for team in shown] == [3, 3]
    assert "alpha 99" in shown[0].label + shown[1].label


def test_of_a_store_the_configuration_of_today_is_shown_and_the_others_listed(tmp_path):
    three_seeds(tmp_path / "a", "spacql", 60, rounds=500)
    three_seeds(tmp_path / "b", "spacql", 50, rounds=500, settings={"alpha": 99.0})
    shown, others = teams(gather([tmp_path]), choose=True)
    assert [team.label for team in shown] == ["spacql"]
    assert [team.label for team in others] == ["spacql, alpha 99"]


def sees_other_data(folder):
    path = folder / "run.json"
    run = json.loads(path.read_text())
    run["dataset"]["identity"] = "f" * 64
    path.write_text(json.dumps(run))


def test_the_headline_compares_only_seeds_that_saw_the_same_data(tmp_path):
    for seed, score in enumerate((60.0, 62.0, 61.0)):
        write_run(tmp_path / "a", "spacql", seed=seed, score=score)
        write_run(tmp_path / "b", "cfcql", seed=seed, score=score - 10 + 0.1 * seed)
    found = teams(gather([tmp_path]))[0]
    assert "significantly better than every other" in headline("spread-random", found)
    assert [one.near for one in standings(Subject(found))[0]] == [1, 0]
    sees_other_data(tmp_path / "b" / "seed-1")
    found = teams(gather([tmp_path]))[0]
    assert ("With cfcql it has fewer than three seeds of the same data in common: they cannot be "
            "compared.") in headline("spread-random", found)  # fmt: skip
    assert "significantly" not in headline("spread-random", found)
    assert [one.near for one in standings(Subject(found))[0]] == [1, 1]  # nobody can tell


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_repeat_under_way_does_not_hide_the_run_that_is_finished(tmp_path, order):
    write_run(tmp_path / order[0], score=60.0)
    write_run(tmp_path / order[1], finished=False)
    ((team,), _) = teams(gather([tmp_path]))
    assert [run.score for run in team.runs] == [60.0]


def test_only_seeds_that_saw_the_same_data_are_compared(tmp_path):
    three_seeds(tmp_path / "a", "spacql", 60)
    folder = three_seeds(tmp_path / "b", "cfcql", 50)
    sees_other_data(folder / "seed-1")
    first, second = teams(gather([tmp_path]))[0]
    statistics, pairs = compared(first, second)
    assert [seed for seed, _ in pairs] == [0, 2]
    gaps = [one.score - two.score for one, two in zip(first.runs, second.runs, strict=True)]
    assert statistics.mean == pytest.approx((gaps[0] + gaps[2]) / 2)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("run.json", {"config": []}),
        ("run.json", {"dataset": {"name": "x", "seed": "<b>"}}),
        ("run.json", {"spec": {"agents": 3}}),
        ("result.json", {"evaluation": "high"}),
        ("result.json", {"evaluation": {"score": "high"}}),
        ("result.json", {"rounds": "all"}),
    ],
)
def test_a_field_of_another_type_is_refused_with_the_file_and_the_field(tmp_path, file, change):
    folder = write_run(tmp_path / "a")
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=rf"{file}, field {next(iter(change))}"):
        gather([tmp_path])
