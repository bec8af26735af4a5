"""Records packed into a few 64-bit words, and every record's label and place on the ring.

A word is a number in mixed radix. Of a column with A answers the digits 0 to A - 1 are codes counted from its lowest, A is
missing and A + 1, where it has a universe, not asked. Two records have the same words exactly when no statement over
these columns can tell them apart.

A label is the respondent's identifier, where the codebook has one, the record's words, and a running number among
records that agree in all of these. Records that agree cannot be told apart, so it does not matter which of them has which
number, and a record that comes or goes changes no label of a different one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.donors.circle import coefficients, numbers, placed, spots, sums
from reticent.engine.donors.circle import order_of as rows_in_order
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql
from reticent.engine.sql.clean import UNIT, RowView, code
from reticent.engine.sql.tallies import cell_of
from reticent.engine.wants import Key, has_universe
from reticent.schema import Schema

LARGEST_WORD = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """Where a column stands: `below` is the worth of its digit in its word."""

    column: str
    word: str
    below: int
    low: int
    answers: int
    size: int
    dialect: Dialect

    def value(self) -> Sql:
        """The digit, read from its word."""
        above = self.dialect.whole_part(sql.column(self.word), self.below)
        return exp.Mod(this=exp.Paren(this=above), expression=sql.number(self.size))

    def is_donor(self) -> Sql:
        return exp.LT(this=exp.Paren(this=self.value()), expression=sql.number(self.answers))

    def code(self, filled: Sql | None = None) -> Sql:
        """The code, or the code of `filled`, a digit too, where there is none."""
        answer = sql.plus(self.value(), sql.number(self.low))
        other = None if filled is None else sql.plus(filled, sql.number(self.low))
        return sql.case([(self.is_donor(), answer)], other)

    def asked(self) -> Sql:
        return exp.LTE(this=exp.Paren(this=self.value()), expression=sql.number(self.answers))


class Packing:
    """The digits of `columns`, in as few words as hold them in that order."""

    def __init__(self, schema: Schema, columns: Sequence[str], dialect: Dialect) -> None:
        self.dialect = dialect
        self.digits: dict[str, Digit] = {}
        word, below = 0, 1
        for name in columns:
            column = schema.coded[name]
            answers = column.high - column.low + 1
            size = answers + 1 + has_universe(schema, name)
            if below * size > LARGEST_WORD:
                word, below = word + 1, 1
            self.digits[name] = Digit(
                column=name,
                word=f"w{word}",
                below=below,
                low=column.low,
                answers=answers,
                size=size,
                dialect=dialect,
            )
            below *= size
        self.words = tuple(f"w{i}" for i in range(word + 1))

    def pack(self, cells: RowView) -> list[Sql]:
        """The words of a row, under their names."""
        found: dict[str, Sql] = {word: self.dialect.cast(sql.number(0), "BIGINT") for word in self.words}
        for digit in self.digits.values():
            worth = sql.times(_digit(cells, digit), sql.number(digit.below))
            found[digit.word] = sql.plus(found[digit.word], worth)
        return [sql.alias(word, name) for name, word in found.items()]

    def digit(self, cells: RowView, column: str, name: str) -> Sql:
        """One digit of a row, under that name."""
        kind = "INTEGER" if self.digits[column].size < 2**31 else "BIGINT"
        return sql.alias(self.dialect.cast(_digit(cells, self.digits[column]), kind), name)

    def unpack(self, cells: RowView, filled: Mapping[str, Sql]) -> list[Sql]:
        """The codes and who was asked, under the names that `cells` knows; `filled` are donors' digits."""
        codes = [sql.alias(digit.code(filled.get(name)), f"c_{name}") for name, digit in self.digits.items()]
        flags = [sql.alias(self.digits[name].asked(), flag.name) for name, flag in cells.asked.items()]
        return codes + flags


def _digit(cells: RowView, digit: Digit) -> Sql:
    steps = sql.minus(cells.dialect.cast(code(digit.column), "BIGINT"), sql.number(digit.low))
    branches = [(sql.not_null(code(digit.column)), steps)]
    if cells.may_be_structural(digit.column):
        branches.append((cells.structural(digit.column), sql.number(digit.answers + 1)))
    return sql.case(branches, sql.number(digit.answers))


def unpacked(schema: Schema, packing: Packing) -> RowView:
    """The cells of rows that come out of words: each column with a universe has a flag of its own."""
    flags = {name: sql.column(f"a_{name}") for name in packing.digits if has_universe(schema, name)}
    return RowView(schema, flags, packing.dialect)


OWNER, PLACE, LINE, SPOT = "owner_", "place", "line_", "spot"
ID = "id"  # of a record among those that stand on rings, and of a recipient wherever it is named


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
        sql.alias(cells.dialect.cast(cell_of(cells, keys), "INTEGER"), f"cell{i}")
        for i, keys in enumerate(domains)
    ]
    digits = [packing.digit(cells, name, f"y{i}") for i, name in enumerate(filled)]
    kept = [
        sql.alias(_digest(cells.dialect, name), OWNER) if name == UNIT else sql.column(name) for name in keep
    ]
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


def spotted(
    found: dict[str, NDArray[np.int64]], words: Sequence[str], key: str
) -> dict[str, NDArray[np.int64]]:
    """Rows as `packed` gives them, all of a cell or none, with a spot for each label, in the order of labels, and ids from 0.

    From a spot the places of every level and ring are made. Where two spots tie, words, owner and number decide, so that
    the order is strict.

    Guarantee   a record's words, cells and spot are a function of its own answers, its identifier and its running
                number, and so is which of two records comes first; the records of a survey, with their numbers, are a
                function of the set.
    Adjacency   one record added or removed: no spot of a different record changes, nor which of two comes first.
    Theorem     the labels of THEORY 3.1a, numbered once for all levels.
    Proof       proofs/engine/capped.md
    Assumes     `key` is not a function of the rows; words hold every declared column.
    Keeps back  all of it.
    """
    label = [found[name] for name in (*words, OWNER) if name in found]
    a0, by_number, *a = coefficients(f"{key}|spots", len(label) + 2)
    z = sums(label, a0, a)
    number = numbers(z.view(np.int64), label, [found[LINE]] if LINE in found else [])
    spot = spots(z, number, by_number)
    order = rows_in_order(found["cell0"], spot, [*label, number])
    left = {name: column[order] for name, column in found.items() if name != OWNER}
    return {**left, SPOT: spot[order], ID: np.arange(len(order))}


def order_of(packing: Packing) -> list[str]:
    """What puts records in order on the ring: the place and, where two places tie, the words.

    Records that still tie agree in all that any statement can see; their order changes nothing.
    """
    return [PLACE, *packing.words]


def _digest(dialect: Dialect, name: str) -> Sql:
    """The first 60 bits of a text's SHA-256, as a number."""
    text = exp.Coalesce(this=sql.column(name), expressions=[exp.Literal.string("")])
    return dialect.digest60(dialect.digest(text))
