from dataclasses import asdict, replace

import pytest
from worlds_toy import log, true_return

import spacql
from spacql.errors import InputError
from spacql.experiments.worker import work
from spacql.files import write_json
from spacql.fitting import pipeline as fit_module
from spacql.fitting import portfolio, words
from spacql.fitting.portfolio import Member
from spacql.runs import locked


@pytest.fixture
def tiny(monkeypatch):
    """Two short trainings and a small model."""
    chosen = (Member("bc", "bc", "quick"), Member("td3bc", "td3bc", "quick", {"hidden": (16,)}))
    monkeypatch.setattr(portfolio, "PORTFOLIO", chosen)
    monkeypatch.setattr(portfolio, "LEAST_STEPS", 100)
    monkeypatch.setattr(portfolio, "STEPS", dict.fromkeys(portfolio.STEPS, 400))
    monkeypatch.setattr(portfolio, "MODEL_STEPS", dict.fromkeys(portfolio.STEPS, 300))
    usual = fit_module.ModelConfig
    monkeypatch.setattr(
        fit_module, "ModelConfig",
        lambda **given: usual(**({"hidden": (16,), "members": 2, "batch_size": 64} | given)),
    )  # fmt: skip


class Here:
    """An executor without processes: each would spend most of its time on importing."""

    workers = 1

    def __init__(self, folder, workers):
        self.folder = folder

    def execute(self, runs, report):
        for run in runs:
            work(run, self.folder / run.place, lambda event, run=run: report(run, event))


def test_fit_finds_a_better_policy_without_a_simulator_and_goes_on_where_it_stopped(
    tiny, tmp_path, monkeypatch
):
    dataset = log(120)
    said = []
    found = spacql.fit(
        dataset, tmp_path / "fit", level="quick", workers=1, executor=Here, tell=said.append
    )
    assert "2 trainings" in said[0]
    assert found.chosen == "td3bc"
    assert true_return(found.policy) > dataset.team_returns.mean() + 1
    assert {row["label"] for row in found.table} == {"bc", "td3bc"}
    assert spacql.Policy.load(tmp_path / "fit").agents == ("a", "b")
    assert (tmp_path / "fit" / "fit.json").is_file()

    (tmp_path / "fit" / "fit.json").unlink()
    again = spacql.fit(dataset, tmp_path / "fit", level="quick", workers=1)
    assert again.result == found.result
    for row in found.table:
        assert set(row["distance"]) == {"a", "b"}
        assert row["truth"] is None, "nobody knows this world"
        assert ("q_policy" in row["training"]) == (row["label"] == "td3bc")
    assert found.result["clone"]["label"] == "bc"

    # Where the world is known, the truth joins afterwards, and changes no choice.
    true = {"return": {"mean": 7.0, "interval": [6.0, 8.0]}, "score": 70.0}
    monkeypatch.setattr(fit_module, "scorer", lambda task, dataset: (lambda *_: true, ""))
    known = spacql.fit(dataset, tmp_path / "fit", level="quick", workers=1)
    assert known.chosen == found.chosen
    assert {row["truth"]["score"] for row in known.table} == {70.0}
    with pytest.raises(InputError, match="another log"):
        spacql.fit(log(121), tmp_path / "fit", level="quick")


def test_a_fit_goes_on_only_with_the_budget_and_the_workers_that_it_began_with(tmp_path):
    def plan(budget, workers, level="quick"):
        return fit_module.make_plan(dataset, level, budget, 0.2, 0, "model", workers)

    dataset = log(200)
    fit_module.open_folder(tmp_path / "free", plan(None, 1))
    fit_module.open_folder(tmp_path / "free", plan(None, 2))  # they change nothing
    fit_module.open_folder(tmp_path / "fit", plan(1.0, 1))
    for other, said in (
        (plan(2.0, 1), "another --budget: 1.0, not 2.0"),
        (plan(None, 1), "another --budget: 1.0, not none"),
        (plan(1.0, 2), "another number of --workers, who share its --budget: 1, not 2"),
        (plan(1.0, 1, "normal"), "another level: quick, not normal"),
    ):
        with pytest.raises(InputError, match=said):
            fit_module.open_folder(tmp_path / "fit", other)
    fit_module.open_folder(tmp_path / "fit", replace(plan(1.0, 1), data="moved"))


def test_a_fit_whose_plan_says_nothing_of_a_budget_goes_on(tmp_path):
    plan = fit_module.make_plan(log(200), "quick", None, 0.2, 0, "model", 1)
    before = {k: v for k, v in asdict(plan).items() if k not in ("budget", "workers")}
    write_json(tmp_path / "fit" / "plan.json", before)
    fit_module.open_folder(tmp_path / "fit", plan)


def test_a_second_fit_in_a_folder_is_refused_while_the_first_runs(tmp_path):
    with (
        locked(tmp_path / "fit"),
        pytest.raises(InputError, match=r"Another process is training in .*fit\."),
    ):
        spacql.fit(log(20), tmp_path / "fit", level="quick", workers=1)
    assert not (tmp_path / "fit").exists()


def test_a_log_named_like_a_benchmark_gets_no_settings_of_it():
    dataset = log(20)
    named = replace(dataset, info={"name": "spread-random"})
    member = portfolio.PORTFOLIO[0]
    mine, other = (portfolio.configuration(member, d, "quick") for d in (dataset, named))
    assert mine == other


@pytest.mark.parametrize("share", [0.999, 0.001])
def test_a_share_that_leaves_too_few_episodes_on_a_side_is_refused(share):
    with pytest.raises(InputError, match=r"each needs at least 4\. .* from 0\.2 to 0\.8\."):
        fit_module.make_plan(log(20), "quick", None, share, 0, "model", 1)
    with pytest.raises(InputError, match=r"each needs at least 5\."):
        fit_module.make_plan(log(100), "quick", None, share, 0, "model", 1)
    for edge in (0.2, 0.8):
        fit_module.make_plan(log(20), "quick", None, edge, 0, "model", 1)


def test_short_logs_get_short_trainings():
    steps = [portfolio.training_steps(log(n), 512, "thorough") for n in (20, 2000)]
    assert steps[0] == portfolio.LEAST_STEPS < steps[1] < portfolio.STEPS["thorough"]


def test_a_budget_shortens_trainings():
    arguments = (log(2000), "normal")
    usual = fit_module.make_plan(*arguments, None, 0.2, 0, "model", 1)
    brief = fit_module.make_plan(*arguments, 1.0, 0.2, 0, "model", 1)
    for long, short in zip(usual.runs, brief.runs, strict=True):
        assert short["config"]["rounds"] < long["config"]["rounds"]
    with pytest.raises(InputError, match="budget"):
        fit_module.make_plan(*arguments, 0.0, 0.2, 0, "model", 1)


def test_a_budget_that_cannot_be_met_or_used_up_is_told():
    dataset = log(200)

    def said(budget, level="quick", workers=2):
        plan = fit_module.make_plan(dataset, level, budget, 0.2, 0, "model", workers)
        runs = [fit_module.PlannedRun.from_json(run) for run in plan.runs]
        return fit_module.expectation(plan, runs, dataset, workers)

    assert "The budget of 0.01 min cannot be met: this is the shortest." in said(0.01)
    assert "The budget of 1000 min is not used up: trainings are at most 10 t" in said(1000.0)
    assert "--thorough tries more" in said(1000.0)
    assert "--thorough" not in said(10_000.0, level="thorough")
    assert "about 2 min" in said(2.0)
    assert "about 4 min" in said(4.0, "normal")
    for within in (said(None), said(2.0), said(4.0, "normal"), said(1.5, workers=8)):
        assert "budget" not in within


def row(label, low, mean, high):
    return {"label": label, "low": low, "mean": mean, "high": high, "outside": {"a": 0.0}}


def test_the_verdict_depends_on_the_lower_bound():
    logged, clone = row("log", 0, 1, 2), row("bc", 0, 1, 2)
    for chosen, expected in (
        (row("x", 3, 4, 5), "likely gain"),
        (row("x", 0, 4, 5), "inconclusive"),
        (row("x", 0, 0.5, 5), "keep what you have"),
        (clone, "keep what you have"),
    ):
        found = words.verdict(chosen, logged, clone)
        assert found == expected
        assert chosen["label"] in words.summary(found, chosen, logged, clone, None)


def test_words_say_no_more_than_the_numbers_do():
    logged, clone = row("log", 0, 1, 2), row("bc", 3, 5, 7)

    def said(chosen, clone):
        found = words.verdict(chosen, logged, clone)
        return words.summary(found, chosen, logged, clone, None)

    assert "nothing that was trained is expected to beat cloning surely enough" in said(
        clone, clone
    )
    assert "x is not expected to return more than the log's" in said(row("x", 0, 1, 2), None)
    assert "not all of its interval lies above cloning's" in said(row("x", 4, 6, 8), clone)
    assert "not all of its interval lies above the log's" in said(row("x", 0, 6, 8), None)
    assert "the interval lies above the log's and cloning's" in said(row("x", 6, 7, 8), clone)


def test_words_warn_of_leaving_the_log_and_of_a_poor_model():
    chosen = row("x", 3, 4, 5) | {"outside": {"a": 0.5}}
    said = words.summary("likely gain", chosen, row("log", 0, 1, 2), None, {"correlation": 0.1})
    assert "a in 50 % of the states" in said
    assert "trust these numbers little" in said


def test_a_model_that_equal_returns_cannot_test_is_not_called_poor():
    chosen, logged = row("x", 3, 4, 5), row("log", 1, 1, 1)
    said = words.summary("likely gain", chosen, logged, None, {"correlation": None})
    assert "all returned the same, so the learnt model could not be tested" in said
    assert "poorly" not in said
