"""Open an engine on a source. The one place where a source finds the engine that reads it."""

from collections.abc import Callable
from typing import Any

from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import Source
from reticent.engine.sources.remote import POSTGRES, RemoteTable
from reticent.errors import SourceError

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


LOCAL = "local"
ENGINES: dict[str, Opener] = {LOCAL: _local, POSTGRES: _postgres}


def open_engine(source: Source | RemoteTable, *, threads: int | None = None) -> CuratorEngine:
    """The engine that reads `source`. It looks at the header now and at the rows when asked.

    `threads` bounds how many work at once on this side, all cores where it is None.
    """
    name = source.engine if isinstance(source, RemoteTable) else LOCAL
    if name not in ENGINES:
        raise SourceError(f"needs the engine {name}, which is not here", field="source")
    return ENGINES[name](source, threads)
