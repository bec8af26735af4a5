"""Open an engine: on a source, by the one table that says which engine reads it; or one that holds no rows.

The engine of nobody is there to try a plan on before anything is charged. No file and no database is behind it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.engine.protocol import CodedRows, CuratorEngine
from reticent.engine.sources.open import POSTGRES, SPARK, RemoteTable, Source
from reticent.engine.sql.points import folded
from reticent.engine.sql.sampling import Lot
from reticent.engine.sql.tallies import Alike, tallied
from reticent.engine.wants import (
    Aggregate,
    Blocks,
    BlockTable,
    Coding,
    Key,
    PointsByCell,
    Ring,
    RingTable,
    Sum,
    Tallies,
    Unserved,
    check_coding,
    keys_of,
)
from reticent.errors import SourceError
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.schema import Schema

Opener = Callable[[Any, int | None], CuratorEngine]


def _local(source: Source, threads: int | None) -> CuratorEngine:
    from reticent.engine.duckdb.engine import DuckDBEngine  # loaded only where rows are opened

    return DuckDBEngine(source, threads=threads)


def _postgres(source: RemoteTable, threads: int | None) -> CuratorEngine:
    try:
        from reticent.engine.postgres.engine import PostgresEngine
    except ModuleNotFoundError:
        raise SourceError("needs psycopg; install reticent[postgres]", field="source") from None
    return PostgresEngine(source, threads=threads)


def _spark(source: RemoteTable, threads: int | None) -> CuratorEngine:
    from reticent.engine.spark.engine import SparkEngine

    return SparkEngine(source)


LOCAL = "local"
ENGINES: dict[str, Opener] = {LOCAL: _local, POSTGRES: _postgres, SPARK: _spark}


def open_engine(source: Source | RemoteTable, *, threads: int | None = None) -> CuratorEngine:
    """The engine that reads `source`. It looks at the header now and at the rows when asked.

    `threads` bounds how many work at once on this side, all cores where it is None.
    """
    name = source.engine if isinstance(source, RemoteTable) else LOCAL
    if name not in ENGINES:
        raise SourceError(f"needs the engine {name}, which is not here", field="source")
    return ENGINES[name](source, threads)


BLOCK = 2**16


class Nobody:
    """Answers every want as an engine does whose source has a header and no rows. Coded rows are made up."""

    version = "no rows"
    files: tuple[tuple[Path, str], ...] = ()

    def check(self, schema: Schema) -> None:
        """Every codebook fits."""

    def tally(
        self, schema: Schema, wants: Sequence[Aggregate], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Tallies:
        """Zeros, one for every declared cell."""
        rings = {want: _ring(want, schema, repair) for want in wants if isinstance(want, Ring)}
        left = {want.column: 0 for want in wants if isinstance(want, Unserved)}
        blocks = {want: _no_blocks(want) for want in wants if isinstance(want, Blocks)}
        return replace(tallied(schema, wants, partial(_nothing, schema), rings), unserved=left, blocks=blocks)

    @contextmanager
    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Iterator[CodedRows]:
        """One made-up row, so that whatever reads rows is tried; as many, all alike, as the codebook makes public."""
        from reticent.engine.coded import LocalCodedRows  # compiles, so loaded only where rows are held

        coding = Coding(keys=tuple(keys))
        check_coding(coding, schema, repair)
        held = LocalCodedRows(
            sizes=coding.sizes(schema), silences=coding.silences(schema), blocks=_alike(schema, len(keys))
        )
        try:
            yield held
        finally:
            held.close()

    def stand_in(self) -> None:
        """It stands in for itself."""
        return

    def close(self) -> None:
        """There is nothing to let go of."""


def _alike(schema: Schema, columns: int) -> list[NDArray[np.uint8]]:
    """`sample_size` rows, or one, in the first cell of every column, in blocks that are one and the same."""
    whole, rest = divmod(schema.sample_size or 1, BLOCK)
    return [np.zeros((columns, BLOCK), np.uint8)] * whole + [np.zeros((columns, rest), np.uint8)] * (rest > 0)


def _nothing(schema: Schema, wants: Alike) -> Any:
    """What a statement over no rows gives, by the kind of its wants."""
    if isinstance(wants[0], Sum):
        return [[0] * len(wants)]
    if isinstance(wants[0], PointsByCell):
        clouds = [want for want in wants if isinstance(want, PointsByCell)]
        return {want: made for cloud in clouds for want, made in folded(schema, [cloud], ()).items()}
    return []


def _no_blocks(want: Blocks) -> BlockTable:
    none = np.zeros(0, np.int64)
    return BlockTable(want=want, block=none, cell=none, weight=none)


def _ring(want: Ring, schema: Schema, repair: Repair) -> RingTable:
    cells = 1
    for key in keys_of(repair.of(want.column)):
        cells *= key.size(schema)
    empty = np.zeros(cells, np.int64)
    return RingTable(want=want, donors=empty, recipients=empty, gaps=np.zeros(0, np.int64))
