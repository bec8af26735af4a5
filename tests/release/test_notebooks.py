"""What notebooks show and take: HTML that is escaped, short reprs, frames with the headers they came with."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import reticent
from reticent.errors import PlanError
from reticent.python.frames import FrameOutput
from reticent.release.release import Release
from reticent.report.pages import installed
from tests.report.documents import answer, estimate
from tests.report.documents import release as made

BOOK: dict[str, Any] = {
    "survey": {"name": "nb", "unit": "row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [0, 99], "source": "Age (years)"},
        "pay": {"kind": "integer", "bounds": [0, 1000]},
        "area": {"kind": "categorical", "levels": ["1", "2"], "labels": {"1": "<b>North</b>", "2": "=South"}},
    },
}
NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "first-release.ipynb"


def rows(count: int = 400) -> pd.DataFrame:
    place = np.arange(count)
    pay = pd.array(np.where(place % 5 == 0, 0, 100 + place % 700), dtype="Int64")
    pay[place % 5 == 0] = pd.NA
    frame = pd.DataFrame({"area": np.where(place % 3 == 0, "1", "2"), "pay": pay, "Age (years)": place % 90})
    return frame.set_index(pd.Index([f"r{i}" for i in place]))


def plan(survey: reticent.Survey) -> Any:
    return survey.plan(
        "nb-1",
        epsilon="1",
        statistics=[{"name": "by area", "query": {"table": ["area"]}, "epsilon": "0.5"}],
    )


def test_a_release_shows_itself_and_becomes_frames() -> None:
    cells = [estimate(10, cell={"area": "1"}), estimate(20, cell={"area": "2"})]
    labels = {"area": {"label": "Area", "levels": {"1": "<b>North</b>", "2": "=South"}}}
    shown = made(statistics=[answer("by area", cells, table=["area"])], labels=labels)
    html = shown._repr_html_()
    assert "&lt;b&gt;North" in html and "<b>North" not in html
    assert len(repr(shown)) < 200 and "by area" in repr(shown)
    frame = shown.to_pandas()
    assert list(frame["area"]) == ["1", "2"] and list(frame["area_label"]) == ["<b>North</b>", "=South"]
    assert frame["value"].tolist() == [10.0, 20.0]
    assert shown.to_polars()["value"].to_list() == shown.to_arrow()["value"].to_pylist() == [10.0, 20.0]


def test_a_notebook_shows_every_table_under_its_keys() -> None:
    """Statistics with cells, tables that add up and regressions; what it does not show it names."""
    cells = [estimate(10, cell={"area": "1"}), estimate(20, cell={"area": "2"})]
    line = {"cell": {"area": "(all)"}, "value": 30, "privacy_low": 28, "privacy_high": 33}
    table = {
        "name": "who",
        "unit": "people",
        "whole": True,
        "level": 0.95,
        "margins": [{"columns": ["area"], "lines": [line]}],
    }
    slope = {"term": "age", "against": "", "value": 0.25, "privacy_low": 0.2, "privacy_high": 0.3}
    fit = {"name": "line", "response": "pay", "level": 0.9, "coefficients": [slope]}
    shown = made(
        statistics=[answer("all", [estimate(30)]), answer("by area", cells, table=["area"])],
        tables=[table],
        regression=[fit],
        synth=[{"name": "rows"}],
        labels={"area": {"label": "Area", "levels": {"1": "North"}}},
    )
    text = " ".join(re.sub("<[^>]+>", " ", shown._repr_html_()).split())
    assert "by area (respondents) Area estimate 95 % interval for privacy noise" in text
    assert "North 10 5 to 15" in text and "who (people) Area" in text and "(all) 30 28 to 33" in text
    assert (
        "line: pay on term against" in text
        and "against estimate 90 % interval for privacy noise" in text
        and "age 0.250 0.200 to 0.300" in text
        and "also holds: synth" in text
    )


def test_labels_are_defused_in_csv_and_their_codes_stand_beside_them() -> None:
    """covers T28"""
    labels = {"area": {"levels": {"2": "=SUM(A1)"}}}
    shown = made(statistics=[answer("t", [estimate(20, cell={"area": "2"})], table=["area"])], labels=labels)
    header, line = shown.to_csv().decode().splitlines()[:2]
    assert header.split(",")[3:5] == ["area", "area_label"] and line.split(",")[3:5] == ["2", "'=SUM(A1)"]


def test_plan_preview_and_ledger_show_themselves(tmp_path: Path) -> None:
    survey = reticent.Survey(rows(), codebook=BOOK)
    asked = plan(survey)
    assert "by area" in asked._repr_html_() and "by area" in repr(asked)
    foreseen = reticent.Preview(asked)
    assert "margin of noise" in foreseen._repr_html_() and "no row was read" in foreseen._repr_html_()
    ledger = reticent.Ledger.create(
        tmp_path / "nb.ledger.db", dataset="nb", change=asked.change.value, unit="epsilon", budget="3"
    )
    assert "0 spent of 3" in repr(ledger)
    published = reticent.Curator(ledger, pages=None).release(asked, survey, tmp_path / "out")
    assert "0.5 spent of 3" in repr(ledger) and "published" in ledger._repr_html_()
    assert list(published.to_pandas()["area_label"])[:2] == ["<b>North</b>", "=South"]


def test_the_curator_writes_what_the_command_line_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent.python.curator.installed", installed)
    survey = reticent.Survey(rows(), codebook=BOOK)
    asked = plan(survey)
    ledger = reticent.Ledger.create(
        tmp_path / "nb.ledger.db", dataset="nb", change=asked.change.value, unit="epsilon", budget="3"
    )
    reticent.Curator(ledger).release(asked, survey, tmp_path / "out")
    found = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert {".json", ".csv", ".html", ".xlsx"} <= found


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_donors_give_back_the_headers_they_were_given(kind: str) -> None:
    given: Any = rows()
    given = {
        "pandas": given,
        "polars": pl.from_pandas(given),
        "arrow": pa.Table.from_pandas(given, preserve_index=False),
    }[kind]
    imputer = reticent.DonorImputer(BOOK, column="pay", match=["area"], default="500")
    found = imputer.fit_transform(given)
    names = list(found.columns) if kind != "arrow" else found.column_names
    assert names == ["area", "pay", "Age (years)", "pay_filled"]
    assert type(found) is type(given)
    if kind == "pandas":
        assert list(found.index[:2]) == ["r0", "r1"] and set(found["area"]) == {"1", "2"}
    assert list(imputer.get_feature_names_out()) == names


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_donors_keep_types_and_columns_that_the_codebook_does_not_declare(kind: str) -> None:
    given: Any = rows().assign(remark="r", area=lambda frame: frame["area"].astype("category"))
    given["Age (years)"] = given["Age (years)"].astype("int16")
    given = given if kind == "pandas" else pl.from_pandas(given)
    imputer = reticent.DonorImputer(BOOK, column="pay", match=["area"], default="500")
    found = imputer.fit_transform(given)
    assert list(found.columns) == [*given.columns, "pay_filled"] == list(imputer.get_feature_names_out())
    for name in given.columns:
        assert found[name].dtype == given[name].dtype, name


def test_a_type_that_cannot_hold_the_answers_is_not_kept() -> None:
    """Groups are words where the file has numbers; whole numbers that are filled with halves become doubles."""
    book = {
        **BOOK,
        "columns": {
            **BOOK["columns"],
            "side": {"kind": "categorical", "source": "area", "groups": {"n": ["1"], "s": ["2"]}},
        },
    }
    frame = rows().assign(area=lambda each: each["area"].astype(int))
    found = reticent.DonorImputer(book, column="pay", match=["area"], default="500").fit_transform(frame)
    assert list(found.columns) == ["area", "pay", "Age (years)", "side", "pay_filled"]
    assert found["area"].dtype == np.int64 and set(found["side"]) == {"n", "s"}
    halves = pa.table({"a": [0.5, 1.0]})
    assert FrameOutput()._as_given(pd.DataFrame({"a": [1, 2]}), halves)["a"].tolist() == [0.5, 1.0]


def test_everything_is_there_for_an_import_of_all_names() -> None:
    names: dict[str, Any] = {}
    exec("from reticent import *", names)  # noqa: S102 - the sentence itself is what is tested
    assert {"Release", "DonorImputer", "read_plan"} <= set(names)


def test_bounds_by_header_are_for_that_frame_alone() -> None:
    frame = pd.DataFrame({"age": np.linspace(18, 90, 500)})
    line = reticent.PrivateRegression(epsilon="10", bounds={"age": (18, 90), "pay": (0, 100)})
    assert "<pre>" not in line._repr_html_()
    line.fit(frame, frame["age"])
    assert "interval for privacy noise" in line._repr_html_() and "<pre>" in line._repr_html_()
    with pytest.raises(PlanError, match="exactly these headers"):
        line.fit(frame.rename(columns={"age": "years"}), frame["age"])
    with pytest.raises(PlanError, match="exactly these headers"):
        line.fit(frame.to_numpy(), frame["age"])


def test_set_output_chooses_the_frame() -> None:
    imputer = reticent.DonorImputer(BOOK, column="pay", match=["area"], default="500")
    assert isinstance(imputer.set_output(transform="polars").fit_transform(rows()), pl.DataFrame)
    with pytest.raises(PlanError, match="pandas, polars"):
        imputer.set_output(transform="excel")


def test_imputers_take_column_names_and_keep_types() -> None:
    frame = rows()[["Age (years)", "pay"]]
    bounds = {"Age (years)": (0, 99), "pay": (0, 1000)}
    imputer = reticent.PrivateImputer(epsilon="10", bounds=bounds, columns=["pay"])
    found = imputer.fit_transform(frame)
    assert list(found.columns) == list(frame.columns) and list(found.index) == list(frame.index)
    assert found["Age (years)"].dtype == np.int64 and not found["pay"].isna().any()
    assert list(imputer.get_feature_names_out()) == list(frame.columns)
    array = reticent.PrivateImputer(epsilon="10", bounds=[(0, 99), (0, 1000)], columns=[1])
    assert isinstance(array.fit_transform(np.array([[1.0, 2.0], [3.0, np.nan]])), np.ndarray)
    with pytest.raises(PlanError, match="no header"):
        reticent.PrivateImputer(epsilon="1", bounds=[(0, 1), (0, 1)], columns=["pya"]).fit(frame)


def test_bounds_are_said_in_one_way_and_regression_has_standard_errors() -> None:
    x = np.linspace(0, 1, 500)[:, None]
    y = 0.2 + 0.5 * x[:, 0]
    line = reticent.PrivateRegression(epsilon="10", bounds=[(0, 1), (0, 1)]).fit(x, y)
    assert line.stderr_.shape == (2,) and (line.stderr_ > 0).all()
    assert line.score(x, y) > 0.9 and "95 % interval for privacy noise" in line.summary()
    with pytest.raises(PlanError, match="bounds"):
        reticent.PrivateRegression(epsilon="1", bounds=[(0, 1), (0, 1)], bounds_y=(0, 1))
    with pytest.raises(PlanError, match="bounds"):
        reticent.PrivateRegression(epsilon="1")


def test_a_summary_names_the_columns_and_rounds_as_everything_else_does() -> None:
    """Headers of the frame; two digits of an interval, and no number with an exponent."""
    frame = pd.DataFrame({"age in years": np.linspace(18, 90, 5000)})
    line = reticent.PrivateRegression(epsilon="100", bounds=[(18, 90), (0, 2e9)]).fit(
        frame, 1e9 + 1e6 * frame["age in years"]
    )
    assert list(line.feature_names_in_) == ["age in years"] and line.n_features_in_ == 1
    text = line.summary()
    assert "age in years" in text and "x0" not in text and not re.search(r"[0-9]e[+-]?[0-9]", text)
    assert re.search(r"\(intercept\) +-?[0-9]{1,3}(,[0-9]{3})+ ", text)


@pytest.mark.parametrize(
    "made_",
    [
        reticent.DonorImputer(BOOK, column="pay", match=["area"]),
        reticent.PrivateImputer(epsilon="1", bounds=[(0, 1)] * 2, columns=[1]),
        reticent.PrivateRegression(epsilon="1", bounds=[(0, 1)] * 2),
        reticent.Synthesizer(epsilon="1"),
    ],
)
def test_estimators_show_themselves(made_: Any) -> None:
    assert len(repr(made_)) < 400 and type(made_).__name__ in repr(made_)
    assert "not fitted yet" in made_._repr_html_()


def test_missingness_is_drawn_with_one_denominator() -> None:
    pictures = reticent.draw_missing(reticent.Survey(rows(), codebook=BOOK), by="area")
    assert pictures.rates["pay"] == pytest.approx(0.2)
    assert "CONFIDENTIAL" in pictures._repr_html_() and "of those asked" in pictures._repr_html_()
    assert [chart.title for chart in pictures.charts][-1] == "Missing by area" and "20.0%" in pictures.text
    assert "0.2" not in repr(pictures)


def test_columns_of_one_label_have_lines_of_their_own_where_missing_answers_are_drawn() -> None:
    """And the page has the labels, with the names under them."""
    columns = {name: {**each, "label": "Question 1"} for name, each in BOOK["columns"].items()}
    pictures = reticent.draw_missing(reticent.Survey(rows(), codebook={**BOOK, "columns": columns}))
    values = pictures.charts[0].spec["data"]["values"]
    assert {each["label"] for each in values} == {f"Question 1 ({name})" for name in BOOK["columns"]}
    assert '>Question 1 <span class="unit">pay</span>' in pictures.page().decode()


def test_the_example_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell in order, in a folder of its own; the last value of a cell must be able to show itself."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)  # noqa: S102 - our own notebook
    assert isinstance(names["release"], Release) and not names["frame"].empty
