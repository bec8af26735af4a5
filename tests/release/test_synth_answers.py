"""Answers of a release from its noisy tables: in the files, on the page, later by `query`, and refused by name."""

import csv
import io
from typing import Any

import pyarrow as pa
import pytest

from reticent import Curator, Release, Synthesizer
from reticent.errors import PlanError, ReticentError
from reticent.plan.synth import SyntheticTables
from reticent.preview.synth import foresee_synth
from reticent.report.page import page
from tests.release.synthetic import BOOK, COLUMNS, TABLE, open_ledger, plan, rows, survey
from tests.tables import book

ASKED: list[dict[str, Any]] = [
    {"name": "women", "query": {"proportion": "sex = 'f'"}, "design_effect": "1.5"},
    {
        "name": "gap",
        "query": {"difference": "age", "between": ["sex = 'f'", "sex = '=1+1'"]},
        "design_effect": "1",
    },
    {"name": "no effect", "query": {"proportion": "sex = 'f'"}},
    {
        "name": "three",
        "query": {"proportion": "sex = 'f' and job = 'yes' and age >= 0"},
        "design_effect": "1",
    },
]
INFER: dict[str, Any] = {"method": None, "inference": True, "epsilon": "8", "answer": ASKED}


def inferring(**more: Any) -> Any:
    table = {key: value for key, value in {**TABLE, **INFER, **more}.items() if value is not None}
    return survey().plan("s1", epsilon="9", synth=[table])


def test_a_release_tells_its_answers_and_takes_more_questions(tmp_path):
    made = Curator(open_ledger(tmp_path)).release(inferring(), survey(rows(3000)), tmp_path)
    told = {each["name"]: each for each in made.document["synth"][0]["answers"]}
    assert 0.3 < told["women"]["total_low"] < told["women"]["total_high"] < 0.7
    assert told["women"]["rests_on"] == ["sex"]
    assert told["no effect"]["total_low"] is None and "design effect" in told["no effect"]["meaning"]
    assert told["three"]["model_only"] and "model only" in told["three"]["meaning"]
    assert told["three"]["answered"] is None and 0 < told["women"]["answered"] < 1
    lines = list(csv.DictReader(io.StringIO((tmp_path / "s1.answers.csv").read_text())))
    assert [line["answer"].split(":")[0] for line in lines] == [each["name"] for each in ASKED]
    assert b"interval for sampling and noise" in page(made)
    again = Release.from_bytes((tmp_path / "s1.json").read_bytes())
    (share,) = again.query(ASKED[0]["query"], design_effect=1.5)
    assert again.query(ASKED[0]["query"], design_effect="1.5") == (share,)  # as a plan writes it
    assert f"95 % interval {share.low:.4g} to {share.high:.4g}" in str(share)
    assert (share.low, share.high) == pytest.approx((told["women"]["total_low"], told["women"]["total_high"]))
    (work,) = again.query(
        {"proportion": "job = 'yes'", "where": "sex = 'f'"}, table="people", design_effect=2.0
    )
    assert work.low is not None and work.low < work.estimate < work.high
    with pytest.raises(ReticentError, match="no synthetic table"):
        again.query({"mean": "age"}, table="nobody")


def test_a_preview_says_which_answers_will_have_no_interval():
    """From the plan and the codebook alone, and as the release says it later."""

    def told(**more: Any) -> dict[str, str]:
        planned = inferring(**more)
        (section,) = foresee_synth(planned.product(SyntheticTables), planned).told
        return dict(each.split(": ", 1) for each in section["answers"])

    with_inference = told()
    assert "without" not in with_inference["women"] and "without" not in with_inference["gap"]
    assert "complex design" in with_inference["no effect"]
    assert "model only" in with_inference["three"]
    mst = told(inference=None, method="mst", missing="available")
    assert "midpoints" in mst["gap"] and "without" not in mst["women"]
    assert all("no noisy tables" in each for each in told(inference=None, method="privbayes").values())


def test_a_release_whose_tables_were_cut_is_refused(tmp_path):
    made = Curator(open_ledger(tmp_path)).release(inferring(answer=[]), survey(rows(50)), tmp_path)
    told = made.document["synth"][0]
    for numbers in ("", "AAAA", told["measured"]["numbers"][:-8]):
        spoiled = {**told, "measured": {**told["measured"], "numbers": numbers}}
        with pytest.raises(ReticentError, match="not whole"):
            Release({**made.document, "synth": [spoiled]}).query({"mean": "age"}, design_effect=1.0)


def test_bootstrap_copies_stand_beside_the_table(tmp_path):
    made = Curator(open_ledger(tmp_path)).release(inferring(copies=5, rows=20), survey(rows(300)), tmp_path)
    assert made.document["synth"][0]["bootstrap"] == 5
    assert [made.synthetic("people", copy).num_rows for copy in range(1, 7)] == [20] * 6
    assert len(list(tmp_path.glob("s1.*.synth.csv"))) == 6
    assert b"reticent.combine" in page(made)


REFUSED = (
    ({"copies": 4}, "5 or more"),
    ({"method": "privbayes"}, "keeps no noisy tables"),
    ({"pairs": "chosen"}, "those of mst or aim"),
    ({"inference": False, "method": "mst", "pairs": "all"}, "inference = true"),
    ({"inference": False}, "is not given"),
    ({"missing": "impute-mean"}, "changes rows"),
    ({"answer": [{"name": "x", "query": {"mean": "sex"}}]}, "ask for a proportion"),
    ({"answer": [{"name": "x", "query": {"mean": "age", "on": ["sex"]}}]}, "does not go with"),
    ({"answer": [{"name": "x", "query": {"difference": "age"}}]}, "needs 'between'"),
    (
        {"answer": [{"name": "x", "query": {"difference": "age", "between": ["sex = 'f'"]}}]},
        "needs two groups",
    ),
    ({"answer": [{"name": "x", "query": {}}]}, "asks for one of"),
    ({"answer": [{"name": "x", "query": {"mean": "w"}}]}, "not among the columns"),
    ({"answer": [{"name": "x", "query": {"mean": "age"}, "design_effect": "0"}]}, "0.1 to 1000"),
    ({"answer": [ASKED[0], ASKED[0]]}, "name of its own"),
)


@pytest.mark.parametrize(("more", "words"), REFUSED)
def test_what_cannot_be_asked_is_refused_before_a_row_is_read(more, words):
    with pytest.raises(PlanError, match=words):
        inferring(**more)


@pytest.mark.parametrize("method", ["mst", "aim"])
def test_chosen_pairs_say_so(method):
    model = Synthesizer(
        method=method, inference=True, pairs="chosen", epsilon="8", delta="0.000001", codebook=BOOK
    )
    model.fit(rows(2000))
    assert any(page.endswith(f"{method}.md") for _, page in model.claim_.rests_on)
    pairs = [each for each in model.model_.lists.lists if len(each.places) == 2]
    assert pairs and all(each.is_chosen for each in pairs)
    (mean,) = model.answer({"mean": "age"}, design_effect=1.0)
    assert mean.low is not None and not mean.is_chosen  # columns are always measured


def test_a_plan_without_inference_keeps_its_tables_too(tmp_path):
    made = Curator(open_ledger(tmp_path)).release(plan({"method": "mst"}), survey(), tmp_path)
    (share,) = made.query({"proportion": "sex = 'f'"}, design_effect=1.0)
    assert share.low is not None
    (mean,) = made.query({"mean": "age"}, design_effect=1.0)
    assert mean.low is None and "midpoints" in mean.words


def test_an_ordinal_column_keeps_its_order_and_its_scale_in_a_release(tmp_path):
    """A mean and a filter by order can be asked of the release as they can be in the plan, with the same answers."""
    health = {"kind": "ordinal", "levels": ["bad", "fair", "good"], "positions": ["1", "2.5", "4"]}
    codebook = book({**COLUMNS, "health": health})
    given = rows(3000).append_column("health", pa.array(["good", "bad", "fair", "fair"] * 750))
    asked = [
        {"name": "mean", "query": {"mean": "health"}, "design_effect": "1"},
        {"name": "well", "query": {"proportion": "health >= 'fair'"}, "design_effect": "1"},
    ]
    table = {
        **{key: value for key, value in {**TABLE, **INFER}.items() if value is not None},
        "answer": asked,
    }
    planned = survey(codebook=codebook).plan("s1", epsilon="9", synth=[table])
    made = Curator(open_ledger(tmp_path)).release(planned, survey(given, codebook), tmp_path)
    again = Release.from_bytes((tmp_path / "s1.json").read_bytes())
    for each, told in zip(asked, made.document["synth"][0]["answers"], strict=True):
        (found,) = again.query(each["query"], design_effect=1.0)
        assert (found.estimate, found.low) == pytest.approx((told["estimate"], told["total_low"]))
    mean, well = (told["estimate"] for told in made.document["synth"][0]["answers"])
    assert abs(mean - 2.5) < 0.3 and abs(well - 0.75) < 0.1


WRONG: tuple[tuple[Any, dict[str, Any], str], ...] = (
    ("sex = 'f'", {}, "is a table such as"),
    ({"mean": "age"}, {"level": "high"}, "lies between 0 and 1"),
    ({"mean": "age"}, {"design_effect": "big"}, "0.1 to 1000"),
)


def test_what_is_asked_later_in_other_types_is_refused_in_words(tmp_path):
    made = Curator(open_ledger(tmp_path)).release(inferring(answer=[]), survey(rows(50)), tmp_path)
    for raw, more, words in WRONG:
        with pytest.raises(PlanError, match=words):
            made.query(raw, **more)
