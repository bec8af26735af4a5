"""The clean rows as one nested SELECT: codes, then who is protected, then universes."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.codes import level_code, number_code
from reticent.engine.predicate_sql import render
from reticent.engine.sql import Sql, Values
from reticent.engine.wants import Points, Rows, Sum, Table, Want
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
        self.asked: dict[str, Sql] = {}  # by column with a universe: was the respondent asked? Never NULL.

    def select(self, source: exp.Select, columns: Sequence[str]) -> exp.Select:
        """`source` with the codes of `columns`, at most `at_most` rows a respondent, universes applied."""
        codes = [exp.alias_(self._code(c), f"c_{c}", quoted=True) for c in columns]
        query = source.select(*(codes or [sql.number(0)]))  # to count everybody, any row will do
        if self.schema.unit != ROW:
            query = self._bounded(query, columns)
        left = [c for c in columns if self._may_be_structural(c)]
        while left:
            ready = [c for c in left if not set(_named(self.schema.universe(c))) & set(left)]
            query = self._decided(query, ready, columns)
            left = [c for c in left if c not in ready]
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

    def _decided(self, query: exp.Select, ready: Sequence[str], columns: Sequence[str]) -> exp.Select:
        """Outside its universe a cell is structural, whatever it holds. Columns asked alike share a flag."""
        flags: dict[Sql, Sql] = {}
        for column in ready:
            self.asked[column] = flags.setdefault(self._universe(column), sql.column(f"a_{column}"))
        new = [exp.alias_(asked, flag.name, quoted=True) for asked, flag in flags.items()]
        kept = [exp.alias_(self._cell(c, ready), f"c_{c}", quoted=True) for c in columns]
        return sql.select([*kept, *dict.fromkeys(self.asked.values())], sql.select([exp.Star(), *new], query))

    def _cell(self, column: str, ready: Sequence[str]) -> Sql:
        return sql.case([(self.asked[column].copy(), code(column))]) if column in ready else code(column)

    def _universe(self, column: str) -> Sql:
        """The universe is decided where it is true or false. Where it is unknown, the cell counts as asked,
        unless a column it speaks of was itself not asked."""
        universe = self.schema.universe(column)
        holds = self.condition(universe) if universe is not None else exp.true()
        unasked = [self.structural(c) for c in _named(universe) if self._may_be_structural(c)]
        unknown = exp.Not(this=exp.Paren(this=exp.or_(*unasked))) if unasked else exp.true()
        return exp.Coalesce(this=holds, expressions=[unknown])

    def _may_be_structural(self, column: str) -> bool:
        return self.schema.columns[column].universe is not None

    def structural(self, column: str) -> Sql:
        return exp.Not(this=self.asked[column].copy()) if self._may_be_structural(column) else exp.false()

    def missing(self, column: str) -> Sql:
        silent = sql.is_null(code(column))
        return exp.and_(silent, self.asked[column].copy()) if self._may_be_structural(column) else silent

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


def needed(schema: Schema, wants: Sequence[Want]) -> tuple[str, ...]:
    """Every column the wants speak of, universes followed, each after those its universe needs.

    Where a respondent may own several rows, every column: the rows kept are the first by all their codes, so
    that each pass over the data keeps the same ones.
    """
    if schema.unit != ROW:
        return schema.in_universe_order
    open_, found = set[str](), set[str]()
    for want in wants:
        open_ |= {*want.rows.known, *want.rows.answered, *_named(want.rows.where)}
        if isinstance(want, Points):
            open_ |= {want.cell, *want.axes}
            continue
        open_ |= {want.weight} if want.weight else set()
        open_ |= {c for c in (want.value, want.other) if c} if isinstance(want, Sum) else set()
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
