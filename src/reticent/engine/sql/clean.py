"""The clean rows as one nested SELECT: codes, then who is protected, then edits, then universes.

What may be asked of a cell is whether it was answered, is missing or was not asked. A bound filter expression becomes SQL
with the three-valued meaning it has in Python: SQL's `and`, `or` and `not` are Kleene's already; what is left is to keep a
comparison unknown where there is no code. Only integers and the caller's expressions enter, so no text of a plan or
codebook can reach the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values
from reticent.engine.sql.codes import level_code, number_code
from reticent.engine.sql.reading import identifier
from reticent.engine.sql.sampling import Lot, dealt_into, drawn
from reticent.engine.wants import Aggregate, Blocks, PointsByCell, Ring, Rows, Sum, Table, Unserved
from reticent.prepare.repair import NO_REPAIR, Edit, Repair
from reticent.schema import Levels, Schema
from reticent.schema.bind import AllOf, Always, AnyOf, Bound, CodeIn, Is, Negation, Ranges
from reticent.schema.columns import Identifier
from reticent.schema.schema import ROW

Condition: TypeAlias = exp.Expression
OfColumn: TypeAlias = Callable[[str], exp.Expr]


def render(bound: Bound, code: OfColumn, missing: OfColumn, structural: OfColumn) -> Condition:
    """A boolean expression: true, false, or NULL where the predicate is unknown.

    `code` gives a column's integer code, NULL exactly where the cell is missing or structural; `missing` and
    `structural` give booleans that are never NULL. Each is called once for every place it is used.
    """
    match bound:
        case CodeIn(column=name, ranges=ranges):
            return _code_in(lambda: _atom(code(name)), ranges)
        case Is(column=name, kind="answered"):
            return exp.Not(this=exp.Is(this=_atom(code(name)), expression=exp.Null()))
        case Is(column=name, kind=kind):
            return _atom(missing(name) if kind == "missing" else structural(name))
        case AllOf(parts=parts):
            return _chain(exp.And, [render(part, code, missing, structural) for part in parts])
        case AnyOf(parts=parts):
            return _chain(exp.Or, [render(part, code, missing, structural) for part in parts])
        case Negation(part=part):
            return exp.Not(this=_atom(render(part, code, missing, structural)))
        case Always():
            return exp.true()


def _code_in(code: Callable[[], Condition], ranges: Ranges) -> Condition:
    """The fewest comparisons: `=` for one value, IN for several, BETWEEN for each range."""
    singles = [low for low, high in ranges if low == high]
    wide = [_between(code(), low, high) for low, high in ranges if low < high]
    if not ranges:
        # No code matches, yet a cell without a code stays unknown: x <> x is false, or NULL.
        return exp.NEQ(this=code(), expression=code())
    if len(singles) == 1:
        wide.append(exp.EQ(this=code(), expression=_number(singles[0])))
    elif singles:
        wide.append(exp.In(this=code(), expressions=[_number(value) for value in singles]))
    return _chain(exp.Or, wide)


def _between(code: Condition, low: int, high: int) -> Condition:
    return exp.Between(this=code, low=_number(low), high=_number(high))


def _number(value: int) -> Condition:
    return exp.Literal.number(value)


def _chain(connective: type[exp.And] | type[exp.Or], parts: list[Condition]) -> Condition:
    """The parts joined, halving each time: engines limit how deep an expression may go."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _chain(connective, parts[:half]), _chain(connective, parts[half:])
    return connective(this=_atom(left), expression=_atom(right))


def _atom(expression: exp.Expr) -> Condition:
    """The expression as one operand: all but a bare column or constant stands in parentheses."""
    if isinstance(expression, exp.Column | exp.Boolean | exp.Paren):
        return expression
    return exp.Paren(this=expression)


def code(name: str) -> Sql:
    """The encoded column of the clean rows."""
    return sql.column(f"c_{name}")


class RowView:
    """Rows in which every column is a code or NULL; `asked` says of a column with a universe who was asked.

    Statements over them are written in their `dialect`.
    """

    def __init__(self, schema: Schema, asked: Mapping[str, Sql], dialect: Dialect) -> None:
        self.schema, self.dialect = schema, dialect
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
        open_ |= set(_beside(schema, name)) - found
        universe = schema.universe(name)
        open_ |= set(named(universe)) - found if universe is not None else set()
    return tuple(c for c in schema.in_universe_order if c in found)


def _beside(schema: Schema, name: str) -> tuple[str, ...]:
    """What the number of a group is made of: all answers; and a replicate's deviation: the weight and all replicates."""
    if name in schema.dealt:
        return schema.in_universe_order
    held = schema.replicates
    return (held.weight, *held.columns) if held is not None and name in held.columns else ()


def _spoken_of(want: Aggregate) -> set[str]:
    found = {*want.rows.known, *want.rows.answered, *named(want.rows.where)}
    if isinstance(want, Unserved):
        return found | {want.column}
    if isinstance(want, PointsByCell):
        return found | {want.cell, *want.axes}
    found |= {want.weight} if want.weight else set()
    if isinstance(want, Ring):
        return found | {want.column}
    if isinstance(want, Blocks):
        return found | {want.ring.column, *(key.column for key in want.keys)}
    found |= {want.value} if want.value else set()
    if isinstance(want, Sum | Table):
        found |= {want.other} if want.other else set()
    return found if isinstance(want, Sum) else found | {key.column for key in want.keys}


def _repaired(repair: Repair) -> set[str]:
    """The columns that a repair reads or fills."""
    if repair == NO_REPAIR:
        return set()
    edited = {name for edit in repair.edits for name in (edit.column, *named(edit.when))}
    matched = {match.column for donors in repair.donors for match in donors.near}
    predicted = {name for line in repair.lines for name in line.columns}
    matched |= {name for group in repair.capped for name in group.matched}
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


UNIT = "unit_"


class Clean(RowView):
    """Rows in which every needed column is a code or NULL, edits are made, and every universe is decided.

    `raw` maps a column's source header to the plain name it has in `source`, `types` to its kind of type.
    `keep` are plain names of `source` that stay beside the codes, and so does the respondent's identifier.
    """

    def __init__(
        self,
        schema: Schema,
        raw: Mapping[str, str],
        types: Mapping[str, str],
        values: Values,
        dialect: Dialect,
        *,
        edits: Sequence[Edit] = (),
        keep: Sequence[str] = (),
        lot: Lot | None = None,
    ) -> None:
        super().__init__(schema, {}, dialect)
        self.lot = lot
        self.raw, self.types, self.values, self.edits = raw, types, values, edits
        self.keep = [*keep, *[UNIT] * (schema.unit != ROW)]

    def select(self, source: exp.Select, columns: Sequence[str]) -> exp.Select:
        """`source` with the codes of `columns`, at most `at_most` rows a respondent, edits and universes applied."""
        dealt = [c for c in columns if c in self.schema.dealt]
        read = [c for c in columns if c not in self.schema.computed]
        codes = [sql.alias(self._code(c), f"c_{c}") for c in read]
        kept = [sql.column(name) for name in self.keep if name != UNIT]
        query = source.select(*(codes or [sql.number(0)]), *kept)  # to count everybody, any row will do
        if self.schema.unit != ROW:
            query = self._bounded(query, read)
        query = self.dialect.settled(query)
        first = self.schema.first
        if first is not None and first in columns:
            query, read = self._marked(query, first, read), [*read, first]
        if dealt:
            query = self._dealt(query, dealt, read)
        if self.lot is not None:
            query = self._drawn(query, self.lot, columns)
        for edit in self.edits:
            query = self._edited(query, edit, columns) if edit.column in columns else query
        left = [c for c in columns if self.may_be_structural(c)]
        while left:
            ready = [c for c in left if not set(named(self.schema.universe(c))) & set(left)]
            query = self._decided(query, ready, columns)
            left = [c for c in left if c not in ready]
        return query

    def _code(self, column: str) -> Sql:
        known = self.schema.coded[column]
        raw, source = sql.column(self.raw[known.source]), self.types[known.source]
        if isinstance(known, Levels):
            return level_code(self.dialect, known, raw, source, self.values)
        return number_code(self.dialect, known, raw, source)

    def _owner(self) -> Sql:
        """The respondent whom a row names."""
        column = self.schema.columns[self.schema.unit]
        if not isinstance(column, Identifier):
            raise TypeError("the unit is an identifier")
        return identifier(
            self.dialect, column, sql.column(self.raw[column.source]), self.types[column.source]
        )

    def _bounded(self, query: exp.Select, columns: Sequence[str]) -> exp.Select:
        """Keep `at_most` rows of a respondent: the first by their own codes, never by place in the file."""
        query = query.select(sql.alias(self._owner(), UNIT))
        by = [exp.Ordered(this=code(c), nulls_first=True) for c in columns]
        order = exp.Order(expressions=by) if by else None  # without a column, one row is as good as another
        place = exp.Window(this=exp.RowNumber(), partition_by=[sql.column(UNIT)], order=order)
        ranked = sql.select([exp.Star(), sql.alias(place, "place_")], query)
        alone = sql.is_null(sql.column(UNIT))
        first = exp.LTE(this=sql.column("place_"), expression=sql.number(self.schema.at_most))
        return sql.select([exp.Star()], ranked, exp.or_(alone, first))

    def _drawn(self, query: exp.Select, lot: Lot, columns: Sequence[str]) -> exp.Select:
        """The respondents of a piece, all their rows; labels are made of every column of the codebook."""
        if set(columns) != set(self.schema.coded):
            raise ValueError("a lot is drawn from all codes of a record")
        unit = UNIT if self.schema.unit != ROW else None
        columns = [f"c_{name}" for name in self.schema.coded]
        return drawn(self.dialect, query, lot, columns, unit, self.values)

    def _marked(self, query: exp.Select, first: str, read: Sequence[str]) -> exp.Select:
        """With a mark for the first record of each owner, by their own codes; who has no owner is alone."""
        alone = sql.is_null(sql.column(UNIT))
        leads = exp.EQ(this=sql.column("place_"), expression=sql.number(1))
        mark = sql.alias(sql.case([(exp.or_(alone, leads), sql.number(0))], sql.number(1)), f"c_{first}")
        return sql.select([*map(code, read), *map(sql.column, self.keep), mark], query)

    def _dealt(self, query: exp.Select, dealt: Sequence[str], read: Sequence[str]) -> exp.Select:
        """With the groups that records are dealt into: by the owner, or by all codes before anything is deduced or filled."""
        if set(read) | set(self.schema.computed) != set(self.schema.coded):
            raise ValueError("groups are dealt from all codes of a record")
        unit = UNIT if self.schema.unit != ROW else None
        groups = {f"c_{name}": self.schema.coded[name].high + 1 for name in dealt}
        label = [f"c_{name}" for name in read]
        return dealt_into(self.dialect, query, groups, label, unit, self.schema.name, keep=self.keep)

    def _edited(self, query: exp.Select, edit: Edit, columns: Sequence[str]) -> exp.Select:
        """A record's deduction from its own answers. Nobody knows yet who was asked: what has no code is missing."""
        applies: Sql = render(edit.when, code, lambda c: sql.is_null(code(c)), lambda _: exp.false())
        if not edit.replaces:
            applies = exp.and_(sql.is_null(code(edit.column)), applies)
        answer = self.dialect.null() if edit.code is None else sql.number(edit.code)
        deduced = sql.case([(applies, answer)], code(edit.column))
        kept = [deduced if c == edit.column else code(c) for c in columns]
        named_ = [sql.alias(cell, f"c_{c}") for c, cell in zip(columns, kept, strict=True)]
        return sql.select([*named_, *map(sql.column, self.keep)], query)

    def _decided(self, query: exp.Select, ready: Sequence[str], columns: Sequence[str]) -> exp.Select:
        """Outside its universe a cell is structural, whatever it holds. Columns asked alike share a flag."""
        flags: dict[Sql, Sql] = {}
        for column in ready:
            self.asked[column] = flags.setdefault(self._universe(column), sql.column(f"a_{column}"))
        new = [sql.alias(asked, flag.name) for asked, flag in flags.items()]
        kept = [sql.alias(self._cell(c, ready), f"c_{c}") for c in columns]
        kept += [*dict.fromkeys(self.asked.values()), *map(sql.column, self.keep)]
        return sql.select(kept, sql.select([exp.Star(), *new], query))

    def _cell(self, column: str, ready: Sequence[str]) -> Sql:
        return sql.case([(self.asked[column].copy(), code(column))]) if column in ready else code(column)

    def _universe(self, column: str) -> Sql:
        """The universe is decided where it is true or false. Where it is unknown, the cell counts as asked,
        unless a column it speaks of was itself not asked."""
        universe = self.schema.universe(column)
        holds = self.condition(universe) if universe is not None else exp.true()
        unasked = [self.structural(c) for c in named(universe) if self.may_be_structural(c)]
        unknown = exp.Not(this=exp.Paren(this=exp.or_(*unasked))) if unasked else exp.true()
        return exp.Coalesce(this=holds, expressions=[unknown])
