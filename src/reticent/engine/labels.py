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
from reticent.engine.places import placed
from reticent.engine.relation import UNIT
from reticent.engine.sql import Sql
from reticent.engine.statements import cell_of
from reticent.engine.wants import Key

NUMBER, PLACE, LINE = "number", "place", "line_"
HEX_DIGITS = 15  # of a text's digest: 60 bits


def labelled(
    cells: Cells,
    rows: exp.Select,
    packing: Packing,
    domains: Sequence[Sequence[Key]],
    key: str,
    keep: Sequence[str] = (),
) -> exp.Select:
    """Each row as its words, its place, and its cell in every domain that donors are matched on.

    `keep` may hold the number of its line in the source: then that settles which of several equal records is
    first, so that they can be put back.

    Guarantee   a record's words, cells and place are a function of its own answers, its identifier and its
                running number; the records of a survey, with their numbers, are a function of the set.
    Adjacency   one record added or removed: no place of a different record changes.
    Theorem     the labels of THEORY 3.1a.
    Proof       proofs/engine/rings.md
    Assumes     `key` is not a function of the rows.
    Keeps back  all of it.
    """
    matched = [
        sql.alias(sql.cast(cell_of(cells, keys), "INTEGER"), f"cell{i}") for i, keys in enumerate(domains)
    ]
    kept = [sql.column(name) for name in keep]
    packed = sql.select([*packing.pack(cells), *matched, *kept], rows)
    owner = [UNIT] * (UNIT in keep)
    order = exp.Order(expressions=[sql.column(LINE)]) if LINE in keep else None
    equal = [sql.column(name) for name in (*owner, *packing.words)]
    number = exp.Window(this=exp.RowNumber(), partition_by=equal, order=order)
    numbered = sql.select([exp.Star(), sql.alias(number, NUMBER)], packed)
    label = [*map(sql.column, packing.words), sql.column(NUMBER), *(_digest(name) for name in owner)]
    left = [*packing.words, *(f"cell{i}" for i in range(len(domains))), *(n for n in keep if n != UNIT)]
    return placed(numbered, label, key, keep=left, name=PLACE)


def order_of(packing: Packing) -> list[str]:
    """What puts records in order on the ring: the place and, where two places tie, the words.

    Records that still tie agree in all that any statement can see; their order changes nothing.
    """
    return [PLACE, *packing.words]


def _digest(name: str) -> Sql:
    """The first 60 bits of a text's SHA-256, as a number."""
    text = exp.Coalesce(this=sql.column(name), expressions=[exp.Literal.string("")])
    start = sql.call("left", sql.call("sha256", text), sql.number(HEX_DIGITS))
    return sql.try_cast(exp.DPipe(this=exp.Literal.string("0x"), expression=start), "BIGINT")
