"""Verdicts follow from the numbers, whichever way they fall."""

from dataclasses import replace

import pytest
from experiments_toy import fill

from spacql.errors import InputError
from spacql.experiments import claims, dots, figures
from spacql.experiments.paper import make_plan
from spacql.experiments.plans import QUALITIES, registered
from spacql.experiments.store import Store
from spacql.worlds import TASKS


def store_of(tmp_path, scores, only=(), seeds=3, rest=False):
    """`scores` by algorithm: a level and what is added on random and medium-replay data. With
    `rest`, all other algorithms have 0."""
    store = Store(tmp_path / "results")
    plan = make_plan("table2", only=only)
    if rest:
        scores = scores | {name: (0, 0) for name in registered() if name not in scores}
    given = {
        f"{quality}/{name}": [
            level + (low if quality in claims.LOW else 0) + seed + 0.3 * (seed * place % 2)
            for seed in range(seeds)
        ]
        for quality in QUALITIES
        for place, (name, (level, low)) in enumerate(scores.items())
    }
    fill(plan, store, given, tmp_path)
    return store


def verdicts(store):
    return {claim.number: claim for claim in claims.claims(store)}


def test_claims_that_the_numbers_bear_out_are_held(tmp_path):
    store = store_of(tmp_path, {"spacql": (50, 30), "icql-qs": (40, 30), "cfcql": (60, -5),
                                "bc": (60.5, -50)}, rest=True)  # fmt: skip
    found = verdicts(store)
    assert found[1].verdict == claims.HELD
    assert f"on {2 * len(TASKS)} of {2 * len(TASKS)} such datasets" in found[1].found
    assert found[2].verdict == claims.HELD
    assert "none speak against it" in found[2].found
    assert found[5].verdict == claims.HELD


def test_the_brief_counts_the_papers_claims_alone(tmp_path):
    store = store_of(tmp_path, {"spacql": (50, 30), "icql-qs": (40, 30), "cfcql": (60, -5),
                                "bc": (60.5, -50), "aspac": (40, 0)}, rest=True)  # fmt: skip
    found = claims.claims(store)
    assert [one.number for one in found if not one.ours] == [1, 2, 4]
    assert "of the 4: 2 held, 1 held in part, 1 not tried with enough runs yet" in claims.brief(
        store
    )


def test_claims_that_the_numbers_deny_are_not(tmp_path):
    store = store_of(tmp_path, {"spacql": (50, 0), "icql-qs": (40, 0), "cfcql": (60, 0),
                                "bc": (10, 0)})  # fmt: skip
    found = verdicts(store)
    assert found[1].verdict == claims.UNSEEN
    assert "cfcql on spread-random" in found[1].found
    assert found[2].verdict == claims.UNSEEN
    assert "8 speak against it" in found[2].found
    assert found[5].verdict == claims.UNSEEN


def test_two_seeds_are_not_enough_for_a_verdict(tmp_path):
    given = {"icql-qs": (40, 30), "cfcql": (60, -5)}
    for seeds, judged in ((2, False), (3, True)):
        store = store_of(tmp_path / str(seeds), given, ("spread", "tag"), seeds)
        assert (2 in verdicts(store)) == judged


def test_fewer_than_half_of_the_datasets_are_not_enough_for_a_verdict(tmp_path):
    given = {"spacql": (50, 30), "icql-qs": (40, 30), "cfcql": (60, -5), "bc": (60.5, -50),
             "aspac": (70, 0)}  # fmt: skip
    assert not verdicts(store_of(tmp_path, given, only=("tag",)))


def test_our_own_claim_counts_where_no_other_is_significantly_better(tmp_path):
    store = store_of(tmp_path, {"spacql": (50, 0), "aspac": (70, 0)}, only=("spread", "tag"))
    [claim] = [claim for claim in claims.claims(store) if claim.number == 6]
    assert claim.verdict == claims.PART, "only what was seen on every dataset is held"
    assert "on 8 of 8 such datasets, and on 8 no other is significantly better" in claim.found
    assert "8 more have too few seeds yet" in claim.found
    store = store_of(tmp_path / "all", {"spacql": (50, 0), "aspac": (70, 0)}, rest=True)
    assert verdicts(store)[6].verdict == claims.HELD


def test_what_is_not_compared_is_named_and_nothing_is_held_without_it(tmp_path):
    given = {name: (50, 0) for name in registered() if name != "omar"} | {"aspac": (70, 0)}
    claim = verdicts(store_of(tmp_path, given))[6]
    assert claim.verdict == claims.PART
    assert "Not compared, with fewer than three seeds: omar on 16." in claim.found


def test_diverged_trainings_count_against_an_algorithm(tmp_path):
    store = store_of(tmp_path, {"spacql": (50, 30), "aspac": (70, 0)}, rest=True)
    for run in list(store):
        lost = run.algorithm == "spacql" and run.dataset.endswith("medium-replay")
        if lost or (run.algorithm == "aspac" and run.seed == 0):
            store.runs[run.key] = replace(run, score=None, diverged="NaN")
    found = verdicts(store)
    assert "highest score on 4 of 8 such datasets" in found[1].found
    assert "12 of its trainings diverged" in found[1].found
    assert "16 of its trainings diverged" in found[6].found
    assert found[1].verdict == claims.PART


def test_above_says_significantly_only_of_the_one_that_it_names(tmp_path):
    """icql-qs is surely better than spacql; cfcql, whose mean is highest, is not."""
    store = Store(tmp_path / "results")
    cell = {"cfcql": [20.0, 60.0, 110.0], "icql-qs": [59.0, 60.0, 61.0],
            "spacql": [10.0, 11.5, 11.0]}  # fmt: skip
    given = {f"{quality}/{name}": scores for quality in claims.LOW for name, scores in cell.items()}
    fill(make_plan("table2"), store, given, tmp_path)
    claim = verdicts(store)[1]
    assert "cfcql on spread-random (not significantly)" in claim.found
    assert "on 0 no other is significantly better" in claim.found


def test_the_paper_is_judged_by_its_own_algorithms_and_others_are_said_beside_it(tmp_path):
    scores = {name: (40 + 0.1 * k, 0) for k, name in enumerate(registered())}
    store = store_of(tmp_path, scores | {"spacql": (50, 30), "plcql": (60, 40)})
    claim = verdicts(store)[1]
    assert claim.verdict == claims.HELD
    assert "SPaCQL has the highest score on 8 of 8 such datasets" in claim.found
    assert "plcql" not in claim.found
    assert "Among all here it has the highest score on 0, and on 0 no other is" in claim.found


def test_how_far_another_may_be_ahead_is_said(tmp_path):
    """The other's scores vary by 40 points on expert data: it may be ahead by more than ten."""
    store = store_of(tmp_path, {"spacql": (50, 0), "aspac": (70, 0)}, rest=True)
    for run in list(store):
        if (run.algorithm, run.dataset.partition("-")[2]) == ("spacql", "expert"):
            store.runs[run.key] = replace(run, score=70.0 + 20 * (run.seed - 1))
    found = verdicts(store)[6].found
    assert "more than 10 points is ruled out on 12 of 16" in found


def test_our_own_claim_has_no_verdict_beside_plain_cloning_alone(tmp_path):
    store = store_of(tmp_path, {"bc": (50, 0), "aspac": (70, 0)}, only=("spread",))
    assert 6 not in verdicts(store)


def test_the_brief_says_how_far_ours_is_ahead_and_who_is_not_compared(tmp_path):
    given = {"spacql": (50, 0), "aspac": (70, 0), "cfcql": (62, 0)}
    store = store_of(tmp_path, given)
    text = claims.brief(store)
    assert "On 16 of 16 datasets no other algorithm is significantly better than ASPAC" in text
    assert "ahead of 2 of 2 others, seed by seed: of cfcql, the closest, by 8 points [" in text
    assert "Too few seeds yet: plcql, icql-qs, macql, omar, iql, td3bc, dof, bc." in text
    few = store_of(tmp_path / "few", {"iql": (10, 0)}, only=("tag-expert",))
    store.runs |= few.runs
    assert "td3bc, dof, bc." in claims.brief(store), "iql is not compared on all"
    assert "macql, omar, iql, " in claims.brief(store)
    behind = claims.brief(store_of(tmp_path / "b", given | {"cfcql": (90, 0)}))
    assert "On 0 of 16 datasets" in behind
    assert "ahead of 1 of 2 others, seed by seed: of cfcql, the closest, by -20 points" in behind


def test_one_seed_has_no_verdicts_that_need_more(tmp_path):
    store = Store(tmp_path / "results")
    names = ("spacql", "icql-qs", "cfcql", "bc", "aspac")
    given = {f"{quality}/{name}": [50.0] for quality in QUALITIES for name in names}
    fill(make_plan("table2", only=("spread",)), store, given, tmp_path)
    assert not claims.claims(store)
    assert "spread-random" in claims.brief(store)


def test_missing_cells_leave_the_rest_judged(tmp_path):
    store = Store(tmp_path / "results")
    given = {f"{q}/{name}": scores for q in claims.LOW for name, scores in
             (("spacql", [50.0, 61.0, 72.0]), ("iql", [5.0, 6.0, 7.5]))}  # fmt: skip
    fill(make_plan("table2", only=("tag", "spread")), store, given, tmp_path)
    found = verdicts(store)
    assert found[1].verdict == claims.PART
    assert "on 4 of 4 such datasets" in found[1].found
    assert not {2, 3, 5, 6} & found.keys()


def test_spread_is_compared_seed_by_seed(tmp_path):
    """Ten critics disagree by w.u = 0.75 r + 0.5 at round r, the same in all: nothing is told."""
    store = Store(tmp_path / "results")
    given = {f"{q}/{name}, 10 critics": [50.0] * 3 for q in ("random", "expert")
             for name in ("cfcql", "icql-qs")}  # fmt: skip
    fill(make_plan("figure2"), store, given, tmp_path)
    assert 3 not in verdicts(store), "no spread of differences, no interval"
    expert = [key for key, run in store.runs.items() if run.dataset == "spread-expert"]
    alone = Store(tmp_path / "alone")
    alone.runs = {key: store.runs[key] for key in expert}
    assert 3 not in verdicts(alone), "nothing on random data"
    for run in list(store):
        last = dict(run.curve[-1])
        less = 5.0 + run.seed if (run.algorithm, run.dataset) == ("icql-qs", "spread-random") else 0
        less += 0.1 * run.seed * (-1) ** run.seed if run.algorithm == "icql-qs" else 0
        last["u"] = [last["u"][0] - less, last["u"][1]]
        store.runs[run.key] = replace(run, curve=[*run.curve[:-1], last])
    assert verdicts(store)[3].verdict == claims.HELD
    for run in list(store):  # what varies much on expert data may differ much
        if (run.algorithm, run.dataset) == ("icql-qs", "spread-expert"):
            last = run.curve[-1] | {"u": [run.curve[-1]["u"][0] + 9.0 * (run.seed - 1), 1.0]}
            store.runs[run.key] = replace(run, curve=[*run.curve[:-1], last])
    assert verdicts(store)[3].verdict == claims.PART


def test_an_empty_store_has_no_verdicts_and_says_so(tmp_path):
    with pytest.raises(InputError, match="No run is finished"):
        claims.markdown(Store(tmp_path))


def test_our_own_results_have_a_verdict_for_every_claim_or_it_is_named():
    found = claims.claims(Store())
    numbers = [claim.number for claim in found]
    assert numbers == sorted(set(numbers))
    text = claims.markdown(Store())
    assert all(f"**{claim.number}. " in text for claim in found)
    assert set(claims.CLAIMS) == set(range(1, len(claims.JUDGES) + 1))
    assert text.count("not enough runs yet") == len(claims.CLAIMS) - len(found)


def test_the_picture_of_scores_holds_the_tables_numbers(tmp_path):
    store = store_of(tmp_path, {"spacql": (50, 30), "bc": (60, 0)}, only=("spread",))
    plan = make_plan("scores", only=("spread",))
    data = figures.draw(plan, store, tmp_path / "scores")
    cells = {(cell["dataset"], cell["method"]): cell for cell in data["cells"]}
    assert cells["spread-random", "spacql"]["mean"] == pytest.approx(81)
    assert cells["spread-random", "spacql"]["best"]
    assert not cells["spread-random", "bc"]["best"]
    assert "seeds" not in cells["spread-random", "iql"]
    assert len(cells) == 4 * len(registered())
    text = (tmp_path / "scores.svg").read_text()
    assert figures.identifier(data) in text  # an old figure can be told from a new one


def test_the_picture_of_differences_marks_intervals_without_zero(tmp_path):
    store = store_of(tmp_path, {"cfcql": (50, 0), "icql-qs": (40, 3)}, only=("spread",))
    _, data = dots.gaps(make_plan("gaps"), store)
    assert {cell["dataset"].split("-")[0] for cell in data["cells"]} == {"spread"}, "it has runs"
    cells = {(cell["dataset"], cell["method"]): cell for cell in data["cells"]}
    assert cells["spread-expert", "icql-qs - cfcql"]["mean"] == pytest.approx(-9.9)
    assert cells["spread-expert", "icql-qs - cfcql"]["best"]
