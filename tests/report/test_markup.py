"""Whatever a value holds, it stays text."""

import json

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from spacql.report.markup import data, minus, number, prose, short, span, table, tag


@given(st.text())
def test_text_never_becomes_markup(text):
    made = tag("p", text, title=text)
    inside = str(made).removeprefix('<p title="').removesuffix("</p>")
    assert "<" not in inside
    assert inside.count('"') == 1


@given(st.recursive(st.text() | st.floats() | st.integers(), st.lists))
def test_data_cannot_end_the_element_that_holds_it_and_is_json(value):
    text = data(value)
    assert not set(text) & set("<>&")
    json.loads(text)


def test_elements_nest_without_being_escaped_twice():
    assert tag("p", tag("b", "a & b"), None, ["c", "<d>"]) == Markup(
        "<p><b>a &amp; b</b>c&lt;d&gt;</p>"
    )


def test_numbers_in_prose_get_a_real_minus_and_names_keep_their_hyphen():
    said = "Expected -3.5 (90 %: -5 to 1); td3bc-2 is not."
    assert minus(said) == "Expected −3.5 (90 %: −5 to 1); td3bc-2 is not."


def test_sentences_for_the_terminal_become_markup_that_is_escaped():
    assert prose("Try `fit --x -1` < -2.") == "Try <code>fit --x -1</code> &lt; −2."
    assert prose("One ` alone") == "One ` alone"


def test_numbers_have_no_negative_zero_and_none_is_a_dash():
    assert number(-0.04) == "0.0"
    assert number(None) == number(float("nan")) == short(float("inf")) == "–"
    assert span(-0.01, 1234.5) == "[0.0, 1,234.5]"
    assert number(-3.2) == "−3.2"
    assert [short(x) for x in (0.0, 0.01234, 12.34, 4321.0)] == ["0.00", "0.0123", "12.3", "4,321"]


def test_a_cell_with_a_key_sorts_by_it():
    made = table(["name", "score"], [["a", ("1.5", 1.5)]], caption="scores")
    assert '<td data-key="1.5" class="num">1.5</td>' in made
    assert "<caption>scores</caption>" in made
    assert '<th scope="row">a</th>' in made
