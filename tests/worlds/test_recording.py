import numpy as np
import pytest

from spacql.cli import main
from spacql.data import load_dataset
from spacql.errors import InputError

pytest.importorskip("pettingzoo")
mpe2 = pytest.importorskip("mpe2.simple_speaker_listener_v4")

from spacql.worlds.recording import Recorder  # noqa: E402


def env():
    return mpe2.parallel_env(continuous_actions=True, max_cycles=6)


def test_what_somebody_elses_code_does_becomes_a_dataset_of_unequal_agents(tmp_path):
    recorder = Recorder(env(), tmp_path / "log")
    played = []
    for seed in range(3):
        recorder.reset(seed=seed)
        while recorder.agents:
            actions = {a: recorder.action_space(a).sample() for a in recorder.agents}
            played.append(actions)
            recorder.step(actions)
    recorder.close()
    dataset = load_dataset(tmp_path / "log")
    assert dataset.n_episodes == 3
    assert (np.diff(dataset.starts) - 1).tolist() == [6, 6, 6]
    assert len(set(dataset.spec.observation_sizes)) == 2
    first = dataset.actions[1][:6]
    np.testing.assert_allclose(first, [a["listener_0"] for a in played[:6]], atol=1e-6)
    assert not dataset.terminated.any()


def test_an_episode_under_way_is_kept_and_an_existing_folder_is_not_touched(tmp_path):
    recorder = Recorder(env(), tmp_path / "log")
    recorder.reset(seed=0)
    for _ in range(2):
        recorder.step({a: recorder.action_space(a).sample() for a in recorder.agents})
    recorder.close()
    assert load_dataset(tmp_path / "log").n_transitions == 2
    with pytest.raises(InputError, match="exists already"):
        Recorder(env(), tmp_path / "log")


def test_the_command_records_uniform_actions_or_those_of_a_function(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from mpe2 import simple_speaker_listener_v4 as world\n"
        "def make():\n"
        "    return world.parallel_env(continuous_actions=True, max_cycles=4)\n"
        "def act(seen):\n"
        "    sizes = {'speaker_0': 3, 'listener_0': 5}\n"
        "    return {a: np.full(sizes[a], 0.25, np.float32) for a in seen}\n"
    )
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--act", "mine:act"]):
        out = tmp_path / f"log{len(more)}"
        with pytest.raises(SystemExit) as end:
            main(["data", "record", "mine:make", "--out", str(out), "--episodes", "2", *more])
        assert end.value.code == 0
    assert "8 transitions in 2 episodes" in capsys.readouterr().out
    assert (load_dataset(tmp_path / "log2").actions[0][:4] == 0.25).all()
    with pytest.raises(SystemExit) as end:
        main(["data", "record", "mine:nothing", "--out", str(tmp_path / "x")])
    assert end.value.code == 2
    assert "cannot be used" in capsys.readouterr().err


def test_episodes_are_cut_at_the_horizon_and_nothing_is_lost(tmp_path):
    recorder = Recorder(env(), tmp_path / "log", horizon=4)
    for seed in range(2):
        recorder.reset(seed=seed)
        while recorder.agents:
            recorder.step({a: recorder.action_space(a).sample() for a in recorder.agents})
    (tmp_path / "log").mkdir()  # somebody else's, meanwhile
    recorder.close()
    recorder.close()
    assert list((tmp_path / "log").iterdir()) == []
    dataset = load_dataset(tmp_path / "log-2")
    assert (np.diff(dataset.starts) - 1).tolist() == [4, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log-2"]


def test_mistakes_are_told_before_anything_is_played(tmp_path, capsys):
    for arguments in (["--seed", "-1"], ["--episodes", "0"], ["--horizon", "0"]):
        with pytest.raises(SystemExit) as end:
            main(["data", "record", "x:y", "--out", str(tmp_path / "x"), *arguments])
        assert end.value.code == 2
        assert "must be a whole number" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Choose another place"):
        Recorder(env(), tmp_path / "file" / "log")
