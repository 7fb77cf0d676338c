"""Empty cells, flags, and columns whose type changes on the way."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from spacql.data.formats import read
from spacql.data.formats.cells import joined, text
from spacql.data.formats.tables import from_table
from spacql.errors import DataError

from .test_columns import last_of, table


@pytest.fixture
def store():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(path, columns):
        plain = {name: x.tolist() if hasattr(x, "tolist") else x for name, x in columns.items()}
        parquet.write_table(pyarrow.table(plain), path)
        return path

    return write


def times(empty=None):
    """The steps as times, one of them perhaps missing."""
    found = [datetime(2020, 1, 1) + timedelta(hours=int(t)) for t in table()["step"]]
    return [None if k == empty else time for k, time in enumerate(found)]


@pytest.mark.parametrize("column", ["step", "episode"])
def test_a_time_that_is_missing_is_an_empty_cell(column, store, tmp_path):
    whole = read("parquet", store(tmp_path / "a.parquet", table(step=times())))
    assert whole.identity == from_table(table(), {}, "x").identity
    file = store(tmp_path / "b.parquet", table(**{column: times(empty=11)}))
    with pytest.raises(DataError, match=rf"'{column}' is empty at data row 12\."):
        read("parquet", file)


def test_a_row_of_nobody_is_refused():
    with pytest.raises(DataError, match=r"'agent' is empty at data row 12\."):
        from_table(table(agent=np.array([*"abababababa", ""], object)), {}, "x")


def test_flags_with_missing_values_mean_the_same_in_every_batch(store, tmp_path, monkeypatch):
    from spacql.data.formats import parquet

    monkeypatch.setattr(parquet, "ROWS", 4)
    flags = [bool(x) for x in last_of("b")]
    flags[-1] = None  # in the last batch alone
    brought = table(terminal=flags, obs_2=[None, *table()["obs"][1:]])
    brought["obs_2"] = [x if who == "b" else None for x, who in
                        zip(brought["obs_2"], brought["agent"], strict=True)]  # fmt: skip
    dataset = read("parquet", store(tmp_path / "x.parquet", brought))
    assert dataset.terminated.tolist() == [True, False]
    assert dataset.spec.observation_sizes == (1, 2)


def test_files_may_differ_in_the_type_of_a_column(store, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    words = {0: "a", 1: "b"}
    for e in range(2):
        part = {name: x[table()["episode"] == e] for name, x in table().items()}
        part["agent"] = np.array([{"a": 0, "b": 1}[x] for x in part["agent"]])
        if e:  # as another program may write it: numbers as text, or with a decimal point
            part["agent"] = part["agent"].astype(float)
            part |= {name: part[name].astype(str) for name in ("episode", "step", "obs")}
        store(folder / f"{e}.parquet", part)
    dataset = read("parquet", folder)
    wanted = from_table(table(), {}, "x")
    assert [words[int(name)] for name in dataset.spec.agents] == ["a", "b"]
    assert dataset.identity == wanted.identity


def test_pieces_of_numbers_and_text_become_text():
    pieces = [np.array([1, 2]), np.array(["x"], object), np.array([3.0, 0.5, np.nan])]
    assert joined(pieces).tolist() == ["1", "2", "x", "3", "0.5", "nan"]
    assert joined(pieces[::2]).dtype == np.float64
    assert text(np.array([1e16, -2.0])).tolist() == ["1e+16", "-2"]


def test_columns_that_hold_no_cells_are_named_as_not_used(store, tmp_path):
    brought = table(path=[[1, 2]] * 12)
    dataset = read("parquet", store(tmp_path / "x.parquet", brought))
    assert dataset.info["columns_not_used"] == ["path"]


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("", r"'obs' is empty at episode 0, step 2, 'b'\. Fill in or drop"),
        ("nan", r"'obs' holds 'nan', which counts as empty, at episode 0, step 2, 'b'\."),
        ("abc", r"'obs' holds 'abc' at episode 0, step 2, 'b', which is no number"),
    ],
)
def test_a_bad_cell_is_told_by_its_episode_step_and_agent(cell, sentence):
    column = np.array(list(map(str, table()["obs"])), object)
    column[5] = cell
    with pytest.raises(DataError, match=sentence):
        from_table(table(obs=column), {}, "x")
