"""Sweeps: what is shown of them, and that the settings follow them."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from spacql.algorithms.settings import configure
from spacql.cli import main
from spacql.errors import InputError
from spacql.experiments import sweeps
from spacql.experiments.paper import OWN
from spacql.experiments.store import Store
from spacql.files import write_json

RESULTS = Path(__file__).parents[2] / "results"
CLOSE = 5.0  # points of score that a seed cannot tell apart


def put(folder: Path, algorithm: str, data: str, scores: dict, **changed) -> None:
    config = asdict(configure(algorithm, data, {}))
    sweep = {
        "algorithm": algorithm,
        "data": data,
        "rounds": config["rounds"],
        "seeds": [100, 101],
        "config": config,
        "hyperparameter": "alpha",
        "values": [
            {"value": a, "mean": mean, "scores": [mean] * 2 if mean else []}
            for a, mean in scores.items()
        ],
    }
    sweep |= changed
    name = f"{data}-{algorithm}-{sweep['hyperparameter']}.json"
    write_json(folder / "tuning" / name, sweep)


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


def test_a_value_of_which_trainings_failed_has_their_number(folder) -> None:
    values = [{"value": 0.5, "mean": 20.0, "scores": [20.0], "failed": [101]},
              {"value": 1.0, "mean": 30.0, "scores": [29.0, 31.0], "failed": []}]  # fmt: skip
    put(folder, "macql", "my-own-logs", {}, values=values)
    [sweep] = sweeps.stored(Store(folder), ("macql",))
    assert [text for text, _ in sweeps.lines(sweep)] == ["0.5: 20.0 (1)", "1: 30.0", "(2)"]
    assert sweeps.records([sweep])[0]["trainings"] == [1, 2]


def test_another_hyperparameter_has_a_column_of_its_own(folder) -> None:
    values = {0.7: 10.0, 0.9: 12.0}
    put(folder, "iql", "spread-random", values, hyperparameter="expectile")
    put(folder, "bc", "spread-random", {(8, 8): 1.0}, hyperparameter="hidden")
    text = sweeps.markdown(sweeps.stored(Store(folder)))
    assert "| spread | spacql | cfcql | macql | iql expectile | bc hidden |" in text
    assert "| **0.7: 10.0**<br>0.9: 12.0<br>(2) | 8-8: 1.0<br>(2) |" in text


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


STORED = sweeps.stored(Store(RESULTS))


def in_use(sweep: sweeps.Sweep) -> list[float]:
    """The scores of what is in use. Of several hyperparameters one was swept at a time, so they are
    in that sweep that held the others at today's values."""
    if sweep.algorithm == "aspac":  # whose settings are one for all data
        return sweep.by_seed[OWN.get(sweep.dataset, {}).get(sweep.hyperparameter, sweep.used)]
    same = [s for s in STORED if (s.algorithm, s.dataset) == (sweep.algorithm, sweep.dataset)]
    [found, *_] = [
        s for s in same if all(s.config[o.hyperparameter] == o.used or o is s for o in same)
    ]
    return found.by_seed[found.used]


def clear_gain(sweep: sweeps.Sweep) -> float:
    """How far the best value is above what is in use, beyond what seeds cannot tell apart: five
    points, or the standard error of the difference where that is more."""
    best = max(sweep.scores, key=sweep.scores.__getitem__)
    gains = np.array(sweep.by_seed[best]) - np.array(in_use(sweep))
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return gains.mean() - max(CLOSE, error)


@pytest.mark.parametrize("sweep", STORED, ids=lambda s: s.dataset + s.column)
def test_no_value_of_a_stored_sweep_is_clearly_better_than_the_one_in_use(sweep) -> None:
    assert len(sweep.scores) >= 3
    assert clear_gain(sweep) <= 0
