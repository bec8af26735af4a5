"""Charts show the release's own numbers, and names from the plan stay data."""

import json
import struct
import sys

import pytest

from reticent.errors import ReticentError
from reticent.report import charts
from reticent.report.charts import specs
from reticent.report.statistics import MOST_CELLS
from reticent.report.tables import TABLES
from tests.report import documents
from tests.report.documents import answer, estimate, release


def rows_of(chart):
    return chart.spec["data"]["values"]


def expressions(spec):
    """Every place of a specification that Vega evaluates."""
    if isinstance(spec, dict):
        for key, inner in spec.items():
            if key in ("filter", "calculate", "expr", "signal", "labelExpr", "test"):
                yield json.dumps(inner)
            if key != "values":
                yield from expressions(inner)
    elif isinstance(spec, list):
        for inner in spec:
            yield from expressions(inner)


def test_every_number_of_the_release_is_in_a_chart_as_it_is():
    """Value and ends of both intervals: equal to the JSON's, each once, nothing besides."""
    made = documents.read_back(release())
    names = ("value", "low", "high", "total_low", "total_high")
    drawn = [tuple(row[n] for n in names) for chart in specs(made) for row in rows_of(chart)]
    keys = ("value", "privacy_low", "privacy_high", "total_low", "total_high")
    stated = [tuple(e[k] for k in keys) for a in made.document["statistics"] for e in a["estimates"]]
    assert sorted(drawn, key=repr) == sorted(stated, key=repr)


def test_units_do_not_share_an_axis():
    titles = [chart.title for chart in specs(release())]
    assert titles == ["respondents", "dollars", "sex by age"]


def test_columns_without_a_unit_do_not_share_an_axis_and_variances_stand_apart():
    """A mean of 27 beside a median of 60,000, both without a unit, is a point on the edge of the picture."""
    asked = {"bmi": {"mean": "bmi"}, "spread": {"variance": "bmi"}, "pay": {"median": "income"}}
    made = [answer(name, [estimate(27.0)], "", **query) for name, query in asked.items()]
    assert [chart.title for chart in specs(release(statistics=made))] == ["bmi", "bmi, variance", "income"]


def test_totals_and_weighted_counts_stand_apart():
    """A mean and a total are both in dollars, and a thousandfold apart; a difference goes with its parents."""
    asked = [
        answer("mean", [estimate(4)], "dollars", mean="wage"),
        answer("total", [estimate(4000)], "dollars", total="wage"),
        answer("more", [estimate(400)], "dollars", difference=["total", "total"]),
        answer("people", [estimate(5)], count="*"),
        answer("state", [estimate(5000)], count="*", weight="w"),
    ]
    found = {
        chart.title: [row["label"] for row in rows_of(chart)] for chart in specs(release(statistics=asked))
    }
    assert found == {
        "dollars": ["mean"],
        "dollars, total": ["total", "more"],
        "respondents": ["people"],
        "respondents, weighted": ["state"],
    }


def test_cells_keep_the_order_of_the_plan():
    """Also when the release was read from its file, whose keys are sorted."""
    for made in (release(), documents.read_back(release())):
        rows = rows_of(specs(made)[-1])
        assert [(row["group"], row["label"]) for row in rows] == [
            ("sex: m", "old"), ("sex: m", "young"), ("sex: f", "old"), ("sex: f", "young")
        ]  # fmt: skip
        assert [row["place"] for row in rows] == [0, 1, 2, 3]


def test_drawn_order_is_the_order_of_the_plan():
    drawn = charts.svg(specs(release())[-1])
    assert drawn.index("sex: m") < drawn.index("sex: f")


def test_a_huge_table_is_cut_and_says_so():
    (chart,) = specs(documents.huge(60))
    assert len(rows_of(chart)) == MOST_CELLS and "first 60 of 3600 cells" in chart.caption


def test_bars_begin_at_zero():
    """A bar's length is its value: cells near 1000 must not look like cells near 0."""
    cells = [estimate(1000 + i, 1, {"a": f"a{i}"}) for i in range(3)]
    (chart,) = specs(release(statistics=[answer("t", cells, table=["a"])]))
    scales = [layer["encoding"]["x"].get("scale") for layer in chart.spec["layer"]]
    assert [scale for scale in scales if scale] == [{"zero": True}] * 4


def test_no_name_enters_an_expression():
    """The expressions of a hostile plan are those of a plain one; names are looked for outside the data."""
    hostile = "'+(globalThis.x=1)+'"
    cells = [estimate(3, 1, {hostile: hostile, "b": hostile}), estimate(4, 1, {hostile: "c", "b": "d"})]
    made = release(
        statistics=[
            answer(hostile, [estimate(1)], hostile),
            answer("t", cells, hostile, table=[hostile, "b"]),
        ]
    )
    plain = {text for chart in specs(release()) for text in expressions(chart.spec)}
    for chart in specs(made):
        found = set(expressions(chart.spec))
        assert found and found <= plain
        assert hostile in charts.svg(chart).replace("&#39;", "'").replace("&apos;", "'")


def test_alike_labels_stay_two_lines():
    """Cells (a · b, c) and (a, b · c) are written alike, and drawn apart."""
    cells = [
        estimate(1, 1, {"x": "g", "y": "a · b", "z": "c"}),
        estimate(2, 1, {"x": "g", "y": "a", "z": "b · c"}),
    ]
    (chart,) = specs(release(statistics=[answer("t", cells, table=["x", "y", "z"])]))
    first, second = rows_of(chart)
    assert first["label"] == second["label"] and first["place"] != second["place"]
    assert charts.svg(chart).count("a · b · c") == 2


def test_pictures_are_png_and_repeat():
    made = charts.png(release())
    assert list(made) == ["chart-1", "chart-2", "chart-3"]
    for data in made.values():
        assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24])[0] > 600
    assert made == charts.png(release())


def test_a_rehearsal_marks_its_pictures():
    assert all("Not a release" in charts.svg(chart) for chart in specs(documents.rehearsal()))


def test_pictures_without_the_drawing_part(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ReticentError, match=r"reticent\[report\]"):
        charts.png(release())


def test_a_margin_of_two_columns_has_a_part_for_each_level_of_the_first():
    """No label has to hold both keys, and readers see labels in the title, too."""
    lines = [
        {"cell": {"area": area, "sex": sex}, "value": 5, "privacy_low": 4, "privacy_high": 6}
        for area in ("1", "2")
        for sex in ("f", "m", "(all)")
    ]
    table = {
        "name": "who",
        "unit": "respondents",
        "whole": True,
        "level": 0.95,
        "margins": [{"columns": ["area", "sex"], "lines": lines}],
    }
    labels = {"area": {"label": "Area", "levels": {"1": "North"}}}
    ((title, _, (_, spec)),) = TABLES.charts({"tables": [table], "labels": labels})
    assert title == "who: Area by sex"
    assert [(row["group"], row["label"]) for row in spec["data"]["values"]] == [
        ("Area: North", "f"),
        ("Area: North", "m"),
        ("Area: 2", "f"),
        ("Area: 2", "m"),
    ]
