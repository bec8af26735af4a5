"""Total intervals of tables that add up: they speak of the population, hold those for noise, and are empty with a reason."""

import csv
import io
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.answer.add_up import ALL, TableLine
from reticent.plan.tables import AddUpTables
from reticent.release.release import Release, files_of
from reticent.release.run import run_plan
from reticent.release.sampling import Sampled
from reticent.release.survey import Survey
from reticent.release.table_totals import TOTAL_COLUMNS, _around, table_total
from reticent.report.charts import specs
from reticent.report.page import page
from reticent.report.pages import drawings
from tests.release.test_design import ASKS, BOOK, POOLED, people

SIZE = 400
SEXES, JOBS = {"f": 0.55, "m": 0.45}, {"yes": 0.7, "no": 0.27, "odd": 0.03}
DRAWN: dict[str, Any] = {
    "survey": {"name": "drawn", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": list(SEXES)},
        "job": {"kind": "categorical", "levels": list(JOBS)},
    },
}
SECTION = {"name": "who", "margins": [["sex", "job"]], "epsilon": "2"}
KNOWN = {"design": {"design_effect": "1"}, "expect": {"rows": SIZE}}


def sample(bits: np.random.Generator) -> pa.Table:
    drawn = {
        name: bits.choice(list(law), SIZE, p=list(law.values()))
        for name, law in (("sex", SEXES), ("job", JOBS))
    }
    return pa.table(drawn)


def released(rows: pa.Table, book: dict[str, Any] = DRAWN, **sections: Any) -> Release:
    survey = Survey(rows, codebook=book)
    asked = {"tables": [SECTION], "protect": {"accept_large": True}, **sections}
    plan = survey.plan("t-1", epsilon="40", **asked)
    engine = survey.open()
    try:
        done = run_plan(plan, engine, None)
    finally:
        engine.close()
    return Release(done.to_document(plan, receipt=None, engine="lab"))


def lines_of(release: Release) -> list[dict[str, Any]]:
    (table,) = release.document["tables"]
    return [line for margin in table["margins"] for line in margin["lines"]]


@pytest.mark.parametrize("options", [{}, {"whole": False}, {"add_up": False}], ids=str)
def test_totals_hold_the_population_and_intervals_for_noise_do_not(options: dict[str, Any]) -> None:
    """60 samples of 400 from a known law, with true noise: the twin that takes the interval for noise for the total fails.

    Cells of one sample are correlated; the mean over 60 samples of 12 lines has a standard error below 0.015, so the test
    alarms falsely less than once in 1e4.
    """
    bits, total, noise = np.random.default_rng(17), list[bool](), list[bool]()
    for _ in range(60):
        for line in lines_of(released(sample(bits), **KNOWN, tables=[SECTION | options])):
            sex, job = line["cell"]["sex"], line["cell"]["job"]
            if (sex, job) == (ALL, ALL) or "(missing)" in (sex, job):
                continue
            truth = SIZE * SEXES.get(sex, 1.0) * JOBS.get(job, 1.0)
            total.append(line["total_low"] <= truth <= line["total_high"])
            noise.append(line["privacy_low"] <= truth <= line["privacy_high"])
    assert np.mean(total) > 0.9 and np.mean(noise) < 0.75


@pytest.mark.parametrize("options", [{}, {"whole": False}], ids=str)
def test_a_total_holds_the_interval_for_noise_and_is_whole_where_the_table_is(
    options: dict[str, Any],
) -> None:
    for line in lines_of(released(sample(np.random.default_rng(3)), **KNOWN, tables=[SECTION | options])):
        low, high, margin = line["total_low"], line["total_high"], line["total_margin"]
        assert 0 <= low <= max(0, line["privacy_low"]) and high >= line["privacy_high"]
        assert high > line["privacy_high"] or line["value"] <= 0
        assert margin >= high - line["value"] - 2e-6  # told to six places
        assert options or all(isinstance(each, int) for each in (low, high, margin))
        assert line["value"] <= 0 or (line["cv"] > 0 and line["reliability"])


def test_a_number_that_rounding_moved_keeps_the_reach_of_least_squares() -> None:
    """Published at the lower end of its interval: the rule of counts around it alone is too short above, by some persons."""
    plan = Survey(sample(np.random.default_rng(1)), codebook=DRAWN).plan(
        "t-1", epsilon="5", tables=[SECTION], **KNOWN
    )
    (asked,) = plan.products
    assert isinstance(asked, AddUpTables)
    (table,), sampled = asked.tables, Sampled(plan=plan)
    line = TableLine(cell=(), value=14, low=14, high=26, noise_sd=3.0, linear=20.0, width=6.0)
    found, naive = table_total(table, line, sampled), _around(table, line, 14, (14, 26), sampled)
    around = _around(table, line, 20, (14, 26), sampled)
    assert found is not None and naive is not None and around is not None
    assert found.high == around.high > naive.high + 1 and found.low == naive.low < around.low
    assert found.margin >= found.high - 14 and table.level == Fraction("0.95")


def test_a_bought_design_factor_serves_tables_too() -> None:
    """Of 2,000 persons in 40 units: the total of a cell is what a `table` of it has, but for the noise; told once."""
    section = {"name": "both", "margins": [["y", "z"]], "epsilon": "5"}
    made = released(people(), BOOK, statistics=ASKS, design=POOLED, tables=[section])
    assert made.document["sampling"]["source"] == "bought"
    yes = next(line for line in lines_of(made) if line["cell"] == {"y": "yes", "z": ALL})
    (alone,) = (each for each in made.document["statistics"] if each["name"] == "table")
    (same,) = (each for each in alone["estimates"] if each["cell"] == {"y": "yes"})
    assert abs(yes["total_margin"] / same["total_margin"] - 1) < 0.2
    assert yes["total_margin"] > 4 * (yes["privacy_high"] - yes["value"])


@pytest.mark.parametrize(
    ("sections", "why"),
    [({}, "add [design]"), ({"design": {"design_effect": "1.5"}}, "rows under [expect]")],
    ids=str,
)
def test_without_a_sampling_error_it_is_empty_with_the_reason(sections: dict[str, Any], why: str) -> None:
    made = released(sample(np.random.default_rng(2)), **sections)
    assert all(line[key] is None for line in lines_of(made) for key in TOTAL_COLUMNS)
    assert why in made.document["tables"][0]["total"]["empty"]
    (first, *_) = csv.DictReader(io.StringIO(files_of(made)[".tables.csv"](made).decode()))
    assert first["total_low"] == first["cv"] == "" and why in first["total_meaning"]
    assert why in page(made).decode() and "privacy noise" in page(made).decode()
    (drawing,) = drawings(made.document)
    assert any(isinstance(line, str) and why in line for line in drawing.lines(made.document))


def test_files_page_terminal_and_pictures_have_both_intervals() -> None:
    one = SECTION | {"margins": [["sex", "job"], ["job"]]}
    made = released(sample(np.random.default_rng(5)), **KNOWN, tables=[one])
    told = lines_of(made)
    read = list(csv.DictReader(io.StringIO(files_of(made)[".tables.csv"](made).decode())))
    for key in ("privacy_low", "total_low", "total_high", "total_margin"):
        assert [int(line[key]) for line in read] == [line[key] for line in told]
    assert all("sampling under the design" in line["total_meaning"] for line in read)
    (drawing,) = drawings(made.document)
    shown = [line for line in drawing.lines(made.document) if not isinstance(line, str)]
    ends = f"{told[0]['total_low']:,} to {told[0]['total_high']:,}"
    assert ends in str(shown[0].rows) and "95 % total interval: sampling and noise" in shown[1].headings
    html = page(made).decode()
    assert ends in html and "Reliability" in html and "was declared" in html
    (drawn, *_) = specs(made)
    assert str(told[0]["total_high"]) in str(drawn.spec)
