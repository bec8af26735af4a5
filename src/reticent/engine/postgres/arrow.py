"""Rows of a server as Arrow batches, by a second connection in the snapshot of the first.

ADBC's driver takes COPY's binary form apart in compiled code, a batch at a time. It sees no temporary table of the first
connection, so what reads one goes by that. The snapshot is exported by the first and held by both: two connections, one
state of the table. Where the driver is missing, or the server lets nobody in again, the first connection streams alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray


class SnapshotStream:
    """A connection that can only read, and only what the snapshot holds."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    def opened(cls, service: str, snapshot: str, settings: Mapping[str, str]) -> "SnapshotStream | None":
        """In the snapshot of that name, or none where there is no second connection to be had."""
        made = None
        with suppress(Exception):  # what it says may name hosts and users
            from adbc_driver_postgresql import dbapi

            connection = dbapi.connect(f"service={service} application_name=reticent connect_timeout=30")
            made = cls(connection)
            made._do("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            made._do(f"SET TRANSACTION SNAPSHOT {_literal(snapshot)}")
            for name, value in settings.items():
                made._do(f"SET LOCAL {name} = {value if ', ' in value else _literal(value)}")
            return made
        if made is not None:
            made.close()
        return None

    def batches(self, statement: str, columns: int, rows: int) -> Iterator[NDArray[np.int64]]:
        """Whole numbers, never NULL, a line for each column, about `rows` at a time."""
        with self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{BATCH_BYTES: str(8 * columns * rows)})
            cursor.execute(statement)
            for batch in cursor.fetch_record_batch():
                yield np.stack([column.to_numpy() for column in batch.columns])

    def close(self) -> None:
        """Leave the snapshot, and what still runs."""
        with suppress(Exception):
            self._connection.adbc_connection.cancel()
        with suppress(Exception):
            self._connection.rollback()
        with suppress(Exception):
            self._connection.close()

    def _do(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)


BATCH_BYTES = "adbc.postgresql.batch_size_hint_bytes"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
