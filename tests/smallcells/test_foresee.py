"""What a preview says of small cells are closed forms of public numbers; what a page draws are released numbers."""

import json
from fractions import Fraction
from math import exp, expm1, sqrt
from typing import Any

import pytest

from reticent.plan.plan import Plan
from reticent.preview.cells import foresee
from reticent.preview.products import foresee_plan
from reticent.release.cells import cells_csv
from reticent.release.release import Release
from reticent.report.cells import BINS, SHOWN, cell_charts, cell_lines, cell_tables
from reticent.report.page import page
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.observed import LABEL
from reticent.smallcells.smooth import even_cell
from reticent.smallcells.table import CellTable, described
from tests.smallcells.test_release import OBSERVED, POOLED, SMOOTH, THEIL_SEN, plan_of
from tests.tables import cell_tables as tables_of


def spreads(raw: dict[str, Any]) -> dict[int, float | None]:
    plan = plan_of(raw)
    return dict(foresee(tables_of(plan)[0], plan.schema, plan.neighbours).spreads)


def test_a_smooth_cell_of_twenty_has_the_noise_that_theory_says():
    """x = i/19, x0 = 1/4, R = 1, beta = 1/2: S = 0.212285457 (THEORY 8.6); Lomax noise with m = 8 at epsilon 4."""
    raw = {**SMOOTH, "smoothness": 8}
    a = min(expm1(4 / 9), exp(0.5) * expm1(3.5 / 9))
    scale = 40  # y runs over forty points
    expected = scale * 0.212285457 * sqrt(2 / (7 * 6)) / a
    assert spreads(raw)[20] == pytest.approx(expected, rel=1e-4)


def test_an_observed_cell_has_the_noise_of_its_own_envelope():
    plan = plan_of(OBSERVED)
    estimator = tables_of(plan)[0].estimator(plan.schema)
    for size, spread in spreads(OBSERVED).items():
        local = float(local_sensitivity(even_cell(size), estimator)[0])
        assert spread == pytest.approx(40 * sqrt(2) * local / 4, rel=1e-9)


def test_noise_falls_with_size_and_pooling_is_never_cheaper_than_smoothing():
    smooth, pooled = spreads(SMOOTH), spreads(POOLED)
    for found in (smooth, pooled):
        values = [value for value in found.values() if value is not None]
        assert values == sorted(values, reverse=True) and len(values) == 3
    assert all((pooled[n] or 0) > (smooth[n] or 0) for n in smooth)
    assert spreads({**POOLED, "least": 50})[20] is None  # withheld
    assert set(spreads(THEIL_SEN).values()) == {None}


@pytest.mark.parametrize(
    ("epsilon", "level", "m"), [("4", "1", 10), ("4", "0.5", 20), ("1", "1", 8), ("4", "0.04", 64)]
)
def test_the_usual_smoothness_lets_the_variance_be_told(epsilon: str, level: str, m: int):
    """The least m from 8 to 64 at which the noise on ln S is below two fifths; a function of public numbers."""
    (cells,) = tables_of(plan_of({**SMOOTH, "epsilon": epsilon, "noise_epsilon": level}))
    assert cells.m == m
    assert m == 64 or Fraction(epsilon) / m / Fraction(level) <= Fraction(2, 5)


def previewed(*raw: dict[str, Any]) -> tuple[str, str]:
    """What a preview says of the tables: the sentences, and the JSON."""
    (found,) = foresee_plan(plan_of(*raw))
    assert found.key == "cells" and len(found.told) == len(raw)
    return "\n".join(line for line in found.lines if isinstance(line, str)), json.dumps(found.told)


def test_a_preview_says_what_is_not_protected():
    said, told = previewed(SMOOTH, OBSERVED)
    assert told.count("noise_sd") == 2
    assert f"seen: {LABEL}" in said and said.count("not protected:") >= 4
    assert "smooth: 6-DP" in said and "5 cells" in said
    assert "not protected" not in previewed(SMOOTH)[0]


# --- pages ----------------------------------------------------------------------------------------------------------------


def released(raw: dict[str, Any], count: int = 5) -> Release:
    """A release of made-up numbers for as many cells as wanted."""
    plan: Plan = plan_of(raw)
    (cells,) = tables_of(plan)
    made = CellTable(
        estimates=[Fraction(place % 7, 10) if place % 11 else None for place in range(count)],
        variances=[0.0001 * (place + 1) if place % 11 else None for place in range(count)],
        errors=[0.01 if place % 11 else None for place in range(count)],
        widths=[0.02 if place % 11 else None for place in range(count)],
        counts=[place - 3 for place in range(count)],
        epsilon=cells.cost,
        meaning="privacy noise only",
        chi={"all cells": Fraction(3)},
        unprotected=("the scale is seen",) if cells.is_observed else (),
    )
    table = described(cells, made, plan.schema, plan.change)
    table["columns"]["cell"] = [str(place) for place in range(count)]
    claim = cells.claim(plan.change)
    return Release(
        {
            "format": "reticent-release/2",
            "id": "r-1",
            "title": "t",
            "dataset": "tiny",
            "published": True,
            "guarantee": {"words": str(claim), **claim.as_dict()},
            "protects": {"privacy_unit": "row", "at_most": 1, "change": plan.change.value},
            "statistics": [],
            "cells": [table],
            "receipt": None,
            "plan": "p",
            "planning": {},
            "software": {},
        }
    )


def test_a_page_shows_the_first_cells_and_draws_no_more_than_it_needs():
    """Few cells one by one, and no picture of their noise by size; many as a histogram that holds every released estimate."""
    few, many = released(SMOOTH), released(SMOOTH, 500)
    assert [len(t["lines"]) for t in (*cell_tables(few.document), *cell_tables(many.document))] == [5, SHOWN]
    (first, _), (listed,) = list(cell_charts(many.document)), list(cell_charts(few.document))
    rows = first[2][1]["data"]["values"]
    told = [value for value in many["smooth"] if value["estimate"] is not None]
    assert len(rows) == BINS and sum(row["count"] for row in rows) == len(told)
    assert len(listed[2][1]["data"]["values"]) == 5
    text = page(many).decode()
    assert "The first 60 of 500 cells" in text and "withheld" in text and "6-DP" in text


# covers T28
def test_names_from_a_plan_are_text_on_the_page_and_in_the_csv():
    release = released({**SMOOTH, "name": "=<script>alert(1)</script>"})
    text = page(release).decode()
    assert "<script>" not in text and "&lt;script&gt;" in text
    assert b"\nr-1,'=<script>" in cells_csv(release.document)


def test_an_observed_table_is_never_named_without_its_label():
    release = released(OBSERVED, 500)
    assert all(LABEL in title for title, _, _ in cell_charts(release.document))
    said = "\n".join(map(str, cell_lines(release.document)))
    assert LABEL in said and "not protected: the scale is seen" in said and "-DP" not in said
    text = page(release).decode()
    assert text.count(LABEL) >= 3 and "the scale is seen" in text and "-DP" not in text
