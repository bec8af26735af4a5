"""The clean rows as one nested SELECT: codes, then who is protected, then edits, then universes."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView, code, named
from reticent.engine.codes import level_code, number_code
from reticent.engine.lots import Lot, drawn
from reticent.engine.predicate_sql import render
from reticent.engine.reading import identifier
from reticent.engine.sql import Sql, Values
from reticent.prepare.edits import Edit
from reticent.schema import Levels, Schema
from reticent.schema.codebook import ROW
from reticent.schema.columns import Identifier

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
        *,
        edits: Sequence[Edit] = (),
        keep: Sequence[str] = (),
        lot: Lot | None = None,
    ) -> None:
        super().__init__(schema, {})
        self.lot = lot
        self.raw, self.types, self.values, self.edits = raw, types, values, edits
        self.keep = [*keep, *[UNIT] * (schema.unit != ROW)]

    def select(self, source: exp.Select, columns: Sequence[str]) -> exp.Select:
        """`source` with the codes of `columns`, at most `at_most` rows a respondent, edits and universes applied."""
        codes = [sql.alias(self._code(c), f"c_{c}") for c in columns]
        kept = [sql.column(name) for name in self.keep if name != UNIT]
        query = source.select(*(codes or [sql.number(0)]), *kept)  # to count everybody, any row will do
        if self.schema.unit != ROW:
            query = self._bounded(query, columns)
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
            return level_code(known, raw, source, self.values)
        return number_code(known, raw, source)

    def _owner(self) -> Sql:
        """The respondent whom a row names."""
        column = self.schema.columns[self.schema.unit]
        if not isinstance(column, Identifier):
            raise TypeError("the unit is an identifier")
        return identifier(column, sql.column(self.raw[column.source]), self.types[column.source])

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
        return drawn(query, lot, [f"c_{name}" for name in self.schema.coded], unit, self.values)

    def _edited(self, query: exp.Select, edit: Edit, columns: Sequence[str]) -> exp.Select:
        """A record's deduction from its own answers. Nobody knows yet who was asked: what has no code is missing."""
        applies: Sql = render(edit.when, code, lambda c: sql.is_null(code(c)), lambda _: exp.false())
        if not edit.replaces:
            applies = exp.and_(sql.is_null(code(edit.column)), applies)
        deduced = sql.case([(applies, sql.number(edit.code))], code(edit.column))
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
