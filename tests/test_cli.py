"""The command line as a user meets it, in processes of its own."""

import os
import subprocess
import sys

import pytest

from spacql.cli import COMMANDS, main


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spacql", *words], capture_output=True, text=True, timeout=300
    )


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.err + captured.out


def test_help_lists_every_command_with_a_summary(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for name in COMMANDS:
        [line] = [line for line in lines if line.startswith(f"  {name}  ")]
        assert len(line.split(name, 1)[1].strip()) > 10


def test_help_does_not_import_jax():
    code = (
        "import sys\nfrom spacql.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    assert not {'jax', 'scipy', 'matplotlib'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*name.split(), "--help"])
    assert stop.value.code == 0
    assert f"spacql {name}" in capsys.readouterr().out.split("usage", 1)[1].split("\n", 1)[1]


def test_python_m_spacql_is_the_same_command():
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.strip().count(".") == 2


def test_an_unknown_command_names_the_known_ones(capsys):
    assert "data make" in refused(capsys, "data", "mak")
    assert "train" in refused(capsys, "trian")


def test_an_unknown_dataset_is_a_sentence_and_leaves_nothing(capsys, tmp_path):
    message = refused(capsys, "data", "make", "spred-random", "--out", str(tmp_path / "x"))
    assert "spread" in message
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_flag_is_refused(capsys):
    assert "--sede" in refused(capsys, "data", "make", "spread-random", "--sede", "1")


def test_too_few_transitions_are_refused_before_anything_is_written(capsys, tmp_path):
    out = tmp_path / "x"
    message = refused(
        capsys, "data", "make", "spread-random", "--transitions", "10", "--out", str(out)
    )
    assert "25" in message
    assert not out.exists()


def test_an_unknown_command_gets_a_suggestion(capsys):
    assert "Did you mean 'train'?" in refused(capsys, "trian")
    assert "Did you mean 'data make'?" in refused(capsys, "data", "mak")
    assert "Did you mean" not in refused(capsys, "xyzzy")


def test_an_argument_is_no_part_of_a_command_that_is_not_known(capsys):
    assert "no command 'evalute'. Did you mean 'evaluate'?" in refused(capsys, "evalute", "runs/x")
    assert "no command 'dta make'. Did you mean 'data make'?" in refused(capsys, "dta", "make")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["train", "--help"]], ids=" ".join)
def test_a_reader_that_goes_away_gets_no_traceback(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "spacql", *words], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert done.stderr == ""
