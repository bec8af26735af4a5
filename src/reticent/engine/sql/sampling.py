"""A piece of a survey: the respondents whom a keyed lot puts there. Who they are is confidential, and so is the key.

A respondent's lot is the SHA-256 of the key and of the respondent's label: the identifier, where the codebook has
one, else all codes of the record with a running number among equal records without one. The label does not depend on what a
plan asks or repairs, so every plan under one codebook and key sees the same pieces.

Respondents are dealt into groups by the same labels, under a public text in place of the key.

A piece may also be those who have certain codes in a column; then no lot is drawn and the key does not matter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values

BITS = 60
NUMBER, LOT, PLACE = "number_", "lot_", "lot_place_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """From `first` up to `last`, not included: ranks of respondents in the order of their lots, or (by `chance`)
    the first 60 bits of a lot itself. With a `column`: the rows whose code there is one of `codes`."""

    key: str = field(repr=False)
    first: int = 0
    last: int = 0
    chance: bool = False
    column: str | None = None
    codes: tuple[int, ...] = ()


def drawn(
    dialect: Dialect, rows: exp.Select, lot: Lot, columns: Sequence[str], unit: str | None, values: Values
) -> exp.Select:
    """The rows of the piece. `columns` hold the codes that make a label, `unit` the respondent's identifier.

    Guarantee   respondents have independent uniform lots; pieces by rank are a uniform cut into their sizes, pieces by
                chance put each respondent on their own; all rows of a respondent go together. Pieces by a column
                hold each row in one piece at most, by that row alone.
    Adjacency   either; pieces by rank are used where the number of respondents is public.
    Theorem     THEORY 5.2 rests on it.
    Proof       proofs/engine/lots.md
    Assumes     the key was drawn uniformly and kept from the rows and the asks; SHA-256 under it is a random function.
    Keeps back  the key, and who is in the piece.
    """
    if lot.column is not None:
        codes = [sql.number(code) for code in lot.codes]
        return sql.select([exp.Star()], rows, sql.among(sql.column(f"c_{lot.column}"), codes))
    lots = _labelled(dialect, rows, columns, unit, lambda kind: values.put_secret(f"{lot.key}|{kind}|"))
    placed = sql.select([exp.Star(), sql.alias(_place(dialect, lot), PLACE)], lots)
    here = exp.and_(
        exp.GTE(this=sql.column(PLACE), expression=sql.number(lot.first)),
        exp.LT(this=sql.column(PLACE), expression=sql.number(lot.last)),
    )
    return sql.select([exp.Star()], placed, here)


def dealt_into(
    dialect: Dialect,
    rows: exp.Select,
    groups: Mapping[str, int],
    columns: Sequence[str],
    unit: str | None,
    name: str,
    *,
    keep: Sequence[str] = (),
) -> exp.Select:
    """The rows with a number below `groups` under each of its names, from the label and the public name of the survey.

    Guarantee   all rows of a respondent are in one group; a record that comes or goes moves no other.
    Adjacency   either.
    Theorem     THEORY 13.2 rests on it.
    Proof       proofs/engine/lots.md
    Assumes     `columns` hold all codes of a record as they were read.
    Keeps back  who is in which group.
    """
    public = sha256(name.encode()).hexdigest()
    lots = _labelled(dialect, rows, columns, unit, lambda kind: exp.Literal.string(f"{public}|{kind}|"))
    bits = dialect.digest60(sql.column(LOT))
    found = [sql.alias(_left_over(dialect, bits, size), each) for each, size in groups.items()]
    return sql.select([*(sql.column(each) for each in (*columns, *keep)), *found], lots)


def _left_over(dialect: Dialect, number: Sql, size: int) -> Sql:
    """The number modulo `size`; it is not negative."""
    whole = dialect.whole_part(number.copy(), size)
    return sql.minus(number.copy(), sql.times(whole, sql.number(size)))


def _labelled(
    dialect: Dialect, rows: exp.Select, columns: Sequence[str], unit: str | None, key: Callable[[str], Sql]
) -> exp.Select:
    """The rows with the digest of their label: of the codes and a number among equals, or of the identifier."""
    label = _joined(dialect, [sql.column(name) for name in columns])
    # Among equals only: those who have no identifier are not counted with those who have one.
    equal = [sql.column(name) for name in (*columns, *([] if unit is None else [unit]))]
    number = exp.Window(this=exp.RowNumber(), partition_by=equal or None)
    numbered = sql.select([exp.Star(), sql.alias(number, NUMBER)], rows)
    text = _text(key("r"), label, exp.Literal.string("|"), _word(dialect, sql.column(NUMBER)))
    if unit is not None:
        text = sql.case([(sql.is_null(sql.column(unit)), text)], _text(key("u"), sql.column(unit)))
    return sql.select([exp.Star(), sql.alias(dialect.digest(text), LOT)], numbered)


def _place(dialect: Dialect, lot: Lot) -> Sql:
    """The first bits of the lot, or how many respondents have a smaller one."""
    if lot.chance:
        return dialect.digest60(sql.column(LOT))
    order = exp.Order(expressions=[sql.column(LOT)])
    return sql.minus(exp.Window(this=sql.call("dense_rank"), order=order), sql.number(1))


def _joined(dialect: Dialect, codes: Sequence[Sql]) -> Sql:
    text: Sql = exp.Literal.string("")
    for code in codes:
        text = _text(text, _word(dialect, code), exp.Literal.string("|"))
    return text


def _word(dialect: Dialect, code: Sql) -> Sql:
    return exp.Coalesce(this=dialect.cast(code, "VARCHAR"), expressions=[exp.Literal.string("")])


def _text(first: Sql, *rest: Sql) -> Sql:
    for part in rest:
        first = exp.DPipe(this=first, expression=part)
    return first
