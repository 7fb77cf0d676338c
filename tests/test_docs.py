"""README and docs: numbers are those of the commands beside them, and every command works."""

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from spacql import cli
from spacql.experiments.store import Store

ROOT = Path(__file__).parent.parent
OUTSIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in OUTSIDE), *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    ((?:spacql|make|python|pip) .*)$", re.MULTILINE)
INLINE = re.compile(r"`((?:spacql|make|python) [^`]+)`")


@pytest.fixture(scope="module")
def fill():
    spec = importlib.util.spec_from_file_location("fill", ROOT / "docs" / "fill.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_table_text_and_figure_in_the_docs_is_up_to_date(fill):
    assert fill.main(check=True) == 0


def test_a_table_replaces_what_stood_between_the_comments_and_nothing_else(fill, tmp_path):
    text = "a\n<!-- spacql reproduce table1 --only spread -->\nold\n<!-- end -->\nb\n"
    new = fill.filled(text, Store(tmp_path))
    assert new.startswith(
        "a\n<!-- spacql reproduce table1 --only spread -->\n\nNot run yet in spread: "
    )
    assert new.endswith("<!-- end -->\nb\n")
    assert "\nold\n" not in new
    assert fill.filled(new, Store(tmp_path)) == new


def test_other_options_in_a_comment_are_refused(fill, tmp_path):
    text = "<!-- spacql reproduce table1 --seeds 0 -->\n<!-- end -->"
    with pytest.raises(SystemExit, match="Only --only"):
        fill.filled(text, Store(tmp_path))


def commands(text: str) -> list[str]:
    """All commands of a page: indented, in fences that are no Python, and within sentences."""
    fenced = [body for language, body in FENCE.findall(text) if language != "python"]
    prose = FENCE.sub("", text)
    lines = [line for body in fenced for line in body.splitlines()] + INDENTED.findall(prose)
    found = [line.split("  #")[0].strip() for line in lines] + INLINE.findall(prose)
    return [line for line in found if re.match(r"(spacql|make|python) ", line)]


EVERY = sorted({(page.name, command) for page in PAGES for command in commands(page.read_text())})


def parsed(words: list[str]) -> None:
    """Let the real parser read a command, and run nothing."""
    name = next(" ".join(words[:k]) for k in (2, 1) if " ".join(words[:k]) in cli.COMMANDS)
    function, rest = cli._function(name), words[len(name.split()) :]
    if name in ("train", "tune"):  # read their own arguments
        from spacql.commands import train, tune

        options = {"train": train.Options, "tune": tune.Options}[name]
        train.parse(name, rest[0], rest[1:], options)
        return
    import tyro

    nothing = functools.wraps(function)(lambda *_, **__: None)
    tyro.cli(nothing, prog=f"spacql {name}", args=rest)


def test_commands_are_found_however_they_are_written():
    text = "    spacql demo  # quick\nSee `spacql theory`.\n```\nmake test\n```\n"
    text += "```python\nspacql x\n```"
    assert commands(text) == ["make test", "spacql demo", "spacql theory"]
    assert len(EVERY) > 30


@pytest.mark.parametrize(("page", "command"), EVERY, ids=lambda text: text)
def test_every_command_in_readme_and_docs_is_understood(page, command, capsys):
    program, *words = shlex.split(command.replace("NAME ", "spacql "))
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif program == "python":
        assert (ROOT / words[0]).is_file()
    elif words == [] or words[-1] in ("--help", "--version"):
        with pytest.raises(SystemExit) as stop:
            cli.main(words)
        assert not stop.value.code
    elif " ".join(words) not in cli.COMMANDS:  # a name alone in a sentence is no call
        parsed(words)


def test_the_commands_of_ray_are_understood():
    scripts = pytest.importorskip("ray.scripts.scripts")
    text = (ROOT / "docs" / "cluster.md").read_text()
    found = re.findall(r"(?:^    |`)ray ([a-z-]+ --[^`\n]+)", text, re.MULTILINE)
    assert len(found) == 3
    for name, *words in map(shlex.split, found):
        scripts.cli.commands[name].make_context(name, words)


STORED = re.compile(r"spacql (reproduce \w+ --stored|reproduce claims|results |report results)")
QUICK = sorted({command for _, command in EVERY if STORED.match(command)})


@pytest.mark.parametrize("command", QUICK)
def test_commands_on_stored_results_run_as_they_stand(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main(shlex.split(command)[1:])
    assert not stop.value.code, capsys.readouterr().err
    assert capsys.readouterr().out


@pytest.fixture(scope="module")
def world(tmp_path_factory, rough_correlation):
    """A folder to work in, with datasets and trainings that are tiny whatever a page asks for."""
    import spacql
    from spacql.data import collect
    from spacql.runs import train

    def tiny(algorithm, data, *, rounds=0, **more):
        small = {"batch_size": 32, "hidden": (8, 8), "critics": 2, "updates": 1, "penalty_every": 1}
        return train(algorithm, data, rounds=2, episodes=2, **more, **small)

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("reader")
        patch.chdir(folder)
        patch.setenv("SPACQL_CACHE", str(folder / "cache"))
        patch.setattr(collect, "SIZE", 2500)
        patch.setattr(spacql, "train", tiny, raising=False)
        yield folder


def test_the_python_of_readme_and_docs_runs_and_so_do_the_commands_after_it(world, capsys):
    """In the order of a reader: README, get started, your own logs, the report page."""
    import numpy as np

    from spacql.data import load_dataset
    from spacql.data.advice import notices
    from spacql.runs import train

    ran = 0
    for name in ("README.md", "docs/index.md", "docs/logs.md", "docs/report.md"):
        place = world / ("readme" if name == "README.md" else "docs")
        place.mkdir(exist_ok=True)
        os.chdir(place)
        for language, body in FENCE.findall((ROOT / name).read_text()):
            if language != "python":
                continue
            if "runs/spacql-my-robots" in body:
                # As README's, from this page's data; what is trained does not matter here.
                out, small = "runs/spacql-my-robots/seed-0", {"batch_size": 32, "hidden": (8, 8)}
                train("bc", "my-robots", out=out, rounds=2, **small)
                seen = [np.zeros(4), np.zeros(3)]
            else:
                seen = [np.zeros(18)] * 3
            exec(compile(body, f"{name}, a Python block", "exec"), {"observations": seen})
            ran += 1
    assert ran >= 5
    for place in ("readme", "docs"):  # who runs them as they stand is warned of nothing
        assert notices(load_dataset(world / place / "my-robots")) == []
    for command in (
        "data inspect my-robots",
        "report runs/spacql-my-robots --out my-robots.html",
        "report runs/spacql-spread-random --out report.html",
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(shlex.split(command))
        assert not stop.value.code, capsys.readouterr().err
    page = (world / "docs" / "my-robots.html").read_text()
    assert "an episode of the log, step by step" in page
    assert "Distance from the log" in page


def test_what_readme_says_of_the_theory_is_what_its_page_counts():
    tables = (ROOT / "docs" / "theory.md").read_text().split("| statement |")[1].split("\n\n")
    held = [row for row in tables[0].splitlines()[2:] if row.startswith("|")]
    failed = next(t for t in tables if "| reading |" in t).splitlines()[2:]
    assert all(row.split("|")[4].strip() == "0" for row in held)
    said = " ".join((ROOT / "README.md").read_text().split())
    assert f"{len(held)} statements on a thousand" in said
    assert {9: "nine"}[len(failed)] + " readings of the paper fail" in said


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "What was learnt, from what" in (tmp_path / "report" / "index.html").read_text()
    assert "from_episodes" in (tmp_path / "api" / "index.html").read_text()
