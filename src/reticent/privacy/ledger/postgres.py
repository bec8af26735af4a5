"""The PostgreSQL table under a ledger: one budget for curators on several machines, one writer at a time.

A role of its own may SELECT and INSERT, and nothing else. A writer takes an advisory lock of its transaction and reads
*after* it, in a later statement under READ COMMITTED, so that it sees all that earlier holders committed; under a stricter
level the snapshot would be older than the lock. A connection lives for one step only. The head file stays on each curator's
machine, so that a server that lost entries at a failover, or was restored, is noticed (L10).

Bodies and answers go over by COPY: no log of statements holds the key of a partition. What psycopg says of a failure may
name hosts and users, and is told in words of ours.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError, ResourceError, ReticentError
from reticent.files import refusal
from reticent.privacy.ledger.entries import Entry, digest
from reticent.privacy.ledger.store import FORMAT, HEAD, BusyError, LedgerStore, StoredEntries
from reticent.services import check_transport, connected

TABLE = """
CREATE SCHEMA reticent;
CREATE TABLE reticent.entry (
    ledger text COLLATE "C" NOT NULL, number bigint NOT NULL, kind text NOT NULL, body text NOT NULL,
    answer bytea, previous text NOT NULL, hash text NOT NULL, PRIMARY KEY (ledger, number));
"""
"""What an administrator makes, once for all ledgers of a server; the how-to page "The ledger" has the role."""

_COLUMNS = [
    "ledger text",
    "number bigint",
    "kind text",
    "body text",
    "answer bytea",
    "previous text",
    "hash text",
]
_SETTINGS = """
    SELECT set_config('search_path', 'pg_catalog, pg_temp', false), set_config('row_security', 'off', false),
        set_config('client_min_messages', 'error', false), set_config('synchronous_commit', 'on', false),
        set_config('lock_timeout', $1, false), set_config('statement_timeout', '10min', false),
        set_config('idle_in_transaction_session_timeout', '2min', false)"""
_TABLE = """
    SELECT c.relkind = 'r' AND c.relpersistence = 'p' AND NOT (c.relispartition OR c.relrowsecurity)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid))
        AND EXISTS (SELECT FROM pg_catalog.pg_constraint p WHERE p.conrelid = c.oid AND p.contype = 'p'
            AND pg_catalog.pg_get_constraintdef(p.oid) = 'PRIMARY KEY (ledger, number)')
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
            AND (a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '')),
        (SELECT array_agg(a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
            FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
        has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT'),
        has_any_column_privilege(c.oid, 'UPDATE') OR has_table_privilege(c.oid, 'DELETE, TRUNCATE, TRIGGER')
            OR current_setting('is_superuser') = 'on',
        current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'
            AND current_setting('synchronous_commit') = 'on' AND NOT pg_is_in_recovery(),
        current_setting('server_encoding') = 'UTF8'
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'reticent' AND c.relname = 'entry'"""
_ROWS = (
    "SELECT number, kind, body, answer IS NOT NULL, previous, hash FROM reticent.entry WHERE ledger = $1 "
    "ORDER BY number"
)


class ServerEntries:
    """The rows of one ledger of a server, inside one transaction."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection, self._name = connection, name
        self.last: Entry | None = None

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every row, as it is stored; one of a newer format is refused by name."""
        found = _asked(self._connection, _ROWS, self._name)
        if not found:
            raise LedgerError(
                f"there is no ledger {self._name} on the server; open one with `reticent ledger open`, or correct the name.",
                field="ledger",
            )
        _check_format(found[0][2])
        yield from found

    def insert(self, entry: Entry, body: str, answer: bytes | None) -> None:
        """Add one row."""
        with self._connection.cursor() as cursor, cursor.copy("COPY reticent.entry FROM STDIN") as copy:
            copy.write_row((self._name, entry.number, entry.kind, body, answer, entry.previous, entry.hash))
        self.last = entry

    def answer(self, number: int) -> object:
        """The bytes stored with an entry."""
        statement = "SELECT answer FROM reticent.entry WHERE ledger = $1 AND number = $2"
        found = _asked(self._connection, statement, self._name, number)
        return found[0][0] if found else None

    def digest(self) -> str:
        """There is none: rows of other ledgers come and go in the same pages."""
        return ""

    def check_whole(self) -> None:
        """Nothing beyond what every step looks at: the table is as it was made, and the chain covers its rows."""

    def has(self, entry: Entry) -> bool:
        """Whether an entry is there, as it was to be written."""
        statement = "SELECT hash FROM reticent.entry WHERE ledger = $1 AND number = $2"
        return _asked(self._connection, statement, self._name, entry.number) == [(entry.hash,)]


class ServerStore:
    """One ledger of a server, by the name of a service and its own."""

    def __init__(self, service: str, ledger: str, timeout: float) -> None:
        self._service, self._ledger, self.timeout = service, ledger, timeout

    @property
    def name(self) -> str:
        """As a plan writes it."""
        return f"postgres:{self._service}/{self._ledger}"

    @property
    def way_out(self) -> str:
        """What to do where the head does not fit."""
        return (
            f"on a machine that has not used it yet, `reticent ledger join {self.name}`; else find out what became of "
            "the server's newest entries"
        )

    @property
    def head(self) -> Path:
        """In the curator's own folder of states (XDG_STATE_HOME)."""
        return _heads(self._service) / f"{self._ledger}{HEAD}"

    @contextmanager
    def reading(self) -> Iterator[StoredEntries]:
        """One snapshot, which holds nobody up."""
        with self._step("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY") as held:
            yield held

    @contextmanager
    def writing(self) -> Iterator[StoredEntries]:
        """The only writer from here to the end. Where the connection is lost while it commits, the server is asked again."""
        with self._step(_READ_LATEST) as held:
            self._lock(held)
            yield held
            if self._commit(held) or self._arrived(held.last):
                return
            raise ResourceError(
                f"{self.name} lost the connection; nothing was added; try again.", field="ledger"
            )

    def start(self, first: Sequence[tuple[Entry, str]]) -> None:
        """The first entries, where there is none under that name."""
        with self.writing() as held:
            if isinstance(held, ServerEntries) and _asked(held._connection, _ROWS, self._ledger):
                raise LedgerError(f"{self.name} exists already; give another name.", field="ledger")
            for entry, body in first:
                held.insert(entry, body, None)

    def check_usable(self, *, allow_network: bool) -> None:
        """The head's folder is there; the table is looked at in every step."""
        self._make_folder()

    def check_vacant(self, *, allow_network: bool) -> None:
        """Refuse a name that is taken on the server, or was used on this machine."""
        self._make_folder()
        if self._ledger in self._names():
            raise LedgerError(
                f"{self.name} exists already; a ledger is never started over another.", field="ledger"
            )
        if os.path.lexists(self.head):
            raise LedgerError(
                f"a head file shows that {self.name} existed before; the server has lost it: put its entries back.",
                field="ledger",
            )

    def others(self) -> Iterator[LedgerStore]:
        """The other ledgers of the server."""
        for name in self._names():
            if name != self._ledger:
                yield ServerStore(self._service, name, self.timeout)

    def orphans(self) -> Iterator[str]:
        """Ledgers that were used on this machine and are no longer on the server."""
        names = self._names()
        for head in sorted(_heads(self._service).glob(f"*{HEAD}")):
            if head.name.removesuffix(HEAD) not in names:
                yield f"the server behind postgres:{self._service}/{head.name.removesuffix(HEAD)}"

    def _names(self) -> list[str]:
        with self._step(_READ_LATEST) as held:
            found = _asked(held._connection, "SELECT DISTINCT ledger FROM reticent.entry ORDER BY 1")
        return [name for (name,) in found]

    def _make_folder(self) -> None:
        with server_faults(self.name, self.timeout):
            self.head.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextmanager
    def _step(self, begin: str) -> Iterator[ServerEntries]:
        """One connection and one transaction: rolled back unless it was committed inside."""
        with server_faults(self.name, self.timeout):
            connection = connected(self._service, refused=ResourceError, field="ledger")
            try:
                check_transport(connection.info, refused=LedgerError, field="ledger")
                _asked(connection, _SETTINGS, f"{max(1, int(self.timeout * 1000))}ms")
                _check_table(_asked(connection, _TABLE), self.name)
                connection.commit()  # the settings stay; the transaction of the step begins with its own level
                connection.execute(begin)
                yield ServerEntries(connection, self._ledger)
            finally:
                with suppress(Exception):
                    connection.rollback()
                with suppress(Exception):
                    connection.close()

    def _lock(self, held: ServerEntries) -> None:
        key = int.from_bytes(
            bytes.fromhex(digest(f"reticent {self._ledger}".encode()))[:8], "big", signed=True
        )
        _asked(held._connection, "SELECT pg_catalog.pg_advisory_xact_lock($1)", key)

    def _commit(self, held: ServerEntries) -> bool:
        """Whether the server said that the entries are on disk."""
        import psycopg

        try:
            held._connection.commit()
        except psycopg.OperationalError:
            return False
        return True

    def _arrived(self, last: Entry | None) -> bool:
        """Whether a commit without an answer took place: asked once its transaction has let go of the lock."""
        if last is None:
            return True
        with self._step(_READ_LATEST) as held:
            self._lock(held)
            return held.has(last)


_READ_LATEST = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


def _heads(service: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state).resolve() / "reticent" / "ledgers" / service


def _asked(connection: Any, statement: str, *given: Any) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.RawCursor(connection) as cursor:
        cursor.execute(statement, given or None)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _check_table(found: list[tuple[Any, ...]], name: str) -> None:
    """Refuse a table that is not as it is to be made, a role that can do more, and a server that can lose what it said."""
    problem = ""
    plain, columns, usable, writes, keeps, utf8 = found[0] if found else (False, [], False, False, True, True)
    if not found:
        problem = "its server has no table reticent.entry; make it as the guide to the ledger says"
    elif not usable:
        problem = "the role may not use it; grant SELECT and INSERT on reticent.entry"
    elif not plain or columns != _COLUMNS or not utf8:
        problem = "reticent.entry is not as it is to be made; make it as the guide to the ledger says"
    elif writes:
        problem = "the role can change entries; make one that can only SELECT and INSERT"
    elif not keeps:
        problem = "the server can lose what was charged; set fsync, full_page_writes and synchronous_commit to on, on no replica"
    if problem:
        raise LedgerError(f"{name} cannot be used: {problem}.", field="ledger")


def _check_format(body: Any) -> None:
    found = None
    with suppress(ValueError, TypeError, RecursionError, AttributeError):
        found = json.loads(body).get("format")
    if type(found) is int and found != FORMAT:
        raise LedgerError(
            f"has ledger format {found}, this version of reticent reads format {FORMAT}; use the version that wrote it, "
            "or a newer one.",
            field="ledger",
        )


@contextmanager
def server_faults(name: str, timeout: float) -> Iterator[None]:
    """Let our own errors pass and replace the server's and the system's; the original is not told."""
    problem: ReticentError | None = None
    try:
        yield
    except ReticentError:
        raise
    except OSError as error:
        problem = refusal(error, f"the head file of {name}", field="ledger")
        if problem.status == 2:
            problem = LedgerError(str(problem.args[0]), field="ledger")
    except Exception as error:
        problem = _fault(error, name, timeout)
        if problem is None:
            raise
    if problem is not None:
        raise problem


def _fault(error: Exception, name: str, timeout: float) -> ReticentError | None:
    import psycopg

    if isinstance(error, psycopg.errors.LockNotAvailable):
        return BusyError(
            f"{name} was in use by another run for {timeout:g} seconds; nothing was added; try again.",
            field="ledger",
        )
    if isinstance(error, psycopg.errors.UniqueViolation):
        return LedgerError(
            f"{name} was added to by another program at the same moment; nothing was added; try again.",
            field="ledger",
        )
    if isinstance(error, psycopg.Error):
        return ResourceError(
            f"{name} could not be read or written to the end, as when a server stops; see that it is up, then "
            "`reticent resume`.",
            field="ledger",
        )
    return None
