"""One meaning: the answers themselves, Python, NumPy and DuckDB agree on true, false and unknown."""

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlglot import exp

from reticent.engine.sql.clean import render
from reticent.schema.bind import (
    MISSING,
    STRUCTURAL,
    Always,
    AnyOf,
    CodeIn,
    Negation,
    bind,
    may_be,
    truth,
    truth_array,
)
from reticent.schema.predicate import Everyone
from tests.schema.worlds import meaning, rows_of, two_valued, worlds_and_trees

EXPECTED = {0: False, 1: True}
STATUS = {MISSING: 1, STRUCTURAL: 2}
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def code(name):
    return exp.column(name, quoted=True)


def has_status(value):
    return lambda name: exp.EQ(this=exp.column(f"{name}_status"), expression=exp.Literal.number(value))


def sql_of(bound):
    return render(bound, code, has_status(1), has_status(2)).sql("duckdb")


def by_truth(bound, rows):
    return [truth(bound, row) for row in rows]


def by_array(bound, rows):
    """Codes beside a silent cell are garbage on purpose: nothing may look at them."""
    codes = {
        c: np.array([r[c] if isinstance(r[c], int) else i - 3 for i, r in enumerate(rows)]) for c in rows[0]
    }
    status = {c: np.array([STATUS.get(r[c], 0) for r in rows], dtype=np.int8) for c in rows[0]}
    is_true, is_known = truth_array(bound, codes, status)
    assert is_true.dtype == is_known.dtype == bool
    assert not (is_true & ~is_known).any()
    return [bool(t) if k else None for t, k in zip(is_true, is_known, strict=True)]


@pytest.fixture(scope="module")
def by_duckdb():
    con = duckdb.connect()

    def judge(bound, rows):
        names = [part for name in rows[0] for part in (name, f"{name}_status")]
        values = ", ".join(f"({i}, {', '.join(_cells(row))})" for i, row in enumerate(rows))
        table = f"(values {values}) t(i, {', '.join(names)})"
        answer = con.execute(f"select {sql_of(bound)} from {table} order by i").fetchall()
        return [row[0] for row in answer]

    yield judge
    con.close()


def _cells(row):
    for cell in row.values():
        yield f"({cell})::bigint" if isinstance(cell, int) else "null::bigint"
        yield f"{STATUS.get(cell, 0)}::tinyint"


def check(judge, world, tree):
    bound = bind(tree, world, field="where")
    rows = rows_of(world)
    assert judge(bound, rows) == [EXPECTED.get(meaning(tree, row, world)) for row in rows]


@given(worlds_and_trees())
@QUIET
def test_python_and_numpy_say_what_the_answers_say(drawn):
    """All rows of a small world, any predicate."""
    check(by_truth, *drawn)
    check(by_array, *drawn)


@given(drawn=worlds_and_trees())
@QUIET
def test_duckdb_says_what_the_answers_say(by_duckdb, drawn):
    """All rows of a small world, any predicate."""
    check(by_duckdb, *drawn)


def spans_of(row, reach):
    """Spans that hold a row: `reach` codes to either side, or its silence."""
    return {c: (v - reach, v + reach) if isinstance(v, int) else v for c, v in row.items()}


@given(worlds_and_trees())
@QUIET
def test_what_may_not_be_is_true_of_no_row(drawn):
    """Around every row, of spans of any width and of no column: a row that is true, or false, is never ruled out. Of a row
    alone exactly its own truth may be."""
    world, tree = drawn
    bound = bind(tree, world, field="where")
    for row in rows_of(world):
        said = truth(bound, row)
        for reach in (0, 1, 9):
            spans = spans_of(row, reach)
            for held in (spans, dict(list(spans.items())[1:]), {}):
                assert said is not True or may_be(bound, held)
                assert said is not False or may_be(bound, held, true=False)
        alone = spans_of(row, 0)
        assert (may_be(bound, alone), may_be(bound, alone, true=False)) == (said is True, said is False)


@pytest.mark.parametrize(
    "twin",
    [
        lambda bound, rows: [two_valued(bound, row) for row in rows],
        lambda bound, rows: [bool(truth(bound, row)) for row in rows],
        lambda bound, rows: [truth(bound, {c: 0 if v is MISSING else v for c, v in r.items()}) for r in rows],
    ],
    ids=["python's not", "unknown is false", "missing is zero"],
)
def test_a_two_valued_twin_is_caught(twin):
    """The same check, on judges that forget the third value."""

    @given(worlds_and_trees())
    @settings(QUIET, phases=[Phase.generate], derandomize=True, database=None)
    def checked(drawn):
        check(twin, *drawn)

    with pytest.raises(AssertionError):
        checked()


def test_sql_is_one_comparison_where_one_will_do():
    """What the engine is asked to do for each shape of ranges."""
    assert sql_of(CodeIn("a", ((1, 1),))) == '"a" = 1'
    assert sql_of(CodeIn("a", ((-1, -1), (3, 3)))) == '"a" IN (-1, 3)'
    assert sql_of(CodeIn("a", ((1, 2), (3, 9)))) == '"a" BETWEEN 1 AND 9'
    assert sql_of(CodeIn("a", ((1, 1), (4, 9)))) == '("a" BETWEEN 4 AND 9) OR ("a" = 1)'
    assert sql_of(CodeIn("a", ())) == '"a" <> "a"'
    assert sql_of(Negation(CodeIn("a", ((1, 1),)))) == 'NOT ("a" = 1)'
    assert sql_of(Always()) == "TRUE"


def test_a_very_wide_predicate_stays_shallow(by_duckdb):
    """As many parts as the longest text can hold; engines limit depth."""
    wide = AnyOf(tuple(CodeIn("a", ((7 * i, 7 * i),)) for i in range(1_500)))
    rows = [{"a": 7}, {"a": 8}, {"a": MISSING}]
    assert by_duckdb(wide, rows) == by_truth(wide, rows) == [True, False, None]


def test_codes_at_the_edge_of_64_bits(by_duckdb):
    """The extreme codes are codes like any other, in all three."""
    low, high = -(2**63), 2**63 - 1
    rows = [{"a": low}, {"a": 0}, {"a": high}, {"a": STRUCTURAL}]
    for ranges in (((low, high),), ((low, low), (high, high)), ((low, -1), (1, high))):
        bound = CodeIn("a", ranges)
        assert by_truth(bound, rows) == by_array(bound, rows) == by_duckdb(bound, rows)


def test_everyone_needs_no_column():
    """With no column there is no length: the answer broadcasts."""
    is_true, is_known = truth_array(bind(Everyone(), {}, field="where"), {}, {})
    assert is_true.shape == is_known.shape == ()
    assert is_true and is_known
