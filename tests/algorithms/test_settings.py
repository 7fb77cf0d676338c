"""The settings: every benchmark configuration, as recorded in tests/data/configurations.json."""

import json
from dataclasses import asdict
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spacql.algorithms import settings, spacql
from spacql.algorithms.settings import configure
from spacql.commands.train import Options, parse
from spacql.data.collect import QUALITIES
from spacql.errors import InputError
from spacql.worlds import TASKS

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "configurations.json").read_text())
GONE = ("penalty_weights", "tau")  # options that no result used
ALGORITHMS = tuple(RECORDED["defaults"])


def resolved(algorithm: str, dataset: str, penalty: str) -> dict[str, Any]:
    """The configuration as JSON has it. An algorithm without a penalty has one for both."""
    has_penalty = "penalty" in RECORDED["defaults"][algorithm]
    config = configure(algorithm, dataset, {"penalty": penalty} if has_penalty else {})
    values = json.loads(json.dumps(asdict(config)))
    return {name: value for name, value in values.items() if name not in GONE}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_benchmark_configuration_is_the_recorded_one(algorithm: str) -> None:
    for task, quality, penalty in product(TASKS, QUALITIES, ("log-sum-exp", "policy")):
        dataset = f"{task}-{quality}"
        differs = RECORDED["differs"][algorithm][dataset][penalty]
        assert resolved(algorithm, dataset, penalty) == RECORDED["defaults"][algorithm] | differs


def test_plcql_has_what_spacql_has_and_dof_its_own_everywhere() -> None:
    for task, quality in product(TASKS, QUALITIES):
        dataset = f"{task}-{quality}"
        theirs = asdict(configure("spacql", dataset))
        mine = asdict(configure("plcql", dataset))
        assert {n: mine[n] for n in theirs if n in mine} == {
            n: theirs[n] for n in mine if n in theirs
        }
        assert configure("dof", dataset) != configure("dof")


def test_only_the_exact_names_of_the_benchmark_have_settings() -> None:
    for name in ("", "world", "world-model", "spread-randomised", "my/spread-random"):
        assert configure("cfcql", name) == configure("cfcql"), name
    assert configure("cfcql", "world-random") != configure("cfcql")


def test_given_values_go_over_settings_and_settings_over_defaults() -> None:
    config = configure("cfcql", "world-expert", {"rounds": 3})
    assert (config.rounds, config.alpha, config.learning_rate) == (3, 12.5, 0.003)
    assert configure("cfcql", "world-expert", {"alpha": 7.0}).alpha == 7


def test_alpha_follows_the_penalty_the_same_way_by_call_and_by_command() -> None:
    for form, alpha in (("log-sum-exp", 2.5), ("policy", 0.1)):
        assert configure("cfcql", "spread-random", {"penalty": form}).alpha == alpha
        words = ["--data", "spread-random", "--penalty", form]
        assert parse("train", "cfcql", words, Options)[1].alpha == alpha
        assert parse("train", "cfcql", [*words, "--alpha", "7"], Options)[1].alpha == 7
        assert parse("train", "cfcql", [f"--penalty={form}", words[0], words[1]], Options)[1] == (
            configure("cfcql", "spread-random", {"penalty": form})
        )


def test_an_algorithm_of_one_s_own_may_have_the_settings_of_another() -> None:
    mine = ModuleType("mine")
    mine.__dict__.update(vars(spacql), __name__="mine", SETTINGS_OF="spacql")
    assert configure(mine, "tag-expert") == configure("spacql", "tag-expert")
    del mine.SETTINGS_OF
    assert configure(mine, "tag-expert") == configure("spacql")


def test_wrong_hyperparameters_are_refused() -> None:
    with pytest.raises(InputError, match=r"no hyperparameter 'alhpa'. Did you mean 'alpha'\?"):
        configure("spacql", overrides={"alhpa": 1.0})
    with pytest.raises(InputError, match=r"discount is 1\.0"):
        configure("spacql", overrides={"discount": 1.0})
    with pytest.raises(InputError, match=r"no algorithm 'spaqcl'. Did you mean 'spacql'\?"):
        configure("spaqcl")


def test_a_setting_that_its_algorithm_lacks_is_an_error(monkeypatch) -> None:
    monkeypatch.setitem(settings.SETTINGS, ("spread-random", "bc"), {"alpha": 1.0})
    with pytest.raises(InputError, match="bc on spread-random name 'alpha'"):
        configure("bc", "spread-random")
