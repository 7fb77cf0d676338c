"""The sweeps behind the settings: that they treat algorithms alike, and what is left to run."""

import json
from dataclasses import asdict

import pytest

from spacql.algorithms.settings import MIXTURE
from spacql.cli import main
from spacql.commands import tune
from spacql.errors import InputError
from spacql.experiments import grids
from spacql.experiments.plans import registered
from spacql.experiments.store import Store
from spacql.files import write_json
from spacql.worlds import TASKS


def test_every_algorithm_with_a_strength_has_as_many_trials_on_every_dataset() -> None:
    everything = grids.planned()
    planned = [sweep for sweep in everything if sweep.hyperparameter != "anchor_weight"]
    for sweep in everything:
        if sweep not in planned:  # ASPAC's anchor, beside alpha, where trainings of half fall short
            assert (len(sweep.values), sweep.share) == (4, 1)
    beyond = {
        (a, h, d) for (a, h), more in grids.BEYOND.items() for ds in more.values() for d in ds
    }
    for sweep in planned:
        names = (sweep.algorithm, sweep.hyperparameter, sweep.dataset)
        assert len(sweep.values) == (4 if names in beyond else 3)
        assert sweep.rounds == sweep.config.rounds * sweep.share
        late = (sweep.algorithm, sweep.dataset) in grids.LATE_FALLS
        assert sweep.share == (1 if late or sweep.dataset.startswith("halfcheetah") else 0.5)
    swept = {sweep.algorithm for sweep in planned}
    assert swept | set(MIXTURE) | {"bc"} == set(registered())  # cloning has no strength
    for strength in {(sweep.algorithm, sweep.hyperparameter) for sweep in planned}:
        mine = [s.dataset for s in planned if (s.algorithm, s.hyperparameter) == strength]
        assert len(set(mine)) == len(mine) == 16
    assert min(grids.SEEDS) >= 100
    assert len(grids.SEEDS) >= 2


class Asked(list):
    def __init__(self) -> None:
        self.crashed = {}  # what every entry has besides


@pytest.fixture
def swept(monkeypatch):
    """What was asked of `spacql tune`, which is replaced by scores of value + seed."""
    asked = Asked()

    def sweep(algorithm, config, options):
        asked.append((algorithm, options.data, options.seeds, len(options.values)))
        values = [float(value) for value in options.values]
        entries = [
            {
                "value": value,
                "scores": [value + seed for seed in options.seeds],
                "mean": 0.0,
                "failed": [],
            }
            | asked.crashed
            for value in values
        ]
        rounds = grids.trial_rounds(config.rounds, options.share)
        result = {"algorithm": algorithm, "data": options.data, "rounds": rounds, "by": "score",
                  "seeds": list(options.seeds), "config": asdict(config),
                  "hyperparameter": options.vary, "values": entries}  # fmt: skip
        write_json(options.out / "tune.json", result)
        return result

    monkeypatch.setattr(tune, "sweep", sweep)
    return asked


def reproduce(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "sweeps", *words])
    return end.value.code


def test_what_is_stored_is_not_swept_again_and_the_rest_joins_it(tmp_path, swept, capsys) -> None:
    where = ["--only", "cfcql", "tag-expert", "--results", str(tmp_path / "results"), "--runs",
             str(tmp_path / "runs")]  # fmt: skip
    assert reproduce(*where) == 0
    assert swept == [("cfcql", "tag-expert", grids.SEEDS, 4)]
    assert reproduce(*where) == 0
    assert len(swept) == 1
    [path] = (tmp_path / "results" / "tuning").iterdir()
    whole = json.loads(path.read_text())
    part = whole | {"seeds": [101]}
    part["values"] = [e | {"scores": e["scores"][:1], "mean": 1.0} for e in whole["values"]]
    path.write_text(json.dumps(part))
    capsys.readouterr()
    assert reproduce(*where, "--dry-run") == 0
    assert "sweeps: 1, 0 finished, 1 missing; about" in capsys.readouterr().out
    assert reproduce(*where) == 0
    assert swept[1:] == [("cfcql", "tag-expert", (102,), 4)]
    assert json.loads(path.read_text())["values"] == [
        e | {"mean": e["value"] + 101.5} for e in whole["values"]
    ]
    changed = whole | {"config": whole["config"] | {"batch_size": 8}}
    path.write_text(json.dumps(changed))
    [planned] = grids.planned(("cfcql", "tag-expert"))
    assert planned.left(Store(path.parents[1])) == (planned.values, grids.SEEDS)
    path.write_text(json.dumps(whole | {"values": whole["values"][:3]}))
    assert planned.left(Store(path.parents[1])) == (planned.values[3:], grids.SEEDS)


def test_a_sweep_with_a_training_that_crashed_is_left_to_run(tmp_path, swept, capsys) -> None:
    where = ["--only", "cfcql", "tag-expert", "--results", str(tmp_path / "results"), "--runs",
             str(tmp_path / "runs")]  # fmt: skip
    swept.crashed = {"failed": [102], "crashed": [102]}
    assert reproduce(*where) == 1
    said = capsys.readouterr().err
    assert said == (
        "tag-expert cfcql alpha: not stored, as trainings failed. The same command runs them "
        "again.\n"
    )
    swept.crashed = {}
    assert reproduce(*where) == 0
    assert swept == [("cfcql", "tag-expert", grids.SEEDS, 4)] * 2


def test_what_is_shown_is_what_the_words_name(tmp_path, swept, capsys) -> None:
    where = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--json"]

    def shown(*only: str) -> list[tuple[str, str]]:
        assert reproduce("--only", *only, *where) == 0
        found = json.loads(capsys.readouterr().out)
        return [(sweep["dataset"], sweep["hyperparameter"]) for sweep in found]

    assert shown("iql", "tag-medium") == [("tag-medium", h) for h in ("expectile", "temperature")]
    assert shown("iql", "tag-medium-replay", "expectile") == [("tag-medium-replay", "expectile")]
    assert shown("iql", "tag-medium", "expectile") == [("tag-medium", "expectile")]
    assert len(swept) == 3, "the last was there"


def test_words_name_sweeps_wholly_or_in_part() -> None:
    def datasets(*only: str) -> set[str]:
        return {sweep.dataset for sweep in grids.planned(only)}

    assert datasets("tag-medium", "cfcql") == {"tag-medium"}
    assert datasets("tag", "medium") == {"tag-medium"}
    assert datasets("replay", "td3") == {f"{t}-medium-replay" for t in TASKS}
    assert {sweep.hyperparameter for sweep in grids.planned(("iql", "expectile"))} == {"expectile"}


def test_a_sweep_that_is_none_is_answered_with_a_sentence(tmp_path, capsys) -> None:
    assert reproduce("--only", "nothing") == 2
    assert "there is no such sweep" in capsys.readouterr().err
    assert reproduce("--stored", "--only", "dof", "--results", str(tmp_path)) == 2
    assert "There is no such sweep in" in capsys.readouterr().err
    assert reproduce("--seeds", "0") == 2
    assert "leave out --seeds, --rounds and --out" in capsys.readouterr().err
    with pytest.raises(InputError):
        grids.planned(("cfcql", "macql"))
