"""An engine that answers by SQL statements, over a connection and a dialect that its subclass has.

What has to be done to every row stands behind the protocols of decision 20: `matcher`, `draws`, `points`, the staging of
capped donors, and how rows are held as cells. In local arrays where nothing else is said.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.donors.capped import CappedStaging, together
from reticent.engine.donors.filling import PACKED, DonorStaging, LocalMatcher, check_rings, domains_of
from reticent.engine.donors.records import LINE, Packing, packed
from reticent.engine.protocol import CellPoints, CodedRows, DonorMatcher, Engine, RowDraws
from reticent.engine.sources.dialect import looks_separated_by
from reticent.engine.sql.build import Dialect, Values
from reticent.engine.sql.clean import Clean, RowView, needed
from reticent.engine.sql.fingerprint import fingerprint_of, row_sums
from reticent.engine.sql.points import LocalPoints
from reticent.engine.sql.predict import HELD, Drawn, LocalDraws, numbered, predicted
from reticent.engine.sql.sampling import Lot
from reticent.engine.sql.tallies import Alike, coded_rows, statement, tallied
from reticent.engine.wants import (
    Aggregate,
    Blocks,
    Coding,
    Key,
    PointsByCell,
    Ring,
    Sum,
    Table,
    Tallies,
    Unserved,
    added,
    check_coding,
)
from reticent.errors import SourceError
from reticent.prepare.distance import check_repair
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.schema import Schema
from reticent.schema.schema import ROW


def _way_out(header: Mapping[str, str]) -> str:
    """What to do about a column that is not there: a header that was not cut says by what it should be."""
    mark = looks_separated_by(header)
    if not mark:
        return "set its source to the header in the file"
    return f"its header is one name that holds {mark!r}: say in the codebook what separates cells, [survey.csv] separator = {mark!r}"


class SqlEngine(ABC):
    """Rows behind a connection that speaks SQL. Nothing but counts and sums over declared cells leaves it.

    A subclass has the `dialect` and the abstract methods, which are its connection's: `types` are the headers with our word
    for each type; `base` selects from the source under plain names; `fetch` gives the lines of a statement, `fetch_columns`
    its columns, `fetch_blocks` rows as cells; `make`, `give`, `ask` and `drop` are those of `Tables`, and `capping` is how
    capped donors are carried out on them. Whatever fails there is told in one constant text.
    """

    dialect: Dialect
    types: Mapping[str, str]
    capping: ClassVar[type[CappedStaging]]
    matcher: DonorMatcher = LocalMatcher()
    draws: RowDraws = LocalDraws()
    points: CellPoints = LocalPoints()

    @property
    @abstractmethod
    def version(self) -> str: ...

    @property
    @abstractmethod
    def files(self) -> tuple[tuple[Path, str], ...]: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def base(
        self, headers: Sequence[str], values: Values, source: Any = None, *, line: bool = False
    ) -> tuple[exp.Select, Mapping[str, str]]: ...

    @abstractmethod
    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, NDArray[np.int64]]: ...

    @abstractmethod
    def fetch_blocks(self, statement: exp.Select, values: Values) -> list[NDArray[Any]]: ...

    @abstractmethod
    def make(self, name: str, statement: str, values: Values | None = None) -> None: ...

    @abstractmethod
    def give(self, name: str, table: pa.Table, *, more: bool = False) -> None: ...

    @abstractmethod
    def ask(self, statement: str) -> dict[str, NDArray[np.int64]]: ...

    @abstractmethod
    def drop(self, name: str) -> None: ...

    def in_order(self, lines: exp.Select, values: Values, places: int) -> Iterator[NDArray[np.int64]]:
        """Places and their rows as `PlaceLines` has them. Here they are fetched at once, and sorted."""
        found = self.fetch_columns(lines, values)
        yield np.stack([found["p0"], found["n"]])[:, np.argsort(found["p0"])]

    @property
    def threads(self) -> int:
        """How many may count at once on this side."""
        return 1

    def stand_in(self) -> Engine | None:
        """None: this engine refuses nothing that the library can do."""
        return None

    def table(self, statement: str) -> pa.Table:
        """CONFIDENTIAL: all lines of a statement, for the curator's own frame of rows."""
        raise SourceError("rows of this source stay where they are; use a file or a frame", field="source")

    def printed(self, statement: exp.Select, values: Values | None = None) -> str:
        """The statement as the engine reads it, with places for its `values`. It is used up."""
        return self.dialect.printed(statement, copy=False)

    def check(self, schema: Schema) -> None:
        for name, column in schema.columns.items():
            if name in schema.computed:
                continue
            if column.source not in self.types:
                raise SourceError(
                    f"the data have no column {column.source!r}; {_way_out(self.types)}",
                    field=f"columns.{column.name}",
                )
            # No type that one more row can give a frame's column is refused: that would tell of the row.
            if self.types[column.source] == "other":
                raise SourceError(
                    "has a type that no column can have, such as a list; store it as text or number",
                    field=f"columns.{column.name}",
                )

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Aggregate],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies:
        if repair != NO_REPAIR:
            check_repair(repair, schema)
        rings = [want for want in dict.fromkeys(wants) if isinstance(want, Ring)]
        blocks = [want for want in dict.fromkeys(wants) if isinstance(want, Blocks)]
        if rings or blocks:
            check_rings([*rings, *(want.ring for want in blocks)], repair)
        if repair.capped:
            with self._capping(schema, repair, lot=lot) as capped:
                return self._completed(schema, wants, capped)
        if repair.donors:
            with self._holding(schema, repair, lot=lot) as held:
                found = held.fill(rings, blocks)
                made = tallied(
                    schema, wants, lambda some: self._answers(held.cells, held.rows(), some), found
                )
                return replace(made, blocks=held.blocks)
        if any(line.draw for line in repair.lines):
            with self._drawing(schema, wants, repair, lot) as answers:
                return tallied(schema, wants, answers, {})
        return tallied(schema, wants, lambda some: self._pass(schema, some, repair, lot), {})

    def filled(self, schema: Schema, repair: Repair) -> pa.Table:
        """CONFIDENTIAL, for the curator: all rows as codes after `repair`, in the source's order, with a mark
        `<column>_filled` for each column that donors fill."""
        check_repair(repair, schema)
        if repair.capped:
            with self._capping(schema, replace(repair, rings=1), keep=(LINE,)) as capped:
                return self.table(self.printed(capped.marked()))
        with self._holding(schema, repair, keep=(LINE,)) as held:
            held.fill([])
            return self.table(self.printed(held.marked()))

    def fingerprint(self, schema: Schema) -> str:
        """CONFIDENTIAL, for the curator: equal for the same rows in any order, from any file, under any name."""

        def summed(clean: Clean, rows: exp.Select) -> exp.Select:
            return row_sums(self.dialect, rows, schema, clean.values)

        return fingerprint_of(schema, self.read_clean(schema, schema.in_universe_order, summed)[0])

    def read_clean(
        self, schema: Schema, columns: Sequence[str], build: Callable[[Clean, exp.Select], exp.Select]
    ) -> list[tuple[Any, ...]]:
        """CONFIDENTIAL, for the curator: what a statement over the clean rows gives, read as a tally reads them."""

        def read(source: Any) -> list[tuple[Any, ...]]:
            clean, rows = self._clean(source, schema, columns, NO_REPAIR)
            return self.fetch(build(clean, rows), clean.values)

        found: list[tuple[Any, ...]] = self._reading(read)
        return found

    @contextmanager
    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Iterator[CodedRows]:
        """CONFIDENTIAL: the rows as cells of `keys`, to be counted many times. Forgotten at the end."""
        from reticent.engine.coded import LocalCodedRows  # compiles, so loaded only where rows are held

        if repair != NO_REPAIR:
            check_repair(repair, schema)
        coding = Coding(keys=tuple(keys))
        check_coding(coding, schema, repair)
        if repair.capped:
            with self._capping(schema, replace(repair, rings=1), lot=lot) as capped:
                blocks = self._answers(capped.cells, capped.rows(), [coding])
        elif any(line.draw for line in repair.lines):
            with self._drawing(schema, [coding], repair, lot) as answers:
                blocks = answers([coding])
        else:
            blocks = self._pass(schema, [coding], repair, lot)
        sizes, silences = coding.sizes(schema), coding.silences(schema)
        held = LocalCodedRows(sizes=sizes, silences=silences, blocks=blocks, threads=self.threads)
        try:
            yield held
        finally:
            held.close()

    def _pass(self, schema: Schema, wants: Alike, repair: Repair, lot: Lot | None = None) -> Any:
        """One pass over the rows for `wants`, which are all of one kind."""
        columns = needed(schema, wants, repair) if lot is None else schema.in_universe_order

        def read(source: Any) -> Any:
            clean, rows = self._clean(source, schema, columns, repair, lot=lot)
            return self._answers(clean, rows, wants, clean.values)

        return self._reading(read)

    def _answers(self, cells: RowView, rows: exp.Select, wants: Alike, values: Values | None = None) -> Any:
        if isinstance(wants[0], Coding):
            return self.fetch_blocks(coded_rows(cells, rows, wants[0]), values or Values())
        if isinstance(wants[0], PointsByCell):
            clouds = [want for want in wants if isinstance(want, PointsByCell)]
            return self.points.tables(self, cells, rows, clouds, values or Values())
        return self.fetch(statement(cells, rows, wants), values or Values())

    @contextmanager
    def _drawing(
        self, schema: Schema, wants: Sequence[Aggregate], repair: Repair, lot: Lot | None
    ) -> Iterator[Callable[[Alike], Any]]:
        """The rows with their draws in tables, read once, dropped at the end."""
        columns = needed(schema, wants, repair) if lot is None else schema.in_universe_order
        drawn = Drawn(self, repair.lines, self.draws)

        def read(source: Any) -> RowView:
            clean, rows = self._clean(source, schema, columns, Repair(edits=repair.edits), lot=lot)
            self.make(HELD, self.printed(numbered(clean, rows, columns), clean.values), clean.values)
            return clean

        try:
            cells = self._reading(read)
            drawn.draw()
            yield lambda some: self._answers(cells, drawn.rows(cells, columns), some)
        finally:
            drawn.drop()

    @contextmanager
    def _holding(
        self, schema: Schema, repair: Repair, keep: Sequence[str] = (), lot: Lot | None = None
    ) -> Iterator[DonorStaging]:
        """The clean rows in a table, read once, dropped at the end. Labels are made of every declared column."""
        packing = Packing(schema, schema.in_universe_order, self.dialect)
        held = DonorStaging(self, schema, packing, repair, self.matcher)
        try:
            filled = [donors.column for donors in repair.donors]
            put = partial(self.make, PACKED)
            self._pack(schema, packing, repair, domains_of(repair), filled, keep, lot, put)
            held.place()
            yield held
        finally:
            held.drop()

    @contextmanager
    def _capping(
        self, schema: Schema, repair: Repair, keep: Sequence[str] = (), lot: Lot | None = None
    ) -> Iterator[CappedStaging]:
        """The same with capped donors, and everything filled."""
        packing = Packing(schema, schema.in_universe_order, self.dialect)
        held = self.capping(self, schema, packing, repair)
        try:
            self._pack(schema, packing, repair, held.partitions, held.columns, keep, lot, held.pack)
            held.place()
            held.fill()
            yield held
        finally:
            held.drop()

    def _pack(
        self,
        schema: Schema,
        packing: Packing,
        repair: Repair,
        domains: Sequence[Sequence[Key]],
        filled: Sequence[str],
        keep: Sequence[str],
        lot: Lot | None,
        put: Callable[[str, Values], None],
    ) -> None:
        def read(source: Any) -> None:
            clean, rows = self._clean(source, schema, schema.in_universe_order, repair, keep, lot)
            people = packed(clean, rows, packing, domains=domains, filled=filled, keep=clean.keep)
            put(self.printed(people, clean.values), clean.values)

        self._reading(read)

    def _completed(self, schema: Schema, wants: Sequence[Aggregate], held: CappedStaging) -> Tallies:
        """What is wanted of the rows as the first ring completes them and, of several rings, the sums over all.

        Records that lack nothing are counted once, and then as often as there are rings.
        """
        rings = held.repair.rings
        linear = [want for want in wants if isinstance(want, Sum | Table)]
        other = [want for want in wants if not isinstance(want, Sum | Table | Unserved)]

        def of(rows: Callable[[], exp.Select], some: Sequence[Aggregate]) -> Tallies:
            return tallied(schema, some, lambda alike: self._answers(held.cells, rows(), alike), {})

        rest, several = of(held.rows, other), None
        if rings == 1:
            one = of(held.rows, linear)
        else:
            unfilled, first = of(held.unfilled, linear), of(lambda: held.completed(0), linear)
            one = added([(1, unfilled), (1, first)])
            more = of(lambda: together([held.completed(ring) for ring in range(1, rings)]), linear)
            several = added([(rings, unfilled), (1, first), (1, more)])
        left = {want.column: held.unserved(want.column) for want in wants if isinstance(want, Unserved)}
        return replace(rest, statistics=one.statistics, tables=one.tables, fractions=several, unserved=left)

    def _reading(self, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of the source."""
        return read(None)

    def _in_order(self) -> Any:
        """Where rows are read from when their order matters."""
        return None

    def _clean(
        self,
        source: Any,
        schema: Schema,
        columns: Sequence[str],
        repair: Repair,
        keep: Sequence[str] = (),
        lot: Lot | None = None,
    ) -> tuple[Clean, exp.Select]:
        values = Values()
        raw = [schema.columns[column].source for column in columns if column not in schema.computed]
        raw += [schema.columns[schema.unit].source] if schema.unit != ROW else []
        raw = list(dict.fromkeys(raw))  # a recode has the source of its original
        source = self._in_order() if LINE in keep else source
        base, names = self.base(raw, values, source, line=LINE in keep)
        clean = Clean(schema, names, self.types, values, self.dialect, edits=repair.edits, keep=keep, lot=lot)
        rows = clean.select(base, columns)
        if repair.lines and not repair.capped:  # after donors, lines follow them
            rows = predicted(clean, rows, repair.lines, columns, keep=clean.keep)
        return clean, rows
