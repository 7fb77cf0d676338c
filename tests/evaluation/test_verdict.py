import json
from dataclasses import replace

import numpy as np
import pytest
from worlds_toy import log, pushing

from spacql.evaluation import heldout
from spacql.evaluation.verdict import far, impossible, may_be_lengthened, moving, of_run, saturated


@pytest.fixture(scope="module")
def dataset():
    return log(60)


def rows(values, name="q_policy"):
    return [{"round": k + 1, name: float(v)} for k, v in enumerate(values)]


def test_values_beyond_possible_returns_are_named(dataset):
    config = {"discount": 0.95}
    assert "above every return" in impossible(rows([23.0]), dataset, config)
    assert "below every return" in impossible(rows([-1e4]), dataset, config)
    assert impossible(rows([-5.0]), dataset, config) == ""
    assert impossible(rows([0.5], "clone_error"), dataset, {}) == ""


def test_what_is_advised_is_what_the_algorithm_has(dataset):
    for config, said in (
        ({"alpha": 0.5}, "a larger alpha, or an algorithm"),
        ({"alpha": 0.1, "anchor_weight": 1e-4}, "a larger anchor_weight, or an algorithm"),
        (
            {"q_weight": 2.5},
            "a smaller q_weight, or an algorithm that stays nearer to the log (bc)",
        ),
        ({"expectile": 0.7}, "What helps: an algorithm that stays nearer to the log (td3bc, bc)"),
    ):
        assert said in impossible(rows([23.0]), dataset, {"discount": 0.95} | config)
    rising = rows(np.linspace(0, 1, 500))
    assert "--rounds and --resume" in moving(rising, may_be_lengthened("spacql"))
    assert "train anew with more --rounds" in moving(rising, may_be_lengthened("aspac"))
    assert may_be_lengthened("an-algorithm-of-mine")


def test_a_policy_is_not_called_far_from_a_log_too_short_to_say(dataset):
    narrow = replace(dataset, joint_actions=0.01 * dataset.joint_actions)
    assert "far from the log" in far(pushing(100.0), narrow)
    short = heldout.of_episodes(narrow, np.array([0]))
    assert far(pushing(100.0), short) == ""


def test_a_policy_is_not_called_far_from_a_constant_action_that_it_repeats(dataset):
    constant = replace(dataset, joint_actions=np.zeros_like(dataset.joint_actions))
    assert far(pushing(1e-4), constant) == ""
    assert "far from the log (a in 100 %" in far(pushing(100.0), constant)


def test_a_curve_that_still_moves_is_named_and_one_that_settled_is_not():
    random = np.random.default_rng(0)
    noise = 0.01 * random.normal(size=500)
    rising, settled = np.linspace(0, 1, 500), 1 - np.exp(-np.arange(500) / 30)
    assert "had not settled" in moving(rows(rising + noise))
    assert moving(rows(settled + noise)) == ""
    assert moving(rows([1.0, 2.0])) == ""
    assert moving(rows(240 - 0.1 * rising)) == "", "that is a trifle"


def test_saturated_actors_and_policies_far_from_the_log_are_named(dataset):
    import jax.numpy as jnp

    calm = pushing(0.1)
    stuck = type(calm)(
        tuple(replace(a, biases=(jnp.full_like(a.biases[0], 50.0),)) for a in calm.actors),
        name="stuck", agents=calm.agents,
    )  # fmt: skip
    assert "a, b always do the same extreme action" in saturated(stuck, dataset)
    assert saturated(calm, dataset) == ""
    assert far(calm, dataset) == ""
    narrow = replace(dataset, joint_actions=dataset.joint_actions * 0.01)
    assert "far from the log (a in 100 %" in far(stuck, narrow)


def test_a_run_without_trouble_has_no_warnings(dataset, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"config": {"discount": 0.95}}))
    lines = "".join(json.dumps(row) + "\n" for row in rows([-4.0] * 60))
    (tmp_path / "metrics.jsonl").write_text(lines)
    pushing(0.1).save(tmp_path / "policy")
    assert of_run(tmp_path, dataset) == []
