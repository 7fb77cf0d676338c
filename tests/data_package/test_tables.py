import json

import numpy as np
import pytest

from spacql.data.formats import read
from spacql.errors import InputError, NoRoom, SpacqlError

HEADER = ["episode", "step", "agent", "obs_heat", "obs_price", "action_power", "reward", "terminal"]


def long_rows(episodes=3, steps=4):
    random = np.random.default_rng(0)
    for e in range(episodes):
        for t in range(steps):
            for agent in ("kitchen", "living"):
                price = f"{random.normal():.4f}" if agent == "kitchen" else ""
                ended = int(e == 0 and t == steps - 1)
                yield [f"day{e}", t, agent, f"{random.normal():.4f}", price,
                       f"{random.uniform(0, 3):.4f}", f"{-t}", ended]  # fmt: skip


def write(path, header, rows, separator=","):
    lines = [header, *rows]
    path.write_text("\n".join(separator.join(map(str, line)) for line in lines) + "\n")
    return path


def episodes_of(dataset):
    """All that each episode holds, row by row; the episodes in an order that is their own."""
    rows = np.concatenate(
        [dataset.joint_observations, dataset.joint_actions, dataset.rewards], axis=1
    )
    ended = dataset.terminated.tolist()
    return sorted(zip((x.tolist() for x in np.split(rows, dataset.starts[1:-1])), ended,
                      strict=True))  # fmt: skip


@pytest.fixture
def bounds(tmp_path):
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps({"action_low": 0, "action_high": {"kitchen": 4, "living": 3}}))
    return path


def test_a_row_per_step_and_agent_becomes_episodes_of_unequal_agents(tmp_path, bounds):
    file = write(tmp_path / "log.csv", HEADER, long_rows())
    dataset = read("csv", file, mapping=bounds)
    assert dataset.spec.agents == ("kitchen", "living")
    assert dataset.spec.observation_sizes == (2, 1)
    assert dataset.spec.action_high == ((4.0,), (3.0,))
    assert dataset.n_episodes == 3
    assert dataset.terminated.tolist() == [True, False, False]
    # An episode that time ended has its last row as final observation.
    assert (np.diff(dataset.starts) - 1).tolist() == [4, 3, 3]
    assert dataset.team_returns.tolist() == [-6, -3, -3]


def test_rows_may_come_in_any_order_and_with_semicolons(tmp_path, bounds):
    rows = list(long_rows())
    first = read("csv", write(tmp_path / "a.csv", HEADER, rows), mapping=bounds)
    other = read("csv", write(tmp_path / "b.csv", HEADER, rows[::-1], ";"), mapping=bounds)
    assert episodes_of(first) == episodes_of(other)


def test_a_row_per_step_has_columns_that_end_in_the_agent(tmp_path):
    header = ["episode", "step", "obs.a", "obs_2.a", "obs.b", "action.a", "action.b", "reward"]
    rows = [[e, t, t, e, -t, 0.5, -0.5, 1] for e in range(2) for t in range(3)]
    dataset = read("csv", write(tmp_path / "wide.csv", header, rows))
    assert dataset.spec.observation_sizes == (2, 1)
    np.testing.assert_array_equal(dataset.observations[1][:3, 0], [0, -1, -2])


def test_a_folder_of_files_is_one_log_and_parquet_says_the_same(tmp_path, bounds):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = list(long_rows())
    (tmp_path / "parts").mkdir()
    for e in range(3):
        part = [row for row in rows if row[0] == f"day{e}"]
        write(tmp_path / "parts" / f"{e}.csv", HEADER, part)
    from_csv = read("csv", tmp_path / "parts", mapping=bounds)
    columns = {name: [row[k] for row in rows] for k, name in enumerate(HEADER)}
    columns["obs_price"] = [float(x) if x else None for x in columns["obs_price"]]
    for name in ("obs_heat", "action_power", "reward"):
        columns[name] = [float(x) for x in columns[name]]
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    from_parquet = read("parquet", tmp_path / "log.parquet", mapping=bounds)
    np.testing.assert_allclose(from_csv.joint_observations, from_parquet.joint_observations)
    assert from_csv.identity == from_parquet.identity


def broken(rows):
    rows = [list(row) for row in rows]
    yield "no column 'step'", [h if h != "step" else "stop" for h in HEADER], rows
    yield "twice", HEADER, [rows[0], *rows]
    yield "same steps", HEADER, rows[:-1]
    yield "no number", HEADER, [[*rows[0][:3], "warm", *rows[0][4:]], *rows[1:]]
    yield "goes on after a terminal", HEADER, [[*rows[0][:-1], 1], [*rows[1][:-1], 1], *rows[2:]]
    yield "neither true nor false", HEADER, [[*rows[0][:-1], "maybe"], *rows[1:]]
    yield "line 2: 7 cells", HEADER, [rows[0][:-1], *rows[1:]]
    yield "no rows", HEADER, []
    yield "two columns 'episode'", ["episode", *HEADER[:1], *HEADER[2:]], rows
    yield (
        "is empty at episode day0, step 0, 'kitchen'",
        HEADER,
        [[*rows[0][:3], "", *rows[0][4:]], *rows[1:]],
    )
    yield "No columns of actions", [h.replace("action", "push") for h in HEADER], rows


@pytest.mark.parametrize("number", range(11))
def test_what_is_wrong_or_ambiguous_is_refused_with_a_sentence(number, tmp_path, bounds):
    sentence, header, rows = list(broken(long_rows()))[number]
    with pytest.raises(SpacqlError, match=sentence):
        read("csv", write(tmp_path / "log.csv", header, rows), mapping=bounds)


def test_mappings_are_checked(tmp_path):
    file = write(tmp_path / "log.csv", HEADER, long_rows())
    mapping = tmp_path / "m.json"
    for text, sentence in (
        ({"epizode": "x"}, "unknown key 'epizode'. Did you mean 'episode'"),
        ({"actions": ["action_pover"]}, "no column 'action_pover'. Did you mean 'action_power'"),
        ({"reward": "pay"}, "no column 'pay'"),
        ({"action_high": {"kitchen": 4}}, "nothing of 'living'"),
    ):
        mapping.write_text(json.dumps(text))
        with pytest.raises(SpacqlError, match=sentence):
            read("csv", file, mapping=mapping)
    with pytest.raises(InputError, match="not of npz"):
        read("npz", file, mapping=mapping)


def test_shuffled_rows_make_the_same_episodes(tmp_path, bounds):
    rows = list(long_rows(episodes=5))
    first = read("csv", write(tmp_path / "a.csv", HEADER, rows), mapping=bounds)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(rows))
        mixed = write(tmp_path / "b.csv", HEADER, [rows[k] for k in order])
        other = read("csv", mixed, mapping=bounds)
        assert episodes_of(first) == episodes_of(other)


def test_an_episode_of_one_row_that_goes_on_elsewhere_is_left_out(tmp_path, bounds):
    rows = [*long_rows(), *([f"day{9}", 0, agent, 1, 1, 1, 0, 0] for agent in ("kitchen",))]
    rows.append(["day9", 0, "living", 1, "", 1, 0, 0])
    dataset = read("csv", write(tmp_path / "log.csv", HEADER, rows), mapping=bounds)
    assert dataset.n_episodes == 3
    alone = write(tmp_path / "alone.csv", HEADER, rows[-2:])
    with pytest.raises(SpacqlError, match="no episode has two rows"):
        read("csv", alone, mapping=bounds)


def peak(function):
    """The most memory that Python and NumPy held meanwhile, in bytes."""
    import tracemalloc

    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_one_long_cell_does_not_make_all_of_them_long(tmp_path, bounds):
    rows = [[*row, "x" * 100_000 if k == 0 else ""] for k, row in enumerate(long_rows(60))]
    file = write(tmp_path / "log.csv", [*HEADER, "note"], rows)
    assert peak(lambda: read("csv", file, mapping=bounds)) < 20e6


def test_text_that_parquet_repeats_is_held_once(tmp_path, bounds):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = dict(zip(HEADER, map(list, zip(*long_rows(60), strict=True)), strict=True))
    columns["note"] = ["x" * 1_000_000] * len(columns["step"])
    columns["path"] = [[1, 2]] * len(columns["step"])
    file = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    assert file.stat().st_size < 50_000
    assert peak(lambda: read("parquet", file, mapping=bounds)) < 20e6


def test_a_csv_file_that_memory_could_not_hold_is_refused_before_it_is_read(tmp_path, monkeypatch):
    from spacql.data.formats import csv

    file = write(tmp_path / "log.csv", HEADER, long_rows())
    monkeypatch.setattr(csv, "free_memory", lambda: 9 * file.stat().st_size)
    with pytest.raises(NoRoom, match=r"log\.csv .* of memory are free"):
        read("csv", file)


def test_blank_lines_are_skipped_and_counted(tmp_path, bounds):
    rows = list(long_rows())
    file = write(tmp_path / "log.csv", HEADER, rows)
    whole = read("csv", file, mapping=bounds)
    lines = file.read_text().splitlines()
    file.write_text("\n\n".join(lines) + "\n\n\n")
    assert read("csv", file, mapping=bounds).identity == whole.identity
    file.write_text("\n\n".join([*lines, "1,2"]))
    with pytest.raises(SpacqlError, match=f"line {2 * len(lines) + 1}: 2 cells"):
        read("csv", file, mapping=bounds)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_pipe_is_refused_and_not_waited_for(kind, tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no plain file"):
        read(kind, tmp_path / "pipe")
    with pytest.raises(InputError, match="There is no file"):
        read(kind, tmp_path / "nothing")
