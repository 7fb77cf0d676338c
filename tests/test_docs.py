"""The tables in README and docs are what the commands beside them make of the stored results."""

import importlib.util
from pathlib import Path

import pytest

from spacql.experiments.store import Store

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def fill():
    spec = importlib.util.spec_from_file_location("fill", ROOT / "docs" / "fill.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_table_in_the_docs_is_up_to_date(fill):
    assert fill.main(check=True) == 0


def test_a_table_replaces_what_stood_between_the_comments_and_nothing_else(fill, tmp_path):
    text = "a\n<!-- spacql reproduce table1 --only spread -->\nold\n<!-- end -->\nb\n"
    new = fill.filled(text, Store(tmp_path))
    assert new.startswith("a\n<!-- spacql reproduce table1 --only spread -->\n\n| spread |")
    assert new.endswith("<!-- end -->\nb\n")
    assert "old" not in new
    assert fill.filled(new, Store(tmp_path)) == new


def test_other_options_in_a_comment_are_refused(fill, tmp_path):
    text = "<!-- spacql reproduce table1 --seeds 0 -->\n<!-- end -->"
    with pytest.raises(SystemExit, match="Only --only"):
        fill.filled(text, Store(tmp_path))
