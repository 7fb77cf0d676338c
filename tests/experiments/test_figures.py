"""The figures: the numbers that they draw, and that files come out."""

import json
from pathlib import Path

import numpy as np
import pytest
from experiments_toy import fill

from spacql.commands.reproduce import reproduce
from spacql.data import Dataset
from spacql.errors import InputError
from spacql.experiments import figures, slices
from spacql.experiments.paper import make_plan
from spacql.experiments.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def is_png_and_svg(stem) -> bool:
    png, svg = stem.with_suffix(".png").read_bytes(), stem.with_suffix(".svg").read_text()
    return png.startswith(b"\x89PNG") and "</svg>" in svg and "<dc:date>" not in svg


def test_figure2_draws_the_weighted_disagreement_by_round(tmp_path, store, capsys) -> None:
    plan = make_plan("figure2", rounds=40)
    fill(plan, store, {"random/cfcql, 10 critics": [1.0, 2.0]}, tmp_path)
    out = tmp_path / "pictures" / "figure2"
    options = {"rounds": 40, "stored": True, "results": store.results, "out": out}
    assert reproduce("figure2", json=True, **options) == 0
    [series] = json.loads(capsys.readouterr().out)["series"]
    assert (series["dataset"], series["seeds"]) == ("spread-random", 2)
    assert series["rounds"] == [10, 20, 30, 40]
    # u = (round, 2), averaged since the point before, with weights 3/4 and 1/4.
    assert series["mean"] == [0.75 * u + 0.5 for u in (5.5, 15.5, 25.5, 35.5)]
    assert series["std"] == [0, 0, 0, 0]
    assert is_png_and_svg(out)


def test_the_numbers_of_a_figure_alone_leave_no_picture(tmp_path, store, capsys, monkeypatch):
    fill(make_plan("figure3", rounds=40), store, {"random/spacql": [1.0]}, tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    reproduce("figure3", rounds=40, stored=True, results=store.results, json=True)
    assert json.loads(capsys.readouterr().out)["weights"]
    assert list(Path().iterdir()) == []


def test_figure4_draws_how_often_the_bandit_chose_which_number(tmp_path, store) -> None:
    plan = make_plan("figure4", rounds=40)
    fill(plan, store, {"expert/plcql": [1.0], "random/plcql": [1.0, 2.0]}, tmp_path)
    data = figures.draw(plan, store, tmp_path / "figure4")
    assert [(entry["dataset"], entry["seeds"]) for entry in data["weights"]] == [
        ("spread-expert", 1), ("spread-random", 2), ("tag-expert", 1), ("tag-random", 2),
        ("world-expert", 1), ("world-random", 2),
    ]  # fmt: skip
    assert all(entry["mean"] == [0.75, 0.25] for entry in data["weights"])
    assert "1 to 2 seeds" in data["caption"]
    assert is_png_and_svg(tmp_path / "figure4")


def test_figure3_draws_weights_raw_and_normalised(tmp_path, store) -> None:
    plan = make_plan("figure3", rounds=40)
    fill(plan, store, {"expert/spacql": [1.0], "random/spacql": [1.0, 2.0]}, tmp_path)
    data = figures.draw(plan, store, tmp_path / "figure3")
    assert [entry["dataset"] for entry in data["weights"]] == [
        "spread-expert", "spread-random", "world-expert", "world-random",
    ]  # fmt: skip
    assert data["weights"][0]["mean"] == [0.75, 0.25]
    assert data["weights"][0]["normalised"] == [1, 0]
    assert "1 to 2 seeds" in data["caption"]
    assert "INSTEAD OF" in data["caption"]
    assert is_png_and_svg(tmp_path / "figure3")


def test_min_max_normalisation() -> None:
    np.testing.assert_allclose(figures.normalised(np.array([0.5, 0.2, 0.3])), [1, 0, 1 / 3])
    np.testing.assert_allclose(figures.normalised(np.array([0.5, 0.5])), [0, 0])


def test_a_figure_without_runs_is_a_sentence(tmp_path, store) -> None:
    with pytest.raises(InputError, match="No run of figure2 is finished"):
        figures.draw(make_plan("figure2"), store, tmp_path / "figure2")
    with pytest.raises(InputError, match="data alone"):
        make_plan("figure1", only=("spread",))


def test_canonical_directions_find_the_correlation_that_is_there() -> None:
    rng = np.random.default_rng(0)
    shared, noise = rng.normal(size=2000), rng.normal(size=(2000, 3))
    a = np.stack([noise[:, 0], shared], axis=1)
    b = np.stack([noise[:, 1] - shared, noise[:, 1] + shared], axis=1) + 0.5
    value, first, second = slices.canonical_pair(a, b)
    assert value == pytest.approx(1, abs=1e-3)
    assert abs(first[1]) == pytest.approx(1, abs=1e-2)
    assert abs(second @ [-1, 1]) / np.sqrt(2) == pytest.approx(1, abs=1e-2)
    assert slices.canonical_pair(noise[:, :1], noise[:, 1:])[0] < 0.1


def test_slices_tell_agents_that_act_alike_from_those_that_do_not() -> None:
    rng = np.random.default_rng(0)

    def dataset(alike: float) -> Dataset:
        episodes = []
        for _ in range(40):
            own = rng.uniform(-0.9, 0.9, (26, 2, 2))
            own[:, 1] = alike * own[:, 0] + (1 - alike) * own[:, 1]
            seen = rng.normal(size=(26, 3))
            episodes.append({"observations": [seen, seen], "rewards": np.zeros((25, 2)),
                             "actions": [own[:, 0], own[:, 1]]})  # fmt: skip
        return Dataset.from_episodes(episodes)

    apart, together = (slices.slices(dataset(x), centres=3) for x in (0.0, 0.9))
    assert max(s.correlation for s in apart) < 0.3
    assert slices.tightest(together).correlation > 0.9
    tight = slices.tightest(together)
    low, high = tight.beside(0.0)
    assert high - low < 0.5 * (tight.range[1] - tight.range[0])
    assert slices.about(apart + together, 0.0).correlation < 0.3
