"""Files for other systems: CSVW, SDMX, SVG, PDF; texts escaped, the same numbers."""

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest

from reticent.errors import PlanError, ReticentError
from reticent.release.exchange import csvw, sdmx
from reticent.report import printed
from reticent.report.charts import svgs
from reticent.report.printed import browser, pdf
from tests.report.documents import answer, estimate, release

CELLS = [
    estimate(10, cell={"area": "1", "sex": "f"}),
    estimate(20, cell={"area": "a & b", "sex": "(missing)"}),
]
LABELS = {
    "area": {"label": 'Area <"x">', "concept": "REF_AREA", "levels": {"1": "North & East"}},
    "sex": {"concept": "SEX"},
}
MADE = release(statistics=[answer("by area", CELLS, table=["area", "sex"])], labels=LABELS)


def test_csvw_names_every_column_of_the_csv() -> None:
    told = json.loads(csvw(MADE))
    assert [each["titles"] for each in told["tableSchema"]["columns"]] == MADE.header
    assert told["url"] == f"{MADE.id}.csv"
    kinds = {each["titles"]: each["datatype"] for each in told["tableSchema"]["columns"]}
    assert kinds["value"] == "double" and kinds["area"] == "string"


def test_sdmx_csv_has_the_numbers_and_codes_that_the_structure_lists() -> None:
    made = sdmx(MADE)
    lines = list(csv.DictReader(io.StringIO(made[f"{MADE.id}.1.sdmx.csv"].decode())))
    assert [line["OBS_VALUE"] for line in lines] == ["10", "20"]
    root = ET.fromstring(made[f"{MADE.id}.sdmx.xml"].decode())
    codes = {each.get("id") for each in root.iter() if each.tag.endswith("}Code")}
    used = {line[name] for line in lines for name in ("REF_AREA", "SEX")}
    assert used == codes == {"1", "a___b", "f", "_Z"}
    assert "North &amp; East" in made[f"{MADE.id}.sdmx.xml"].decode()
    flows = {each.get("id") for each in root.iter() if each.tag.endswith("}DataStructure")}
    assert {line["STRUCTURE_ID"].split(":")[1].split("(")[0] for line in lines} == flows


def test_without_concepts_sdmx_is_refused_with_the_way_out() -> None:
    with pytest.raises(PlanError, match="concept"):
        sdmx(release())


def test_charts_are_svg() -> None:
    assert all(data.startswith(b"<svg") for data in svgs(MADE).values()) and svgs(MADE)


def test_without_a_browser_pdf_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed, "browser", lambda: None)
    with pytest.raises(ReticentError, match="print it"):
        pdf(MADE)


@pytest.mark.skipif(browser() is None, reason="no browser that prints is installed")
def test_the_page_is_printed_by_a_browser() -> None:
    assert pdf(MADE).startswith(b"%PDF")
