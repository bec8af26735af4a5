"""The workbook: the JSON's numbers, text that stays text, the same bytes each time."""

import io
import sys
import xml.etree.ElementTree as ET
import zipfile

import pytest

from reticent.errors import ReticentError
from reticent.report.sheet import sheet
from tests.report.documents import answer, estimate
from tests.report.documents import release as made

NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def parts(data: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return {name: book.read(name).decode() for name in book.namelist()}


def numbers(data: bytes) -> list[float]:
    """Every numeric cell of the first sheet, in order."""
    root = ET.fromstring(parts(data)["xl/worksheets/sheet1.xml"])
    cells = [cell for cell in root.iter(f"{NAMESPACE}c") if cell.get("t") is None]
    return [float(value.text) for cell in cells if (value := cell.find(f"{NAMESPACE}v")) is not None]


def test_numbers_are_those_of_the_release():
    """Value, level, low, high, total margin and cv of every estimate, and no other number."""
    release = made()
    wanted = []
    for line in release.lines():
        wanted += [float(value) for value in line if isinstance(value, int | float)]
    assert wanted and numbers(sheet(release)) == wanted


def test_the_same_release_is_the_same_bytes():
    assert sheet(made()) == sheet(made())


def test_formulas_stay_text():
    """A cell name that a spreadsheet would run is a shared string; a naive writer makes a formula of it."""
    # covers T28
    import xlsxwriter

    release = made(statistics=[answer("=cmd|' /C calc'!A0", [estimate(1)])])
    mine = parts(sheet(release))
    assert "<f>" not in mine["xl/worksheets/sheet1.xml"] and "=cmd" in mine["xl/sharedStrings.xml"]
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        book.add_worksheet().write(0, 0, "=cmd|' /C calc'!A0")  # the naive twin
    assert "<f>" in parts(out.getvalue())["xl/worksheets/sheet1.xml"]


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ReticentError, match="pip install"):
        sheet(made())


def test_every_table_has_a_sheet_and_its_intervals_stand_beside_it():
    """Tables of one key too, line by line; nothing is said to stand under anything."""
    one = answer("by sex", [estimate(v, 3, {"sex": s}) for s, v in (("m", 5), ("f", 7))], table=["sex"])
    cells = [{"sex": s, "age": a} for s in "mf" for a in ("old", "young")]
    two = answer("by both", [estimate(9, 3, cell) for cell in cells], table=["sex", "age"])
    labels = {"sex": {"label": "Sex of respondent", "levels": {"m": "Male", "f": "Female"}}}
    found = parts(sheet(made(statistics=[answer("all", [estimate(12)]), one, two], labels=labels)))
    assert [name for name in ("by sex", "by both") if f'name="{name}"' in found["xl/workbook.xml"]] == [
        "by sex",
        "by both",
    ]
    text = found["xl/sharedStrings.xml"]
    assert "95 % interval for privacy noise." in text and "Under each" not in text
    assert "sex: Sex of respondent (m: Male, f: Female)" in text
    assert len(ET.fromstring(found["xl/worksheets/sheet2.xml"]).findall(f".//{NAMESPACE}row")) == 6
