import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

from spacql.data import Dataset
from spacql.data.formats.npz import export_npz, import_npz
from spacql.data.formats.omar import export_omar, import_omar
from spacql.data.formats.vault import export_vault, import_vault
from spacql.errors import DataError, InputError, MissingExtra

from .toy import build


def assert_equal_arrays(first, second, names=None):
    found = dict(second.arrays())
    for name, array in first.arrays():
        if names is None or name in names:
            np.testing.assert_array_equal(array, found[name], err_msg=name)


@pytest.mark.parametrize("state_size", [0, 3])
@pytest.mark.parametrize("known", [True, False])
def test_npz_brings_everything_back(tmp_path, state_size, known):
    original = build(terminated=(True, False, False), known=(known,) * 3, state_size=state_size)
    original = replace(original, spec=replace(original.spec, prey="flee", horizon=9))
    export_npz(original, tmp_path / "toy.npz")
    again = import_npz(tmp_path / "toy.npz")
    assert_equal_arrays(original, again)
    assert again.spec == original.spec
    assert again.info == original.info


def test_npz_of_plain_stacked_arrays_is_read(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "mine.npz",
        observations=rng.normal(size=(6, 2, 3)),
        actions=rng.uniform(-3, 3, (6, 2, 1)),
        rewards=rng.normal(size=6),
        timeouts=np.arange(6) % 3 == 2,
        action_low=-3.0,
        action_high=3.0,
    )
    dataset = import_npz(tmp_path / "mine.npz")
    assert dataset.n_episodes == 2
    assert dataset.spec.action_high == ((3.0,), (3.0,))


def test_npz_that_is_wrong_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        import_npz(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(DataError, match=r"cannot be read: File is not a zip"):
        import_npz(tmp_path / "text.npz")
    np.savez(tmp_path / "typo.npz", observation=np.zeros((3, 2, 1)))
    with pytest.raises(DataError, match="unknown array 'observation'"):
        import_npz(tmp_path / "typo.npz")
    np.savez(tmp_path / "half.npz", observations=np.zeros((3, 2, 1)))
    with pytest.raises(DataError, match="has no actions; it holds observations"):
        import_npz(tmp_path / "half.npz")
    np.savez(tmp_path / "pickle.npz", observations=np.array([{}], object))
    with pytest.raises(DataError, match="holds object, not numbers"):
        import_npz(tmp_path / "pickle.npz")
    export_npz(build(), tmp_path / "toy.npz")
    with pytest.raises(InputError, match="exists already"):
        export_npz(build(), tmp_path / "toy.npz")


def test_npz_with_a_field_given_in_both_ways_is_refused(tmp_path):
    arrays = {"actions": np.zeros((3, 2, 1)), "rewards": np.zeros(3), "terminals": [0, 0, 1]}
    ways = {"observations": np.zeros((3, 2, 1)), "observations/a": np.zeros((3, 1))}
    for number, order in enumerate((ways, dict(reversed(ways.items())))):
        np.savez(tmp_path / f"{number}.npz", **arrays, **order)
        with pytest.raises(DataError, match="has observations twice"):
            import_npz(tmp_path / f"{number}.npz")


def test_npz_brings_agents_back_whatever_they_are_called(tmp_path):
    names = ("room:kitchen", "a\\b")
    original = build()
    original = replace(original, spec=replace(original.spec, agents=names))
    export_npz(original, tmp_path / "toy.npz")
    again = import_npz(tmp_path / "toy.npz")
    assert again.spec.agents == names
    assert_equal_arrays(original, again)
    odd = replace(original, spec=replace(original.spec, agents=("a\0b", "a")))
    with pytest.raises(InputError, match="zero byte"):
        export_npz(odd, tmp_path / "odd.npz")


def claim(file, new, **values):
    """The file again, with a spec that says something else."""
    arrays = dict(np.load(file))
    spec = json.loads(str(arrays["spec"])) | values
    np.savez(new, **(arrays | {"spec": np.array(json.dumps(spec))}))
    return new


def test_a_stored_spec_that_does_not_fit_its_arrays_is_refused(tmp_path):
    export_npz(build(), tmp_path / "toy.npz")
    swapped = claim(tmp_path / "toy.npz", tmp_path / "swapped.npz", observation_sizes=(3, 4))
    with pytest.raises(DataError, match=r"observe \(3, 4\) numbers.*have \(4, 3\)"):
        import_npz(swapped)
    short = claim(tmp_path / "toy.npz", tmp_path / "short.npz", horizon=4)
    with pytest.raises(DataError, match="horizon 4, and an episode has 5 steps"):
        import_npz(short)
    export_vault(build(terminated=(True,) * 3), tmp_path / "toy.vlt")
    described = tmp_path / "toy.vlt" / "toy" / "metadata.json"
    metadata = json.loads(described.read_text())
    ours = json.loads(metadata["spacql"])
    for wrong in ({"observation_sizes": (3, 4)}, {"horizon": 4}):
        text = json.dumps(ours | {"spec": ours["spec"] | wrong})
        described.write_text(json.dumps(metadata | {"spacql": text}))
        with pytest.raises(DataError, match="its spec"):
            import_vault(tmp_path / "toy.vlt")


@pytest.mark.parametrize("state_size", [0, 3])
def test_omar_brings_back_what_it_holds(tmp_path, state_size):
    original = build(terminated=(True, False, False), known=(False,) * 3, state_size=state_size)
    export_omar(original, tmp_path / "seed_0_data")
    assert_equal_arrays(original, import_omar(tmp_path / "seed_0_data"))


def test_omar_marks_the_last_transition_of_episodes_whose_dones_were_never_set(tmp_path):
    """The published particle files: dones all zero, 25 steps, the next row is another episode."""
    original = build((25,) * 4, observation_sizes=(5,) * 3, action_sizes=(2,) * 3)
    folder = tmp_path / "simple_tag" / "medium" / "seed_3_data"
    export_omar(original, folder)
    assert not np.load(folder / "dones_1.npy").any()
    dataset = import_omar(folder)
    assert dataset.starts.tolist() == [0, 26, 52, 78, 104]
    assert not dataset.terminated.any()
    assert not dataset.final_action_known.any()
    assert len(dataset.target_rows()) == 96
    assert_equal_arrays(original, dataset, ("observations", "rewards"))
    assert dataset.spec.agents == ("predator_0", "predator_1", "predator_2")
    assert dataset.spec.task == "tag"
    assert dataset.info["reference"] == {"random": -4.1, "expert": 185.6, "source": "published"}
    assert dataset.info["name"] == "simple_tag/medium/seed_3_data"


def test_omar_takes_set_dones_of_a_published_task_for_time_limits(tmp_path):
    folder = tmp_path / "HalfCheetah-v2" / "random" / "seed_0_data"
    export_omar(build((30, 30), terminated=(True, True), state_size=17), folder)
    assert not import_omar(folder).terminated.any()


def test_omar_files_that_are_wrong_are_named(tmp_path):
    with pytest.raises(InputError, match="There is no folder"):
        import_omar(tmp_path / "none")
    with pytest.raises(InputError, match=r"holds no obs_0\.npy"):
        import_omar(tmp_path)
    export_omar(build(), tmp_path / "data")
    (tmp_path / "data" / "acs_1.npy").unlink()
    with pytest.raises(InputError, match=r"no file .*acs_1\.npy"):
        import_omar(tmp_path / "data")
    (tmp_path / "data" / "acs_1.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"acs_1\.npy cannot be read"):
        import_omar(tmp_path / "data")
    np.save(tmp_path / "data" / "next_obs_0.npy", np.zeros((2, 4)))
    with pytest.raises(DataError, match="differ in length"):
        import_omar(tmp_path / "data")


@pytest.mark.parametrize("state_size", [0, 3])
def test_vault_brings_back_what_it_holds(tmp_path, state_size, capsys):
    original = build(terminated=(True, False, True), state_size=state_size)
    export_vault(original, tmp_path / "toy.vlt")
    again = import_vault(tmp_path / "toy.vlt")
    assert capsys.readouterr().out == ""
    assert again.spec == original.spec  # the unlike sizes of the agents among it
    assert again.info == {**original.info, "last_steps_left_out": 1}
    # Episodes that the task ended keep all transitions; the one that time ended loses its last.
    assert again.n_transitions == original.n_transitions - 1
    rows, expected = again.transition_rows(), original.transition_rows()
    expected = expected[expected != original.starts[2] - 2]
    np.testing.assert_array_equal(
        again.joint_observations[rows], original.joint_observations[expected]
    )
    np.testing.assert_array_equal(again.joint_actions[rows], original.joint_actions[expected])
    np.testing.assert_array_equal(again.rewards[rows], original.rewards[expected])
    np.testing.assert_array_equal(again.team_reward[rows], original.team_reward[expected])
    if state_size:
        np.testing.assert_array_equal(again.states[rows], original.states[expected])
    assert again.terminated.tolist() == [True, False, True]


def test_a_foreign_vault_of_a_published_task_without_marks_is_cut_at_the_time_limit(tmp_path):
    original = build((50,), observation_sizes=(5,) * 3, action_sizes=(2,) * 3)
    folder = tmp_path / "simple_world.vlt"
    export_vault(replace(original, info={"name": "Medium"}), folder)
    metadata = json.loads((folder / "Medium" / "metadata.json").read_text())
    del metadata["spacql"]
    (folder / "Medium" / "metadata.json").write_text(json.dumps(metadata))
    dataset = import_vault(folder / "Medium")
    assert dataset.starts.tolist() == [0, 25, 50]
    assert dataset.spec.task == "world"
    assert dataset.info["name"] == "simple_world-Medium"


def test_vaults_that_are_wrong_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="There is no folder"):
        import_vault(tmp_path / "none")
    with pytest.raises(InputError, match="holds 0 vaults"):
        import_vault(tmp_path)
    export_vault(build(), tmp_path / "a.vlt")
    shutil.copytree(tmp_path / "a.vlt", tmp_path / "b.vlt")
    with pytest.raises(InputError, match=r"2 vaults.*Name one of: .*a\.vlt"):
        import_vault(tmp_path)
    shutil.rmtree(tmp_path / "a.vlt" / "toy" / "d")
    with pytest.raises(DataError, match="toy, observations cannot be read"):
        import_vault(tmp_path / "a.vlt")
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(MissingExtra, match=r"pip install 'spacql\[vault\]'"):
        import_vault(tmp_path / "b.vlt")


def test_importers_offer_clipping(tmp_path):
    wild = build()
    wild.joint_actions[:, 0] *= 5
    export_omar(wild, tmp_path / "data")
    with pytest.raises(DataError, match="outside"):
        import_omar(tmp_path / "data")
    clipped: Dataset = import_omar(tmp_path / "data", bounds="clip")
    assert np.abs(clipped.joint_actions).max() <= 1


def test_bounds_that_were_rescaled_stay_so(tmp_path):
    original = build()
    export_npz(original, tmp_path / "toy.npz")
    again = import_npz(tmp_path / "toy.npz", bounds="rescale")
    for low, high, done in zip(again.spec.action_low, again.spec.action_high, again.actions,
                               strict=True):  # fmt: skip
        rows = done[again.transition_rows()]
        assert (rows >= np.array(low) - 1e-6).all()
        assert (rows <= np.array(high) + 1e-6).all()
    assert again.spec.action_high != original.spec.action_high
