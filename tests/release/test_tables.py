"""Tables that add up, from a plan to a release: charged, tried, made, told, printed and drawn like any product."""

import csv
import io
import json

import pyarrow as pa
import pytest

from reticent.errors import PlanError
from reticent.preview.products import foresee_plan
from reticent.release.product import Grid
from reticent.release.release import Release, files_of, planned_files, producers
from reticent.release.run import run_plan, try_plan
from reticent.release.survey import Survey
from reticent.report.charts import specs
from reticent.report.page import page
from reticent.report.pages import drawings
from tests.tables import book, make_plan

ROWS = pa.table(
    {
        "sex": ["f", "m", "x", "f", None] * 20,
        "age": [30, 40, 50, 8, 70] * 20,
        "pay": [1.0, 2.0, 3.0, None, 5.0] * 20,
        "w": [1.0] * 100,
    }
)
SECTION = {
    "name": "who",
    "margins": [["sex", "age"], ["pay"]],
    "bins": {"age": [0, 15, 65, 99], "pay": [-50, 0, 150]},
    "epsilon": "2",
}


@pytest.fixture(scope="module")
def release() -> Release:
    """Of true rows, with noise, as it would be told; nothing is charged."""
    survey = Survey(ROWS, codebook=book())
    plan = survey.plan("t-1", epsilon="5", tables=[SECTION])
    engine = survey.open()
    try:
        done = run_plan(plan, engine, None)
    finally:
        engine.close()
    assert done.epsilon == plan.cost == 2
    return Release(done.to_document(plan, receipt=None, engine="lab"))


def test_every_margin_is_told_in_the_order_it_is_written() -> None:
    """Where one order of the columns does for all of them; else by the column that is named first."""
    wide = book({name: {"kind": "categorical", "levels": ["1", "2"]} for name in ("a", "b", "c")})

    def names(*margins: list[str]) -> list[str]:
        section = {"name": "t", "margins": list(margins), "epsilon": "1"}
        plan = make_plan([], wide, tables=[section])
        return [" by ".join(margin["columns"]) for margin in foresee_plan(plan)[0].told[0]["margins"]]

    assert names(["a", "b"], ["c", "b"]) == ["a by b", "c by b"]
    assert names(["b", "a"], ["c", "b"]) == ["b by a", "c by b"]
    assert names(["a", "b"], ["b", "c"], ["c", "a"]) == ["a by b", "b by c", "a by c"]


def test_the_plan_says_price_and_files_beforehand():
    plan = make_plan([], tables=[SECTION])
    assert plan.cost == 2 and plan.claim.epsilon == 2
    try_plan(plan)
    assert ".tables.csv" in planned_files(plan)
    (seen,) = foresee_plan(plan)
    assert seen.key == "tables" and [m["cells"] for m in seen.told[0]["margins"]] == [16, 4]
    assert any(isinstance(line, Grid) for line in seen.lines)


def test_a_release_holds_every_cell_and_total_once(release):
    """Cells, totals of each side, and the grand total; the CSV has the same numbers as the JSON."""
    (table,) = release.document["tables"]
    first, second = table["margins"]
    assert len(first["lines"]) == 4 * 4 + 4 + 4 + 1 and len(second["lines"]) == 4 + 1
    text = files_of(release)[".tables.csv"](release).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    told = [line["value"] for margin in table["margins"] for line in margin["lines"]]
    assert [int(line["value"]) for line in lines] == told
    assert first["lines"][-1]["value"] == second["lines"][-1]["value"]
    assert json.dumps(release.document["tables"])


def test_page_terminal_and_pictures_show_it(release):
    document = release.document
    html = page(release).decode()
    assert "who" in html and "(all)" in html and "Whole numbers that add up" in html
    (drawing,) = drawings(document)
    assert sum(isinstance(line, Grid) for line in drawing.lines(document)) == 2
    assert len(list(specs(release))) == 2


def test_a_piece_of_a_survey_is_refused_before_the_charge():
    plan = make_plan([], tables=[SECTION], partition={"name": "p", "pieces": 2, "piece": 1})
    with pytest.raises(PlanError, match="whole survey"):
        try_plan(plan)


def test_names_are_shared_with_other_products():
    with pytest.raises(PlanError, match="who"):
        make_plan([], tables=[SECTION, SECTION])
    assert [type(each).__name__ for each in producers(make_plan([], tables=[SECTION]))] == ["TablesProducer"]
