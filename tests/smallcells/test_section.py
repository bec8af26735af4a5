"""Reading `[[cells]]`: what is accepted means what it says, and what is refused is refused by name before a row."""

from fractions import Fraction
from typing import Any

import pytest

from reticent.errors import PlanError
from reticent.plan.cells import read_cells
from reticent.prepare.repair import CappedDonors, Default, Donors, Match, MatchLevel, Repair
from reticent.privacy.claim import Change
from reticent.schema.codebook import schema_from
from reticent.schema.public_files import PublicFiles
from reticent.sensitivity.bounds import Neighbours
from reticent.smallcells.cells import Method, with_file
from reticent.smallcells.estimators import Predict
from reticent.smallcells.run import spec_of
from reticent.smallcells.smooth import SmoothCells

COLUMNS: dict[str, Any] = {
    "tract": {"kind": "integer", "bounds": [1, 6]},
    "state": {"kind": "categorical", "levels": ["ny", "nj", "ct"]},
    "parent": {"kind": "decimal", "bounds": [0, 100], "grid": "0.5"},
    "kid": {"kind": "decimal", "bounds": [-10, 30], "grid": "0.25"},
    "share": {"kind": "decimal", "bounds": [0, 1], "grid": "0.1"},
    "vast": {"kind": "integer", "bounds": [0, 2**50]},
    "age": {"kind": "integer", "bounds": [0, 99]},
    "w": {"kind": "decimal", "bounds": [0, 3], "grid": "0.5", "role": "weight"},
}
SCHEMA = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": COLUMNS})
SMOOTH: dict[str, Any] = {
    "name": "mobility",
    "cell": "tract",
    "y": "kid",
    "x": "parent",
    "estimate": {"predict": "25"},
    "method": "smooth",
    "epsilon": "4",
}
POOLED = {
    **SMOOTH,
    "method": "pooled",
    "count_epsilon": "1",
    "noise_epsilon": "1",
    "delta": "0.000001",
    "least": 20,
}
OBSERVED = {**SMOOTH, "method": "observed", "accept_observed": True, "count_epsilon": "1"}


def read(raw: dict[str, Any]) -> Any:
    (cells,) = read_cells([raw], SCHEMA)
    return cells


def test_a_section_is_read_as_written():
    cells = read(
        {**SMOOTH, "count_epsilon": "1", "noise_epsilon": "0.5", "where": "age >= 30", "level": "0.9"}
    )
    assert (cells.method, cells.cost, cells.level) == (Method.SMOOTH, Fraction("5.5"), Fraction(9, 10))
    assert str(cells.claim(Change.ADD_REMOVE)).startswith("5.5-DP, one respondent added or removed")
    assert cells.labels(SCHEMA) == ["1", "2", "3", "4", "5", "6"]
    assert cells.words() == "kid predicted at parent = 25 in each tract, over respondents with age >= 30 " + (
        "who answered age, tract, parent and kid"
    )
    want = cells.want(SCHEMA)
    assert (want.cell, want.x, want.y, want.rows.known) == ("tract", "parent", "kid", ("age",))


def test_units_of_the_columns_and_of_the_unit_square_are_one_straight_line_apart():
    """The line from the unit square takes the ends of the aim to the ends of the published range."""
    aims = {
        "predict": ({"estimate": {"predict": "25"}}, (Fraction(-10), Fraction(30))),
        "range": ({"range": ["0", "20"]}, (Fraction(0), Fraction(20))),
        "slope": ({"estimate": {"slope": True}}, (Fraction(-40, 100), Fraction(40, 100))),
        "mean": ({"estimate": {"mean": True}, "x": None}, (Fraction(-10), Fraction(30))),
    }
    for changed, ends in aims.values():
        raw = {key: value for key, value in {**SMOOTH, **changed}.items() if value is not None}
        cells = read(raw)
        (low, high), (shift, scale) = cells.ends(SCHEMA), cells.unit(SCHEMA)
        assert (shift + scale * low, shift + scale * high) == (cells.low, cells.high) == ends
    assert read(SMOOTH).estimator(SCHEMA) == Predict(at=Fraction(1, 4))


def test_a_claim_is_as_strong_as_its_method():
    pooled = read(POOLED).claim(Change.ADD_REMOVE)
    assert (pooled.measure, pooled.epsilon, pooled.delta) == ("approximate", 6, Fraction(1, 10**6))
    observed = read(OBSERVED)
    assert str(observed.claim(Change.ADD_REMOVE)).startswith("not differentially private")
    assert observed.cost == 5 and observed.is_observed  # the ledger still reserves what was asked for


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such column": ({"y": "kids"}, r"cells\[0\].y: no column 'kids' in the codebook; did you mean 'kid'"),
    "a level as y": ({"y": "state"}, "cells.*y: state is not a number"),
    "a weight as y": ({"y": "w"}, "cells.*y: w is the base weight"),
    "a weight": (
        {"weight": "w"},
        r"cells.*weight: small cells count each respondent once.*by = \[\.\.\.\], weight",
    ),
    "a decimal as cell": ({"cell": "share"}, "cell: is categorical, ordinal or an integer"),
    "no x": ({"x": None}, "x: is missing"),
    "an x for a mean": ({"estimate": {"mean": True}}, "x: does not go with a mean"),
    "two estimates": ({"estimate": {"mean": True, "slope": True}}, "estimate: is one of"),
    "no estimate": ({"estimate": {}}, "estimate: is one of"),
    "off the grid": ({"estimate": {"predict": "25.3"}}, "predict: is a point of parent's grid from 0 to 100"),
    "out of bounds": ({"estimate": {"predict": "101"}}, "predict: is a point of parent's grid"),
    "a method": ({"method": "smoth"}, "method: is one of smooth, .*; did you mean 'smooth'"),
    "suppression": ({"method": "suppress"}, "method: suppression publishes exact numbers"),
    "observed in silence": ({"method": "observed"}, "accept_observed: the method is observed, not differ"),
    "observed refused": ({"method": "observed", "accept_observed": False}, "accept_observed: the method is"),
    "accepting what is not": (
        {"accept_observed": True},
        "accept_observed: does not go with method = 'smooth'",
    ),
    "a delta": ({"delta": "0.1"}, "delta: does not go with method = 'smooth'"),
    "groups": ({"groups": {"of": {"a": ["1..6"]}}}, "groups: does not go with method = 'smooth'"),
    "a least": ({"least": 20}, "least: does not go with"),
    "a float": ({"epsilon": 4.0}, "epsilon"),
    "no budget": ({"epsilon": "0"}, "epsilon: it is 0, but must be positive"),
    "a tiny budget": ({"epsilon": "0.0000001"}, "epsilon: is smaller than 0.000001"),
    "a level of nothing": ({"noise_epsilon": "0.03"}, "noise_epsilon: is too small to say anything"),
    "a vast budget": ({"epsilon": "1001"}, "epsilon: is above 1000"),
    "a level of certainty": ({"level": "1"}, "level: is a decimal from 0.5 to 0.9999"),
    "a range": ({"range": ["1", "0"]}, "range: is two decimals, the lower one first"),
    "half a range": ({"range": ["1"]}, "range: is two decimals"),
    "a wrong where": ({"where": "kids > 3"}, "where: .*kids"),
    "a missing": ({"missing": "all"}, "missing: is 'available' or 'complete'"),
    "a key": ({"epsilom": "1"}, "epsilom: is not a known key; did you mean 'epsilon'"),
    "a name": ({"name": "a\nb"}, "name: holds a control character"),
    "too many cells": ({"cell": "vast"}, "cell: has more than 1000000 cells"),
    "too fine": (
        {"x": "vast", "estimate": {"slope": True}, "y": "vast"},
        r"cells\[0\]: has too many grid steps",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_name(case: str):
    changed, message = REFUSED[case]
    raw = {key: value for key, value in {**SMOOTH, **changed}.items() if value is not None}
    with pytest.raises(PlanError, match=message):
        read_cells([raw], SCHEMA)


@pytest.mark.parametrize("key", ["count_epsilon", "noise_epsilon", "delta", "least"])
def test_the_pooled_envelope_needs_all_its_parts(key: str):
    with pytest.raises(PlanError, match=f"{key}: is missing; method = 'pooled'"):
        read({k: v for k, v in POOLED.items() if k != key})


def test_a_large_delta_is_refused():
    with pytest.raises(PlanError, match=r"delta: is above 0\.001"):
        read({**POOLED, "delta": "0.01"})


def test_two_sections_of_one_name_are_refused():
    with pytest.raises(PlanError, match=r"cells\[1\].name: two sections are called 'mobility'"):
        read_cells([SMOOTH, SMOOTH], SCHEMA)


def test_donated_answers_are_refused_and_others_are_not():
    """No theorem covers a small cell of donated answers; a repair of another column is no matter."""
    near = (Match(column="state"),)
    for column, is_refused in (
        ("kid", True),
        ("parent", True),
        ("tract", True),
        ("age", True),
        ("share", False),
    ):
        repair = Repair(donors=(Donors(column=column, near=near, defaults=(0,)),), key="k")
        raw = [{**SMOOTH, "where": "age >= 30"}]
        if is_refused:
            with pytest.raises(PlanError, match=f"{column} is filled by the nearest donors"):
                read_cells(raw, SCHEMA, repair=repair)
        else:
            assert len(read_cells(raw, SCHEMA, repair=repair)) == 1
            with pytest.raises(PlanError, match="filled by the nearest donors"):
                read_cells([{**raw[0], "missing": "complete"}], SCHEMA, repair=repair)


def test_answers_of_capped_donors_are_paid_for():
    """Of filled rows one respondent is 1 + 2 tau; of a table that looks at no filled column, 1."""
    group = CappedDonors(
        columns=("kid",), levels=(MatchLevel(serve=2), MatchLevel()), defaults=(Default(code=0),)
    )
    (cells,) = read_cells([SMOOTH], SCHEMA, repair=Repair(capped=(group,), key="k"))
    assert cells.stability == 7 and "one respondent counts as 7 rows" in cells.words()
    assert "proofs/engine/capped.md" in [page for _, page in cells.claim(Change.ADD_REMOVE).rests_on]
    (own,) = read_cells([SMOOTH], SCHEMA)
    one, seven = (spec_of(each, SCHEMA, Neighbours()) for each in (own, cells))
    assert (
        isinstance(one, SmoothCells) and isinstance(seven, SmoothCells) and seven.epsilon == one.epsilon / 7
    )
    other = CappedDonors(columns=("share",), levels=(MatchLevel(),), defaults=(Default(code=0),))
    (plain,) = read_cells([SMOOTH], SCHEMA, repair=Repair(capped=(other,), key="k"))
    assert plain.stability == 1


# --- groups -------------------------------------------------------------------------------------------------------------


def grouped(of: dict[str, Any], cell: str = "tract") -> Any:
    return read({**OBSERVED, "cell": cell, "groups": {"of": of}}).groups


def test_groups_are_ranges_and_names_in_any_mixture():
    found = grouped({"south": ["1..2", 6], "north": ["3..5"]})
    assert (found.names, found.place) == (("south", "north"), (0, 0, 1, 1, 1, 0))
    assert grouped({"east": ["ny", "ct"], "west": ["nj"]}, "state").place == (0, 1, 0)


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({}, "names from 1 to"),
        ({"a": ["1..5"]}, "cell 6 is in no group"),
        ({"a": ["1..6"], "b": ["3"]}, "cell 3 is in two groups"),
        ({"a": ["1..7"]}, "there is no cell '7'"),
        ({"a": ["x"]}, "there is no cell 'x'"),
        ({"a\x07": ["1..6"]}, "printable"),
    ],
)
def test_every_cell_is_in_one_group(of: dict[str, Any], message: str):
    with pytest.raises(PlanError, match=message):
        grouped(of)


def door(folder) -> PublicFiles:
    return PublicFiles.of(folder, rows=[folder / "rows.csv"], ledgers=[folder / "ledger.db"])


def test_groups_from_a_public_file_are_written_out(tmp_path):
    """So that the plan's digest covers them: another file under the same name is another plan."""
    (tmp_path / "tracts.csv").write_text("tract,st\n1,a\n2,a\n3,b\n4,b\n5, b \n6,a\n", encoding="utf-8")
    raw = {**OBSERVED, "groups": {"file": "tracts.csv", "cell": "tract", "group": "st"}}
    written = with_file(raw, door(tmp_path), field="cells[0].groups")
    assert written["groups"] == {"of": {"a": ["1", "2", "6"], "b": ["3", "4", "5"]}}
    assert read(written).groups.place == (0, 0, 1, 1, 1, 0)
    assert with_file(OBSERVED, door(tmp_path), field="") is OBSERVED


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"file": "tracts.csv", "cell": "tract"}, "goes with the names of its columns"),
        ({"file": "../tracts.csv", "cell": "tract", "group": "st"}, "stays inside the plan's folder"),
        ({"file": "/tracts.csv", "cell": "tract", "group": "st"}, "stays inside the plan's folder"),
        ({"file": "gone.csv", "cell": "tract", "group": "st"}, "cannot be read"),
        ({"file": "tracts.csv", "cell": "tract", "group": "state"}, "has no columns 'tract' and 'state'"),
        ({"file": "broken.csv", "cell": "tract", "group": "st"}, "is not a CSV file"),
        ({"file": "latin.csv", "cell": "tract", "group": "st"}, "cannot be read"),
    ],
)
def test_a_file_of_groups_that_does_not_fit_is_refused(groups, message, tmp_path):
    (tmp_path / "tracts.csv").write_text("tract,st\n1,a\n", encoding="utf-8")
    (tmp_path / "broken.csv").write_text('tract,st\n1,"a\n', encoding="utf-8")
    (tmp_path / "latin.csv").write_bytes(b"tract,st\n1,\xe9\n")
    with pytest.raises(PlanError, match=message):
        with_file({**OBSERVED, "groups": groups}, door(tmp_path), field="cells[0].groups")


def test_a_file_cannot_be_named_where_there_is_no_folder():
    with pytest.raises(PlanError, match="is read from a plan file"):
        read({**OBSERVED, "groups": {"file": "tracts.csv", "cell": "tract", "group": "st"}})
