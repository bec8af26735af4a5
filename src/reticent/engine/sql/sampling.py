"""A piece of a survey: the respondents whom a keyed lot puts there. Who they are is confidential, and so is the key.

A respondent's lot is the SHA-256 of the key and of the respondent's label: the identifier, where the codebook has
one, else all codes of the record with a running number among equal records without one. The label does not depend on what a
plan asks or repairs, so every plan under one codebook and key sees the same pieces.

A piece may also be those who have certain codes in a column; then no lot is drawn and the key does not matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    label = _joined(dialect, [sql.column(name) for name in columns])
    # Among equals only: those who have no identifier are not counted with those who have one.
    equal = [sql.column(name) for name in (*columns, *([] if unit is None else [unit]))]
    number = exp.Window(this=exp.RowNumber(), partition_by=equal or None)
    numbered = sql.select([exp.Star(), sql.alias(number, NUMBER)], rows)
    own = _text(
        values.put_secret(f"{lot.key}|r|"), label, exp.Literal.string("|"), _word(dialect, sql.column(NUMBER))
    )
    text = own
    if unit is not None:
        named = _text(values.put_secret(f"{lot.key}|u|"), sql.column(unit))
        text = sql.case([(sql.is_null(sql.column(unit)), own)], named)
    lots = sql.select([exp.Star(), sql.alias(dialect.digest(text), LOT)], numbered)
    placed = sql.select([exp.Star(), sql.alias(_place(dialect, lot), PLACE)], lots)
    here = exp.and_(
        exp.GTE(this=sql.column(PLACE), expression=sql.number(lot.first)),
        exp.LT(this=sql.column(PLACE), expression=sql.number(lot.last)),
    )
    return sql.select([exp.Star()], placed, here)


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
