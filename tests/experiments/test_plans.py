"""What the tables and figures need, counted; and the paper's numbers."""

from dataclasses import asdict, replace

import pytest
from experiments_toy import fill

from spacql.algorithms.registry import MODULES
from spacql.algorithms.settings import configure, usual_rounds
from spacql.errors import InputError
from spacql.experiments.paper import OWN, PLANS, make_plan, published
from spacql.experiments.plans import QUALITIES, unlike_settings
from spacql.experiments.store import Store
from spacql.worlds import TASKS


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("table1", 2 * 8),
        ("table2", len(MODULES) * 16),
        ("own-strengths", len(MODULES) * 16),
        ("ablation", 7 * 2 + 3 * 2),
        ("aspac", 8 * 8),
        ("differences", 3 * 16),
        ("figure2", 3 * 2),
        ("figure3", 8),
        ("figure4", 12),
        ("figure1", 0),
    ],
)
def test_a_plan_has_a_run_for_every_cell_and_seed_and_none_twice(name, cells) -> None:
    runs = make_plan(name).runs()
    assert len(runs) == 5 * cells
    assert len({run.key for run in runs}) == len({run.place for run in runs}) == len(runs)


def test_the_ablation_answers_its_question() -> None:
    plan = make_plan("ablation", seeds=(7,))
    configs = {(r.algorithm, r.config.critics, r.config.penalty, r.dataset) for r in plan.runs()}
    for data in ("spread-random", "spread-expert"):
        for algorithm, usual in (("cfcql", 2), ("icql-qs", 2), ("spacql", 10)):
            assert {(algorithm, critics, "log-sum-exp", data) for critics in (2, 10)} <= configs
            assert (algorithm, usual, "policy", data) in configs
    mixing = [run.config.mixing for run in plan.runs() if run.algorithm == "spacql"]
    assert mixing.count("uniform") == 2
    assert {run.seed for run in plan.runs()} == {7}


def test_aspac_has_a_strength_of_its_own_where_its_sweeps_say_so_and_else_shares_the_runs() -> None:
    one, own = (
        {run.dataset: run for run in make_plan(name, only=("aspac",), seeds=(0,)).runs()}
        for name in ("table2", "own-strengths")
    )
    for dataset, run in own.items():
        assert (run.key == one[dataset].key) == (dataset not in OWN)
        assert run.config == replace(one[dataset].config, **OWN.get(dataset, {}))


def test_a_table_fills_evenly_seed_by_seed() -> None:
    runs = make_plan("table1", seeds=(3, 4)).runs()
    assert [run.seed for run in runs] == [3] * 16 + [4] * 16
    assert {run.dataset.split("-")[0] for run in runs[:16]} == {"spread", "world"}


def test_rounds_go_over_settings_and_settings_over_defaults() -> None:
    config = configure("cfcql", "world-random", {"critics": 10})
    assert (config.rounds, config.critics) == (usual_rounds("world"), 10)
    assert {run.config.rounds for run in make_plan("table1", rounds=70).runs()} == {70}
    with pytest.raises(InputError, match=r"one in 3 transitions of a batch of 256"):
        configure("cfcql", "world-random", {"penalty_every": 3})
    with pytest.raises(InputError, match="no hyperparameter 'critcs'"):
        configure("cfcql", "world-random", {"critcs": 10})


def cells(*only: str, name: str = "table2") -> set[tuple[str, str]]:
    return {(c.dataset, m.label) for _, m, c in make_plan(name, only=only).cells()}


def test_only_narrows_by_dataset_and_by_method() -> None:
    assert cells("spread-random", "cfcql") == {("spread-random", "cfcql")}
    assert {d for d, _ in cells("tag", "world")} == {
        f"{task}-{quality}" for task in ("tag", "world") for quality in QUALITIES
    }
    assert {d for d, _ in cells("spread-medium")} == {"spread-medium"}, "an exact name"
    assert {d for d, _ in cells("replay")} == {f"{task}-medium-replay" for task in TASKS}
    assert {m for _, m in cells("10 critics", name="ablation")} == {
        f"{a}, 10 critics" for a in ("cfcql", "icql-qs", "spacql")
    }
    assert len(cells("random, policy", name="ablation")) == 3


def test_mistakes_are_answered_with_what_there_is() -> None:
    with pytest.raises(InputError, match=r"spred.*spread-random"):
        make_plan("table1", only=("spred",))
    with pytest.raises(InputError, match=", ".join(PLANS)):
        make_plan("table3")
    for seeds in ((), (1, 1), (-1,)):
        with pytest.raises(InputError, match="Seeds"):
            make_plan("table1", seeds=seeds)
    with pytest.raises(InputError, match="rounds is 0"):
        make_plan("table1", rounds=0).runs()


def test_words_that_no_cell_has_together_are_refused() -> None:
    with pytest.raises(InputError, match=r"--only policy uniform weights: .* no cell has them all"):
        make_plan("ablation", only=("policy", "uniform weights"))


def test_finished_runs_are_not_missing(tmp_path) -> None:
    plan, store = make_plan("table1", only=("spread-random",)), Store(tmp_path / "results")
    assert len(plan.missing(store)) == 10
    fill(plan, store, {"random/cfcql": [1.0, 2.0, 3.0]}, tmp_path)
    assert len(plan.missing(store)) == 7
    longer = make_plan("table1", only=("spread-random",), rounds=2001)
    assert len(longer.missing(store)) == 10


def test_the_papers_numbers_are_found() -> None:
    assert published("spread-random", "spacql") == (78.2, 14)
    assert published("world-random", "icql-qs") == (89.9, None), "only in its Table 1"
    assert published("world-random", "cfcql") == (68, 20.8)
    assert published("world-random", "cfcql", "table1") == (68, None)
    assert published("halfcheetah-random", "dof") is None
    assert published("spread-random", "bc") is None


def test_the_papers_tables_are_complete_and_agree() -> None:
    for task in TASKS:
        for name in (f"{task}-{quality}" for quality in QUALITIES):
            for algorithm in ("omar", "macql", "iql", "td3bc", "cfcql", "spacql"):
                mean, std = published(name, algorithm)
                assert -10 < mean < 140
                assert std >= 0
            if task in ("spread", "world"):
                assert published(name, "cfcql")[0] == published(name, "cfcql", "table1")[0]


def test_a_method_that_is_named_brings_the_other_half_of_its_pairs() -> None:
    plan = make_plan("pairs", only=("spread", "bc"))
    [block] = plan.blocks
    assert block.pairs == (("aspac", "bc"),)
    assert [method.label for method in block.methods] == ["bc", "aspac"]
    both = make_plan("differences", only=("spread", "spacql", "cfcql")).blocks[0]
    assert both.pairs == (("spacql", "cfcql"),)


def test_what_differs_from_todays_settings_has_its_value_also_where_it_was_silent() -> None:
    config = asdict(configure("cfcql", "spread-random", {"penalty_every": 1, "tanh_cost": 0.0}))
    assert unlike_settings("cfcql", "spread-random", config) == {
        "penalty_every": 1, "tanh_cost": 0.0}  # fmt: skip
