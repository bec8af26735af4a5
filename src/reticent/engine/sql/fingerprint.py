"""CONFIDENTIAL: a fingerprint of all rows, the same in any order and from any kind of file.

For a curator who opens a ledger or runs `check`, to see whether the same rows are charged elsewhere under another name.
No release makes one or looks at one. It is a function of the labels that the codebook gives to the cells, not of how a
file spells them: levels by their names and numbers as grid steps, columns by their headers.
"""

import hashlib
import json
from collections.abc import Sequence

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values
from reticent.engine.sql.clean import code
from reticent.schema import Levels, Number, Schema

BITS, PARTS = 60, 4  # four parts of 60 bits: sums of 2^40 of them fit the engine's 128
LABEL, HASH = "label_", "hash_"


def row_sums(dialect: Dialect, rows: exp.Select, schema: Schema, values: Values) -> exp.Select:
    """How many rows there are, and the sums of the parts of their hashes: every row counts as often as it is there."""
    label: Sql = exp.Literal.string("")
    for column in in_order(schema):
        label = exp.DPipe(this=label, expression=_told(dialect, column, values))
    labelled = sql.select([sql.alias(label, LABEL)], rows)
    hashed = sql.select([sql.alias(dialect.digest(sql.column(LABEL)), HASH)], labelled)
    parts = [dialect.total(dialect.digest60(sql.column(HASH), place), 2**BITS) for place in range(PARTS)]
    return sql.select([exp.Count(this=exp.Star()), *parts], hashed)


def fingerprint_of(schema: Schema, found: Sequence[int | None]) -> str:
    """The count and the sums, with the public words that say what was hashed, as one digest."""
    public = [
        [column.source, str(column.grid) if isinstance(column, Number) else ""] for column in in_order(schema)
    ]
    text = json.dumps([public, [int(each or 0) for each in found]])
    return hashlib.sha256(text.encode()).hexdigest()


def in_order(schema: Schema) -> list[Levels | Number]:
    """The columns by their headers, which do not change when a codebook names or orders them otherwise."""
    read = (column for name, column in schema.coded.items() if name not in schema.computed)
    return sorted(read, key=lambda column: column.source)


def _told(dialect: Dialect, column: Levels | Number, values: Values) -> Sql:
    """The cell's label with its length before it, so that no two rows are told alike; a dash where there is none."""
    cell = code(column.name)
    if isinstance(column, Levels):
        place = sql.plus(cell, sql.number(1))
        word = dialect.element_at(values.put(list(column.levels)), place)
    else:
        word = dialect.cast(cell, "VARCHAR")
    size = dialect.cast(dialect.byte_length(word), "VARCHAR")
    full = exp.DPipe(this=exp.DPipe(this=size, expression=exp.Literal.string(":")), expression=word.copy())
    return exp.Coalesce(this=full, expressions=[exp.Literal.string("-")])
