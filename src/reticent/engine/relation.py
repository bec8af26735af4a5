"""The clean rows as one nested SELECT: codes, then who is protected, then universes."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.codes import level_code, number_code
from reticent.engine.predicate_sql import render
from reticent.engine.sql import Sql, Values
from reticent.engine.wants import Rows, Sum, Table
from reticent.predicate.bind import AllOf, AnyOf, Bound, CodeIn, Is, Negation
from reticent.schema import Levels, Schema
from reticent.schema.codebook import ROW

UNIT = "unit_"


def code(name: str) -> Sql:
    return sql.column(f"c_{name}")


class Clean:
    """Rows in which every needed column is a code or NULL, and every universe is decided.

    `raw` maps a column's source header to the plain name it has in `source`, `types` to its kind of type.
    """

    def __init__(
        self, schema: Schema, raw: Mapping[str, str], types: Mapping[str, str], values: Values
    ) -> None:
        self.schema, self.raw, self.types, self.values = schema, raw, types, values

    def select(self, source: exp.Select, columns: Sequence[str]) -> exp.Select:
        """`source` with the codes of `columns`, at most `at_most` rows a respondent, universes applied."""
        codes = [exp.alias_(self._code(c), f"c_{c}", quoted=True) for c in columns]
        query = source.select(*(codes or [sql.number(0)]))  # to count everybody, any row will do
        if self.schema.unit != ROW:
            query = self._bounded(query, columns)
        for column in columns:
            if self.schema.columns[column].universe is not None:
                query = self._decided(query, column, columns)
        return query

    def _code(self, column: str) -> Sql:
        known = self.schema.coded[column]
        raw, source = sql.column(self.raw[known.source]), self.types[known.source]
        if isinstance(known, Levels):
            return level_code(known, raw, source, self.values)
        return number_code(known, raw, source)

    def _bounded(self, query: exp.Select, columns: Sequence[str]) -> exp.Select:
        """Keep `at_most` rows of a respondent: the first by their own codes, never by place in the file."""
        source = self.schema.columns[self.schema.unit].source
        unit = sql.cast(sql.column(self.raw[source]), "VARCHAR")
        filled = exp.Nullif(this=sql.call("trim", unit), expression=exp.Literal.string(""))
        query = query.select(exp.alias_(filled, UNIT, quoted=True))
        by = [exp.Ordered(this=code(c), nulls_first=True) for c in columns]
        order = exp.Order(expressions=by) if by else None  # without a column, one row is as good as another
        place = exp.Window(this=exp.RowNumber(), partition_by=[sql.column(UNIT)], order=order)
        ranked = sql.select([exp.Star(), exp.alias_(place, "place_", quoted=True)], query)
        alone = sql.is_null(sql.column(UNIT))
        first = exp.LTE(this=sql.column("place_"), expression=sql.number(self.schema.at_most))
        return sql.select([exp.Star()], ranked, exp.or_(alone, first))

    def _decided(self, query: exp.Select, column: str, columns: Sequence[str]) -> exp.Select:
        """Outside its universe a cell is structural, whatever it holds.

        The universe is decided where it is true or false. Where it is unknown, the cell counts as asked,
        unless a column it speaks of was itself not asked.
        """
        universe = self.schema.universe(column)
        holds = self.condition(universe) if universe is not None else exp.true()
        unasked = [self.structural(c) for c in _named(universe) if self._may_be_structural(c)]
        asked = exp.Coalesce(
            this=holds,
            expressions=[exp.Not(this=exp.Paren(this=exp.or_(*unasked))) if unasked else exp.true()],
        )
        kept = [code(c) for c in columns if c != column]
        done = [c for c in columns if c != column and self._is_decided_before(c, column, columns)]
        kept += [sql.column(f"s_{c}") for c in done]
        cell = sql.case([(asked, code(column))])
        flags = [
            exp.alias_(cell, f"c_{column}", quoted=True),
            exp.alias_(exp.Not(this=exp.Paren(this=asked.copy())), f"s_{column}", quoted=True),
        ]
        return sql.select([*kept, *flags], query)

    def _may_be_structural(self, column: str) -> bool:
        return self.schema.columns[column].universe is not None

    def _is_decided_before(self, other: str, column: str, columns: Sequence[str]) -> bool:
        return self._may_be_structural(other) and columns.index(other) < columns.index(column)

    def structural(self, column: str) -> Sql:
        return sql.column(f"s_{column}") if self._may_be_structural(column) else exp.false()

    def missing(self, column: str) -> Sql:
        silent = sql.is_null(code(column))
        if not self._may_be_structural(column):
            return silent
        return exp.and_(silent, exp.Not(this=self.structural(column)))

    def condition(self, where: Bound) -> Sql:
        return render(where, code, self.missing, self.structural)

    def chosen(self, rows: Rows) -> Sql:
        """The condition under which a row counts."""
        known = [exp.Not(this=exp.Paren(this=self.missing(c))) for c in rows.known if c not in rows.answered]
        answered = [sql.not_null(code(c)) for c in rows.answered]
        return sql.both([self.condition(rows.where), *known, *answered])


def needed(schema: Schema, wants: Sequence[Sum | Table]) -> tuple[str, ...]:
    """Every column the wants speak of, universes followed, each after those its universe needs."""
    open_, found = set[str](), set[str]()
    for want in wants:
        open_ |= {*want.rows.known, *want.rows.answered, *_named(want.rows.where)}
        open_ |= {want.weight} if want.weight else set()
        open_ |= {want.value} if isinstance(want, Sum) and want.value else set()
        open_ |= {key.column for key in want.keys} if isinstance(want, Table) else set()
    while open_:
        name = open_.pop()
        found.add(name)
        universe = schema.universe(name)
        open_ |= set(_named(universe)) - found if universe is not None else set()
    return tuple(c for c in schema.in_universe_order if c in found)


def _named(bound: Bound | None) -> tuple[str, ...]:
    match bound:
        case CodeIn(column=name) | Is(column=name):
            return (name,)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return tuple(dict.fromkeys(n for part in parts for n in _named(part)))
        case Negation(part=part):
            return _named(part)
        case _:
            return ()
