"""Algorithms by name, as modules, and of other packages."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from spacql.algorithms import registry, spacql
from spacql.algorithms.config import Training
from spacql.errors import InputError


def offered(**changes):
    """Something that offers an algorithm, with changes."""
    parts = {
        "__name__": "package.mine",
        "NEEDS_NEXT_ACTION": False,
        "Config": Training,
        "init": lambda key, spec, config, statistics: None,
        "update": lambda state, batch, key, config: None,
        "policy": lambda state: None,
    }
    return SimpleNamespace(**{k: v for k, v in (parts | changes).items() if v is not None})


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_algorithm_of_ours_offers_the_protocol(name) -> None:
    module = registry.find(name)
    assert registry.checked(module, name) is module
    assert registry.name_of(module) == name


def test_a_module_is_an_algorithm_by_itself() -> None:
    assert registry.find(spacql) is spacql
    mine = offered()
    assert registry.find(mine) is mine
    assert registry.name_of(mine) == "mine"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"NEEDS_NEXT_ACTION": None}, "NEEDS_NEXT_ACTION"),
        ({"Config": None}, "no dataclass Config"),
        ({"Config": int}, "no dataclass Config"),
        ({"policy": None}, r"no function policy\(state\)"),
        ({"update": lambda state, batch: None}, "its update must take"),
    ],
)
def test_what_is_missing_is_said(changes, what) -> None:
    with pytest.raises(InputError, match=what):
        registry.find(offered(**changes))


def test_other_packages_add_algorithms_by_entry_points(monkeypatch) -> None:
    points = [
        EntryPoint("theirs", "spacql.algorithms.bc", registry.GROUP),
        EntryPoint("broken", "no_such_package.algorithm", registry.GROUP),
        EntryPoint("spacql", "spacql.algorithms.bc", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert registry.names() == (*registry.MODULES, "theirs", "broken")
    assert registry.find("theirs").__name__ == "spacql.algorithms.bc"
    assert registry.find("spacql") is spacql, "ours cannot be replaced"
    with pytest.raises(InputError, match=r"'broken'.*cannot be imported"):
        registry.find("broken")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no algorithm 'spaqcl'.*spacql, plcql"):
        registry.find("spaqcl")
