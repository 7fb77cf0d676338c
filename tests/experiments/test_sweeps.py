"""Sweeps of alpha: what is shown of them, and that the settings follow them."""

from dataclasses import asdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from spacql.algorithms.settings import configure
from spacql.cli import main
from spacql.errors import InputError
from spacql.experiments import sweeps
from spacql.experiments.plans import QUALITIES
from spacql.experiments.store import Store
from spacql.files import write_json
from spacql.worlds import TASKS

RESULTS = Path(__file__).parents[2] / "results"
SWEPT = ("spacql", "icql-qs", "cfcql", "macql", "omar")  # all that have an alpha
CLOSE = 5.0  # points of score that a seed cannot tell apart


def put(folder: Path, algorithm: str, data: str, scores: dict[float, float], **changed) -> None:
    config = asdict(configure(algorithm, data, {}))
    sweep = {
        "algorithm": algorithm,
        "data": data,
        "rounds": config["rounds"],
        "seeds": [100, 101],
        "config": config,
        "alphas": [
            {"alpha": a, "mean": mean, "scores": [mean] if mean else []}
            for a, mean in scores.items()
        ],
    }
    write_json(folder / "tuning" / f"{data}-{algorithm}.json", sweep | changed)


@pytest.fixture
def folder(tmp_path) -> Path:
    used = configure("cfcql", "spread-random", {}).alpha
    put(tmp_path, "cfcql", "spread-random", {10.0: 1.0, used: 80.04, 0.1: None})
    put(tmp_path, "spacql", "spread-random", {used: 70.0}, rounds=7)
    put(tmp_path, "macql", "my-own-logs", {0.5: 20.0})
    return tmp_path


def test_the_alpha_in_use_is_marked_and_sweeps_unlike_today_too(folder) -> None:
    used = configure("cfcql", "spread-random", {}).alpha
    text = sweeps.markdown(sweeps.stored(Store(folder)))
    assert (
        f"| random | **{used:g}: 70.0°**<br>(2) | **{used:g}: 80.0**<br>10: 1.0<br>(2) | – |"
    ) in text
    assert "| own-logs | – | – | **0.5: 20.0**<br>(2) |" in text
    assert text.index("| spread |") < text.index("| my |")


def test_the_terminal_shows_the_same_and_words_narrow_it(folder, capsys) -> None:
    for words in ([], ["random", "cfcql"], ["nothing"]):
        with pytest.raises(SystemExit) as stop:
            main(["results", "sweeps", *words, "--results", str(folder)])
        assert stop.value.code == 0
        said = capsys.readouterr().out
        assert ("80.0*" in said) == (words != ["nothing"])
        assert ("70.0°*" in said) == (words == [])
        assert ("no such sweep" in said) == (words == ["nothing"])


def test_a_file_that_is_no_sweep_is_named(folder) -> None:
    write_json(folder / "tuning" / "a.json", {"algorithm": "cfcql", "data": "a", "config": {}})
    with pytest.raises(InputError, match=r"a\.json: Object missing required field `rounds`"):
        sweeps.stored(Store(folder))


def clear_gain(sweep: sweeps.Sweep) -> float:
    """How far the best alpha is above the one in use, beyond what seeds cannot tell apart: five
    points, or the standard error of the difference where that is more."""
    scores = {alpha: np.array(row) for alpha, row in sweep.by_seed.items()}
    best = max(sweep.scores, key=sweep.scores.__getitem__)
    gains = scores[best] - scores[sweep.used]
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return gains.mean() - max(CLOSE, error)


@pytest.mark.parametrize("algorithm", SWEPT)
def test_no_alpha_of_the_own_sweep_is_clearly_better_than_the_one_in_use(algorithm) -> None:
    found = sweeps.stored(Store(RESULTS))
    mine = {s.dataset: s for s in found if (s.algorithm, s.penalty) == (algorithm, "log-sum-exp")}
    # Data that was made anew has no sweeps until they are run again; spread has all of them.
    assert {f"spread-{quality}" for quality in QUALITIES} <= mine.keys()
    for task, quality in product(TASKS, QUALITIES):
        sweep = mine.get(f"{task}-{quality}")
        if sweep is None:
            continue
        assert len(sweep.scores) >= 3
        assert clear_gain(sweep) <= 0, sweep.dataset
