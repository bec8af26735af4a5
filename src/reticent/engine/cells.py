"""Rows of codes and what may be asked of their cells, as SQL: answered, missing, not asked; conditions; columns."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.predicate_sql import render
from reticent.engine.sql import Sql
from reticent.engine.wants import Aggregate, Bins, PointsByCell, Ring, Rows, Sum
from reticent.predicate.bind import AllOf, AnyOf, Bound, CodeIn, Is, Negation
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.schema import Schema
from reticent.schema.codebook import ROW


def code(name: str) -> Sql:
    return sql.column(f"c_{name}")


class RowView:
    """Rows in which every column is a code or NULL; `asked` says of a column with a universe who was asked."""

    def __init__(self, schema: Schema, asked: Mapping[str, Sql]) -> None:
        self.schema = schema
        self.asked: dict[str, Sql] = dict(asked)  # never NULL

    def may_be_structural(self, column: str) -> bool:
        return self.schema.columns[column].universe is not None

    def structural(self, column: str) -> Sql:
        return exp.Not(this=self.asked[column].copy()) if self.may_be_structural(column) else exp.false()

    def missing(self, column: str) -> Sql:
        silent = sql.is_null(code(column))
        return exp.and_(silent, self.asked[column].copy()) if self.may_be_structural(column) else silent

    def condition(self, where: Bound) -> Sql:
        return render(where, code, self.missing, self.structural)

    def chosen(self, rows: Rows, *, summed: Sequence[str] = ()) -> Sql:
        """The condition under which a row counts. What `where` or the sum settles is not tested again:
        a comparison is true only of a code, and a sum passes over NULL, so over `summed` columns without one."""
        settled = _answered_where(rows.where) | set(summed)
        known = [c for c in rows.known if c not in rows.answered and c not in settled]
        unsettled = [sql.not_null(code(c)) for c in rows.answered if c not in settled]
        is_known = [exp.Not(this=exp.Paren(this=self.missing(c))) for c in known]
        return sql.both([self.condition(rows.where), *is_known, *unsettled])


def needed(schema: Schema, wants: Sequence[Aggregate], repair: Repair = NO_REPAIR) -> tuple[str, ...]:
    """Every column that wants and repair speak of, universes followed, each after those its universe needs.

    Where a respondent may own several rows, every column: the rows kept are the first by all their codes, so
    that each pass over the data keeps the same ones.
    """
    if schema.unit != ROW:
        return schema.in_universe_order
    open_ = {name for want in wants for name in _spoken_of(want)} | _repaired(repair)
    found = set[str]()
    while open_:
        name = open_.pop()
        found.add(name)
        universe = schema.universe(name)
        open_ |= set(named(universe)) - found if universe is not None else set()
    return tuple(c for c in schema.in_universe_order if c in found)


def _spoken_of(want: Aggregate) -> set[str]:
    found = {*want.rows.known, *want.rows.answered, *named(want.rows.where)}
    if isinstance(want, PointsByCell):
        return found | {want.cell, *want.axes}
    found |= {want.weight} if want.weight else set()
    if isinstance(want, Sum):
        return found | {column for column in (want.value, want.other) if column}
    if isinstance(want, Ring):
        return found | {want.column}
    found |= {want.value} if isinstance(want, Bins) and want.value else set()
    return found | {key.column for key in want.keys}


def _repaired(repair: Repair) -> set[str]:
    edited = {name for edit in repair.edits for name in (edit.column, *named(edit.when))}
    matched = {match.column for donors in repair.donors for match in donors.near}
    predicted = {name for line in repair.lines for name in line.columns}
    return edited | matched | predicted | repair.filled()


def named(bound: Bound | None) -> tuple[str, ...]:
    """The columns that a predicate speaks of."""
    match bound:
        case CodeIn(column=name) | Is(column=name):
            return (name,)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return tuple(dict.fromkeys(n for part in parts for n in named(part)))
        case Negation(part=part):
            return named(part)
        case _:
            return ()


def _answered_where(bound: Bound, value: bool = True) -> frozenset[str]:
    """Columns that hold a code in every row where the predicate has this value."""
    match bound:
        case CodeIn(column=name):
            return frozenset({name})
        case Is(column=name, kind="answered") if value:
            return frozenset({name})
        case AllOf(parts=parts) | AnyOf(parts=parts):
            each = [_answered_where(part, value) for part in parts]
            together = isinstance(bound, AllOf) is value  # all parts have the value, not just one of them
            return frozenset().union(*each) if together else frozenset.intersection(*each)
        case Negation(part=part):
            return _answered_where(part, not value)
        case _:
            return frozenset()
