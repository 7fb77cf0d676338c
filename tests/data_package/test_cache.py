"""Where named datasets are kept."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from spacql.data import cache, collect
from spacql.errors import InputError


def test_a_dataset_that_several_want_at_once_is_made_once(tmp_path, monkeypatch) -> None:
    made = []

    def make(name, path, *, seed, workers):
        made.append((name, seed, workers))
        time.sleep(0.3)
        path.mkdir()
        (path / "dataset.json").write_text("{}")

    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "make_dataset", make)
    with ThreadPoolExecutor(3) as pool:
        found = set(pool.map(lambda _: cache.resolve_folder("tag-random", 5, workers=1), range(3)))
    assert found == {cache.place("tag-random", 0)}
    assert made == [("tag-random", 0, 1)]


def test_as_many_processes_make_a_dataset_as_this_one_may_use_cores(tmp_path, monkeypatch) -> None:
    made = []

    def make(name, path, *, seed, workers):
        made.append(workers)

    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "make_dataset", make)
    monkeypatch.setattr(cache, "cores", lambda: [3, 5, 7])  # of any number that the machine has
    cache.resolve_folder("tag-random")
    assert made == [3]


def test_what_is_neither_a_folder_nor_a_name_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="holds no dataset"):
        cache.is_folder(tmp_path)
    with pytest.raises(InputError, match="Did you mean 'tag-random'"):
        cache.is_folder("tag-randm")
    assert not cache.is_folder("tag-random")


def test_a_run_s_seed_finds_one_of_five_datasets_or_of_five_for_development(
    tmp_path, monkeypatch
) -> None:
    made = []
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "make_dataset", lambda *_, seed, **__: made.append(seed))
    for seed in (0, 4, 5, 7, 99, 100, 104, 105, 251):
        cache.resolve_folder("spread-random", seed)
    assert made == [0, 4, 0, 2, 4, 100, 104, 100, 101]
