"""Each word of Spark's dialect gives what its docstring asks of every engine; and Spark's own words would not."""

from decimal import ROUND_HALF_UP, Context, Decimal
from hashlib import sha256
from math import isnan
from random import Random
from struct import pack, unpack
from typing import Any

import pytest
from sqlglot import exp

from reticent.engine.spark.words import SPARK

TEXTS = (
    "a",
    " a\t",
    "\u00a0a\u00a0",
    "12\n",
    "12",
    "1e400",
    "0x1F",
    "1_000",
    "",
    "ä€",
    "A",
    "a\\b'c",
    "12.000",
    "+12.",
)
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)


def asked(session: Any, *words: exp.Expr) -> tuple[Any, ...]:
    """What Spark gives for words without rows, all by one statement."""
    ours = session.newSession()
    ours.conf.set("spark.sql.ansi.enabled", "true")
    said = ", ".join(f"{SPARK.printed(word)} AS x{i}" for i, word in enumerate(words))
    return tuple(ours.sql(f"SELECT {said}").collect()[0])


def text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def test_words_for_texts(session: Any):
    """Blanks are those that are named, a match is of the whole text, a length is in bytes, a digest is SHA-256."""
    words, expected = [], []
    for value in TEXTS:
        whole = sha256(value.encode()).hexdigest()
        words += [
            SPARK.trim(text(value), " \t"),
            SPARK.full_match(text(value), "[0-9]{1,15}"),
            SPARK.byte_length(text(value)),
        ]
        expected += [value.strip(" \t"), value == "12", len(value.encode())]
        words += [SPARK.digest(text(value)), SPARK.digest60(SPARK.digest(text(value)), 2)]
        expected += [whole, int(whole[30:45], 16)]
    assert asked(session, *words) == tuple(expected)


def test_words_for_numbers(session: Any):
    """What is no number is NULL, lists are read by bytes and never beyond their ends, wide products are exact."""
    levels = exp.Array(expressions=[text(each) for each in ("a", "A", "ä")])
    numbers = exp.Array(expressions=[exp.Literal.number(each) for each in (7, 8, 9)])
    wide = SPARK.cast(exp.Literal.number(2**62), SPARK.wide_int())
    words = [
        *(SPARK.try_number(text(each), "DOUBLE") for each in ("a", "", "\u0661", "1e", "--1")),
        *(SPARK.try_number(text(each), "BIGINT") for each in ("12", "12.", "+12.000", "a")),
        *(SPARK.position_in(levels.copy(), text(each)) for each in ("a", "A", "ä", "b", "a ")),
        *(SPARK.element_at(numbers.copy(), exp.Literal.number(each)) for each in (1, 3, 4, 0)),
        SPARK.int_div(exp.Literal.number(7), exp.Literal.number(2)),
        SPARK.int_div(exp.Neg(this=exp.Literal.number(7)), exp.Literal.number(2)),
        exp.Mul(this=wide, expression=exp.Literal.number(2**60)),
        exp.Mul(this=exp.Literal.number(2**31), expression=exp.Literal.number(2**31)),
    ]
    expected = (*[None] * 5, 12, 12, 12, None, 1, 2, 3, None, None, 7, 9, None, None, 3, -3, 2**122, 2**62)
    assert asked(session, *words) == expected


def test_doubles_are_shown_by_their_shortest_digits(session: Any):
    """As Python prints them, of all sizes. Java 17's own printing, the naive twin, is another for some."""
    dice = Random(3)
    found = [
        0.0,
        1e16,
        9999999999999998.0,
        1e-4,
        9.999e-5,
        -12.25,
        5e-324,
        1e-323,
        1.7976931348623157e308,
        float("inf"),
        8.41e21,
    ]
    found += [dice.uniform(-1, 1) * 10 ** dice.randint(-20, 25) for _ in range(400)]
    found += [
        x for x in (unpack("d", pack("Q", dice.getrandbits(64)))[0] for _ in range(400)) if not isnan(x)
    ]
    frame = session.createDataFrame([(x,) for x in found], "x double")
    x = exp.column("x", quoted=True)
    shown, whole, digits = SPARK.text_of(x, "float"), SPARK.is_whole(x), SPARK.shown(x, 12)
    few = f"CASE WHEN abs(x) < 1e20D THEN {SPARK.printed(digits)} END"
    rows = frame.selectExpr(
        "x", SPARK.printed(shown), SPARK.printed(whole), few, "CAST(x AS STRING)"
    ).collect()
    assert [row[1] for row in rows] == [repr(row[0]) for row in rows]
    assert all(row[2] == (abs(row[0]) == float("inf") or row[0] == int(row[0])) for row in rows)
    for value, *_, counted, _own in rows:
        if counted is not None:
            assert int(counted) == int(
                Decimal(repr(value)).quantize(Decimal("1e-12"), context=_WIDE).scaleb(12, context=_WIDE)
            )
    version = session.sparkContext._jvm.java.lang.System.getProperty("java.specification.version")
    if int(version) < 19:
        assert any(Decimal(own) != Decimal(repr(value)) for value, *_, own in rows if abs(value) < 1e300)


def test_the_printers_own_words_would_differ(session: Any):
    """Naive twins: a cast that raises, a match that forgives a newline, a sum that passes 64 bits, a floor that raises."""
    cast = exp.TryCast(this=text("x"), to=exp.DataType.build("DOUBLE"))
    assert "TRY_CAST" not in cast.sql("spark") and "TRY_CAST" in SPARK.printed(cast)
    assert asked(session, exp.Anonymous(this="rlike", expressions=[text("12\n"), text("^[0-9]+$")])) == (
        True,
    )
    ours = session.newSession()
    ours.conf.set("spark.sql.ansi.enabled", "true")
    two = f"FROM VALUES ({2**63 - 1}L), ({2**63 - 1}L) t(x)"
    for naive in (
        f"SELECT sum(x) {two}",
        "SELECT floor(1e308D)",
        "SELECT 2147483648 * 4294967296 * 4294967296L",
    ):
        with pytest.raises(Exception, match="OVERFLOW"):
            ours.sql(naive).collect()
    total = SPARK.printed(SPARK.total(exp.column("x"), 2**63 - 1))
    assert int(ours.sql(f"SELECT {total} {two}").collect()[0][0]) == 2**64 - 2
