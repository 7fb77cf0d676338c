import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spacql.commands.theory import _short, theory
from spacql.errors import InputError
from spacql.theory import battery, curves, shift


def test_command_prints_every_statement_and_ends_well(capsys):
    assert theory(instances=5) == 0
    out = capsys.readouterr().out
    for words in ("Lemma 1", "Theorem 3", "Proposition 1", "Readings that fail", "kappa"):
        assert words in out


def test_json_holds_the_same_rows_and_nothing_else_is_printed(capsys):
    assert theory(instances=5, json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"]
    assert {row["violations"] for row in report["statements"]} == {0}
    assert all(row["witness"][0] > row["witness"][1] for row in report["failing_readings"])


def test_an_injected_error_ends_with_code_one_and_names_the_statement(capsys, monkeypatch):
    monkeypatch.setattr(shift, "horizon", lambda mdp: mdp.gamma)
    assert theory(instances=100) == 1
    assert "'shift of k agents, linear bound' is violated" in capsys.readouterr().out


def test_figures_are_written_as_png_and_svg(tmp_path):
    folder = tmp_path / "new" / "folder"
    assert theory(instances=1, figure=folder) == 0
    files = sorted(p.name for p in folder.iterdir())
    assert files == [
        f"theory-{name}.{suffix}" for name in ("ensemble", "shift") for suffix in ("png", "svg")
    ]
    assert (folder / "theory-shift.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "theory-shift.svg").read_text()[:600]


def test_a_figure_path_that_is_a_file_is_refused_before_any_work(tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    with pytest.raises(InputError, match="folder"):
        theory(figure=path)


def test_importing_the_command_loads_no_numerical_library():
    code = "import sys, spacql.commands.theory; print([m for m in %r if m in sys.modules])"
    heavy = ["jax", "scipy", "matplotlib", "numpy", "rich"]
    found = subprocess.run(
        [sys.executable, "-c", code % heavy], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_worst_case_shift_lies_on_the_sharp_bound_and_below_the_others():
    c = curves.factorised_curves(n=5)
    np.testing.assert_allclose(c.worst, c.sharp, atol=1e-12)
    assert np.all(c.sharp <= c.joint + 1e-12)
    assert np.all(c.joint <= c.linear + 1e-12)
    assert np.all(c.generic <= c.sharp + 1e-12)


def test_correlated_shift_starts_at_zero_only_if_logged_actions_are_kept():
    c = curves.correlated_curves(n=5)
    assert c.logged_exact[0] == pytest.approx(0.0, abs=1e-12)
    assert c.product_exact[0] > 0.1
    assert c.logged_exact[-1] == pytest.approx(c.product_exact[-1])
    assert np.all(c.logged_exact <= c.joint + 1e-12)
    assert np.all(c.joint <= c.logged_bound + 1e-12)


def test_target_error_grows_with_k_for_independent_behaviour():
    c = curves.ensemble_curves(dial=0.0, n=4, datasets=8)
    assert np.all(np.diff(c.error.mean(0)) > 0)
    assert np.all(np.diff(c.unseen.mean(0)) > 0)
    assert c.w.argmax() == 0


def test_for_correlated_behaviour_full_replacement_returns_to_the_data():
    c = curves.ensemble_curves(dial=0.9, datasets=8)
    assert c.unseen.mean(0)[-1] < 0.5 * c.unseen.mean(0)[-2]
    assert c.error.mean(0)[-1] < c.error.mean(0)[1:-1].min()
    assert c.w.argmax() == len(c.w) - 1


def test_enough_data_leave_a_small_error():
    few, many = (
        curves.ensemble_curves(dial=0.0, n=2, transitions=t, datasets=4).error.mean()
        for t in (100, 1_000_000)
    )
    assert many < 0.02 < few


PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()


def test_documentation_quotes_the_numbers_of_the_command():
    for name, value in curves.numbers().items():
        assert f"{value:.2g}" in PAGE or f"{value:.3g}" in PAGE, name


def test_documentation_has_every_statement_and_every_counterexample():
    for row in battery.run(1):
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row.name} |")]
        if row.witness is not None:
            assert line.endswith(f"| {_short(row.witness[0])} | {_short(row.witness[1])} |")


def test_documentation_code_runs(capsys):
    code = PAGE.split("```python")[1].split("```")[0]
    exec(code, {})
    assert capsys.readouterr().out.endswith("True\n")


@pytest.mark.slow
def test_a_thousand_instances_are_those_of_the_documentation():
    rows = battery.run(1000, seed=0)
    for row in rows:
        assert row.ok
        if row.tried:
            assert f"| {row.name} | {row.source} | {row.tried} | {row.violations} |" in PAGE
        if row.should_hold:
            assert f"| {row.violations} | {_short(row.median_slack)} |" in PAGE
