"""A real Minari dataset, made here with Minari's own tools, through our door."""

import numpy as np
import pytest

from spacql.cli import main
from spacql.data import load_dataset
from spacql.errors import DataError, InputError

minari = pytest.importorskip(
    "minari", reason="NOT TESTED: Minari is missing; pip install 'spacql[minari]'"
)
from gymnasium import spaces  # noqa: E402

from spacql.data.formats.minari import import_minari  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what Minari wishes to be told
SEEN = spaces.Dict({"boat": spaces.Box(-9, 9, (3,)), "crane": spaces.Box(-9, 9, (2,))})
DONE = spaces.Dict({"boat": spaces.Box(-1, 1, (2,)), "crane": spaces.Box(0, 5, (1,))})


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Minari's folder of datasets, here."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path


def made(name, seen=SEEN, done=DONE, episodes=12, steps=5):
    """Write a dataset by Minari's own buffer; every other episode ends by itself."""
    for number, space in enumerate((seen, done)):
        space.seed(number)
    buffers = []
    for episode in range(episodes):
        end = np.zeros(steps, bool)
        end[-1] = True
        ended = episode % 2 == 0
        buffers.append(
            minari.data_collector.EpisodeBuffer(
                id=episode,
                observations=_stacked([seen.sample() for _ in range(steps + 1)]),
                actions=_stacked([done.sample() for _ in range(steps)]),
                rewards=[float(episode)] * steps,
                terminations=end & ended,
                truncations=end & (not ended),
                infos={},
            )
        )
    return minari.create_dataset_from_buffers(
        dataset_id=name, buffer=buffers, observation_space=seen, action_space=done,
        algorithm_name="test", author="test", author_email="test@example.org",
        code_permalink="https://example.org",
    )  # fmt: skip


def _stacked(rows):
    if not isinstance(rows[0], dict):
        return np.stack(rows)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def test_a_team_of_unequal_agents_comes_through_as_minari_holds_it(store, capsys):
    theirs = made("harbour/test-v0")
    with pytest.raises(SystemExit) as end:
        main(["data", "import", "minari", "harbour/test-v0", "--out", str(store / "log")])
    assert end.value.code in (0, None), capsys.readouterr().err
    dataset = load_dataset(store / "log")
    assert dataset.spec.agents == ("boat", "crane")
    assert dataset.spec.action_low == ((-1.0, -1.0), (0.0,))
    assert dataset.spec.action_high == ((1.0, 1.0), (5.0,))
    assert dataset.n_episodes == 12
    assert dataset.terminated.tolist() == [True, False] * 6
    rows = slice(dataset.starts[3], dataset.starts[4])
    episode = next(iter(theirs.iterate_episodes([3])))
    for k, agent in enumerate(("boat", "crane")):
        np.testing.assert_allclose(dataset.observations[k][rows], episode.observations[agent])
        np.testing.assert_allclose(dataset.actions[k][rows][:-1], episode.actions[agent])
    assert dataset.team_returns[3] == pytest.approx(15)


def test_what_cannot_be_a_team_is_refused_with_a_sentence(store):
    made("alone/test-v0", SEEN["boat"], DONE["boat"])
    with pytest.raises(DataError, match="no log of a team"):
        import_minari("alone/test-v0")
    with pytest.raises(InputError, match="minari download missing/test-v0"):
        import_minari("missing/test-v0")


def test_links_and_claims_of_more_than_is_there_are_refused(store):
    import h5py

    made("linked/test-v0")
    main_file = store / "minari" / "linked" / "test-v0" / "data" / "main_data.hdf5"
    whole = main_file.read_bytes()
    for link in (h5py.ExternalLink("/other.hdf5", "/x"), h5py.SoftLink("/episode_1")):
        with h5py.File(main_file, "a") as file:
            file["episode_0/elsewhere"] = link
        with pytest.raises(DataError, match="elsewhere lies elsewhere"):
            import_minari("linked/test-v0")
        main_file.write_bytes(whole)
    with h5py.File(main_file, "a") as file:
        for k in range(50):
            file.create_dataset(f"episode_0/empty_{k}", (10_000_000,), chunks=(1000,))
    with pytest.raises(DataError, match=r"claims .* bytes"):
        import_minari("linked/test-v0")
