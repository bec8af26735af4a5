"""From an SPSS file to every output: a draft whose TODOs are answered, a release, and its labels wherever somebody looks."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import pytest

import reticent
from reticent.engine.sources.draft import draft_codebook
from reticent.release.csvw import csvw
from reticent.release.product import Grid
from reticent.release.release import Release, files_of
from reticent.report.charts import svgs
from reticent.report.page import page
from reticent.report.pages import drawings
from reticent.report.sheet import sheet

LABELS = {"REGION": {1: "New England", 2: "Pacific"}, "HAPPY": {1: "very", 2: "not too", 9: "no answer"}}
ANSWERS = (
    ('name = "TODO"', 'name = "spss"'),
    ("unfinished = true", "# "),
    ('unit = ""', 'unit = "row"'),
    ("bounds = []", "bounds = [18, 90]"),
)
ASKED: dict[str, Any] = {
    "statistics": [
        {"name": "both", "query": {"table": ["REGION", "HAPPY"]}, "epsilon": "1"},
        {"name": "old", "query": {"proportion": "AGE >= 65", "by": ["REGION"]}, "epsilon": "1"},
    ],
    "tables": [{"name": "sums", "margins": [["REGION", "HAPPY"]], "epsilon": "1"}],
    "regression": [{"name": "line", "y": "AGE", "x": ["REGION"], "epsilon": "5"}],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("spss")
    path = folder / "survey.sav"
    frame = pd.DataFrame(
        {
            "REGION": [float(1 + i % 2) for i in range(900)],
            "HAPPY": [(1.0, 2.0, 9.0)[i % 3] for i in range(900)],
            "AGE": [float(18 + i % 70) for i in range(900)],
        }
    )
    pyreadstat.write_sav(
        frame,
        str(path),
        column_labels={"REGION": "Census region"},
        variable_value_labels=LABELS,
        missing_ranges={"HAPPY": [9]},
        variable_measure={"REGION": "nominal", "HAPPY": "ordinal", "AGE": "scale"},
        variable_format={"AGE": "F3.0"},
    )
    return published(folder, path)


def published(folder: Path, path: Path) -> Release:
    book, text = folder / "book.toml", draft_codebook(str(path))
    for todo, answer in ANSWERS:
        assert todo in text
        text = text.replace(todo, answer)
    book.write_text(text, encoding="utf-8")
    survey = reticent.Survey(path, codebook=book)
    plan = survey.plan("spss-1", epsilon="8", expect={"rows": 900}, **ASKED)
    ledger = reticent.Ledger.create(
        folder / "l.db", dataset="spss", change=plan.change.value, unit="epsilon", budget="9"
    )
    return reticent.Curator(ledger, pages=None).release(plan, survey, folder / "out")


def terminal(made: Release) -> str:
    lines = [line for each in drawings(made.document) for line in each.lines(made.document)]
    return "\n".join(
        " ".join([*line.headings, *(cell for row in line.rows for cell in row)])
        if isinstance(line, Grid)
        else line
        for line in lines
    )


def workbook(made: Release) -> str:
    with zipfile.ZipFile(io.BytesIO(sheet(made))) as book:
        return book.read("xl/sharedStrings.xml").decode()


OUTPUTS = {
    "page": lambda made: page(made).decode(),
    "terminal": terminal,
    "workbook": workbook,
    "notebook": lambda made: made._repr_html_(),
    "charts": lambda made: "".join(data.decode() for data in svgs(made).values()),
    "CSV": lambda made: made.to_csv().decode(),
    "CSV of tables": lambda made: files_of(made)[".tables.csv"](made).decode(),
    "CSV of regressions": lambda made: files_of(made)[".regression.csv"](made).decode(),
    "JSON": lambda made: made.to_bytes().decode(),
    "CSVW": lambda made: "".join(data.decode() for data in csvw(made).values()),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_labels_of_the_file_are_in_every_output(made: Release, name: str) -> None:
    text = OUTPUTS[name](made)
    assert "Pacific" in text and ("not too" in text) == (name != "CSV of regressions")
    # What the file declares missing is no level, and its label is nobody's answer.
    assert "no answer" not in text.replace("no answers", "")


def test_codes_stand_beside_labels(made: Release) -> None:
    """Whoever computes goes by codes."""
    frame = made.to_pandas()
    both = frame[frame["statistic"] == "both"]
    assert set(zip(both["REGION"], both["REGION_label"], strict=True)) >= {
        ("1", "New England"),
        ("2", "Pacific"),
    }
    line = made.to_pandas("regression")
    assert dict(zip(line["term"], line["term_label"], strict=True))["REGION = 2"] == "Census region = Pacific"
