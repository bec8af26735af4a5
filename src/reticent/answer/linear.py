"""An answer as a sum over rows, about the answer itself: what one row adds, and between which bounds. Public."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.engine.wants import Sum
from reticent.query.kinds import Count, Mean, Proportion, Total
from reticent.query.rows import EVERYONE
from reticent.schema import Schema

Copiable = Count | Total | Mean | Proportion

FINE = 1 << 10
"""A share is counted in steps of 2^-10 where others are measured from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A sum of whole multiples of sums. A row adds a number from `low` to `high`, or nothing; a step is `unit`."""

    terms: tuple[tuple[Sum, int], ...]
    low: int
    high: int
    unit: Fraction

    @property
    def reach(self) -> int:
        """How far two terms of a row can be apart, nothing counting as 0."""
        return max(self.high, 0) - min(self.low, 0)

    @property
    def farthest(self) -> int:
        """The largest term."""
        return max(abs(self.low), abs(self.high))

    def of(self, sums: Mapping[Sum, int]) -> int:
        """The sum, from those it is made of."""
        return sum(times * sums[want] for want, times in self.terms)


def linear(query: Copiable, schema: Schema, value: Fraction | None) -> Linear:
    """The sum whose change, divided by the count of a quotient, is that of the answer near `value`.

    A quotient k = T/s moves by (dT - k ds)/s: the sum of terms less k. Without a value, from one end: then terms are at
    their largest.
    """
    match query:
        case Count():
            return Linear(terms=((query.count(schema), 1),), low=0, high=1, unit=Fraction(1))
        case Total():
            column = query.number(schema)
            total = ((query.power(schema, 1), 1),)
            return Linear(terms=total, low=column.low, high=column.high, unit=column.grid)
        case Mean():
            column = query.number(schema)
            twice = 2 * column.low if value is None else round(2 * value / column.grid)
            twice = min(max(twice, 2 * column.low), 2 * column.high)
            terms = ((query.power(schema, 1), 2), (query.power(schema, 0), -twice))
            low, high = 2 * column.low - twice, 2 * column.high - twice
            return Linear(terms=terms, low=low, high=high, unit=column.grid / 2)
        case Proportion():
            about = min(max(0 if value is None else round(value * FINE), 0), FINE)
            among = ((query.true(schema), FINE), (query.decided(schema), -about))
            return Linear(terms=among, low=-about, high=FINE - about, unit=Fraction(1, FINE))


def decided(query: Copiable, schema: Schema) -> Sum:
    """The rows that can be said to be in or out: gaps in the others are what an answer is filled with."""
    match query:
        case Count():
            everybody = replace(query.among, where=EVERYONE)
            return Proportion(of=query.among.where, among=everybody).decided(schema)
        case Proportion():
            return query.decided(schema)
        case Total() | Mean():
            return query.power(schema, 0)


def squares(query: Total | Mean, schema: Schema, shape: Linear, sums: Mapping[Sum, int]) -> int:
    """The sum of the squares of all terms."""
    count, first, second = (sums[query.power(schema, power)] for power in (0, 1, 2))
    if isinstance(query, Total):
        return second
    about = -shape.terms[1][1]
    return 4 * second - 4 * about * first + about * about * count
