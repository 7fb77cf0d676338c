"""Training one seed: what a round sees, resuming to the bit, and stopping with a sentence."""

import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from training_toy import TINY, toy_dataset

from spacql.algorithms import bc
from spacql.algorithms.settings import configure
from spacql.errors import Diverged, InputError
from spacql.files import read_json, write_json
from spacql.runs import (
    default_folder,
    describe,
    every,
    lengthens,
    open_folder,
    run_folder,
    spent,
    train,
)
from spacql.training.loop import Schedule, chunk_length, sampled
from spacql.training.metrics import MetricsFile, read_metrics


def test_rows_depend_on_seed_and_round_alone() -> None:
    config = configure("spacql", overrides=TINY)
    rows = np.arange(50)
    np.testing.assert_array_equal(sampled(rows, 1, 7, config), sampled(rows, 1, 7, config))
    assert (sampled(rows, 1, 7, config) != sampled(rows, 1, 8, config)).any()
    assert (sampled(rows, 1, 7, config) != sampled(rows, 2, 7, config)).any()
    assert sampled(rows, 0, 0, config).shape == (config.updates, config.batch_size)


@pytest.mark.parametrize(("rounds", "expected"), [(2000, 10), (20, 10), (37, 1), (6, 6)])
def test_chunks_end_where_something_happens(rounds, expected) -> None:
    schedule = Schedule(every(rounds, 20), every(rounds, 20))
    assert chunk_length(rounds, schedule) == expected


def test_metrics_after_a_checkpoint_are_dropped(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"round": 1}\n{"round": 2}\n{"round": 3}\n{"rou')
    MetricsFile(path, after=2).close()
    assert [row["round"] for row in read_metrics(path)] == [1, 2]


def test_a_non_finite_loss_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    tiny = {name: value for name, value in TINY.items() if name != "samples"}
    first = train("td3bc", toy_dataset(), out=folder, **tiny)
    assert first.score is None
    assert "No simulator is known for 'toy'" in first.result["note"]
    longer = {**tiny, "rounds": 60}
    broken = toy_dataset()
    broken.team_reward[3::7] = np.nan
    described = read_json(folder / "run.json")
    described["config"]["rounds"] = 60
    write_json(folder / "run.json", described)
    with pytest.raises(Diverged, match=r"Not finite at round 21: .*td_error.*round 20 is kept"):
        run_folder(folder, broken)
    diverged = read_json(folder / "diverged.json")
    assert diverged["error"].startswith("Not finite at round 21")
    assert diverged["seconds"] > first.result["seconds"]
    assert [row["round"] for row in read_metrics(folder / "metrics.jsonl")] == list(range(1, 21))
    assert train("td3bc", toy_dataset(), out=folder, resume=True, **longer).result["rounds"] == 60
    assert not (folder / "diverged.json").exists()


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    described = describe("spacql", configure("spacql", overrides=TINY), toy_dataset(), 0)
    open_folder(tmp_path / "run", described, resume=False)
    with pytest.raises(InputError, match="--resume"):
        open_folder(tmp_path / "run", described, resume=False)
    other = describe(
        "spacql", configure("spacql", overrides={**TINY, "alpha": 9.0}), toy_dataset(), 0
    )
    with pytest.raises(InputError, match=r"another alpha \(.*, not 9\.0\): give the same --alpha"):
        open_folder(tmp_path / "run", other, resume=True)
    other = describe("spacql", configure("spacql", overrides=TINY), toy_dataset(seed=1), 0)
    with pytest.raises(InputError, match="another dataset"):
        open_folder(tmp_path / "run", other, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "values"),
    [
        ("plcql", TINY | {"bandit_steps": 2}),
        ("dof", {"batch_size": 16, "hidden": (8, 8), "diffusion_steps": 3, "weighted_noise": True}),
    ],
)
def test_a_resumed_run_ends_as_one_that_was_not_interrupted(tmp_path, algorithm, values) -> None:
    """These two carry more than actors and critics: a bandit, an averaged policy that samples."""
    data, whole = toy_dataset(), values | {"rounds": 20}
    train(algorithm, data, out=tmp_path / "parts", **(values | {"rounds": 10}))
    runs = [train(algorithm, data, out=tmp_path / "parts", resume=True, **whole),
            train(algorithm, data, out=tmp_path / "whole", **whole)]  # fmt: skip
    for file in ("metrics.jsonl", "policy.safetensors"):
        parts, once = ((run.folder / file).read_bytes() for run in runs)
        assert parts == once, file


def test_an_algorithm_may_be_a_module(tmp_path: Path) -> None:
    tiny = {"rounds": 4, "batch_size": 8, "hidden": (4, 4), "updates": 1}
    mine = ModuleType("my_own")
    mine.__dict__.update(vars(bc), __name__="my_own")
    run = train(mine, toy_dataset(), out=tmp_path / "run", **tiny)
    assert read_json(run.folder / "run.json")["algorithm"] == "my_own"
    longer = tiny | {"rounds": 8}
    again = train(mine, toy_dataset(), out=tmp_path / "run", resume=True, **longer)
    assert again.result["rounds"] == 8
    with pytest.raises(InputError, match="no algorithm 'my_own'"):
        train("my_own", toy_dataset(), out=tmp_path / "other", **tiny)


def test_a_dataset_s_name_is_no_path() -> None:
    assert default_folder("bc", "../../../etc/x", "tune-") == Path("runs/tune-bc-..-..-..-etc-x")


def test_a_log_of_other_agents_than_the_world_of_its_name_is_not_scored_there() -> None:
    from dataclasses import replace

    from spacql.runs import scorer

    dataset = toy_dataset()
    named = replace(dataset, spec=replace(dataset.spec, task="spread"))
    _, note = scorer("spread", named)
    assert note == "Not evaluated: the log is of other agents than the world 'spread' has."


def test_a_run_continues_only_as_what_it_is(tmp_path: Path) -> None:
    dataset = toy_dataset()
    small = {"rounds": 20, "batch_size": 8, "hidden": (8,)}
    train("bc", dataset, out=tmp_path / "a", **small)
    for change, sentence in (
        ({"seed": 7}, "has the seed 0"),
        ({"rounds": 10}, "trained for 20 rounds already; it cannot end after 10"),
    ):
        with pytest.raises(InputError, match=sentence):
            train("bc", dataset, out=tmp_path / "a", resume=True, **(small | change))
    longer = train("bc", dataset, out=tmp_path / "a", resume=True, **(small | {"rounds": 30}))
    assert longer.result["rounds"] == 30
    # aspac's anchor looks at the share of all rounds: a longer run is another one from the start.
    assert lengthens(configure("cfcql"))
    assert not lengthens(configure("aspac"))
    described = describe("aspac", configure("aspac", "toy", {"rounds": 20}), dataset, 0)
    open_folder(tmp_path / "b", described, resume=False, lengthen=False)
    described["config"]["rounds"] = 40
    with pytest.raises(InputError, match=r"has 20 rounds\. aspac does from the first round"):
        open_folder(tmp_path / "b", described, resume=True, lengthen=False)


def test_a_lengthened_run_ends_where_it_should_and_as_one_of_that_length(tmp_path: Path) -> None:
    dataset = toy_dataset()
    small = {"batch_size": 8, "hidden": (8,)}
    train("bc", dataset, out=tmp_path / "a", rounds=25, **small)
    longer = train("bc", dataset, out=tmp_path / "a", resume=True, rounds=40, **small)
    whole = train("bc", dataset, out=tmp_path / "b", rounds=40, **small)
    rounds = [row["round"] for row in read_metrics(tmp_path / "a" / "metrics.jsonl")]
    assert rounds == list(range(1, 41))
    seen = [np.ones(size) for size in dataset.spec.observation_sizes]
    for ours, theirs in zip(longer.policy.act(seen), whole.policy.act(seen), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_metric_that_could_not_be_read_again_is_refused() -> None:
    from spacql.training.metrics import rows_of

    with pytest.raises(InputError, match="'table' has the shape"):
        rows_of({"table": np.zeros((3, 2, 2))}, 1)
    with pytest.raises(InputError, match="at least one metric"):
        rows_of({}, 1)


def test_seconds_are_those_of_all_sessions(tmp_path: Path) -> None:
    small = {"batch_size": 8, "hidden": (8,), "rounds": 30}

    def stop(now) -> None:
        if now.round == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("bc", toy_dataset(), out=tmp_path / "a", report=stop, **small)
    assert 0 < read_json(tmp_path / "a" / "seconds.json")["seconds"] < 500
    write_json(tmp_path / "a" / "seconds.json", {"seconds": 1000.0})
    resumed = train("bc", toy_dataset(), out=tmp_path / "a", resume=True, **small)
    assert 1000 < resumed.result["seconds"] < 1500
    assert not (tmp_path / "a" / "seconds.json").exists(), "the result has them"
    longer = train("bc", toy_dataset(), out=tmp_path / "a", resume=True, **(small | {"rounds": 40}))
    assert resumed.result["seconds"] < longer.result["seconds"] < 2000
    (tmp_path / "a" / "seconds.json").write_text("{")
    (tmp_path / "a" / "result.json").unlink()
    assert spent(tmp_path / "a") == 0, "a run is not lost for its time"


def test_a_resumed_run_has_the_loggers_and_final_episodes_that_are_asked_for_now(tmp_path) -> None:
    config, data, folder = configure("bc", "toy", {"rounds": 20}), toy_dataset(), tmp_path / "run"
    open_folder(folder, describe("bc", config, data, 0, episodes=7), resume=False)
    begun = read_json(folder / "run.json")
    asked = describe("bc", config, data, 0, episodes=9, loggers=("tensorboard",))
    open_folder(folder, asked, resume=True)
    now = read_json(folder / "run.json")
    assert (now["evaluation"]["final_episodes"], now["loggers"]) == (9, ["tensorboard"])
    assert now == begun | {"evaluation": now["evaluation"], "loggers": now["loggers"]}
    write_json(folder / "result.json", {"rounds": 20, "seconds": 1.0, "evaluation": None})
    open_folder(folder, describe("bc", config, data, 0), resume=True)
    assert read_json(folder / "run.json") == now, "a finished run is only read"


def test_what_a_kill_left_of_the_first_file_is_no_run_and_no_hindrance(tmp_path: Path) -> None:
    described = describe("bc", configure("bc", "toy", {"rounds": 20}), toy_dataset(), 0)
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".run.tmp-{dead.pid}-0a1b2c3d.json").write_text("{")
    open_folder(tmp_path / "run", described, resume=False)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def test_what_a_training_warns_of_comes_as_python_warnings(tmp_path: Path, monkeypatch) -> None:
    said = ["The values are too high.", "The curve still moves."]
    monkeypatch.setattr("spacql.evaluation.verdict.of_run", lambda *_: said)
    with pytest.warns(UserWarning, match="The values are too high") as caught:
        train("bc", toy_dataset(), out=tmp_path, rounds=4, batch_size=8, hidden=(4,))
    ours = [warning for warning in caught if warning.category is UserWarning]
    assert [str(warning.message) for warning in ours] == said
    assert {warning.filename for warning in ours} == {__file__}  # where it was called
