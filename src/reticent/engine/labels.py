"""Every record's label, and its place on the ring.

A label is the respondent's identifier, where the codebook has one, the record's words, and a running number
among records that agree in all of these. Records that agree cannot be told apart, so it does not matter which
of them has which number, and a record that comes or goes changes no label of a different one.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView
from reticent.engine.circle import numbers
from reticent.engine.packing import Packing
from reticent.engine.places import coefficients, placed, sums
from reticent.engine.relation import UNIT
from reticent.engine.sql import Sql
from reticent.engine.statements import cell_of
from reticent.engine.wants import Key

OWNER, PLACE, LINE = "owner_", "place", "line_"
HEX_DIGITS = 15  # of a text's digest: 60 bits


def packed(
    cells: RowView,
    rows: exp.Select,
    packing: Packing,
    *,
    domains: Sequence[Sequence[Key]],
    filled: Sequence[str],
    keep: Sequence[str],
) -> exp.Select:
    """Each row as its words, its cell in every domain that donors are matched on, its digit in every column that
    they fill, and what `keep` names: the number of its line in the source, and its owner, by a digest."""
    matched = [
        sql.alias(sql.cast(cell_of(cells, keys), "INTEGER"), f"cell{i}") for i, keys in enumerate(domains)
    ]
    digits = [packing.digit(cells, name, f"y{i}") for i, name in enumerate(filled)]
    kept = [sql.alias(_digest(name), OWNER) if name == UNIT else sql.column(name) for name in keep]
    return sql.select([*packing.pack(cells), *matched, *digits, *kept], rows)


def labelled(found: dict[str, NDArray[np.int64]], words: Sequence[str], key: str) -> pa.Table:
    """Rows as `packed` gives them, all of a cell or none, with the places of their labels instead of owners.

    Where lines are among them, those settle which of several equal records is first, so that they can be put back.

    Guarantee   a record's words, cells and place are a function of its own answers, its identifier and its
                running number; the records of a survey, with their numbers, are a function of the set.
    Adjacency   one record added or removed: no place of a different record changes.
    Theorem     the labels of THEORY 3.1a.
    Proof       proofs/engine/rings.md
    Assumes     `key` is not a function of the rows.
    Keeps back  all of it.
    """
    left = {name: column for name, column in found.items() if name != OWNER}
    label = [found[name] for name in (*words, OWNER) if name in found]
    a0, c0, c1, c2, c3, *a = coefficients(key, len(words) + 7)
    by_number = a.pop(len(words))  # a label's numbers are its words, its running number, its owner
    z = sums(label, a0, a[: len(label)])
    number = numbers(z.view(np.int64), label, [found[LINE]] if LINE in found else [])
    return pa.table({**left, PLACE: placed(z, number, by_number, (c0, c1, c2, c3))})


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
