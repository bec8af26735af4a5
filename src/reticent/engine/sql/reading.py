"""What a cell means, in SQL: the rule of `schema/columns.py` for cells of every type that a header can declare.

`source` is our word for that type (`types` of an engine): integer, float, decimal, text, boolean or date. The meaning
is the same whichever of them holds the cell.
"""

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql
from reticent.schema.columns import BLANKS, CODE, LAST_WHOLE, MOMENT, QUANTITY, TRUTHS, Identifier

SHORT = "[+-]?[0-9]{1,15}"  # most identifiers that are numbers


def trimmed(dialect: Dialect, text: Sql) -> Sql:
    """Without ASCII spaces and tabs at its ends; no other character is trimmed."""
    return dialect.trim(text, BLANKS)


def matches(dialect: Dialect, text: Sql, pattern: str) -> Sql:
    """Whether the whole text matches a regular expression."""
    return dialect.full_match(text, pattern)


def double_of(dialect: Dialect, raw: Sql, source: str, pattern: str = CODE) -> Sql:
    """The double nearest to the number that the cell is; NULL where it is none. NaN stays what it is.

    Texts are numbers where they match the `pattern`: CODE among levels and identifiers, else QUANTITY. Decimals and
    integers beyond doubles are read from their digits, which are rounded once.
    """
    if source == "float":
        return dialect.cast(raw.copy(), "DOUBLE")
    if source == "text":
        plain = trimmed(dialect, raw.copy())
        return sql.case([(matches(dialect, plain, pattern), dialect.try_number(plain.copy(), "DOUBLE"))])
    if source in ("boolean", "date"):
        return dialect.cast(exp.Null(), "DOUBLE")
    return _from_digits(dialect, raw)


def quantity_of(dialect: Dialect, raw: Sql, source: str) -> Sql:
    """The same in a column of numbers."""
    return double_of(dialect, raw, source, QUANTITY)


def canonical_text(dialect: Dialect, raw: Sql, source: str, *, literal: bool = False) -> Sql:
    """`schema.reading.canonical` of the cell. Where the column is `literal`, a text stays as it is."""
    if source == "integer":
        return _whole_text(dialect, raw)
    if source == "boolean":
        return dialect.text_of(raw, source)
    if source == "date":
        return _moment_text(dialect, dialect.text_of(raw, source))
    if source != "text":
        return _double_text(dialect, double_of(dialect, raw, source))
    return raw if literal else _text(dialect, raw)


def identifier(dialect: Dialect, column: Identifier, raw: Sql, source: str) -> Sql:
    """The respondent whom the cell names: one text for each; NULL where it names nobody."""
    cell = trimmed(dialect, raw) if source == "text" else raw
    named = canonical_text(dialect, cell, source, literal=column.literal)
    return exp.Nullif(this=named, expression=exp.Literal.string(""))


def _from_digits(dialect: Dialect, raw: Sql) -> Sql:
    return dialect.try_number(dialect.text_of(raw.copy(), "decimal"), "DOUBLE")


def _whole_text(dialect: Dialect, raw: Sql) -> Sql:
    """Digits as they are, up to 2^53; beyond, those of the nearest double."""
    edge = sql.number(LAST_WHOLE)
    near = exp.Between(this=raw.copy(), low=exp.Neg(this=edge), high=edge.copy())
    return sql.case(
        [(near, dialect.text_of(raw.copy(), "integer"))], dialect.text_of(_from_digits(dialect, raw), "float")
    )


def _double_text(dialect: Dialect, number: Sql) -> Sql:
    """`number_text`; the engine prints the shortest writing, as Python does."""
    branches = [
        (dialect.is_nan(number.copy()), exp.Null()),
        (_is_whole(dialect, number), dialect.cast(dialect.cast(number.copy(), "BIGINT"), "VARCHAR")),
    ]
    return sql.case(branches, dialect.text_of(number.copy(), "float"))


def _is_whole(dialect: Dialect, number: Sql) -> Sql:
    """Whole, and so small that every whole number is a double."""
    near = exp.LTE(this=sql.call("abs", number.copy()), expression=sql.number(LAST_WHOLE))
    return exp.and_(near, dialect.is_whole(number))


def _text(dialect: Dialect, raw: Sql) -> Sql:
    plain = trimmed(dialect, raw.copy())
    whole = dialect.cast(dialect.try_number(plain.copy(), "BIGINT"), "VARCHAR")
    branches = [
        (matches(dialect, plain.copy(), SHORT), whole),
        (
            matches(dialect, plain.copy(), CODE),
            _double_text(dialect, dialect.try_number(plain.copy(), "DOUBLE")),
        ),
    ]
    for truth, words in TRUTHS.items():
        spelled = sql.among(raw.copy(), [exp.Literal.string(word) for word in words])
        branches.append((spelled, exp.Literal.string(truth)))
    return sql.case(branches, _moment_text(dialect, raw))


def _moment_text(dialect: Dialect, text: Sql) -> Sql:
    """`moment_text` where the text is a date with its time; else the text."""
    spaced = _replaced(dialect, text, "^(.{10})T", "\\1 ")
    ended = _replaced(dialect, spaced, "([.][0-9]*[1-9])0+$|[.]0+$", "\\1")
    day = _replaced(dialect, ended, " 00:00:00$", "")
    return sql.case([(matches(dialect, text.copy(), MOMENT), day)], text.copy())


def _replaced(dialect: Dialect, text: Sql, pattern: str, by: str) -> Sql:
    return dialect.replaced(text.copy(), pattern, by)
