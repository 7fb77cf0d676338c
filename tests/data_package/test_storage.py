import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacql.data import DatasetWriter, load_dataset, save_dataset, storage
from spacql.errors import DataError, InputError
from spacql.worlds.rollout import Trajectories

from .toy import build


def same(first, second):
    assert first.spec == second.spec
    assert first.info["name"] == second.info["name"]
    pairs = zip(first.arrays(), second.arrays(), strict=True)
    return all(a == b and (x == y).all() and x.dtype == y.dtype for (a, x), (b, y) in pairs)


@pytest.mark.parametrize("state_size", [0, 3])
def test_a_dataset_survives_its_folder(tmp_path, state_size):
    dataset = build(
        terminated=(True, False, True), known=(True, False, False), state_size=state_size
    )
    save_dataset(dataset, tmp_path / "toy")
    loaded = load_dataset(tmp_path / "toy", verify=True)
    assert same(dataset, loaded)
    assert loaded.identity == dataset.identity
    for stored, computed in zip(loaded.statistics(), dataset.statistics(), strict=True):
        assert str(stored) == str(computed)


def test_equal_datasets_give_equal_bytes_whatever_the_chunks(tmp_path, monkeypatch):
    save_dataset(build((40, 30)), tmp_path / "first")
    monkeypatch.setattr(
        "spacql.data.storage.row_chunks", lambda rows: [slice(0, 7), slice(7, rows)]
    )
    save_dataset(build((40, 30)), tmp_path / "second")
    for file in (tmp_path / "first").iterdir():
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes(), file.name


def test_files_are_what_numpy_would_have_saved(tmp_path):
    dataset = build()
    save_dataset(dataset, tmp_path / "toy")
    np.save(tmp_path / "plain.npy", dataset.joint_observations)
    stored = (tmp_path / "toy" / "observations.npy").read_bytes()
    assert stored == (tmp_path / "plain.npy").read_bytes()


def test_a_writer_lays_out_trajectories_with_their_final_row(tmp_path):
    rng, spec = np.random.default_rng(0), build().spec
    trajectories = Trajectories(
        observations=tuple(rng.normal(size=(2, 6, size)) for size in spec.observation_sizes),
        actions=tuple(rng.uniform(-1, 1, (2, 6, size)) for size in spec.action_sizes),
        rewards=rng.normal(size=(2, 5, 2)),
        states=np.zeros((2, 6, 0)),
        terminated=np.array([False, True]),
    )
    with DatasetWriter(tmp_path / "toy", spec, {"name": "toy"}) as writer:
        writer.add(trajectories)
        writer.add(trajectories)
        assert writer.transitions == 20
    dataset = load_dataset(tmp_path / "toy")
    assert dataset.starts.tolist() == [0, 6, 12, 18, 24]
    assert dataset.terminated.tolist() == [False, True, False, True]
    assert dataset.final_action_known.all()
    for agent in range(2):
        np.testing.assert_allclose(
            dataset.observations[agent][6:12], trajectories.observations[agent][1], rtol=1e-6
        )
    np.testing.assert_allclose(dataset.returns[:2], trajectories.returns, rtol=1e-5)
    np.testing.assert_allclose(
        dataset.team_returns[:2], trajectories.returns.mean(axis=1), rtol=1e-5
    )


def test_nan_from_a_simulator_is_not_written(tmp_path):
    spec = build().spec
    rewards = np.zeros((1, 5, 2))
    rewards[0, 3, 1] = np.nan
    bad = Trajectories(
        observations=tuple(np.zeros((1, 6, size)) for size in spec.observation_sizes),
        actions=tuple(np.zeros((1, 6, size)) for size in spec.action_sizes),
        rewards=rewards,
        states=np.zeros((1, 6, 0)),
        terminated=np.zeros(1, bool),
    )
    with (
        pytest.raises(DataError, match=r"rewards .* NaN"),
        DatasetWriter(tmp_path / "x", spec) as w,
    ):
        w.add(bad)
    assert list(tmp_path.iterdir()) == []


def test_episodes_that_do_not_fit_the_spec_are_not_written(tmp_path):
    spec = build(state_size=3).spec
    without_state = Trajectories(
        observations=tuple(np.zeros((1, 6, size)) for size in spec.observation_sizes),
        actions=tuple(np.zeros((1, 6, size)) for size in spec.action_sizes),
        rewards=np.zeros((1, 5, 2)),
        states=np.zeros((1, 6, 0)),
        terminated=np.zeros(1, bool),
    )
    place = tmp_path / "x"
    with pytest.raises(DataError, match="states have shape"), DatasetWriter(place, spec) as writer:
        writer.add(without_state)
    with pytest.raises(DataError, match="No episode was added"), DatasetWriter(place, spec):
        pass
    assert list(tmp_path.iterdir()) == []


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(st.data())
def test_any_flipped_bit_is_found_and_its_file_named(tmp_path, data):
    folder = tmp_path / "toy"
    if not folder.exists():
        save_dataset(build(state_size=2), folder)
    file = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = file.read_bytes()
    where = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes([content[where] ^ (1 << data.draw(st.integers(0, 7)))])
    # A blank in the layout of the JSON carries no meaning.
    if file.suffix == ".json" and content[where : where + 1].isspace() and flipped.isspace():
        return
    try:
        file.write_bytes(content[:where] + flipped + content[where + 1 :])
        with pytest.raises(InputError, match=file.name.replace(".", r"\.")):
            load_dataset(folder, verify=True)
    finally:
        file.write_bytes(content)


def test_missing_and_cut_files_are_named_without_verify(tmp_path):
    save_dataset(build(), tmp_path / "toy")
    file = tmp_path / "toy" / "rewards.npy"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"rewards\.npy is damaged: \d+ bytes"):
        load_dataset(tmp_path / "toy")
    file.unlink()
    with pytest.raises(DataError, match=r"there is no .*rewards\.npy"):
        load_dataset(tmp_path / "toy")
    (tmp_path / "toy" / "dataset.json").write_text('{"format": 1}')
    with pytest.raises(DataError, match=r"dataset\.json: Object missing required field `spec`"):
        load_dataset(tmp_path / "toy")
    with pytest.raises(InputError, match="is no dataset"):
        load_dataset(tmp_path / "nowhere")


def test_nothing_is_overwritten(tmp_path):
    save_dataset(build(), tmp_path / "toy")
    with pytest.raises(InputError, match="exists already"):
        save_dataset(build(), tmp_path / "toy")


def test_a_full_disk_gives_a_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    written = []

    def full(column, values):
        written.append(len(values))
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage._Column, "append", full)
    with pytest.raises(InputError, match=r"No space left on device\. Nothing was written"):
        save_dataset(build(), tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_full_at_the_last_flush_gives_a_sentence(tmp_path, monkeypatch):
    def open_full(path, mode):
        return open("/dev/full" if path.name == "team_reward.npy" else path, mode)

    monkeypatch.setattr(storage, "open", open_full, raising=False)
    with pytest.raises(InputError, match="No space left on device"):
        save_dataset(build(), tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
from toy import build
from spacql.data import DatasetWriter
dataset = build()
with DatasetWriter(sys.argv[1], dataset.spec) as writer:
    writer.extend(dataset)
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_no_folder_and_the_next_one_clears_its_remains(tmp_path):
    target = tmp_path / "toy"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "writing\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1
    save_dataset(build(), target)
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_no_dataset_is_not_saved_and_the_order_is_said(tmp_path):
    for arguments, found in (
        ((str(tmp_path / "x"), build()), "not str and Dataset"),
        ((build(), None), "not Dataset and NoneType"),
    ):
        with pytest.raises(InputError, match=f"a Dataset and then a folder, {found}"):
            save_dataset(*arguments)
    assert not any(tmp_path.iterdir())


def test_loading_maps_the_arrays(tmp_path):
    save_dataset(build(), tmp_path / "toy")
    dataset = load_dataset(tmp_path / "toy")
    assert isinstance(dataset.joint_observations.base, np.memmap)
