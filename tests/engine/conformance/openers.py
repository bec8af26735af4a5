"""Engines on one Arrow table. A new engine joins by one entry: why it cannot be tried here, and how it is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from reticent.engine.open import open_engine
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import RemoteTable, open_frame
from tests.engine.conformance import server as postgres
from tests.engine.spark import sessions as spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """`why_not` is empty where the engine can be tried; `open` gives one on the rows of a table."""

    why_not: Callable[[], str]
    open: Callable[[pa.Table], CuratorEngine]


def _local(table: pa.Table) -> CuratorEngine:
    return open_engine(open_frame(table), threads=2)


_numbers = count()


def stored(table: pa.Table, kinds: dict[str, str] | None = None) -> str:
    """The rows in a new table of the server's, by its name."""
    name = f"people.t{next(_numbers)}"
    kinds = kinds or {}
    columns = [
        f'"{field.name.replace(chr(34), chr(34) * 2)}" {kinds.get(field.name) or kind_of(field.type)}'
        for field in table.schema
    ]
    with postgres.server().connect(postgres.BOSS) as connection:
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row([_plain(cell) for cell in row.values()])
    return name


def _plain(cell: Any) -> Any:
    """A text without U+0000, which no server can hold."""
    return cell.replace("\0", "\ufffd") if isinstance(cell, str) else cell


def kind_of(kind: pa.DataType) -> str:
    """The server's type that holds an Arrow column."""
    if pa.types.is_integer(kind):
        return "smallint" if kind.bit_width <= 16 else "integer" if kind.bit_width == 32 else "bigint"
    if pa.types.is_floating(kind):
        return "double precision" if kind.bit_width == 64 else "real"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return "date" if pa.types.is_date(kind) else "text"


def _postgres(table: pa.Table) -> CuratorEngine:
    return open_engine(RemoteTable(engine="postgres", relation=stored(table), service="tests"))


def _spark(table: pa.Table) -> CuratorEngine:
    return open_engine(RemoteTable(engine="spark", given=spark.held(table)))


OPENERS = {
    "local": Opener(why_not=lambda: "", open=_local),
    "postgres": Opener(why_not=postgres.why_not, open=_postgres),
    "spark": Opener(why_not=spark.why_not, open=_spark),
}
REMOTE = tuple(name for name in OPENERS if name != "local")
