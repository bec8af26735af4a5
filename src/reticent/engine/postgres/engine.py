"""PostgreSQL behind the protocol: statements where the rows are, and streams that hold one batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.open import Nobody
from reticent.engine.postgres.connection import BATCH, PostgresConnection
from reticent.engine.postgres.packed import Packed, TableStream
from reticent.engine.postgres.rings import PostgresLots
from reticent.engine.postgres.words import POSTGRES
from reticent.engine.protocol import CodedRows, Engine, Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Values
from reticent.engine.sql.clean import RowView
from reticent.engine.sql.points import GroupedPoints
from reticent.engine.sql.predict import DRAWS, HELD, NUMBER
from reticent.engine.sql.sampling import Lot
from reticent.engine.sql.tallies import Alike, cell_of
from reticent.engine.sql_engine import SqlEngine
from reticent.engine.wants import Aggregate, Coding, Key, Table, Tallies, check_coding
from reticent.errors import PlanError, SourceError
from reticent.prepare.repair import FARTHEST, NO_REPAIR, Repair
from reticent.schema import Schema
from reticent.schema.columns import Identifier, Levels

CODED = "coded_"
HUBS = "donors without a cap are matched in local arrays only; leave bound = 'hubs' out, so that donors are capped"


class StreamedDraws:
    """The draws of `LocalDraws`, sent to the server a batch at a time."""

    def draw(self, tables: Tables, draws: Mapping[int, Callable[[int], NDArray[Any]]]) -> None:
        """How many rows there are is asked of the table, and goes to `draws` and to nobody else."""
        size = int(tables.ask(f'SELECT count(*) AS "n" FROM "{HELD}"')["n"][0])
        for first in range(0, max(size, 1), BATCH):
            number = np.arange(first, min(size, first + BATCH), dtype=np.int64)
            found: dict[str, Any] = {NUMBER: number}
            for place, draw in draws.items():
                found[f"z{place}"] = np.clip(draw(len(number)), -FARTHEST, FARTHEST).astype(np.int64)
            tables.give(DRAWS, pa.table(found), more=first > 0)


class PostgresEngine(PostgresConnection, SqlEngine):
    """Rows in a table of a server. Counts and sums leave it, and packed words of rows, of which a batch or a lot is held."""

    dialect = POSTGRES
    capping = PostgresLots
    draws = StreamedDraws()
    points = GroupedPoints()

    def check(self, schema: Schema) -> None:
        super().check(schema)
        for name, column in schema.columns.items():
            if name in schema.computed:
                continue
            spelled = isinstance(column, Identifier) or (isinstance(column, Levels) and column.literal)
            kind = self.types[column.source]
            if spelled and (kind == "float" or kind.startswith("decimal")):
                raise SourceError(
                    "is told apart by its text, and servers write broken numbers differently; store it as text or integer",
                    field=f"columns.{column.name}",
                )

    def stand_in(self) -> Engine | None:
        return Limited()

    def tally(
        self, schema: Schema, wants: Sequence[Aggregate], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Tallies:
        check_remote(repair)
        return super().tally(schema, wants, repair, lot)

    def filled(self, schema: Schema, repair: Repair) -> pa.Table:
        raise SourceError("rows of a server stay there; fill a frame or a file", field="source")

    @contextmanager
    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Iterator[CodedRows]:
        """CONFIDENTIAL: the rows as cells of `keys`, in a table of the server's, streamed for every count."""
        from reticent.engine.streamed import (
            StreamedCodedRows,  # compiles, so loaded only where rows are counted
        )

        check_remote(repair)
        coding = Coding(keys=tuple(keys))
        check_coding(coding, schema, repair)
        packed = self._coded(schema, coding, repair, lot)
        names = ", ".join(f"w{i}" for i in range(len(packed.words())))
        try:
            yield StreamedCodedRows(
                lambda: packed.cells(self.stream(f"SELECT {names} FROM {CODED}", len(packed.words()))),
                sizes=packed.sizes,
                silences=coding.silences(schema),
            )
        finally:
            self.drop(CODED)

    def _coded(self, schema: Schema, coding: Coding, repair: Repair, lot: Lot | None) -> Packed:
        """CODED, and how its words are read."""
        packed: Packed
        if repair.capped:
            with self._capping(schema, replace(repair, rings=1), lot=lot) as capped:
                packed = self._answers(capped.cells, capped.rows(), [coding])
        elif any(line.draw for line in repair.lines):
            with self._drawing(schema, [coding], repair, lot) as answers:
                packed = answers([coding])
        else:
            packed = self._pass(schema, [coding], repair, lot)
        return packed

    def _answers(self, cells: RowView, rows: exp.Select, wants: Alike, values: Values | None = None) -> Any:
        values = values or Values()
        if isinstance(wants[0], Coding):
            return self._made_coded(cells, rows, wants[0], values)
        if isinstance(wants[0], Table):
            tables = TableStream(cells, [want for want in wants if isinstance(want, Table)])
            chosen = tables.packed.select(rows, POSTGRES.cast)
            return tables.count(self.stream(self.printed(chosen, values), len(tables.packed.words())))
        return super()._answers(cells, rows, wants, values)

    def _made_coded(self, cells: RowView, rows: exp.Select, coding: Coding, values: Values) -> Packed:
        packed = Packed(
            values=tuple(cell_of(cells, (key,)) for key in coding.keys), sizes=coding.sizes(cells.schema)
        )
        self.make(CODED, self.printed(packed.select(rows, POSTGRES.cast), values), values)
        return packed


def check_remote(repair: Repair) -> None:
    """Refuse from public words what needs all records on this side."""
    if repair.donors:
        raise PlanError(HUBS, field="impute")


class Limited(Nobody):
    """Nobody, and it refuses what the server's engine refuses."""

    def tally(
        self, schema: Schema, wants: Sequence[Aggregate], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Tallies:
        check_remote(repair)
        return super().tally(schema, wants, repair, lot)

    @contextmanager
    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Iterator[CodedRows]:
        from reticent.engine.streamed import StreamedCodedRows

        check_remote(repair)
        coding = Coding(keys=tuple(keys))
        check_coding(coding, schema, repair)
        packed = Packed(values=(sql.number(0),) * len(keys), sizes=coding.sizes(schema))
        rows = schema.sample_size or 0
        words = np.zeros((len(packed.words()), rows), np.int64)
        yield StreamedCodedRows(
            lambda: packed.cells([words]), sizes=packed.sizes, silences=coding.silences(schema)
        )
