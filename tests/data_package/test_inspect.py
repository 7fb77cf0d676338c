import json

import numpy as np
import pytest
from PIL import Image

from spacql.data import inspect as module
from spacql.data.inspect import figure, inspect, meaning

from .toy import build


@pytest.fixture(scope="module")
def found(rough_correlation):
    dataset = build((25,) * 80, observation_sizes=(4, 3, 3), action_sizes=(2, 1, 1))
    rng = np.random.default_rng(0)
    dataset.joint_actions[:, 2] = rng.uniform(0.5, 0.7, dataset.n_rows)
    dataset.joint_actions[:, 3] = rng.choice([-1.0, 1.0], dataset.n_rows)
    dataset.info["reference"] = {"random": 0.0, "expert": 100.0, "source": "test"}
    return dataset, inspect(dataset)


def test_counts_and_returns_are_those_of_the_dataset(found):
    dataset, inspection = found
    assert inspection.transitions == inspection.targets == 2000
    assert inspection.lengths == (25, 25)
    assert inspection.returns["mean"] == pytest.approx(dataset.team_returns.mean())
    assert inspection.score == pytest.approx(dataset.team_returns.mean())
    assert sum(inspection.return_histogram["counts"]) == 80


def test_use_of_the_action_space_tells_wide_from_narrow_from_saturated(found):
    wide, narrow, saturated = found[1].agents
    assert wide.used > 0.95
    assert narrow.used == pytest.approx(0.1, abs=0.02)  # two bins of twenty
    assert saturated.used == pytest.approx(0.1, abs=0.01)
    assert saturated.at_bounds == 1.0
    assert wide.at_bounds < 0.05
    for agent in found[1].agents:
        np.testing.assert_allclose(np.sum(agent.histogram, axis=1), 1)


def test_an_inspection_is_json(found):
    again = json.loads(json.dumps(found[1].to_json()))
    assert again["agents"][1]["agent"] == "agent1"


def test_the_sentence_turns_with_the_correlation():
    assert "independently" in meaning(0.01)
    assert "somewhat" in meaning(0.1)
    assert "Compare with full replacement" in meaning(0.7)


def test_the_figure_is_a_picture(found, tmp_path):
    figure(found[1], tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as image:
        assert image.format == "PNG"
        assert image.size[0] > 800


def test_final_rows_are_not_counted_as_actions():
    dataset = build((3,) * 40, known=(False,) * 40)
    uses = module._use(dataset, None)
    np.testing.assert_allclose(np.sum(uses[0].histogram, axis=1), 1)


def test_a_log_too_small_for_the_estimate_is_shown_without_it(tmp_path):
    inspection = inspect(build())
    assert inspection.correlation is None
    assert "Fewer than 1,000 transitions" in inspection.meaning
    json.dumps(inspection.to_json(), allow_nan=False)
    figure(inspection, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").exists()
