"""Which columns of a table hold what."""

import numpy as np
import pytest

from spacql.data.formats.tables import from_table
from spacql.errors import DataError

from .test_commands import run


def table(**more):
    """Two agents, two episodes of three steps, a row per step and agent."""
    rows = [(e, t, who) for e in range(2) for t in range(3) for who in ("a", "b")]
    episode, step, agent = (np.array(x) for x in zip(*rows, strict=True))
    numbers = np.linspace(-1, 1, len(rows))
    return {
        "episode": episode, "step": step, "agent": agent.astype(object), "obs": numbers,
        "action": numbers, "reward": numbers, **more,
    }  # fmt: skip


def last_of(agent, step=2):
    """A flag of one agent alone, at a step of the first episode."""
    found = table()
    return ((found["episode"] == 0) & (found["step"] == step) & (found["agent"] == agent)) * 1.0


@pytest.mark.parametrize("agent", ["a", "b"])
def test_an_episode_ends_when_the_task_ended_for_any_agent(agent):
    dataset = from_table(table(terminal=last_of(agent)), {}, "x")
    assert dataset.terminated.tolist() == [True, False]
    assert (np.diff(dataset.starts) - 1).tolist() == [3, 2]
    with pytest.raises(DataError, match=r"Episode 0 goes on after a terminal step \(1\)"):
        from_table(table(terminal=last_of(agent, step=1)), {}, "x")


def test_in_a_row_per_step_any_agents_column_may_say_that_the_task_ended():
    wide = {name: np.arange(4.0) for name in ("step", "obs.a", "obs.b")}
    wide |= {name: np.zeros(4) for name in ("episode", "action.a", "action.b", "reward")}
    wide |= {"terminal.a": np.zeros(4), "terminal.b": np.array([0, 0, 0, 1.0])}
    assert from_table(wide, {}, "x").terminated.tolist() == [True]


@pytest.mark.parametrize("name", ["terminal", "terminals", "terminated"])
def test_a_terminal_column_is_known_by_its_usual_names(name):
    dataset = from_table(table(**{name: last_of("a")}), {}, "x")
    assert dataset.terminated.tolist() == [True, False]
    assert "columns_not_used" not in dataset.info


@pytest.mark.parametrize("names", [("done",), ("dones",), ("terminal", "terminated")])
def test_what_may_be_a_time_limit_is_not_guessed_at(names):
    brought = table(**dict.fromkeys(names, last_of("a")))
    with pytest.raises(DataError, match=rf"From '{names[0]}'.*not clear.*--mapping"):
        from_table(brought, {}, "x")
    for meant, ended in ((names[0], [True, False]), (None, [False, False])):
        assert from_table(brought, {"terminal": meant}, "x").terminated.tolist() == ended


def test_a_known_terminal_column_is_taken_beside_one_that_is_not_clear():
    dataset = from_table(table(terminal=last_of("a"), done=last_of("b", 1)), {}, "x")
    assert dataset.terminated.tolist() == [True, False]
    assert dataset.info["columns_not_used"] == ["done"]


def test_the_import_says_how_many_episodes_the_task_ended_and_what_it_did_not_use(tmp_path, capsys):
    brought = table(terminated=last_of("b"), note=last_of("a"))
    lines = [list(brought), *zip(*brought.values(), strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
    assert run("data", "import", "csv", tmp_path / "x.csv", "--out", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert "the task ended 1 of the episodes" in said
    assert "columns not used: 'note'" in said


MISTAKES = [
    ({"observations": ["none"]}, "'b' has no columns of observations"),
    ({"observations": []}, "has no columns of observations"),
    ({"observations": {"a": [], "b": ["obs"]}}, "'a' has no columns of observations"),
    ({"observations": {}, "actions": {}}, "The agent 'a' is not in the mapping's 'observations'"),
    ({"observations": {"a": ["obs"]}}, "The agent 'b' is not in the mapping's 'observations'"),
    ({"observations": {w: ["obs"] for w in "abc"}}, "The agent 'c' is not in the column of agents"),
    ({f: {w: ["obs"] for w in "cd"} for f in ("observations", "actions")}, "The agent 'a' is not"),
    ({"observations": 3}, "neither a list of columns nor one per agent"),
    ({"observations": {"a": ["obs"], "b": [3]}}, "no column 3"),
]


@pytest.mark.parametrize(("mapping", "sentence"), MISTAKES)
def test_a_mapping_that_leaves_an_agent_without_columns_is_refused(mapping, sentence):
    only_a = np.where(table()["agent"] == "a", 0.5, np.nan)
    brought = table(terminal=last_of("a"), none=only_a)
    with pytest.raises(DataError, match=sentence):
        from_table(brought, mapping, "x")


def test_a_row_per_step_without_agents_is_refused():
    wide = {name: np.arange(4.0) for name in ("episode", "step", "x", "reward")}
    with pytest.raises(DataError, match="names no agent"):
        from_table(wide, {"observations": {}, "actions": {}}, "x")


def test_a_column_of_agents_that_differs_in_every_row_is_refused_at_once():
    rows = 200_000
    brought = {name: np.arange(rows) % 100 for name in ("step", "obs", "action", "reward")}
    brought |= {"episode": np.arange(rows) // 100, "agent": np.arange(rows)}
    with pytest.raises(DataError, match="do not have the same steps"):
        from_table(brought, {}, "x")  # one look at all rows per agent would take hours


def test_the_import_says_whose_last_step_it_left_out(tmp_path, capsys):
    for name, more, said in (
        ("none", {}, "The last step of 2 episodes was left out: no observation follows it."),
        ("one", {"terminal": last_of("a")}, "The last step of 1 episode was left out:"),
    ):
        brought = table(**more)
        lines = [list(brought), *zip(*brought.values(), strict=True)]
        (tmp_path / "x.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
        assert run("data", "import", "csv", tmp_path / "x.csv", "--out", tmp_path / name) == 0
        assert said in capsys.readouterr().out
        assert run("data", "inspect", tmp_path / name) == 0
        assert said.split(":")[0] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("key", ["episode", "step", "reward"])
def test_a_column_that_is_missing_is_looked_for_among_those_that_are_there(key):
    brought = {("paid" if name == key else name): column for name, column in table().items()}
    listed = ", ".join(brought)
    with pytest.raises(DataError, match=rf"no column '{key}'.*Columns: {listed}\. .*--mapping"):
        from_table(brought, {}, "x")


def test_actions_out_of_bounds_are_answered_with_what_the_command_offers(tmp_path, capsys):
    brought = table(action=2 * table()["action"])
    lines = [list(brought), *zip(*brought.values(), strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
    words = ("data", "import", "csv", tmp_path / "x.csv")
    assert run(*words, "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert "--mapping" in said
    for choice in ("--bounds clip", "--bounds rescale"):
        assert choice in said
        assert run(*words, "--out", tmp_path / choice, *choice.split()) == 0
