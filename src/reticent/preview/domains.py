"""Statistics that differ only in disjoint conditions on one column: together they could be one statistic by domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from reticent.answer.statistic import Statistic
from reticent.exact import show
from reticent.query.base import EVERYONE, Query, RowQuery
from reticent.schema import Schema
from reticent.schema.bind import CodeIn


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Statistics that could be one: their names, the column that tells them apart, and what one would cost."""

    names: tuple[str, ...]
    column: str
    together: Fraction
    apart: Fraction

    def words(self) -> str:
        listed = ", ".join(repr(name) for name in self.names[:4]) + (
            " and more" if len(self.names) > 4 else ""
        )
        return (
            f"{listed} are the same statistic where {self.column} differs, so no record is in two of them: with "
            f'by = ["{self.column}"] one epsilon of {show(self.together)} would do for all, in place of {show(self.apart)}'
        )


def alike(asks: Sequence[Statistic], schema: Schema) -> Iterator[Alike]:
    """Groups of two or more, in the order of the plan. Public words alone are compared."""
    groups: dict[tuple[Query, str], list[tuple[Statistic, CodeIn]]] = {}
    for ask in asks:
        query = ask.query
        if isinstance(query, RowQuery) and query.takes_domains and not ask.weighted:
            where = query.among.bound(schema)
            if isinstance(where, CodeIn):
                everybody = replace(query, among=replace(query.among, where=EVERYONE))
                groups.setdefault((everybody, where.column), []).append((ask, where))
    for (_, column), found in groups.items():
        if len(found) > 1 and _are_disjoint([where for _, where in found]):
            costs = [ask.epsilon + ask.bar for ask, _ in found]
            names = tuple(ask.name for ask, _ in found)
            yield Alike(names=names, column=column, together=max(costs), apart=sum(costs, Fraction(0)))


def _are_disjoint(conditions: Sequence[CodeIn]) -> bool:
    ranges = sorted(each for where in conditions for each in where.ranges)
    return all(before[1] < after[0] for before, after in pairwise(ranges))
