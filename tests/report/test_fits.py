"""The page of a fit: candidates with intervals, the verdict, the way from the log, the truth."""

import json
import re
import shutil

import pytest
from report_toy import write_fit

from spacql.errors import InputError
from spacql.report import fits, report

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_fit(tmp_path_factory.mktemp("fit"), {"bc": 101.0, "aspac-loose": 150.0})


@pytest.fixture(scope="module")
def text(folder):
    return report([folder], folder / "report.html").read_text()


def test_the_verdict_comes_first_and_the_chosen_policy_leads_the_plot(text):
    lead = re.search(r'class="lead">(.*?)</p>', text)[1]
    assert lead == (
        "Likely gain. aspac-loose is expected to return 150.0 (90 %: 130.0 to 170.0); the "
        "log&#39;s held-out episodes returned 100.0."
    )
    scores = text.split('<section id="scores">')[1].split("</section>")[0]
    assert re.findall(r'class="name s\d">(.*?)<', scores) == ["aspac-loose ★", "bc"]
    assert scores.count('class="log"') == 2 + 1  # and in the legend
    assert "what the log&#39;s 10 held-out episodes returned: 100.0 (90.0 to 110.0)" in scores


def test_the_bound_that_the_choice_was_by_stands_beside_the_wider_interval(folder, text, tmp_path):
    assert "lower bound</th>" not in text  # this fit does not say
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    described = json.loads((place / "fit.json").read_text())
    for row, bound in zip(described["table"], (97.0, 146.0), strict=True):
        row["bound"] = bound
    (place / "fit.json").write_text(json.dumps(described))
    said = report([place], tmp_path / "r.html").read_text()
    assert re.search(r'class="sortable dots spare".*lower bound</button></th></tr>', said), (
        "the last column, which a narrow screen does without"
    )
    assert "146.0</td>" in said
    assert "The intervals are wider: what held the truth nine times in ten" in said
    described["table"][0]["bound"] = "high"
    (place / "fit.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match=r"fit\.json, field table\[0\]\.bound"):
        report([place], tmp_path / "r.html")


def test_the_command_names_the_budget_that_the_fit_had(folder, tmp_path):
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    (place / "plan.json").write_text(json.dumps({"level": "quick", "budget": 20.0, "workers": 2}))
    assert fits.command(fits.read(place)).endswith("--quick --budget 20.0 --workers 2")


def test_a_fit_that_was_interrupted_says_how_far_it_is_and_how_to_go_on(folder, tmp_path):
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    (place / "fit.json").unlink()
    runs = [{"folder": label} for label in ("bc", "aspac-loose", "td3bc")]
    plan = {"task": "no-world", "runs": runs, "level": "quick", "data": "logs/my-log"}
    (place / "plan.json").write_text(json.dumps(plan))
    text = report([place], tmp_path / "r.html").read_text()
    assert re.search(r'class="lead">(.*?)</p>', text)[1] == (
        "The fit of logs/my-log is not finished (2 of 3 trainings). The same command goes on: "
        f"<code>spacql fit --data logs/my-log --out {place} --quick</code>."
    )
    assert 'id="scores"' not in text, "there is nothing to plot"
    shutil.rmtree(place / "runs")  # it had only begun
    text = report([place], tmp_path / "r.html").read_text()
    assert "not finished (0 of 3 trainings)" in text


def test_the_words_the_trust_and_the_distance_per_agent_are_there(text):
    assert "<strong>Likely gain. </strong>A gain is likely." in text
    assert "with a correlation of 0.88" in text
    assert "Distance from the log per agent" in text
    assert "1.5 (25 %)" in text
    assert "No scores on" not in text
    assert "spacql fit --data my-log --out" in text
    assert "in truth" not in text  # nobody knows it


def test_a_model_that_could_not_be_tested_has_no_correlation(folder, tmp_path):
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    described = json.loads((place / "fit.json").read_text())
    described["trust"]["correlation"] = None
    (place / "fit.json").write_text(json.dumps(described))
    assert "with a correlation of" not in report([place], tmp_path / "r.html").read_text()


def test_warnings_of_the_chosen_policy_come_first_and_the_others_are_folded(folder, tmp_path):
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    described = json.loads((place / "fit.json").read_text())
    for row in described["table"]:
        row["warnings"] = [f"Ask `{row['label']}`."]
    (place / "fit.json").write_text(json.dumps(described))
    said = report([place], tmp_path / "r.html").read_text().split("Calls for a second look</h4>")[1]
    assert said.startswith("<ul><li>aspac-loose: Ask <code>aspac-loose</code>.</li></ul><details>")
    assert "<li>bc: Ask <code>bc</code>.</li></ul></details>" in said


def test_the_truth_stands_beside_the_estimate_where_it_is_known(folder, tmp_path):
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    described = json.loads((place / "fit.json").read_text())
    for row, true in zip(described["table"], (99.0, 90.0), strict=True):
        row["truth"] = {"return": true, "score": None}
    (place / "fit.json").write_text(json.dumps(described | {"task": "spread"}))
    text = report([place], tmp_path / "r.html").read_text()
    assert text.count('class="truth"') == 2 + 1
    assert "1 of 2 intervals hold it" in text
    assert "In the simulator it returns 90.0, no more than the log." in text
    assert "the best of all would have been bc with 99.0" in text
    assert "<canvas" in text  # and it can be drawn


def test_names_from_a_fit_are_text_and_what_is_wrong_in_it_is_a_sentence(folder, tmp_path):
    place = tmp_path / "fit"
    shutil.copytree(folder, place)
    described = json.loads((place / "fit.json").read_text())
    described["words"] = described["verdict"] = described["table"][0]["label"] = HOSTILE
    (place / "fit.json").write_text(json.dumps(described))
    text = report([place], tmp_path / "r.html").read_text()
    assert text.count("<script>") == 1  # our own
    for change, said in (({"chosen": "nobody"}, "chosen is not in the table"),
                         ({"log": {"mean": "high"}}, "field log"),
                         ({"format": 2}, "reads 1")):  # fmt: skip
        (place / "fit.json").write_text(json.dumps(described | change))
        with pytest.raises(InputError, match=said):
            report([place], tmp_path / "r.html")
