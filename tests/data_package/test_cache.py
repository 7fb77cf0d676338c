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


def test_a_dataset_folder_whose_name_is_near_is_suggested(tmp_path, monkeypatch) -> None:
    for name in ("my-robots", "my-robott"):
        (tmp_path / "logs" / name).mkdir(parents=True)
    (tmp_path / "logs" / "my-robots" / "dataset.json").touch()  # the other is no dataset
    for place, name in (("logs", "my-robot"), (".", "logs/my-robot")):
        monkeypatch.chdir(tmp_path / place)
        with pytest.raises(InputError, match=f"Did you mean '{name}s'"):
            cache.is_folder(name)


def test_data_that_is_no_text_is_refused() -> None:
    import spacql

    with pytest.raises(InputError, match="The data is a NoneType; expected a Dataset, a folder"):
        spacql.train("bc", None)


def test_a_run_s_seed_finds_one_of_five_datasets_or_of_five_for_development(
    tmp_path, monkeypatch
) -> None:
    made = []
    monkeypatch.setenv("SPACQL_CACHE", str(tmp_path))
    monkeypatch.setattr(collect, "make_dataset", lambda *_, seed, **__: made.append(seed))
    for seed in (0, 4, 5, 7, 99, 100, 104, 105, 251):
        cache.resolve_folder("spread-random", seed)
    assert made == [0, 4, 0, 2, 4, 100, 104, 100, 101]
