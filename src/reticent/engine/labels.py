"""Every record's label, and its place on the ring.

A label is the respondent's identifier, where the codebook has one, the record's words, and a running number
among records that agree in all of these. Records that agree cannot be told apart, so it does not matter which
of them has which number, and a record that comes or goes changes no label of a different one.
"""

from collections.abc import Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import Cells
from reticent.engine.packing import Packing
from reticent.engine.relation import UNIT
from reticent.engine.sql import Sql
from reticent.engine.statements import cell_of
from reticent.engine.wants import Key
from reticent.schema import Schema
from reticent.schema.codebook import ROW

NUMBER, PLACE, LINE = "number", "place", "line_"
SEPARATOR = "|"
HEX_DIGITS = 16  # of the digest: 64 bits


def labelled(
    cells: Cells,
    rows: exp.Select,
    packing: Packing,
    domains: Sequence[Sequence[Key]],
    key: Sql,
    keep: Sequence[str] = (),
) -> exp.Select:
    """Each row as its label, its place, and its cell in every domain that donors are matched on.

    `keep` may hold the number of its line in the source: then that settles which of several equal records is
    first, so that they can be put back.
    """
    matched = [
        exp.alias_(sql.cast(cell_of(cells, keys), "INTEGER"), f"cell{i}", quoted=True)
        for i, keys in enumerate(domains)
    ]
    kept = [sql.column(name) for name in keep]
    packed = sql.select([*packing.pack(cells), *matched, *kept], rows)
    equal = [sql.column(name) for name in keep if name == UNIT] + [sql.column(w) for w in packing.words]
    order = exp.Order(expressions=[sql.column(LINE)]) if LINE in keep else None
    number = exp.Window(this=exp.RowNumber(), partition_by=equal, order=order)
    numbered = sql.select([exp.Star(), exp.alias_(number, NUMBER, quoted=True)], packed)
    place = exp.alias_(_place(key, [*packing.words, NUMBER, *(n for n in keep if n == UNIT)]), PLACE)
    return sql.select([exp.Star(), place], numbered)


def order_of(schema: Schema, packing: Packing) -> list[str]:
    """The columns that put records in their order on the ring: the place, and the label where two places tie."""
    return [PLACE, *packing.words, NUMBER, *[UNIT] * (schema.unit != ROW)]


def _place(key: Sql, label: Sequence[str]) -> Sql:
    """The first 64 bits of the SHA-256 of the key and the label, as a number."""
    text = key
    for name in label:
        part = sql.cast(sql.column(name), "VARCHAR")
        part = exp.Coalesce(this=part, expressions=[exp.Literal.string("")]) if name == UNIT else part
        text = exp.DPipe(this=exp.DPipe(this=text, expression=exp.Literal.string(SEPARATOR)), expression=part)
    start = sql.call("left", sql.call("sha256", text), sql.number(HEX_DIGITS))
    return sql.try_cast(exp.DPipe(this=exp.Literal.string("0x"), expression=start), "UBIGINT")
