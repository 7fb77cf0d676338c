"""Progress where there is no terminal."""

from spacql import progress as module
from spacql.progress import progress


def test_without_a_terminal_plain_lines_tell_how_far_the_work_is(capsys, monkeypatch):
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with progress("counting", 4) as advance:
        for number in range(4):
            advance(1, f"at {number}")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "counting: 50 % at 1"
    assert len(lines) < 4  # not every step is told


def test_short_work_is_silent(capsys):
    with progress("counting", 3) as advance:
        advance(3)
    assert capsys.readouterr().err == ""
