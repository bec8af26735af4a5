"""What a cell means, in SQL: the rule of `schema/columns.py` for cells of every type that a header can declare.

`source` is our word for that type (`engine/duckdb/connection.py`): integer, float, decimal, text, boolean or date. The meaning
is the same whichever of them holds the cell.
"""

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql import dialect
from reticent.engine.sql.build import Sql
from reticent.schema.columns import BLANKS, CODE, LAST_WHOLE, MOMENT, QUANTITY, TRUTHS, Identifier

SHORT = "[+-]?[0-9]{1,15}"  # most identifiers that are numbers


def trimmed(text: Sql) -> Sql:
    """Without ASCII spaces and tabs at its ends; no other character is trimmed."""
    return dialect.trim(text, BLANKS)


def matches(text: Sql, pattern: str) -> Sql:
    return dialect.full_match(text, pattern)


def double_of(raw: Sql, source: str, pattern: str = CODE) -> Sql:
    """The double nearest to the number that the cell is; NULL where it is none. NaN stays what it is.

    Texts are numbers where they match the `pattern`: CODE among levels and identifiers, else QUANTITY. Decimals and
    integers beyond doubles are read from their digits, which are rounded once.
    """
    if source == "float":
        return sql.cast(raw.copy(), "DOUBLE")
    if source == "text":
        plain = trimmed(raw.copy())
        return sql.case([(matches(plain, pattern), sql.try_cast(plain.copy(), "DOUBLE"))])
    if source in ("boolean", "date"):
        return sql.cast(exp.Null(), "DOUBLE")
    return _from_digits(raw)


def quantity_of(raw: Sql, source: str) -> Sql:
    """The same in a column of numbers."""
    return double_of(raw, source, QUANTITY)


def canonical_text(raw: Sql, source: str, *, literal: bool = False) -> Sql:
    """`schema.reading.canonical` of the cell. Where the column is `literal`, a text stays as it is."""
    if source == "integer":
        return _whole_text(raw)
    if source == "boolean":
        return sql.cast(raw, "VARCHAR")
    if source == "date":
        return _moment_text(sql.try_cast(raw, "VARCHAR"))
    if source != "text":
        return _double_text(double_of(raw, source))
    return raw if literal else _text(raw)


def identifier(column: Identifier, raw: Sql, source: str) -> Sql:
    """The respondent whom the cell names: one text for each; NULL where it names nobody."""
    cell = trimmed(raw) if source == "text" else raw
    named = canonical_text(cell, source, literal=column.literal)
    return exp.Nullif(this=named, expression=exp.Literal.string(""))


def _from_digits(raw: Sql) -> Sql:
    return sql.try_cast(sql.cast(raw.copy(), "VARCHAR"), "DOUBLE")


def _whole_text(raw: Sql) -> Sql:
    """Digits as they are, up to 2^53; beyond, those of the nearest double."""
    edge = sql.number(LAST_WHOLE)
    near = exp.Between(this=raw.copy(), low=exp.Neg(this=edge), high=edge.copy())
    return sql.case([(near, sql.cast(raw.copy(), "VARCHAR"))], sql.cast(_from_digits(raw), "VARCHAR"))


def _double_text(number: Sql) -> Sql:
    """`number_text`; the engine prints the shortest writing, as Python does."""
    branches = [
        (dialect.is_nan(number.copy()), exp.Null()),
        (_is_whole(number), sql.cast(sql.cast(number.copy(), "BIGINT"), "VARCHAR")),
    ]
    return sql.case(branches, sql.cast(number.copy(), "VARCHAR"))


def _is_whole(number: Sql) -> Sql:
    """Whole, and so small that every whole number is a double."""
    same = exp.EQ(this=number.copy(), expression=sql.call("floor", number.copy()))
    near = exp.LTE(this=sql.call("abs", number.copy()), expression=sql.number(LAST_WHOLE))
    return exp.and_(near, same)


def _text(raw: Sql) -> Sql:
    plain = trimmed(raw.copy())
    whole = sql.cast(sql.try_cast(plain.copy(), "BIGINT"), "VARCHAR")
    branches = [
        (matches(plain.copy(), SHORT), whole),
        (matches(plain.copy(), CODE), _double_text(sql.try_cast(plain.copy(), "DOUBLE"))),
    ]
    for truth, words in TRUTHS.items():
        spelled = sql.among(raw.copy(), [exp.Literal.string(word) for word in words])
        branches.append((spelled, exp.Literal.string(truth)))
    return sql.case(branches, _moment_text(raw))


def _moment_text(text: Sql) -> Sql:
    """`moment_text` where the text is a date with its time; else the text."""
    spaced = _replaced(text, "^(.{10})T", "\\1 ")
    ended = _replaced(spaced, "([.][0-9]*[1-9])0+$|[.]0+$", "\\1")
    day = _replaced(ended, " 00:00:00$", "")
    return sql.case([(matches(text.copy(), MOMENT), day)], text.copy())


def _replaced(text: Sql, pattern: str, by: str) -> Sql:
    return dialect.replaced(text.copy(), pattern, by)
