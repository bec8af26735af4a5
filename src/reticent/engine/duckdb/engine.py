"""DuckDB behind the protocol, fenced as R12 says: own connection, named files only, no extensions, locked."""

from collections.abc import Callable
from typing import Any

from reticent.engine.duckdb.connection import Connection
from reticent.engine.duckdb.words import DUCKDB
from reticent.engine.sources.arrow import ParquetRows
from reticent.engine.sources.open import ParquetFiles
from reticent.engine.sql_engine import SqlEngine
from reticent.errors import EngineError


class DuckDBEngine(Connection, SqlEngine):
    """Rows in files, frames or a DuckDB table. Nothing but counts and sums over declared cells leaves it."""

    dialect = DUCKDB

    def _in_order(self) -> ParquetRows | None:
        """Where rows are read from when their order matters."""
        return ParquetRows(self._source.paths) if isinstance(self._source, ParquetFiles) else None

    def _reading(self, read: Callable[[Any], Any]) -> Any:
        try:
            return read(None)
        except EngineError:
            if not isinstance(self._source, ParquetFiles):
                raise
        # One cell of text that is not UTF-8 stops DuckDB's reader; Arrow's goes on, and the cell is missing.
        return read(ParquetRows(self._source.paths))
