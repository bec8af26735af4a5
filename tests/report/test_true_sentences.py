"""The report says only what is true of its plan: each sentence that once stood where it did not belong."""

import io
import zipfile
from typing import Any

import pytest

from reticent.engine.open import open_engine
from reticent.plan.plan import Plan
from reticent.release.release import Release
from reticent.release.run import run_plan
from reticent.release.survey import Survey, simulate
from reticent.report import words
from reticent.report.cells import cell_tables, error_of
from reticent.report.page import page
from reticent.report.sheet import sheet
from tests.report.documents import document, release

BOOK = {
    "survey": {"name": "x", "unit": "row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [0, 99]},
        "pay": {"kind": "integer", "bounds": [0, 1000], "unit": "dollars"},
        "area": {"kind": "categorical", "levels": ["1", "2"], "labels": {"1": "North", "2": "South"}},
    },
}
DONORS = "may now stand in several rows"
COUNT = [{"name": "all", "query": {"count": "*"}, "epsilon": "0.1"}]
MODEL = [{"method": "regression", "column": "pay", "from": ["age"], "epsilon": "0.5"}]
DONOR = [{"method": "donors", "column": "pay", "match": ["area"], "default": "500"}]
CELLS = [
    {
        "name": "pay by area",
        "cell": "area",
        "y": "pay",
        "estimate": {"mean": True},
        "method": "smooth",
        "epsilon": "0.5",
    }
]


def planned(**sections: Any) -> Plan:
    return Survey("rows.csv", codebook=BOOK).plan(
        "r", epsilon="10", statistics=COUNT, expect={"rows": 500}, **sections
    )


def rehearsed(plan: Plan) -> Release:
    engine = open_engine(simulate(plan.schema, 500))
    try:
        return Release(run_plan(plan, engine, None).to_document(plan, receipt=None, engine="none"))
    finally:
        engine.close()


def test_the_donors_sentence_is_printed_for_donors() -> None:
    made = rehearsed(planned(impute=DONOR))
    assert DONORS in page(made).decode()


def test_a_plan_with_a_model_does_not_speak_of_donors() -> None:
    """(a) A model's fill is computed from released numbers: no answer stands in a second row."""
    text = page(rehearsed(planned(impute=MODEL))).decode()
    assert DONORS not in text and "stands in one row only" in text


def test_a_plan_with_weights_does_not_speak_of_donors() -> None:
    """(a) Of weights the sentence is another, and of weights made of released factors another again."""
    told = {"name": "w", "by": ["sex"], "bins": 2, "strategy": "all", "how": "the plan's own bins"}
    text = page(release(weights=told)).decode()
    assert DONORS not in text and "all who share their bin" in text
    text = page(release(weights={**told, "factors": {"epsilon": "1"}})).decode()
    assert "all who share their bin" not in text and "released with noise" in text


def observed(**budget: str) -> dict[str, Any]:
    columns = {
        "cell": ["1", "2"],
        "estimate": [0.5, -217850.2094],
        "noise_variance": [1.0, 1.0],
        "standard_error": [1.0, 1.0],
        "low": [-1.5, -217852.2],
        "high": [2.5, -217848.2],
        "count": [10, 20],
    }
    return {
        "name": "rank",
        "words": "what rank asks",
        "method": "observed",
        "label": "observed, not differentially private",
        "unprotected": ["everything"],
        "guarantee": {"words": "none", "measure": "observed"},
        "epsilon": {"estimates": "1", **budget},
        "cell": "area",
        "unit": "ranks",
        "range": [0, 1],
        "level": 0.95,
        "meaning": "approximate",
        "chi": {},
        "columns": columns,
    }


@pytest.mark.parametrize(
    ("budget", "covered"),
    [({}, "privacy noise alone"), ({"standard errors": "1"}, "sampling and noise")],
)
def test_nothing_else_is_not_said_of_an_interval_that_covers_more(
    budget: dict[str, str], covered: str
) -> None:
    """(b) Cells whose standard errors add sampling: the sentence over them names what they cover."""
    made = release(statistics=[], cells=[observed(**budget)])
    text = page(made).decode()
    assert "and nothing else" not in text
    assert f"cover {covered}" in text and f"Standard error of {covered}" in text
    assert error_of(made.document["cells"][0]) == covered


def test_the_first_line_speaks_of_the_statistics_where_cells_cover_more() -> None:
    """(b) Beside cells whose intervals cover sampling, nothing is said of the intervals of the whole release."""
    plain = release()
    statistics = plain.document["statistics"]
    for answer in statistics:
        for each in answer["estimates"]:
            each |= {"total_margin": None, "total_low": None, "total_high": None}
    text = page(release(statistics=statistics, cells=[observed(**{"standard errors": "1"})])).decode()
    assert "The intervals of the statistics cover privacy noise alone" in text
    assert "The intervals of this release" not in text and "nothing here speaks" not in text
    assert (
        "The intervals of this release cover privacy noise alone"
        in page(release(statistics=statistics)).decode()
    )


def test_of_statistics_nothing_else_is_said() -> None:
    assert "and nothing else" in page(release()).decode()


@pytest.mark.parametrize(
    ("impute", "said"), [(MODEL, "pay from a private model"), (DONOR, "pay from donors"), ([], "")]
)
def test_a_table_of_cells_says_that_values_were_filled(impute: list[Any], said: str) -> None:
    """(c) Those who did not answer are in it where their answers were filled."""
    made = rehearsed(planned(cells=CELLS, **({"impute": impute} if impute else {})))
    told = made.document["cells"][0]["words"]
    assert ("or had it filled" in told) == bool(said) and said in told
    assert "who answered what is used here" in told


def test_the_workbook_says_what_became_of_missing_answers() -> None:
    """(d) Nothing was used as it is."""
    with zipfile.ZipFile(io.BytesIO(sheet(release(imputation=[])))) as book:
        text = book.read("xl/sharedStrings.xml").decode()
    assert "used as they are" not in text and "none was filled" in text


def test_cells_are_rounded_by_the_rule_of_everything_else() -> None:
    """The decimals that two digits of the interval need, and no more; the page says so."""
    assert "the decimals that two digits of their interval need" in page(release()).decode()
    (table,) = cell_tables({"cells": [{**observed(), "chi": {"all cells": 103694.7418}}]})
    assert table["chi"] == {"all cells": "103,695"}
    assert [line["estimate"] for line in table["lines"]] == ["0.5", "-217,850.2"]
    assert table["error_of"] == "privacy noise alone"


def test_counts_below_zero_are_spoken_of_where_there_can_be_any() -> None:
    made = release(statistics=[], cells=[observed()])
    assert "Counts below zero" not in page(made).decode()
    assert "Counts below zero" in page(release()).decode()


@pytest.mark.parametrize("kind", ["donors", "models", "edits"])
def test_a_promise_is_said_to_cover_a_repair_where_there_is_one(kind: str) -> None:
    """A rehearsal promises nothing, and neither does a release that holds an observed table."""
    done = {"imputation": ["gaps were filled"], "imputed_by": [kind]}
    assert words.COVERED in page(release(**done)).decode()
    claim: dict[str, Any] = {"words": "none", "measure": "observed", "rests_on": []}
    for told in ({"published": False, "receipt": None}, {"guarantee": claim}):
        assert words.COVERED not in page(release(**done, **told)).decode()


def test_reached_is_silent_where_nothing_was_done() -> None:
    assert words.reached(document()) == []
