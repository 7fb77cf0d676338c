"""The examples, with small sizes: each does what it says, and is short."""

import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest

from spacql.algorithms.settings import configure
from spacql.data import collect
from spacql.experiments.store import Store
from spacql.runs import default_folder

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small_data(tmp_path, monkeypatch) -> None:
    """spread-random of 100 episodes, in a cache of its own."""
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(collect, "SIZE", 2500)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 100
    assert f"python examples/{path.name}" in text


def test_train_and_act(tmp_path, small_data, capsys) -> None:
    score = example("train_and_act").main("bc", rounds=2, episodes=64, out=tmp_path / "run")
    assert -50 < score < 50, "two rounds of cloning random actions"
    said = capsys.readouterr().out
    assert said.count("agent_") == 3
    assert "95 % interval" in said


def test_own_logs(tmp_path, capsys) -> None:
    policy = example("own_logs").main("bc", episodes=20, rounds=60, out=tmp_path)
    assert policy.agents == ("heater", "fan")
    said = capsys.readouterr().out
    assert "No simulator is known for 'house'" in said
    heat = float(said.rsplit("heater ", 1)[1].split(",")[0])
    assert heat > 0, "the log heats when it is cold"


def test_own_algorithm(tmp_path, small_data, capsys) -> None:
    scores = example("own_algorithm").main(rounds=1, episodes=64, out=tmp_path / "runs")
    assert scores.keys() == {"spacql", "optimist"}
    assert scores["spacql"] != scores["optimist"], "it learns something else"
    assert capsys.readouterr().out.count("score") == 2


def test_own_algorithm_is_compared_at_the_same_settings() -> None:
    modules = (example("own_algorithm"), "spacql")
    ours, theirs = (asdict(configure(module, "spread-random")) for module in modules)
    assert all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys() - {"critics"})


def test_own_world(tmp_path, capsys) -> None:
    pytest.importorskip("pettingzoo")
    score = example("own_world").main("bc", episodes=20, rounds=4, out=tmp_path)
    assert score < 100
    assert "uniform" in capsys.readouterr().out


def test_own_executor(tmp_path, small_data, capsys) -> None:
    [outcome] = example("own_executor").main(
        seeds=(0,), rounds=2, episodes=64, out=tmp_path / "runs"
    )
    assert outcome.score is not None
    assert "score" in capsys.readouterr().out
    assert len(Store(tmp_path / "runs" / "results")) == 1
    assert (tmp_path / "runs" / outcome.run.place / "policy.safetensors").exists()


def test_runs_go_where_the_docs_say() -> None:
    assert default_folder("spacql", "spread-random") == Path("runs/spacql-spread-random")


def test_foreign_logs_records_before_it_fits_and_tries_afterwards(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mpe2", reason="NOT TESTED: MPE2 is missing")
    import spacql
    from spacql.fitting import Fit

    def fit(logs, out, **_):
        """A round of cloning in place of a portfolio."""
        dataset = spacql.load_dataset(logs)
        assert dataset.n_episodes == 12
        assert dataset.spec.observation_sizes == (3, 11)
        rows = [{"label": x, "mean": -1.0, "low": -2.0, "high": 0.0} for x in ("bc", "other")]
        run = spacql.train("bc", dataset, rounds=1, batch_size=8, out=out / "runs" / "bc")
        run.policy.save(out / "runs" / "other" / "policy")
        result = {"words": "", "level": "quick", "data": {"episodes": 12, "transitions": 300},
                  "table": rows}  # fmt: skip
        return Fit(out, run.policy, "other", "inconclusive", result)

    monkeypatch.setattr(spacql, "fit", fit)
    kept = tmp_path / "results" / "fits" / "speaker.json"
    example("foreign_logs").main("speaker", tmp_path / "x", episodes=12, trials=3, keep=kept)
    said = capsys.readouterr().out
    assert "the log" in said
    assert "<- chosen" in said
    from spacql.fitting import truth

    (line,) = truth.markdown(truth.stored(tmp_path / "results")).splitlines()[2:3]
    assert line.startswith("| speaker | 12 |")
    assert "-1 (-2 to 0)" in line
