"""A release from repaired rows: what was filled is said, what is confidential is not, and no bar is made up."""

import csv
import io

import pytest

from reticent.report import words
from reticent.report.charts import specs
from reticent.report.methodology import methodology
from reticent.report.page import page
from reticent.report.sheet import sheet
from tests.report.documents import LAPLACE, answer, estimate, read_back, release
from tests.report.test_page import text_of

SAID = (
    "missing wage was taken from the nearest donor in age and sex; where donors were lacking, 250000 stood in"
)
HIDDEN = {
    **LAPLACE,
    "what": "total",
    "mechanism": "double Lomax",
    "sensitivity": None,
    "scale": None,
    "hidden": "confidential: read off the rows",
}
PIVOT = {**LAPLACE, "what": "noise scale", "epsilon": "0.25"}


def repaired(*answers):
    return release(statistics=list(answers), imputation=[SAID])


def bare(name="wages"):
    """A total whose noise has a confidential scale, without an error bar."""
    return {**answer(name, [estimate(900, None)], "dollars", total="wage"), "parts": [dict(HIDDEN)]}


def bought():
    made = answer("with a bar", [estimate(900, 40)], "dollars", total="wage")
    return {**made, "parts": [dict(HIDDEN), dict(PIVOT)]}


def test_the_page_says_what_was_filled():
    text = text_of(repaired(bare()))
    assert "Missing wage was taken from the nearest donor in age and sex" in text
    assert SAID in methodology(repaired(bare()).document)
    assert "what was done about item nonresponse" not in text_of(release())


def test_the_page_says_what_was_filled_before_and_what_the_promise_is_worth_then():
    told = "missing values were imputed before; for one respondent the guarantee is that for a group of 41: epsilon 41"
    made = release(imputed_before={"words": told, "group": 41, "epsilon": "41", "delta": 0.0})
    assert told[1:] in text_of(made) and told[1:] in methodology(made.document)
    assert "for a group of" not in text_of(release())


def test_an_answer_without_a_bar_says_how_to_buy_one_and_one_with_a_bar_does_not():
    """A difference that uses it is a point too; one of others is not."""
    gap = {**answer("gap", [estimate(3, None)], "dollars", difference=["wages", "with a bar"]), "parts": []}
    text = text_of(repaired(bought(), bare(), gap))
    assert f"wages, shown as a point: The size of its noise is {HIDDEN['hidden']}. {words.NO_BAR}" in text
    assert "gap, shown as a point: It is made of wages, which has none." in text
    assert words.NO_BAR not in text_of(repaired(bought()))
    # A quantile without an interval has a public law: nothing is confidential about it.
    assert words.NO_BAR not in text_of(release())


def test_a_point_without_a_bar_is_drawn_and_the_caption_says_why():
    """Its row has a value and no ends, so that no whisker is drawn: the mark asks for both."""
    (chart,) = specs(repaired(bare(), bought()))
    first, second = chart.spec["data"]["values"]
    assert (first["value"], first["low"], first["high"]) == (900, None, None) and second["low"] == 860
    assert "confidential scale" in chart.caption
    assert "confidential" not in specs(repaired(bought()))[0].caption


def test_points_without_any_bar_stand_on_an_axis_that_starts_at_zero():
    """An axis from a value to itself would have one tick, with a wrong name."""

    def from_zero(*answers) -> bool:
        (chart,) = specs(repaired(*answers))
        values = next(layer for layer in chart.spec["layer"] if layer["mark"]["type"] == "point")
        return values["encoding"]["x"]["scale"]["zero"]

    assert from_zero(bare()) and not from_zero(bare(), bought())


def test_confidential_numbers_are_named_as_such():
    text = text_of(repaired(bought()))
    assert "double Lomax0.5confidential1confidentialproofs/answer/parts.md" in text
    assert "noise scalediscrete Laplace0.25112proofs" in text  # the public part beside it


@pytest.mark.parametrize("made", [repaired(bare()), repaired(bare(), bought())], ids=["bare", "both"])
def test_files_hold_blanks_and_not_zeros(made):
    """An end that is not there is an empty cell in CSV, and the same page comes from the file read back."""
    line = next(csv.DictReader(io.StringIO(made.to_csv().decode())))
    assert (line["value"], line["privacy_low"], line["privacy_high"], line["cv"]) == ("900", "", "", "")
    assert page(made) == page(read_back(made))
    assert sheet(made)[:4] == b"PK\x03\x04"
