"""The settings: the same ground for all algorithms, and how a configuration comes about."""

from dataclasses import asdict
from itertools import product
from types import ModuleType

import pytest

from spacql.algorithms import settings, spacql
from spacql.algorithms.settings import configure
from spacql.commands.train import Options, parse
from spacql.data.collect import QUALITIES
from spacql.errors import InputError
from spacql.experiments.plans import registered
from spacql.worlds import TASKS

DATASETS = tuple(f"{task}-{quality}" for task, quality in product(TASKS, QUALITIES))


@pytest.mark.parametrize("dataset", DATASETS)
def test_all_algorithms_have_as_many_updates_batches_and_units(dataset) -> None:
    for algorithm in registered():
        config = configure(algorithm, dataset)
        assert config.rounds * config.updates == 15_000, algorithm
        assert (config.batch_size, config.hidden) == (256, (128, 128)), algorithm


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_conservative_have_as_many_steps_of_actors_as_of_critics(dataset) -> None:
    theirs = [asdict(configure(name, dataset)) for name in (*settings.PENALISED, "omar", "aspac")]
    shared = ("updates", "learning_rate", "actor_learning_rate", "target_rate", "samples",
              "policy_samples", "tanh_cost")  # fmt: skip
    assert {config["updates"] for config in theirs} == {1}
    for name in shared:
        # With ASPAC's rates the critics of all others diverge on halfcheetah-medium.
        slower = dataset == "halfcheetah-medium" and name.endswith("learning_rate")
        assert len({config[name] for config in theirs[:-1]}) == 1, name
        assert slower or theirs[-1][name] == theirs[0][name], name
    # OMAR has a penalty per agent: three times one transition in eight is more than one in four.
    every = [config["penalty_every"] for config in theirs]
    assert every == [8 if name == "omar" else 4 for name in (*settings.PENALISED, "omar", "aspac")]


def test_aspac_has_one_configuration_for_all_data() -> None:
    assert {configure("aspac", dataset) for dataset in DATASETS} == {configure("aspac")}


def test_plcql_has_what_spacql_has_and_dof_its_own_everywhere() -> None:
    for dataset in DATASETS:
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
    config = configure("cfcql", "tag-medium", {"rounds": 3})
    assert (config.rounds, config.alpha, config.learning_rate) == (3, 0.1, 0.003)
    assert configure("cfcql", "tag-medium", {"alpha": 7.0}).alpha == 7


def test_alpha_follows_the_penalty_the_same_way_by_call_and_by_command() -> None:
    for form, alpha in (("log-sum-exp", 0.5), ("policy", 0.1)):
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
