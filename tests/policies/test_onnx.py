from pathlib import Path

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from test_acting import observed, team  # noqa: E402

from spacql.commands.export import export  # noqa: E402
from spacql.errors import InputError  # noqa: E402
from spacql.policies import Policy, Uniform  # noqa: E402


def test_one_file_for_the_team_acts_like_the_policy_for_any_batch(tmp_path, capsys):
    policy = team((3, 7), (1, 4))
    policy.save(tmp_path / "policy")
    export(tmp_path, tmp_path / "team.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "team.onnx")
    for batch in (1, 5):
        seen = observed(policy, batch)
        given = {f"observation.agent_{i}": x for i, x in enumerate(seen)}
        for mine, other in zip(session.run(None, given), policy.act(seen), strict=True):
            np.testing.assert_allclose(mine, other, atol=4e-5)
    assert "deviates by at most" in capsys.readouterr().out


def test_one_file_per_agent_knows_that_agent_alone(tmp_path):
    policy = team((3, 7), (1, 4))
    policy.save(tmp_path / "policy")
    export(tmp_path, tmp_path / "team", per_agent=True)
    session = onnxruntime.InferenceSession(tmp_path / "team" / "agent_1.onnx")
    assert [x.name for x in session.get_inputs()] == ["observation.agent_1"]
    seen = observed(policy, 2)
    found = session.run(None, {"observation.agent_1": seen[1]})[0]
    np.testing.assert_allclose(found, policy.act(seen)[1], atol=4e-5)


def test_saturated_actors_stay_within_their_bounds(tmp_path):
    policy = team((4, 4), (2, 2), 0.1, 0.7)
    policy.save(tmp_path / "policy")
    export(tmp_path, tmp_path / "team.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "team.onnx")
    seen = {f"observation.agent_{i}": 1e4 * x for i, x in enumerate(observed(policy, 33))}
    for acted in session.run(None, seen):
        assert np.float32(0.1) <= acted.min() < 0.1 + 1e-6
        assert 0.7 - 1e-6 < acted.max() <= np.float32(0.7)


def test_a_policy_without_a_name_is_written(tmp_path):
    Policy(team((4, 4), (2, 2)).actors, name="", agents=("a", "b")).save(tmp_path / "policy")
    export(tmp_path, tmp_path / "team.onnx")
    assert (tmp_path / "team.onnx").is_file()


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_place_that_names_no_file_is_refused_with_a_sentence(out, tmp_path):
    team((4, 4), (2, 2)).save(tmp_path / "policy")
    with pytest.raises(InputError, match=r"names no file\. For example: --out team\.onnx"):
        export(tmp_path, Path(out))


def test_a_policy_that_is_not_there_is_called_that(tmp_path):
    with pytest.raises(InputError, match=r"no run and no policy .*nothing\. `spacql runs` lists"):
        export(tmp_path / "nothing", tmp_path / "team.onnx")


def test_what_has_no_onnx_form_is_refused(tmp_path):
    Policy((Uniform(2, (-1.0,), (1.0,)),) * 2, agents=("a", "b")).save(tmp_path / "policy")
    with pytest.raises(InputError, match="actor of a is a Uniform"):
        export(tmp_path, tmp_path / "team.onnx")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match=r"no policy\.json"):
        export(tmp_path / "nothing", tmp_path / "x.onnx")


def test_agents_whose_names_look_alike_get_files_of_their_own():
    from spacql.policies.onnx import _file_names

    assert _file_names(("arm 1", "arm-1", "leg", "!")) == ["arm-1-0", "arm-1-1", "leg", "agent-3"]
