"""A fenced PostgreSQL connection: one snapshot for all statements, streams a batch at a time, errors in one constant text.

The fence (ENGINES 6, decision 34): a search path without a schema that others may write to, no row filtered unseen, a role
that can only read, limits on time, no notices, no key in a statement. What a row holds is in no text of ours: psycopg's
errors are dropped where they arise. Rows cross in COPY's binary form, a batch at a time.
"""

import atexit
import select
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.postgres.arrow import SnapshotStream
from reticent.engine.postgres.words import POSTGRES
from reticent.engine.sources.open import RemoteTable, relation_of
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql, Values
from reticent.errors import EngineError, SourceError
from reticent.services import check_transport, connected

UNREAD = "the server could not carry out a step; check that it is up, has disk left, and that no time limit was met"
BATCH = 2**16  # rows of a stream that are held at a time
OLDEST = 140000  # as the server says its version

COMPILED = {
    "jit": "on",  # a third of a second for each statement, a third less for each row: worth it for some million rows
    **dict.fromkeys(("jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost"), "500000"),
}
SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "row_security": "off",  # a policy raises, where it would leave rows out
    "client_min_messages": "error",  # a notice may quote a row
    "client_connection_check_interval": "10s",  # a query whose client was killed ends
    "statement_timeout": "6h",
    "idle_in_transaction_session_timeout": "6h",
    "lock_timeout": "10min",
    "standard_conforming_strings": "on",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "1",
    "synchronize_seqscans": "off",  # two passes over a table of ours see one order
    "enable_nestloop": "off",  # tables of ours have few statistics, and a bad guess is quadratic
    "default_statistics_target": "10",  # tables of ours are looked at in passing
    **COMPILED,
    "work_mem": "64MB",
}

HEADER = """
    SELECT c.oid, c.relkind::text, pg_catalog.row_security_active(c.oid),
        pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
            OR pg_catalog.has_any_column_privilege(c.oid, 'INSERT, UPDATE'),
        pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.current_setting('is_superuser') = 'on',
        EXISTS (WITH RECURSIVE part(oid) AS (SELECT c.oid UNION
                SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN part ON part.oid = i.inhparent)
            SELECT 1 FROM part JOIN pg_catalog.pg_class p ON p.oid = part.oid WHERE p.relkind = 'f'),
        c.reltuples::bigint
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2"""
COLUMNS = """
    WITH RECURSIVE base(oid, start, typmod) AS (
        SELECT a.atttypid, a.attnum, a.atttypmod FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL SELECT t.typbasetype, b.start, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE b.typmod END
        FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid WHERE t.typtype = 'd')
    SELECT a.attname::text, t.typname::text, t.typtype::text, b.typmod,
        CASE WHEN t.typtype = 'e' THEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_cast k
                WHERE k.castsource = t.oid AND k.casttarget = 'pg_catalog.text'::pg_catalog.regtype)
            ELSE t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace OR EXISTS (SELECT 1
                FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
                WHERE d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.objid = t.oid
                AND d.deptype = 'e' AND x.extname = 'citext') END
    FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid JOIN pg_catalog.pg_attribute a
        ON a.attrelid = $1 AND a.attnum = b.start
    WHERE t.typtype <> 'd' ORDER BY a.attnum"""

WORDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), "text"),
    **dict.fromkeys(("date", "timestamp"), "date"),
    "bool": "boolean",
}


def word_of(name: str, kind: str, typmod: int, ours: bool) -> str:
    """Our word for a server's type: integer, float, decimal, text, boolean, date or other.

    `ours` is false of a type that somebody made under such a name, or gave a cast of their own, which could do anything.
    """
    if not ours:
        return "other"
    if name == "numeric":
        precision, scale = (typmod - 4) >> 16, (typmod - 4) & 0x7FF
        narrow = typmod >= 4 and precision <= 15 and scale <= precision
        return f"decimal{scale}" if narrow else "decimal"
    return "text" if kind == "e" else WORDS.get(name, "other")


class PostgresConnection:
    """What is behind the fence. `received` counts bytes that statements brought here; `streamed` is the largest batch."""

    def __init__(self, source: RemoteTable, *, threads: int | None = None) -> None:
        schema, name = relation_of(source.relation)
        self._given = source.given is not None
        self._dead = self._reading_began = False
        self.received = self.streamed = 0
        self._secrets = self._known = 0
        self._service = source.service
        self._temporary: set[str] = set()
        self._second: SnapshotStream | None = None
        self._no_second = False
        self._connection: Any = (
            source.given if self._given else connected(source.service, refused=SourceError, field="source")
        )
        _open.add(self)
        try:
            self._fence()
            self._table = exp.Table(this=_quoted(name), db=_quoted(schema))
            self.types: Mapping[str, str] = self._header(schema, name)
        except BaseException:
            self.close()
            raise

    @property
    def version(self) -> str:
        number = self._connection.info.server_version
        return f"postgresql {number // 10000}.{number % 10000}"

    @property
    def files(self) -> tuple[tuple[Path, str], ...]:
        """None: rows are no file of this machine."""
        return ()

    def records_at_most(self) -> int:
        """CONFIDENTIAL: about how many rows there are, as the server's planner has it; 0 where it does not know."""
        return self._known

    def close(self) -> None:
        """Leave the snapshot, and cancel what still runs."""
        _open.discard(self)
        if self._second is not None:
            self._second.close()
        with suppress(psycopg.Error, OSError):
            if self._connection.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self._connection.cancel_safe(timeout=5)
        with suppress(psycopg.Error, OSError):
            if not self._connection.closed:
                self._connection.rollback()
        if not self._given:
            with suppress(psycopg.Error, OSError):
                self._connection.close()

    def base(
        self, headers: Sequence[str], values: Values, source: Any = None, *, line: bool = False
    ) -> tuple[exp.Select, Mapping[str, str]]:
        """FROM the table, its columns under plain names and of plain types: texts by bytes, no numeric that is none."""
        if line:
            raise SourceError("rows of a server have no order; use a file or a frame", field="source")
        names = {header: f"h{place}" for place, header in enumerate(dict.fromkeys(headers))}
        columns = [sql.alias(_plain(_column(h), self.types[h]), name) for h, name in names.items()]
        inner = exp.select(*(columns or [sql.alias(sql.number(0), "h_")])).from_(self._table.copy())
        return exp.select().from_(inner.subquery("r")), names

    def printed(self, statement: exp.Select, values: Values | None = None) -> str:
        """The statement with the public texts of `values` as literals; a secret stands in a table of this session."""
        for place in list(statement.find_all(exp.Placeholder)) if values else ():
            place.replace(self._written(values, place.name) if values else place)
        return POSTGRES.printed(statement, copy=False)

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]:
        return self._run(self.printed(statement, values))

    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, NDArray[np.int64]]:
        """The columns of a statement that is never NULL, which came as a stream."""
        names = [column.alias_or_name for column in statement.selects]
        blocks = [
            np.zeros((len(names), 0), np.int64),
            *self.stream(self.printed(statement, values), len(names)),
        ]
        return dict(zip(names, np.concatenate(blocks, axis=1), strict=True))

    def in_order(self, lines: exp.Select, values: Values, places: int) -> Iterator[NDArray[np.int64]]:
        """The server sorts, and a batch is held here."""
        yield from self.stream(self.printed(lines.order_by(sql.column("p0")), values), 2)

    def fetch_blocks(self, statement: exp.Select, values: Values) -> list[NDArray[Any]]:
        raise EngineError("rows as cells are streamed here, never held", field="source")

    def make(self, name: str, statement: str, values: Values | None = None) -> None:
        self.drop(name)
        self._temporary.add(name)
        self._run(POSTGRES.temp_table(_temp(name), statement), rows=False)
        self._run(f"ANALYZE {_temp(name)}", rows=False)

    def hold(self, name: str, statement: str, values: Values | None = None) -> None:
        """The lines of a statement, which would have to be computed anew if they were not stored."""
        self.make(name, statement, values)

    def give(self, name: str, table: pa.Table, *, more: bool = False) -> None:
        """`table`, of whole numbers, under that name; with `more`, behind the rows that are there."""
        self._temporary.add(name)
        if not more:
            self.drop(name)
            kinds = ", ".join(f"{POSTGRES.printed(sql.name(each))} BIGINT" for each in table.column_names)
            self._run(f"CREATE TEMP TABLE {_temp(name)} ({kinds}) ON COMMIT DROP", rows=False)
        columns = [column.to_numpy().astype(np.int64) for column in table.columns]
        self._copy_in(f"COPY {_temp(name)} FROM STDIN (FORMAT BINARY)", _framed(columns))

    def ask(self, statement: str) -> dict[str, NDArray[np.int64]]:
        """The columns of a statement that is never NULL; no larger than the codebook makes it."""
        rows, names = self._asked(statement)
        held = np.array([[int(cell) for cell in row] for row in rows], np.int64).reshape(
            len(rows), len(names)
        )
        return {name: held[:, place] for place, name in enumerate(names)}

    def lot(self, names: Sequence[str], source: str) -> dict[str, NDArray[np.int64]]:
        """Columns that are never NULL, each of which crosses as one array of whole numbers."""
        listed = ", ".join(f"array_agg(CAST({name} AS BIGINT))" for name in names)
        self._begin()
        found: list[bytes | None] | None = None
        with suppress(psycopg.Error, OSError, MemoryError), self._connection.cursor(binary=True) as cursor:
            cursor.execute(f"SELECT {listed} FROM {source}")
            found = [cursor.pgresult.get_value(0, place) for place in range(len(names))]
        if found is None:
            raise self._lost()
        columns = [_array(each) for each in found]
        self.streamed = max(self.streamed, sum(each.nbytes for each in columns))
        return dict(zip(names, columns, strict=True))

    def seek(self, name: str, column: str) -> None:
        self._run(f"CREATE INDEX ON {_temp(name)} USING brin ({column})", rows=False)

    def drop(self, name: str) -> None:
        if not self._dead and self._reading_began:
            with suppress(EngineError):
                self._run(f"DROP TABLE IF EXISTS {_temp(name)}", rows=False)

    def stream(self, statement: str, columns: int) -> Iterator[NDArray[np.int64]]:
        """Whole numbers, never NULL, a line for each column, about `BATCH` rows at a time."""
        self._begin()
        beside = self._beside() if not self._names_ours(statement) else None
        blocks = (
            self._copied(statement, columns) if beside is None else beside.batches(statement, columns, BATCH)
        )
        done = False
        try:
            with suppress(Exception):  # what they say may hold a respondent's answer
                for block in blocks:
                    self.streamed = max(self.streamed, block.nbytes)
                    yield block
                done = True
        finally:
            problem = None if done else self._lost()  # a stream that nobody reads to its end is lost, too
        if problem is not None:
            raise problem

    def _names_ours(self, statement: str) -> bool:
        """Whether a statement may read a table of this session, which no other connection sees."""
        return "pg_temp" in statement or any(name in statement for name in self._temporary)

    def _beside(self) -> SnapshotStream | None:
        """The second connection, in the snapshot of this one; None where there is none."""
        if self._given or self._no_second:
            return None
        if self._second is None:
            ((snapshot,),) = self._execute("SELECT pg_catalog.pg_export_snapshot()")
            self._second = SnapshotStream.opened(self._service, str(snapshot), SETTINGS)
            self._no_second = self._second is None
        return self._second

    def _copied(self, statement: str, columns: int) -> Iterator[NDArray[np.int64]]:
        """The same by this connection: what COPY sends is gathered as it comes, and taken apart a batch at a time."""
        record = np.dtype([("n", ">i2"), *((f"f{i}", [("l", ">i4"), ("v", ">i8")]) for i in range(columns))])
        channel = self._connection.pgconn
        channel.send_query(f"COPY ({statement}) TO STDOUT (FORMAT BINARY)".encode())
        self._answered(psycopg.pq.ExecStatus.COPY_OUT)
        held, skip = list[Any](), 19  # the first piece begins with the form's own header
        while True:
            size, data = channel.get_copy_data(1)
            if size > 0:
                if size - skip > 2:  # no row is as short as the mark of the end
                    held.append(data[skip:] if skip else data)
                skip = 0
                if len(held) == BATCH:
                    yield _columns(b"".join(held), record, columns)
                    held = []
            elif size == 0:
                select.select([channel.socket], [], [])
                channel.consume_input()
            else:
                break
        self._answered(psycopg.pq.ExecStatus.COMMAND_OK)
        if held:
            yield _columns(b"".join(held), record, columns)

    def _answered(self, expected: Any) -> None:
        """Wait for the server's word on a COPY; another than the expected one is a failure."""
        channel = self._connection.pgconn
        while channel.flush() or channel.is_busy():
            select.select([channel.socket], [], [])
            channel.consume_input()
        found = channel.get_result()
        if found is None or found.status != expected:
            raise psycopg.OperationalError
        while expected == psycopg.pq.ExecStatus.COMMAND_OK and channel.get_result() is not None:
            pass

    def _begin(self) -> None:
        """One snapshot from the first statement over rows until the end; refused where the server gives another."""
        if self._dead:
            raise EngineError(UNREAD, field="source")
        if self._reading_began:
            return
        self._reading_began = True
        self._execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE")
        if self._execute("SHOW transaction_isolation") != [("repeatable read",)]:
            self._lost()
            raise EngineError("the server does not keep one snapshot for all statements", field="source")

    def _run(self, statement: str, *, rows: bool = True) -> list[tuple[Any, ...]]:
        self._begin()
        return self._execute(statement, rows=rows)

    def _asked(self, statement: str) -> tuple[list[tuple[Any, ...]], list[str]]:
        self._begin()
        found = None
        with suppress(psycopg.Error, OSError, MemoryError), self._connection.cursor() as cursor:
            cursor.execute(statement)
            found = cursor.fetchall(), [column.name for column in cursor.description]
        if found is None:
            raise self._lost()
        self._count(found[0])
        return found

    def _execute(
        self, statement: str, given: Sequence[Any] = (), *, rows: bool = True
    ) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] | None = None
        # What these say may hold a respondent's answer.
        with suppress(psycopg.Error, OSError, MemoryError), psycopg.RawCursor(self._connection) as cursor:
            cursor.execute(statement, given or None)
            found = cursor.fetchall() if rows and cursor.description else []
        if found is None:
            raise self._lost()
        self._count(found)
        return found

    def _count(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.received += sum(len(str(cell)) for row in rows for cell in row)

    def _copy_in(self, statement: str, data: bytes) -> None:
        done = False
        self._begin()
        with suppress(psycopg.Error, OSError, MemoryError):
            with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.write(data)
            done = True
        if not done:
            raise self._lost()

    def _lost(self) -> EngineError:
        """The error of a failure, after which this connection reads no more: its snapshot is gone."""
        self._dead = True
        with suppress(psycopg.Error, OSError):
            self._connection.rollback()
        return EngineError(UNREAD, field="source")

    def _written(self, values: Values, name: str) -> Sql:
        value = values.bound[name]
        if name in values.secrets:
            return self._secret(str(value))
        if isinstance(value, list):
            texts = exp.Array(expressions=[exp.Literal.string(str(each)) for each in value])
            return exp.Cast(this=texts, to=exp.DataType.build("TEXT[]", dialect="postgres"))
        if isinstance(value, int | float):
            return POSTGRES.cast(exp.Literal.string(repr(float(value))), "DOUBLE")
        return POSTGRES.cast(exp.Literal.string(str(value)), "TEXT")

    def _secret(self, value: str) -> Sql:
        """A subquery that gives the secret: it came by COPY, which no log of statements holds."""
        if not self._secrets:
            self._run("CREATE TEMP TABLE pg_temp.secrets_ (n bigint, s text) ON COMMIT DROP", rows=False)
        number, self._secrets = self._secrets, self._secrets + 1
        self._copy_in("COPY pg_temp.secrets_ FROM STDIN", f"{number}\t{value}\n".encode())
        held = (
            exp.select("s")
            .from_("pg_temp.secrets_")
            .where(exp.EQ(this=exp.column("n"), expression=sql.number(number)))
        )
        return held.subquery()

    def _fence(self) -> None:
        if (
            self._connection.closed
            or self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        ):
            raise SourceError("is closed or in a transaction; give a connection that is idle", field="source")
        if self._connection.autocommit:
            raise SourceError("commits by itself; give a connection without autocommit", field="source")
        check_transport(self._connection.info, refused=SourceError, field="source")
        if self._connection.info.server_version < OLDEST:
            raise SourceError("is a server before PostgreSQL 14", field="source")
        with suppress(EngineError):
            for name, value in SETTINGS.items():
                self._execute("SELECT pg_catalog.set_config($1, $2, false)", [name, value])
            if self._execute("SHOW server_encoding") == [("UTF8",)]:
                self._connection.commit()  # the settings stay, whatever becomes of the snapshot
                return
        raise SourceError("is no server that reads as UTF-8 and takes our settings", field="source")

    def _header(self, schema: str, name: str) -> dict[str, str]:
        """Names and types of the columns, once the table and the role are what a release may rest on. No row is read."""
        try:
            found = self._execute(HEADER, [schema, name])
            columns = self._execute(COLUMNS, [found[0][0]]) if found else []
            self._connection.rollback()
        except EngineError:
            raise SourceError("the server did not show the table's header", field="source") from None
        if not found:
            raise SourceError(f"has no table {schema}.{name}; correct the name, schema.name", field="source")
        ((_, kind, filtered, writes, reads, boss, foreign, known),) = found
        if kind not in ("r", "p", "m"):
            raise SourceError(
                "is no table; a view can do more than read: store it as a table", field="source"
            )
        if foreign:
            raise SourceError(
                "has a part on another server, which keeps no snapshot with it; read a copy", field="source"
            )
        if not reads:
            raise SourceError("may not be read by this role; grant SELECT on the table", field="source")
        if filtered:
            raise SourceError(
                "has row security for this role, which hides rows; read as a role without", field="source"
            )
        if writes or boss:
            raise SourceError(
                "the role can change the table; make one that can only SELECT (how-to: Survey in PostgreSQL)",
                field="source",
            )
        self._known = max(0, known)
        names = [column[0] for column in columns]
        if len({name.lower() for name in names}) < len(names):
            raise SourceError("has two columns that differ in capitals alone; rename one", field="source")
        return {column: word_of(*rest) for column, *rest in columns}


def _plain(raw: Sql, word: str) -> Sql:
    """A column as our type for it, whatever the server's: texts under the collation C, no number that is none."""
    if word == "integer":
        return POSTGRES.cast(raw, "BIGINT")
    if word == "float":
        return POSTGRES.cast(raw, "DOUBLE")
    if word.startswith("decimal"):
        nothing = POSTGRES.cast(exp.Literal.string("NaN"), "DECIMAL")
        return exp.Nullif(this=raw, expression=nothing)
    if word == "text":
        return exp.Collate(this=POSTGRES.cast(raw, "TEXT"), expression=exp.Identifier(this="C", quoted=True))
    return raw


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _column(name: str) -> Sql:
    return exp.Column(this=_quoted(name))


def _temp(name: str) -> str:
    return f"pg_temp.{POSTGRES.printed(sql.name(name))}"


def _framed(columns: Sequence[NDArray[np.int64]]) -> bytes:
    """Whole numbers as COPY's binary form has them."""
    fields = [("n", ">i2"), *((f"f{i}", [("l", ">i4"), ("v", ">i8")]) for i in range(len(columns)))]
    held = np.zeros(len(columns[0]), np.dtype(fields))
    held["n"] = len(columns)
    for i, column in enumerate(columns):
        held[f"f{i}"]["l"], held[f"f{i}"]["v"] = 8, column
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + bytes(held.tobytes()) + b"\xff\xff"


def _columns(data: bytes, record: Any, columns: int) -> NDArray[np.int64]:
    held = np.frombuffer(data, record)
    return np.stack([held[f"f{i}"]["v"].astype(np.int64) for i in range(columns)])


def _array(data: bytes | None) -> NDArray[np.int64]:
    """The server's form of an array: a header of twenty bytes, then each number behind its length. Of no rows, nothing."""
    if data is None:
        return np.zeros(0, np.int64)
    return np.frombuffer(data, [("l", ">i4"), ("v", ">i8")], offset=20)["v"].astype(np.int64)


_open: "weakref.WeakSet[PostgresConnection]" = weakref.WeakSet()


@atexit.register
def _cancel_all() -> None:
    """No query of ours runs on when this process ends."""
    for each in list(_open):
        each.close()
