import numpy as np
import pytest

from spacql.cli import main
from spacql.data import load_dataset
from spacql.errors import DataError, InputError

pytest.importorskip("pettingzoo")
mpe2 = pytest.importorskip("mpe2.simple_speaker_listener_v4")

from pettingzoo.utils.wrappers import BaseParallelWrapper  # noqa: E402

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


class Failing(BaseParallelWrapper):
    """Says NaN from some step on."""

    def __init__(self, what, at):
        super().__init__(env())
        self.what, self.at, self.steps = what, at, 0

    def step(self, actions):
        found = super().step(actions)
        self.steps += 1
        if self.steps >= self.at:
            number = 0 if self.what == "observation" else 1
            found[number]["listener_0"] = found[number]["listener_0"] * np.nan
        return found


def play(recorder, steps=6):
    for _ in range(steps):
        recorder.step({a: recorder.action_space(a).sample() for a in recorder.agents})


@pytest.mark.parametrize("what", ["observation", "reward"])
def test_nan_drops_its_own_episode_alone(what, tmp_path):
    recorder = Recorder(Failing(what, at=15), tmp_path / "log")
    for seed in range(2):
        recorder.reset(seed=seed)
        play(recorder)
    recorder.reset(seed=2)
    with pytest.raises(DataError, match=f"{what} of listener_0 holds NaN .* episode 2"):
        play(recorder)
    recorder.close()
    assert load_dataset(tmp_path / "log").n_transitions == 12


def test_actions_that_cannot_be_recorded_are_not_carried_out(tmp_path):
    recorder = Recorder(env(), tmp_path / "log")
    recorder.reset(seed=0)
    play(recorder, 2)
    good = {a: recorder.action_space(a).sample() for a in recorder.agents}
    for wrong, sentence in (
        ({**good, "listener_0": good["listener_0"] * np.nan}, "action of listener_0 holds NaN"),
        ({"listener_0": good["listener_0"]}, "no action of speaker_0"),
        ({**good, "speaker_0": np.zeros(2)}, "has 2 numbers; expected 3"),
        ({**good, "speaker_0": "left"}, "action of speaker_0 cannot be read"),
        (list(good.values()), "actions came as list; expected a mapping"),
    ):
        with pytest.raises(InputError, match=sentence):
            recorder.step(wrong)
    play(recorder, 4)
    recorder.close()
    assert load_dataset(tmp_path / "log").n_transitions == 6


def test_a_recording_that_could_not_be_written_can_be_written_again(tmp_path, monkeypatch):
    import spacql.data

    recorder = Recorder(env(), tmp_path / "log")
    recorder.reset(seed=0)
    play(recorder)
    with monkeypatch.context() as full:
        full.setattr(spacql.data, "save_dataset", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            recorder.close()
    recorder.close()
    assert load_dataset(tmp_path / "log").n_transitions == 6


def test_observations_that_are_written_in_place_are_kept_apart(tmp_path):
    class InPlace(BaseParallelWrapper):
        seen = np.zeros(11, np.float32)

        def step(self, actions):
            found = super().step(actions)
            self.seen += 1
            found[0]["listener_0"] = self.seen
            return found

    recorder = Recorder(InPlace(env()), tmp_path / "log")
    recorder.reset(seed=0)
    play(recorder)
    recorder.close()
    told = load_dataset(tmp_path / "log").observations[1][1:, 0]
    assert told.tolist() == [1, 2, 3, 4, 5, 6]


def test_mistakes_are_told_before_anything_is_played(tmp_path, capsys):
    for arguments in (["--seed", "-1"], ["--episodes", "0"], ["--horizon", "0"]):
        with pytest.raises(SystemExit) as end:
            main(["data", "record", "x:y", "--out", str(tmp_path / "x"), *arguments])
        assert end.value.code == 2
        assert "must be a whole number" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Choose another place"):
        Recorder(env(), tmp_path / "file" / "log")
    with pytest.raises(InputError, match="horizon is 0"):
        Recorder(env(), tmp_path / "log", horizon=0)
