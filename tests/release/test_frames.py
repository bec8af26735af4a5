"""Every part of a release as frames and as sheets of the workbook: labels beside codes, numbers as numbers, levels beside intervals."""

import csv
import io
import json
import zipfile
from typing import Any

import pytest

from reticent.errors import ReticentError
from reticent.release.csvw import csvw
from reticent.release.product import Grid
from reticent.release.release import Release, files_of
from reticent.release.shown import release_html
from reticent.report.numbers import covers
from reticent.report.page import page
from reticent.report.sheet import sheet
from reticent.report.statistics import key_figures, statistics_lines
from tests.report.documents import answer, document, estimate, release
from tests.report.test_sentences_of_plans import PLANS, of
from tests.report.test_true_sentences import observed

LABELS = {
    "area": {"label": "Area", "levels": {"1": "North", "2": "=South"}},
    "pay": {"label": "Monthly pay"},
    "low": {"label": "Whether low", "levels": {"n": "no"}},
}
SLOPE = {
    "cell": {"low": "n"},
    "term": "area = 2",
    "against": "1",
    "value": 0.25,
    "privacy_low": 0.2,
    "privacy_high": 0.3,
    "noise_sd": 0.025,
    "total_low": None,
    "total_high": None,
    "cv": None,
    "reliability": None,
}
FIT = {
    "name": "line",
    "words": "pay on area",
    "response": "pay",
    "level": 0.9,
    "guarantee": {"words": "1-DP"},
    "meaning": "covers noise",
    "no_privacy_interval": "",
    "total_meaning": "",
    "no_total_interval": "no sampling error is known",
    "residual_sd": 3.5,
    "coefficients": [SLOPE],
}


def held() -> Release:
    """Cells and a regression, with labels."""
    cells = {**observed(), "label": "", "guarantee": {"words": "1-DP"}}
    return release(cells=[cells], regression=[FIT], labels=LABELS)


def sheets(made: Release) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(sheet(made))) as book:
        return {name: book.read(name).decode() for name in book.namelist()}


def test_cells_and_regressions_are_frames_with_their_labels() -> None:
    made = held()
    assert made.parts == ["statistics", "cells", "regression"]
    cells = made.to_pandas("cells")
    assert cells["cell_label"].tolist() == ["North", "=South"] and cells["estimate"].tolist() == [
        0.5,
        -217850.2094,
    ]
    assert cells["level"].tolist() == [0.95, 0.95] and cells["count"].dtype == float
    line = made.to_polars("regression").row(0, named=True)
    assert (line["term"], line["term_label"], line["against_label"]) == ("area = 2", "Area = =South", "North")
    assert (line["value"], line["level"], line["privacy_low"], line["cv"]) == (0.25, 0.9, 0.2, None)
    assert line["total_meaning"] == "empty: no sampling error is known"


def test_a_key_named_like_a_number_stays_text() -> None:
    """The column `low` of a domain is no end of an interval; CSVW says so too."""
    made = held()
    frame = made.to_arrow("regression")
    assert frame["low"].to_pylist() == ["n"] and frame["low_label"].to_pylist() == ["no"]
    (told,) = [data for name, data in csvw(made).items() if "regression" in name]
    kinds = {each["titles"]: each["datatype"] for each in json.loads(told)["tableSchema"]["columns"]}
    assert kinds["low"] == "string" and kinds["privacy_low"] == "double" and kinds["against"] == "string"


def test_tables_that_add_up_are_frames_and_their_csv_has_the_same_lines() -> None:
    _, made = of(**PLANS["tables and line"])
    frame = made.to_pandas("tables")
    assert set(frame["table"]) == {"areas"} and {"North", "South"} <= set(frame["area_label"])
    (data,) = [write(made) for ending, write in files_of(made).items() if ending == ".tables.csv"]
    lines = list(csv.DictReader(io.StringIO(data.decode())))
    assert [float(line["value"]) for line in lines] == frame["value"].tolist()


def test_another_part_is_refused_by_name() -> None:
    with pytest.raises(ReticentError, match="is one of statistics, cells, regression"):
        held().to_pandas("tables")
    with pytest.raises(ReticentError, match="synthetic"):
        release(synth=[{"name": "rows"}]).to_pandas("synth")


def test_cells_and_regressions_have_sheets_whose_numbers_are_numbers() -> None:
    found = sheets(held())
    names = found["xl/workbook.xml"]
    assert 'name="rank"' in names and 'name="line"' in names
    assert "<f>" not in "".join(found.values())
    place = [piece.split('"')[0] for piece in names.split('<sheet name="')[1:]].index("line") + 1
    assert "<v>0.25</v>" in found[f"xl/worksheets/sheet{place}.xml"]
    texts = found["xl/sharedStrings.xml"]
    assert "Area = =South" in texts and "cell_label" in texts


def of_two_levels() -> Release:
    """Two statistics whose intervals have different levels."""
    narrow = answer("narrow", [estimate(100, 5, total_low=90, total_high=110)])
    return release(
        statistics=[answer("wide", [estimate(10, 3)]), {**narrow, "interval": {"level": 0.9, "meaning": "m"}}]
    )


def test_where_levels_differ_each_interval_tells_its_own() -> None:
    """On the page, the terminal and in a notebook; under key figures once."""
    made = of_two_levels()
    (grid,) = [each for each in statistics_lines(made.document) if isinstance(each, Grid)]
    assert grid.headings[2] == "interval for privacy noise"
    assert grid.rows[0][2] == "7 to 13 (95 %)" and grid.rows[1][3] == "90 to 110 (90 %)"
    assert "(90 %)" in page(made).decode()
    assert [line["says"].count("%") for line in key_figures(made.document)] == [1, 1]
    html = release_html(made.document, ["statistics"])
    assert "95 % interval for privacy noise" in html and "90 % interval for privacy noise" in html


def test_where_levels_agree_the_heading_tells_it() -> None:
    (grid, *_) = [each for each in statistics_lines(document()) if isinstance(each, Grid)]
    assert grid.headings[2].startswith("95 %") and "(95 %)" not in str(grid.rows)
    assert ">95 % interval for privacy noise</th>" in page(release()).decode()


@pytest.mark.parametrize(
    ("estimates", "said"),
    [
        ([estimate(1, None)], "No number of this release has an interval."),
        ([estimate(1, 2), estimate(1, None)], "Where an estimate shows no interval, none is known."),
        ([estimate(1, 2)], "cover privacy noise alone"),
    ],
)
def test_nothing_is_said_of_an_interval_that_is_not_there(estimates: list[Any], said: str) -> None:
    told = covers(document(statistics=[answer(f"s{i}", [each]) for i, each in enumerate(estimates)]))
    assert said in told
    assert ("Where an" in told) == (len(estimates) == 2)


def test_variances_are_key_figures_only_where_there_is_nothing_else() -> None:
    """They are released for the sake of others, and in squared units."""
    spread = answer("spread", [estimate(9, 3)], variance="wage")
    both = release(statistics=[spread, answer("wage", [estimate(10, 3)])])
    assert [line["name"] for line in key_figures(both.document)] == ["wage"]
    assert [line["name"] for line in key_figures(release(statistics=[spread]).document)] == ["spread"]
