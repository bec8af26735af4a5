"""The report says only what is true of its plan: each sentence that once stood where it did not belong."""

import io
import zipfile
from fractions import Fraction
from typing import Any

import pytest

from reticent.engine.open import open_engine
from reticent.plan.plan import Plan
from reticent.release.product import Grid
from reticent.release.release import Release
from reticent.release.run import run_plan
from reticent.release.survey import Survey, simulate
from reticent.report import words
from reticent.report.cells import cell_tables, error_of
from reticent.report.methodology import methodology
from reticent.report.numbers import covers
from reticent.report.page import page
from reticent.report.sheet import sheet
from reticent.report.statistics import statistics_lines
from tests.report.documents import answer, document, estimate, release

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
    assert DONORS not in text and "no answer reaches another respondent" in text


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
    for told in statistics:
        for each in told["estimates"]:
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
    assert "who answered area and pay" in told


def test_the_workbook_says_what_became_of_missing_answers() -> None:
    """(d) Nothing was used as it is."""
    with zipfile.ZipFile(io.BytesIO(sheet(release(imputation=[])))) as book:
        text = book.read("xl/sharedStrings.xml").decode()
    assert "used as they are" not in text and "none was filled" in text


SPOKEN = (
    ({"table": ["area"]}, "table of area over all respondents"),
    ({"count": "*"}, "number of all respondents"),
    (
        {"proportion": "pay is missing", "where": "age >= 15"},
        "share with pay is missing among respondents with age >= 15 who answered age",
    ),
    (
        {"mean": "pay", "where": "area = '1'"},
        "mean of pay over respondents with area = '1' who answered area and pay",
    ),
    (
        {"correlation": ["pay", "age"]},
        "correlation of pay and age over all respondents who answered pay and age",
    ),
    ({"mean": "pay", "missing": "complete"}, "mean of pay over all respondents who answered every question"),
)


@pytest.mark.parametrize(("query", "said"), SPOKEN)
def test_a_statistic_says_whose_answers_it_is_of(query: dict[str, Any], said: str) -> None:
    """A table has a cell for missing answers, and a share of missing answers is one of those who gave none."""
    statistic = {"name": "s", "query": {k: v for k, v in query.items() if k != "missing"}, "epsilon": "0.1"}
    statistic |= {"missing": query["missing"]} if "missing" in query else {}
    plan = Survey("rows.csv", codebook=BOOK).plan("r", epsilon="1", statistics=[statistic])
    (answer,) = rehearsed(plan).document["statistics"]
    assert answer["words"] == said


METHODS = (
    ({"tables": [{"name": "t", "margins": [["area"]], "epsilon": "1"}]}, "drawn by discrete Laplace, scaled"),
    ({"regression": [{"name": "g", "y": "pay", "x": ["age"], "epsilon": "1"}]}, "by the estimator 'centred'"),
    ({"cells": CELLS}, "by the method 'smooth'"),
    ({"impute": DONOR}, "drawn by discrete Laplace, scaled"),
)


@pytest.mark.parametrize(("sections", "said"), METHODS)
def test_the_methodology_names_what_drew_the_noise(sections: dict[str, Any], said: str) -> None:
    """(e) No product is without a mechanism, and a smooth bound is not the most that one respondent can move."""
    statistics = COUNT if "impute" in sections else []
    plan = Survey("rows.csv", codebook=BOOK).plan(
        "r", epsilon="10", statistics=statistics, expect={"rows": 500}, **sections
    )
    told = methodology(rehearsed(plan).document)
    assert said in told and "no mechanism" not in told and "the most that" not in told
    assert ("Intervals for privacy noise" in told) == ("cells" not in sections)


@pytest.mark.parametrize(
    ("budget", "covered"),
    [({}, "privacy noise alone"), ({"standard errors": "1"}, "sampling and noise")],
)
def test_the_methodology_says_what_intervals_of_cells_cover(budget: dict[str, str], covered: str) -> None:
    """(f) They may hold sampling without a total interval."""
    table = {**observed(**budget), "label": "", "guarantee": {"words": "1-DP", "measure": "pure"}}
    told = methodology(release(statistics=[], cells=[table]).document)
    assert f"The intervals of “rank” cover {covered}." in told and "only where a total" not in told


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
    done = {"imputation": ["missing values were filled"], "imputed_by": [kind]}
    assert words.COVERED in page(release(**done)).decode()
    claim: dict[str, Any] = {"words": "none", "measure": "observed", "rests_on": []}
    for told in ({"published": False, "receipt": None}, {"guarantee": claim}):
        assert words.COVERED not in page(release(**done, **told)).decode()


def test_reached_is_silent_where_nothing_was_done() -> None:
    assert words.handled(document()) == []


DEALT = {
    **BOOK,
    "columns": {**BOOK["columns"], "group": {"kind": "categorical", "role": "psu", "dealt": 60}},
}
OLD = [
    {"name": "old", "query": {"proportion": "age >= 65"}, "epsilon": "1"},
    {"name": "rich", "query": {"proportion": "pay >= 500"}, "epsilon": "1"},
    {"name": "mean age", "query": {"mean": "age", "by": ["area"]}, "epsilon": "1"},
]
BOUGHT = {"items": ["old", "rich"], "epsilon": "1"}


def of_a_design(book: Any = DEALT, design: Any = BOUGHT) -> Release:
    """A rehearsal of three statistics; of a mean by domain no variance is released."""
    plan = Survey("rows.csv", codebook=book).plan(
        "r", epsilon="10", statistics=OLD, expect={"rows": 500}, design=design
    )
    return rehearsed(plan)


def test_what_the_design_factor_was_made_of_is_told() -> None:
    """Groups of respondents are no primary sampling units, and replicate weights neither."""
    made = of_a_design()
    (said,) = [each for each in words.sampled(made.document) if each.startswith("The design effect")]
    assert (
        "from 60 groups of respondents, their pairs dealt into 25, over old" in said
        and "primary sampling units" not in said
    )
    replicates = {**made.document["sampling"], "basis": "80 replicate weights (SDR)"}
    del replicates["units"]
    assert "from 80 replicate weights (SDR), over" in words.sampled({"sampling": replicates})[0]
    older = {key: each for key, each in made.document["sampling"].items() if key != "basis"}
    assert "from 60 primary sampling units, over" in words.sampled({"sampling": older})[0]


def test_what_the_sampling_error_cost_is_among_the_parts() -> None:
    """And adds up with the statistics' own parts to the whole price."""
    document = of_a_design().document
    parts = [part for each in document["statistics"] for part in each["parts"]]
    paid = sum(Fraction(part["epsilon"]) for part in [*parts, *document["sampling"]["parts"]])
    assert paid == 4
    text = page(Release(document)).decode()
    assert "<h3>Sampling error</h3>" in text and "the survey&#39;s design factor: respondents" in text
    assert "<h3>Sampling error</h3>" not in page(of_a_design(design={"design_effect": "2"})).decode()


def test_the_methodology_says_how_sampling_errors_were_had() -> None:
    bought, declared = of_a_design().document, of_a_design(design={"design_effect": "2"}).document
    assert "estimated privately from 60 groups of respondents" in methodology(bought)
    assert "a declared design effect of 2." in methodology(declared)
    assert "Sampling variances are" not in methodology(of_a_design(design=None).document)


def test_the_terminal_says_why_a_total_is_empty() -> None:
    """One line for each reason, under the table."""
    lines = [each for each in statistics_lines(of_a_design().document) if isinstance(each, str)]
    (why,) = [each for each in lines if each.startswith("no total interval for mean age:")]
    assert 'name it with variance = "its name"' in why


def test_an_interval_without_an_end_shows_the_other() -> None:
    """A ratio to nobody has no upper end; on the terminal and the page its lower one stands."""
    ends = {"privacy_low": 2.5, "total_low": 1.5, "reliability": "unreliable"}
    one = estimate(value=12.0, half=None, **ends)
    told = document(statistics=[answer(name="ratio", estimates=[one])])
    (grid,) = [each for each in statistics_lines(told) if isinstance(each, Grid)]
    assert sum("to no bound" in cell for cell in grid.rows[0]) == 2
    assert "to no bound" in page(Release(told)).decode()
    assert "two intervals" in covers(told)
