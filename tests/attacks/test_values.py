"""Whatever one respondent writes into a cell: a finite answer, no further off than declared, nothing else seen."""

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from reticent.noise.source import Noise
from reticent.release.statistics import evaluate
from tests.attacks.people import ORDINARY
from tests.attacks.replay import Run, run, violations
from tests.tables import Row, arrow, every_plan, tally, visible

PLAN = every_plan()
BASE = ORDINARY[:12]
Types = dict[str, pa.DataType]
TEXT = {name: pa.string() for name in ("age", "pay", "w")}
DECIMAL = {name: pa.decimal128(38, 10) for name in ("age", "pay", "w")}
FLOAT = {name: pa.float64() for name in ("age", "pay", "w")}
SINGLE = {name: pa.float32() for name in ("age", "pay", "w")}
INTEGER = {name: pa.int64() for name in ("age", "pay", "w")}
UNSIGNED = {name: pa.uint64() for name in ("age", "pay", "w")}


def as_type(row: Row, types: Types) -> Row:
    """An ordinary row, its numbers written as the columns of `types` hold them."""
    kind = types["age"]
    plain = {
        pa.string(): lambda v: str(int(v)) if v == int(v) else str(v),
        pa.int64(): int,
        pa.uint64(): lambda v: abs(int(v)),
        pa.decimal128(38, 10): lambda v: Decimal(str(v)),
    }.get(kind, float)
    return {k: v if k == "sex" or v is None else plain(v) for k, v in row.items()}


def seen(rows: Sequence[Row], types: Types, along: Sequence[tuple[int, ...]] = ()) -> Run:
    def release(given: Sequence[Row], noise: Noise) -> bytes:
        table = arrow([*(as_type(row, types) for row in given[:-1]), given[-1]], PLAN.schema, types)
        return visible(PLAN, evaluate(PLAN, tally(PLAN, table), noise))

    return run(release, rows, along)


@cache
def good(kind: pa.DataType) -> Run:
    """The same rows with an ordinary respondent in the last place."""
    types = dict.fromkeys(FLOAT, kind)
    return seen([*BASE, as_type({"sex": "f", "age": 40, "pay": 20, "w": 1}, types)], types)


STRANGE: list[tuple[str, Types, dict[str, Any]]] = [
    ("NaN", FLOAT, {"pay": math.nan, "age": math.nan, "w": math.nan}),
    ("inf", FLOAT, {"pay": math.inf, "age": math.inf, "w": math.inf}),
    ("-inf", FLOAT, {"pay": -math.inf, "age": -math.inf, "w": -math.inf}),
    ("-0", FLOAT, {"pay": -0.0, "age": -0.0, "w": -0.0}),
    ("subnormal", FLOAT, {"pay": 5e-324, "age": 5e-324, "w": 5e-324}),
    ("largest", FLOAT, {"pay": 1.7976931348623157e308, "age": -1e308, "w": 1e308}),
    ("single NaN", SINGLE, {"pay": math.nan, "age": math.inf, "w": 3e38}),
    ("only missing", FLOAT, {}),
    (
        "long decimal",
        DECIMAL,
        {"pay": Decimal("9" * 28), "age": Decimal("-" + "9" * 28), "w": Decimal("9" * 28)},
    ),
    ("fine decimal", DECIMAL, {"pay": Decimal("0.0000000001"), "age": Decimal("0.5"), "w": Decimal("0.125")}),
    ("int64", INTEGER, {"pay": 2**63 - 1, "age": -(2**63), "w": 2**63 - 1}),
    ("uint64", UNSIGNED, {"pay": 2**64 - 1, "age": 2**63, "w": 2**53 + 1}),
    ("text NaN", TEXT, {"pay": "NaN", "age": "nan", "w": "NAN"}),
    ("text inf", TEXT, {"pay": "inf", "age": "-Infinity", "w": "1e400"}),
    ("text None", TEXT, {"pay": "None", "age": "null", "w": "NA"}),
    ("text empty", TEXT, {"pay": "", "age": " ", "w": "."}),
    ("text -0", TEXT, {"pay": "-0", "age": "-0", "w": "-0.0"}),
    ("text subnormal", TEXT, {"pay": "5e-324", "age": "5e-324", "w": "1e-400"}),
    ("text long", TEXT, {"pay": "9" * 5000, "age": "-" + "9" * 40, "w": "0." + "9" * 5000}),
    ("text words", TEXT, {"pay": "a lot", "age": "0x10", "w": "1_0"}),
    ("text digits of others", TEXT, {"pay": "٣", "age": "３", "w": "−1"}),
    ("text dangerous", TEXT, {"pay": "'; drop table t; --", "age": "=1+1", "w": "1\x002"}),
    ("level dangerous", FLOAT, {"sex": "'); select 1/0; --"}),
    ("level long", FLOAT, {"sex": "f" * 100_000}),
    ("level zero byte", FLOAT, {"sex": "f\x00"}),
]


# covers T06 T13
@pytest.mark.parametrize(("name", "types", "cells"), STRANGE, ids=[s[0] for s in STRANGE])
def test_a_strange_answer_is_one_ordinary_respondent_more(name, types, cells) -> None:
    """Along one transcript the document is the good row's, and no answer moved further than declared."""
    fine = good(types["age"])
    there = seen([*BASE, {**dict.fromkeys(BASE[0]), **cells}], types, fine.outputs)
    assert there.seen == fine.seen
    # The two differ by one respondent exchanged: at most two moves of one added or removed.
    for a, b in zip(fine.calls, there.calls, strict=True):
        assert a.parameters == b.parameters
        assert a.distance(b) <= 2 * a.sensitivity
    assert all(type(value) is int for call in there.calls for value in call.answers)


# covers T06
def test_one_respondent_who_says_nothing_moves_nothing_but_counts_of_silence() -> None:
    """A row of nothing but silence comes and goes within the declared distance; and alone it is no failure."""
    silent = dict.fromkeys(BASE[0])
    here = good(pa.float64())
    alone = seen([silent], FLOAT, here.outputs)
    assert alone.seen == here.seen
    with_silent = seen([silent, *BASE, {"sex": "f", "age": 40.0, "pay": 20.0, "w": 1.0}], FLOAT, here.outputs)
    assert violations(here, with_silent) == []


PLAINLY = [
    (FLOAT, math.nan, None),
    (FLOAT, math.inf, 1e6),
    (FLOAT, -math.inf, -1e6),
    (FLOAT, -0.0, 0.0),
    (FLOAT, 5e-324, 0.0),
    (TEXT, "NaN", None),
    (TEXT, "inf", "1000000"),
    (TEXT, "-Infinity", "-1000000"),
    (TEXT, "1e400", "1000000"),
    (TEXT, "-0", "0"),
    (TEXT, "None", None),
    (DECIMAL, Decimal("9" * 28), Decimal(1000)),
]


# covers T06
@pytest.mark.parametrize(("types", "strange", "plain"), PLAINLY)
def test_each_strange_number_has_one_plain_meaning(types, strange, plain) -> None:
    """NaN and words are missing, infinities and vast numbers stand at the bounds, tiny ones at zero."""
    here, there = (
        seen([*BASE, {"sex": "f", "age": as_type(BASE[1], types)["age"], "pay": value, "w": value}], types)
        for value in (strange, plain)
    )
    assert here.calls == there.calls


# covers T13 B064
@pytest.mark.parametrize("column", ["sex", "age"])
def test_text_that_is_not_utf8_is_missing_and_no_failure(column) -> None:
    """An engine refuses a whole table for one such cell; its own failure would tell that the cell is there."""
    ends = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"f\xff\xfe")])
    cells = {"sex": ["f", "m"], "age": [1, 2], "pay": [1.0, 2.0], "w": [1.0, 1.0]}
    run(
        lambda _, noise: visible(
            PLAN, evaluate(PLAN, tally(PLAN, pa.table({**cells, column: broken})), noise)
        ),
        [],
    )
    with pytest.raises(duckdb.Error):
        duckdb.from_arrow(pa.table({"x": broken})).fetchall()


# --- naive code on the same cells ---------------------------------------------------------------------------------


def clamped_by_min_and_max(values: Sequence[Any]) -> float:
    """NaN passes through min and max."""
    return sum(max(min(v, 150.0), -50.0) for v in values)


def strict(values: Sequence[Any]) -> float:
    return float(sum(int(v) for v in values))


def mean_of_those(values: Sequence[Any]) -> float:
    there = [v for v in values if v is not None and not math.isnan(v)]
    return sum(there) / len(there)


def outcome(naive: Any, values: Sequence[Any]) -> str:
    """What is seen: a finite number, one that is none, or the kind of failure."""
    try:
        return "finite" if math.isfinite(naive(values)) else "not finite"
    except (ValueError, TypeError, ArithmeticError) as problem:
        return type(problem).__name__


# covers T06 T13
@pytest.mark.parametrize(
    ("naive", "poison"),
    [
        (clamped_by_min_and_max, [math.nan]),
        (clamped_by_min_and_max, ["a lot"]),
        (strict, ["1.5"]),
        (strict, [math.inf]),
        (strict, [None]),
        (mean_of_those, []),
        (mean_of_those, [math.nan]),
    ],
)
def test_naive_code_shows_the_strange_answer(naive, poison) -> None:
    assert outcome(naive, poison) != outcome(naive, [1.0]) == "finite"
