"""`spacql data table`: how the work is shared."""

import pytest

from spacql import threads
from spacql.commands.table import data_table
from spacql.data import collect


def test_as_many_processes_make_a_dataset_as_this_one_may_use_cores(tmp_path, monkeypatch):
    class Asked(Exception):
        pass

    def make(name, path, **options):
        raise Asked(options["workers"])

    monkeypatch.setattr(collect, "make_dataset", make)
    monkeypatch.setattr(threads, "cores", lambda: [3, 5, 7])  # of any number that the machine has
    with pytest.raises(Asked, match="3"):
        data_table(tasks=("spread",), seeds=(0,), results=tmp_path / "r.json")
