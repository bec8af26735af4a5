"""Each word of the dialect gives what its docstring asks of every engine, told here in Python."""

from hashlib import sha256
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from reticent.engine.duckdb.engine import DUCKDB as dialect

TEXTS = ("a", " a\t", "\u00a0a\u00a0", "12\n", "12", "1e400", "0x1F", "1_000", "", "ä€", "A")


def asked(word: Any) -> Any:
    """What the engine gives for a word without rows."""
    return duckdb.connect(":memory:").execute(f"SELECT {dialect.printed(word)}").fetchall()[0][0]


def text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def numbers(*values: int) -> exp.Expr:
    return exp.Array(expressions=[exp.Literal.number(value) for value in values])


@pytest.mark.parametrize("value", TEXTS)
def test_words_for_texts(value):
    """Blanks are those that are named, a match is of the whole text, a length is in bytes, a digest is SHA-256."""
    assert asked(dialect.trim(text(value), " \t")) == value.strip(" \t")
    assert asked(dialect.full_match(text(value), "[0-9]{1,15}")) == (value == "12")
    assert asked(dialect.byte_length(text(value))) == len(value.encode())
    whole = sha256(value.encode()).hexdigest()
    assert asked(dialect.digest(text(value))) == whole
    for part in range(4):
        digits = whole[15 * part : 15 * (part + 1)]
        assert asked(dialect.digest60(dialect.digest(text(value)), part)) == int(digits, 16)


def test_the_engines_own_words_would_differ():
    """The naive twins: a trim that is not told its blanks, and a match that is not of the whole text."""
    assert asked(exp.Anonymous(this="trim", expressions=[text("\u00a0a\u00a0")])) != "\u00a0a\u00a0"
    assert asked(exp.Anonymous(this="regexp_matches", expressions=[text("12\n"), text("[0-9]{1,15}")]))


@pytest.mark.parametrize("value", ["a", "", "\u0661", "1e", "--1"])
def test_what_is_no_number_is_null_and_never_raises(value):
    """The naive twin is a plain cast, which stops the statement with the cell in its text."""  # covers R01
    assert asked(dialect.try_number(text(value), "DOUBLE")) is None
    with pytest.raises(duckdb.Error):
        asked(exp.Cast(this=text(value), to=dialect.kind("DOUBLE")))


@pytest.mark.parametrize(("value", "place"), [("a", 1), ("A", 2), ("ä", 3), ("b", None), ("a ", None)])
def test_a_place_in_a_list_is_found_by_bytes(value, place):
    levels = exp.Array(expressions=[text(each) for each in ("a", "A", "ä")])
    assert asked(dialect.position_in(levels, text(value))) == place


@pytest.mark.parametrize(("place", "value"), [(1, 7), (3, 9), (4, None), (0, None)])
def test_an_element_beyond_a_list_is_null(place, value):
    assert asked(dialect.element_at(numbers(7, 8, 9), exp.Literal.number(place))) == value


def test_words_for_numbers():
    """Not a number is neither infinite nor NULL; whole numbers divide toward zero; wide ones are exact."""
    doubles = {each: exp.Cast(this=text(each), to=dialect.kind("DOUBLE")) for each in ("nan", "inf", "1")}
    assert [asked(dialect.is_nan(each)) for each in doubles.values()] == [True, False, False]
    assert asked(dialect.int_div(exp.Literal.number(7), exp.Literal.number(2))) == 3
    assert asked(dialect.int_div(exp.Neg(this=exp.Literal.number(7)), exp.Literal.number(2))) == -3
    wide = exp.Cast(this=exp.Literal.number(2**62), to=dialect.kind(dialect.wide_int()))
    assert asked(exp.Mul(this=wide, expression=exp.Literal.number(2**60))) == 2**122


@pytest.mark.parametrize("cells", [1, 2**8, 2**8 + 1, 2**16])
def test_a_small_number_holds_the_last_cell(cells):
    """And the narrow one would not hold one cell more."""
    held = exp.TryCast(this=exp.Literal.number(cells - 1), to=dialect.kind(dialect.small_int(cells)))
    assert asked(held) == cells - 1
    assert dialect.small_int(2**8) != dialect.small_int(2**8 + 1)


def test_the_largest_of_a_group_fall():
    found = duckdb.connect(":memory:").execute(
        f"SELECT {dialect.printed(dialect.top_k(exp.column('x'), 2))} FROM (VALUES (3), (9), (9), (1)) t(x)"
    )
    assert found.fetchall() == [([9, 9],)]
