"""Contingency tables from a stream of packed words: what a server sends once serves all tables, and one batch is held.

Each row becomes a few numbers of 64 bits in mixed radix: its place on every side of the tables, whether it counts for
each choice of rows, and its codes in what is summed. They are counted on this side.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.donors.records import LARGEST_WORD
from reticent.engine.protocol import Cells
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.tallies import cell_of, factors_of, largest_product
from reticent.engine.wants import ContingencyTable, Table

Whole = NDArray[np.int64]
NARROW = 2**46  # products up to here are added in 64 bits, over a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Digits of rows: `values` are never NULL and below their `sizes`."""

    values: tuple[Sql, ...]
    sizes: tuple[int, ...]

    def words(self) -> list[list[int]]:
        """Which digits share a word, the first the lowest."""
        found: list[list[int]] = [[]]
        room = 1
        for place, size in enumerate(self.sizes):
            if room * size > LARGEST_WORD:
                found.append([])
                room = 1
            found[-1].append(place)
            room *= size
        return found

    def select(self, rows: exp.Select, cast: Callable[[Sql, str], Sql]) -> exp.Select:
        """One line of words for each row."""
        made = []
        for number, word in enumerate(self.words()):
            total, below = cast(sql.number(0), "BIGINT"), 1
            for place in word:
                digit = cast(self.values[place].copy(), "BIGINT")
                total = sql.plus(total, sql.times(digit, sql.number(below)))
                below *= self.sizes[place]
            made.append(sql.alias(total, f"w{number}"))
        return sql.select(made, rows)

    def cells(self, blocks: Iterable[Whole]) -> Iterator[Cells]:
        """The same digits as narrow as they can be, a line for each."""
        kind: Any = np.uint8 if max(self.sizes) <= 2**8 else np.uint16
        for block in blocks:
            yield np.stack([digit.astype(kind) for digit in self.digits(block)])

    def digits(self, block: Whole) -> list[Whole]:
        """The digits of a batch of words, one array each."""
        found: list[Whole] = [block[0]] * len(self.sizes)
        for number, word in enumerate(self.words()):
            left = block[number]
            for place in word:
                left, found[place] = np.divmod(left, self.sizes[place])
        return found


class TableStream:
    """The tables of `wants`, counted from a stream of their rows."""

    def __init__(self, cells: RowView, wants: Sequence[Table]) -> None:
        self.schema, self.wants = cells.schema, list(wants)
        values: list[Sql] = []
        sizes: list[int] = []
        self._places: dict[Any, int] = {}

        def put(what: Any, value: Sql, size: int) -> None:
            if what not in self._places:
                self._places[what] = len(values)
                values.append(value)
                sizes.append(size)

        for want in wants:
            put(("rows", want.rows), _flag(cells.chosen(want.rows)), 2)
            for key in want.keys:
                size = key.size(self.schema)
                put(("key", key), _or(cell_of(cells, (key,)), size), size + 1)
            for name in factors_of(want):
                low, high = self.schema.coded[name].low, self.schema.coded[name].high
                steps = sql.minus(cells.dialect.cast(code(name), "BIGINT"), sql.number(low))
                put(("code", name), _or(steps, high - low + 1), high - low + 2)
        self.packed = Packed(values=tuple(values), sizes=tuple(sizes))

    def count(self, blocks: Iterable[Whole]) -> dict[Table, ContingencyTable]:
        """The tables, exactly."""
        totals = [np.zeros(want.size(self.schema), object) for want in self.wants]
        for block in blocks:
            digits = self.packed.digits(block)
            for want, total in zip(self.wants, totals, strict=True):
                self._add(want, digits, total)
        return {
            want: ContingencyTable(want=want, cells=tuple(int(cell) for cell in total))
            for want, total in zip(self.wants, totals, strict=True)
        }

    def _add(self, want: Table, digits: Sequence[Whole], total: NDArray[np.object_]) -> None:
        counts = digits[self._places["rows", want.rows]] == 1
        index = np.zeros(len(counts), np.int64)
        for key in want.keys:
            size, place = key.size(self.schema), digits[self._places["key", key]]
            counts &= place < size
            index = index * size + place
        factors = factors_of(want)
        if not factors:
            total += np.bincount(index[counts], minlength=len(total))
            return
        wide = largest_product(self.schema, factors) > NARROW
        product = np.ones(len(counts), object if wide else np.int64)
        for name in factors:
            low, high = self.schema.coded[name].low, self.schema.coded[name].high
            steps = digits[self._places["code", name]]
            counts &= steps <= high - low
            product = product * (steps + low)
        added = np.zeros(len(total), product.dtype)
        np.add.at(added, index[counts], product[counts])
        total += added.astype(object)


def _flag(chosen: Sql) -> Sql:
    return sql.case([(chosen, sql.number(1))], sql.number(0))


def _or(value: Sql, otherwise: int) -> Sql:
    """The value, or a number that says there is none."""
    return exp.Coalesce(this=exp.Paren(this=value), expressions=[sql.number(otherwise)])
