"""Which filled columns an ask rests on, and whose gaps could matter, against all that could be imputed."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.engine.wants import Ring
from reticent.errors import PlanError
from reticent.plan.statistics import read_query
from reticent.prepare.repair import Donors, Match, Repair
from reticent.query.filled import check, relaxed, roles, uses_smooth, wants
from reticent.schema import Schema
from reticent.schema.bind import (
    MISSING,
    STRUCTURAL,
    AllOf,
    Always,
    AnyOf,
    Bound,
    Cell,
    CodeIn,
    Is,
    Negation,
    bind,
    truth,
)
from reticent.schema.codebook import schema_from
from reticent.schema.parse import parse
from tests.tables import _counts, book

COLUMNS = {
    "a": {"kind": "integer", "bounds": [0, 1]},
    "b": {"kind": "integer", "bounds": [0, 1], "universe": "a = 1"},
    "c": {"kind": "integer", "bounds": [0, 1]},
    "d": {"kind": "integer", "bounds": [0, 1], "universe": "a = 1"},
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
SCHEMA: Schema = schema_from(book(COLUMNS))
FILLED = frozenset({"c", "d"})
REPAIR = Repair(
    donors=tuple(Donors(column=name, near=(Match(column="a"),), defaults=(0,)) for name in sorted(FILLED))
)
CELLS: list[Cell] = [0, 1, MISSING, STRUCTURAL]

leaves = st.one_of(
    st.builds(CodeIn, st.sampled_from("abcd"), st.sampled_from([((0, 0),), ((1, 1),), (), ((0, 1),)])),
    st.builds(Is, st.sampled_from("abcd"), st.sampled_from(["missing", "answered", "structural"])),
    st.just(Always()),
)
bounds = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.builds(AllOf, st.tuples(inner, inner)),
        st.builds(AnyOf, st.tuples(inner, inner, inner)),
    ),
    max_leaves=8,
)


def named(bound: Bound) -> set[str]:
    match bound:
        case CodeIn(column=name) | Is(column=name):
            return {name}
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return set().union(*(named(part) for part in parts))
        case Negation(part=part):
            return named(part)
        case _:
            return set()


@settings(max_examples=150, deadline=None)
@given(bounds)
def test_whoever_may_become_a_member_is_kept(where):
    """Over all cells of two filled columns and two others: true for some filling, so kept."""
    loose = relaxed(where, FILLED)
    assert not named(loose) & FILLED
    for a, b in product(CELLS, CELLS):
        may_be = any(truth(where, {"a": a, "b": b, "c": c, "d": d}) for c, d in product(CELLS, CELLS))
        assert truth(loose, {"a": a, "b": b}) is True or not may_be


def test_leaving_leaves_out_in_place_of_opening_them_is_found_out():
    """The twin: a filled leaf taken as false loses those who may become members."""
    where = bind(parse("c = 1 and a = 1", field=""), SCHEMA.coded, field="")

    def closed(bound: Bound) -> Bound:
        match bound:
            case CodeIn(column=name) if name in FILLED:
                return Negation(Always())
            case AllOf(parts=parts):
                return AllOf(tuple(closed(part) for part in parts))
            case _:
                return bound

    row = {"a": 1, "b": 0}
    assert truth(relaxed(where, FILLED), row) is True
    assert truth(closed(where), row) is False


def read(**raw: Any) -> Any:
    missing = raw.pop("missing", "available")
    return read_query(raw, SCHEMA, missing=missing, size=None, field="query")


def found(**raw: Any) -> dict[str, tuple[bool, bool]]:
    return {role.column: (role.value, role.membership) for role in roles(read(**raw), SCHEMA, REPAIR)}


def test_roles_are_told_apart():
    """(gives the value, decides membership)."""
    assert found(count="*", where="c = 1 or a = 1") == {"c": (False, True)}
    assert found(count="*", where="c is missing and a = 1") == {}
    assert found(total="c") == {"c": (True, False)}
    assert found(mean="d", where="c = 0 and d = 1") == {"c": (False, True), "d": (True, True)}
    assert found(mean="a", where="b = 1") == {}
    assert found(mean="a", missing="complete") == {}
    assert found(correlation=["c", "a"], where="d = 1") == {"c": (True, False), "d": (False, True)}
    assert found(median="c", step="1") == {"c": (True, False)}
    assert found(table=["a"], where="d = 0", bins={"a": [0, 1]}) == {"d": (False, True)}


OF = [
    "c = 1",
    "c = 1 or a = 1",
    "c = 1 or b = 1",
    "d = 1",
    "d = 1 and c = 1",
    "d = 1 or a = 0",
    "d = 1 or b = 1",
]


@pytest.mark.parametrize("of", OF)
def test_a_filled_column_that_may_settle_whether_a_condition_is_decided_is_said_to(of):
    """By trying every filling of every record, one column changed at a time."""
    query = read(proportion=of)
    said = {role.column for role in roles(query, SCHEMA, REPAIR) if role.membership}
    rows = query.decided(SCHEMA).rows
    for record in records():
        for name in FILLED:
            fillings = [fill for fill in fills(record) if record[name] is MISSING]
            for fill in fillings:
                other = {**fill, name: 1 - int(fill[name])}  # type: ignore[arg-type]
                assert _counts(rows, fill) == _counts(rows, other) or name in said


def records() -> list[dict[str, Cell]]:
    """Every record: b and d are asked where a is 1, or may be."""
    return [
        {"a": a, "b": STRUCTURAL if a == 0 else b, "c": c, "d": STRUCTURAL if a == 0 else d, "w": 1}
        for a, b, c, d in product([0, 1, MISSING], repeat=4)
    ]


def fills(record: dict[str, Cell]) -> list[dict[str, Cell]]:
    silent = [name for name in FILLED if record[name] is MISSING]
    return [
        {**record, **dict(zip(silent, codes, strict=True))} for codes in product([0, 1], repeat=len(silent))
    ]


@pytest.mark.parametrize("of", OF)
def test_recipients_of_a_ring_hold_everybody_who_may_count(of):
    """No record outside a ring's rows counts under any filling."""
    query = read(proportion=of, where="not (c = 0 and b = 1)", weight="w")
    for role in roles(query, SCHEMA, REPAIR):
        for record in records():
            counts = any(_counts(query.decided(SCHEMA).rows, fill) for fill in fills(record))
            assert _counts(role.ring.rows, record) or not counts
            assert not FILLED & {*role.ring.rows.known, *role.ring.rows.answered}


def test_asks_over_the_same_recipients_want_the_same_ring():
    """However the filled part of the condition reads."""
    rings = {
        want
        for where in ("a = 1 and c = 1", "a = 1 and not c = 0", "a = 1")
        for want in wants(read(mean="c", where=where), SCHEMA, REPAIR)
        if isinstance(want, Ring)
    }
    assert len(rings) == 1


def test_what_no_theorem_covers_is_refused_with_a_way_out():
    """Quantiles and margins of filled columns, and filled weights."""
    for raw, way in (
        ({"median": "c", "step": "1"}, "mean"),
        ({"table": ["c"], "bins": {"c": [0, 1]}}, "proportions"),
        ({"median": "a", "step": "1", "where": "c = 1"}, "mean"),
    ):
        with pytest.raises(PlanError, match=way):
            check(read(**raw), SCHEMA, REPAIR)
    check(read(median="a", step="1", where="b is missing"), SCHEMA, REPAIR)
    weights = Repair(donors=(Donors(column="w", near=(Match(column="a"),), defaults=(0,)),))
    with pytest.raises(PlanError, match="weight"):
        check(read(count="*", weight="w"), SCHEMA, weights)
    assert uses_smooth(read(total="c"), SCHEMA, REPAIR) and not uses_smooth(read(total="a"), SCHEMA, REPAIR)


@pytest.mark.parametrize("kind", ["is missing", "is not missing", "is answered", "is not answered"])
def test_nobody_is_asked_about_silence_that_was_filled(kind: str):
    """Wherever it stands; of a column that is not filled, and of who was asked at all, it may be asked."""
    for raw in (
        {"count": "*", "where": f"a = 1 and not (c {kind} or b = 0)"},
        {"proportion": f"c {kind}", "where": "a = 1"},
        {"proportion": "a = 1", "where": f"c {kind}"},
        {"table": ["a"], "where": f"c {kind}", "bins": {"a": [0, 1]}},
    ):
        with pytest.raises(PlanError, match="without this repair"):
            check(read(**raw), SCHEMA, REPAIR)
        check(read(**raw), SCHEMA, Repair())
    check(read(count="*", where=f"a {kind}"), SCHEMA, REPAIR)
    check(read(count="*", where="c is structural"), SCHEMA, REPAIR)


@pytest.mark.parametrize(
    "raw",
    [
        {"correlation": ["a"]},
        {"correlation": ["a", "a"]},
        {"correlation": "a"},
        {"correlation": ["a", "w"]},
        {"correlation": ["a", "b"], "centres": ["0"]},
        {"correlation": ["a", "b"], "centres": ["0", "7"]},
    ],
)
def test_a_correlation_of_anything_but_two_numbers_is_refused(raw):
    with pytest.raises(PlanError):
        read(**raw)


def test_a_correlation_reads_and_says_itself():
    query = read(correlation=["a", "b"], centres=["0.5", "1"], where="c = 1")
    assert query.words(SCHEMA).startswith("correlation of a and b over respondents with c = 1")
    assert len(query.wants(SCHEMA)) == 6
