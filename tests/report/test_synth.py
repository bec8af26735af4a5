"""Synthetic tables on a page: how they were made, their own columns, what to do with them, and no truth."""

import re
import zlib
from base64 import b64decode, b64encode
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.plan.synth import SyntheticTables
from reticent.privacy.claim import Claim
from reticent.release.document import document
from reticent.release.release import Release
from reticent.release.synth import SyntheticResult
from reticent.release.synth_table import SynthTable
from reticent.report.charts import specs
from reticent.report.methodology import methodology
from reticent.report.page import page
from reticent.synth.domain import HOLE, UNASKED
from tests.release.synthetic import plan
from tests.tables import synths_of

CLAIM = Claim(measure="pure", epsilon=Fraction(1))


def release(**given: Any) -> Release:
    """Eight made-up rows, one of them silent and one not asked."""
    wanted = plan({"rows": 8, "never": ["age > 90"], "determines": {"sex": "job"}, **given})
    rows = {
        "age": np.array([1, 20, 20, 30, 99, 40, 41, HOLE]),
        "sex": np.array([0, 1, 1, 1, 0, 0, 1, 1]),
        "job": np.array([UNASKED, 0, 0, 1, 1, 0, 1, HOLE]),
        "pay": np.array([UNASKED, -200, 600, 0, 4, 8, 12, 16]),
    }
    made = SynthTable(claim=CLAIM, respondents=7, tables=(rows,) * synths_of(wanted)[0].tables)
    done = SyntheticResult(asked=wanted.product(SyntheticTables), plan=wanted, tables={"people": made})
    return Release(document(wanted, [done], receipt={"charged": "1"}, engine="e"))


def text(made: Release) -> str:
    html = re.sub(r"<(svg|style).*?</\1>", " ", page(made).decode(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_page_says_how_rows_were_made_and_what_they_are_for():
    said = text(release(missing="category", copies=2))
    assert "people (8 synthetic rows, 4 columns)" in said
    assert (
        "1-DP, one respondent added or removed, exact, for these rows and all that is made from them." in said
    )
    assert "Method independent" in said and "filled 2 times over in the synthetic rows" in said
    assert "No row with age &gt; 90." in said and "sex settles job." in said
    assert (
        "s1.1.synth.csv" in said and "s1.2.synth.csv" in said and "combine as for multiple imputation" in said
    )
    assert "How synthetic rows may be used" in said and "Standard errors and tests" in said
    assert "How the numbers may be used" not in said  # there are none


def test_numbers_with_a_bin_of_their_own_are_told():
    """On the page and in the paragraph to paste; a release without them does not speak of them."""
    made = release(point_masses={"age": ["20", "40"], "pay": ["0"]})
    for said in (text(made), methodology(made.document)):
        assert (
            "Point masses of age, each with a bin of its own: 20, 40. Point masses of pay, each with a bin of its own: 0."
            in said
        )
        assert "bin of its own" not in text(release())
    old = {key: value for key, value in made.document["synth"][0].items() if key != "point_masses"}
    assert "bin of its own" not in text(Release({**made.document, "synth": [old]}))


def test_pictures_show_the_synthetic_rows_themselves():
    """Every column once; counts are those of the rows, silence is said and not drawn."""
    drawn = specs(release())
    assert [chart.title for chart in drawn] == [
        f"{name}, 8 synthetic rows" for name in ("age", "sex", "job", "pay")
    ]
    assert all(chart.of == "people" for chart in drawn)
    age, sex, job, pay = (chart.spec["data"]["values"] for chart in drawn)
    assert sum(row["count"] for row in age) == 7 and age[0] == {"from": 0.0, "to": 5.0, "count": 1}
    assert [(row["label"], row["value"]) for row in sex] == [("f", 3), ("=1+1", 5)]
    assert [row["value"] for row in job] == [3, 3]
    assert pay[0]["from"] == -50 and pay[0]["count"] == 1 and pay[-1]["to"] == 150.25
    assert "1 without an answer and 1 not asked are not drawn" in drawn[2].caption


def test_a_paragraph_to_paste_speaks_of_rows_and_not_of_error_bars():
    said = methodology(release().document)
    assert "holds 8 rows of 4 columns" in said and "understate uncertainty" in said
    assert "Intervals" not in said


# covers T28
def test_names_stay_text():
    """A name that is markup, or a formula of the drawing part, is neither."""
    for name in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "datum.value"):
        html = page(_named(name)).decode()
        assert "<script>alert" not in html and "49" not in re.findall(r"<h3>(.*?)</h3>", html)[0]


def _named(name: str) -> Release:
    made = release()
    table = {**made.document["synth"][0], "name": name}
    columns = [{**table["columns"][0], "name": name, "header": name}, *table["columns"][1:]]
    return Release({**made.document, "synth": [{**table, "columns": columns}]})


def test_many_columns_are_drawn_up_to_a_limit():
    made = release()
    table = made.document["synth"][0]
    wide = {**table, "columns": table["columns"] * 10, "tables": [_repeated(table)]}
    assert len(specs(Release({**made.document, "synth": [wide]}))) == 30


def _repeated(table: dict[str, Any]) -> str:
    return b64encode(zlib.compress(zlib.decompress(b64decode(table["tables"][0])) * 10)).decode()


def test_a_release_without_synthetic_rows_does_not_speak_of_them():
    made = release()
    plain = Release({key: value for key, value in made.document.items() if key != "synth"})
    assert "synthetic" not in text(plain).replace("Synthetic rows", "")
    with pytest.raises(KeyError):
        plain.synthetic("people")
