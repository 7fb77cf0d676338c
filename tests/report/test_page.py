"""The page as text: whole, escaped, in order, small."""

import json
import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from report_toy import three_seeds, write_run

from spacql.commands.train import Options, parse
from spacql.errors import InputError
from spacql.report import Section, report, write
from spacql.report.repeat import command
from spacql.report.source import gather
from spacql.report.teams import teams
from spacql.runs import no_simulator

ROOT = Path(__file__).parents[2]
HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    three_seeds(folder / "a", "spacql", 70)
    three_seeds(folder / "b", "cfcql", 50)
    return report([folder], folder / "report.html").read_text()


def test_the_sections_answer_in_the_order_in_which_a_reader_asks(two):
    titles = re.findall(r"<h2>(.*?)</h2>", two)
    assert titles == ["What was learnt, from what", "How good is it?", "Is that real?",
                      "How training went", "What the algorithm did", "What the team does",
                      "How to repeat it"]  # fmt: skip


def test_the_page_needs_nothing_but_itself(two):
    assert not re.findall(r"https?://", two)
    assert not re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"(?!data:)", two)
    assert "default-src 'none'" in two.replace("&#39;", "'")


def test_a_clear_difference_is_called_one_and_the_dots_are_the_seeds(two):
    assert "spacql scores highest on spread-random" in two
    assert "Seed by seed it is significantly better than every other" in two
    assert '<td>ahead</td>' in two  # fmt: skip
    assert two.count('class="seed"') == 2 * 3 + 3 + 1  # two teams, their difference, the legend


def test_one_seed_has_an_interval_over_episodes(tmp_path):
    write_run(tmp_path / "a", score=60.0)
    text = report([tmp_path], tmp_path / "r.html").read_text()
    assert "scores 60.0 [56.0, 64.0] (1 seed; 95 % interval over episodes)" in text
    assert "One seed says little about the next" in text


def test_what_the_log_says_stands_beside_the_truth_where_both_exist(tmp_path):
    folder = write_run(tmp_path / "a", score=60.0)
    estimate = {"mean": 346.75, "low": 159.7, "high": 533.8}  # scores of 50, 0 and 100
    offline = {"estimates": {"model": estimate}, "log": estimate, "distance": {}, "outside": {},
               "trust": None, "heldout": 9}  # fmt: skip
    (folder / "offline.json").write_text(json.dumps(offline))
    text = report([tmp_path], tmp_path / "r.html").read_text()
    assert "Without a simulator" in text
    assert ">50.0</td>" in text
    assert "[0.0, 100.0]" in text
    assert text.count('class="truth"') == 1 + 1  # and in the legend
    assert "<td>model</td>" in text


def test_what_the_log_says_is_shown_as_returns_where_there_are_no_scores(tmp_path):
    folder = write_run(tmp_path / "a", dataset="my-log", task="my-log", score=None)
    run = json.loads((folder / "run.json").read_text())
    run["dataset"]["reference"] = None
    (folder / "run.json").write_text(json.dumps(run))
    estimates = {"fqe": {"mean": 5.0, "low": 4.0, "high": 6.0},
                 "model": {"mean": 7.0, "low": 6.0, "high": 8.0}}  # fmt: skip
    offline = {"estimates": estimates, "log": {"mean": 3.0, "low": 2.0, "high": 4.0},
               "distance": {}, "outside": {}, "trust": None, "heldout": 9}  # fmt: skip
    (folder / "offline.json").write_text(json.dumps(offline))
    text = report([tmp_path], tmp_path / "r.html").read_text()
    shown = text.split("Without a simulator")[1].split("</table>")[0]
    assert "return that the log speaks for" in shown
    assert (
        "trained on the episodes that it is judged by, so these estimates are optimistic" in shown
    )
    assert "[4.00, 6.00]" in shown
    assert "the log itself: 3.00" in shown
    assert "<td>fqe</td>" in shown
    assert "in truth" not in shown


def test_hostile_names_are_text(tmp_path):
    write_run(tmp_path / "a", algorithm=HOSTILE, dataset=HOSTILE, task=HOSTILE, policy=False)
    text = report([tmp_path], tmp_path / "r.html", title=HOSTILE).read_text()
    assert "<img" not in text
    assert text.count("<script>") == 1  # our own
    assert "&lt;script&gt;alert" in text


def test_runs_without_scores_say_why_and_still_show_their_training(tmp_path):
    write_run(tmp_path / "a", dataset="my-log", task="my-log", score=None)
    text = report([tmp_path], tmp_path / "r.html").read_text()
    assert "No scores on my-log. Not evaluated: no such world." in text
    assert "what uniform actions get" not in text
    assert 'id="scores"' not in text, "there is nothing to plot"
    assert "log&#39;s score" not in text
    assert "td error" in text


def test_logs_without_a_simulator_are_no_mistake_and_need_one_sentence(tmp_path):
    for name in ("mine", "yours"):
        folder = write_run(tmp_path / name, dataset=name, task=name, score=None)
        result = json.loads((folder / "result.json").read_text())
        (folder / "result.json").write_text(json.dumps(result | {"note": no_simulator(name)}))
    lead = re.search(r'class="lead">(.*?)</p>', report([tmp_path], tmp_path / "r.html").read_text())
    assert unescape(lead[1]) == (
        "No simulator is known for 'mine', 'yours', so there is no score; ask the log: "
        "spacql evaluate RUN --offline"
    )


def test_our_results_fit_into_five_megabytes_with_all_algorithms(tmp_path):
    path = report([ROOT / "results"], tmp_path / "results.html")
    assert path.stat().st_size < 5_000_000
    text = path.read_text()
    assert "spread-medium-replay" in text


def test_the_command_in_the_page_trains_with_the_same_configuration(tmp_path):
    three_seeds(tmp_path / "a", "spacql", 60, rounds=70, settings={"alpha": 0.25})
    ((team,), _) = teams(gather([tmp_path]))
    words = shlex.split(command(team))
    assert words[:2] == ["spacql", "train"]
    options, config = parse("train", words[2], words[3:], Options)
    assert options.seeds == (0, 1, 2)
    assert (config.alpha, config.rounds) == (0.25, 70)


def test_a_page_is_a_list_of_sections_from_anywhere(tmp_path):
    from spacql.report.markup import tag

    path = write(tmp_path / "fit.html", "A fit", [Section("one", "One", tag("p", "a < b"))])
    assert '<section id="one"><h2>One</h2><p>a &lt; b</p></section>' in path.read_text()


def test_only_html_is_written(tmp_path):
    write_run(tmp_path / "a")
    with pytest.raises(InputError, match="HTML file"):
        report([tmp_path], tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()
