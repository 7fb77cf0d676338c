import json

import numpy as np
import pytest
from worlds_toy import log, pushing

from spacql.evaluation.verdict import far, impossible, moving, of_run, saturated


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


def test_a_curve_that_still_moves_is_named_and_one_that_settled_is_not():
    random = np.random.default_rng(0)
    noise = 0.01 * random.normal(size=500)
    rising, settled = np.linspace(0, 1, 500), 1 - np.exp(-np.arange(500) / 30)
    assert "had not settled" in moving(rows(rising + noise))
    assert moving(rows(settled + noise)) == ""
    assert moving(rows([1.0, 2.0])) == ""


def test_saturated_actors_and_policies_far_from_the_log_are_named(dataset):
    from dataclasses import replace

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
