"""The SQLite file under a ledger: rows in order, one writer at a time, each entry on disk before it counts.

A connection lives for one step only. So a ledger may be used from any thread and after a fork, and nobody
holds a lock while rows are read. The file is never opened except by SQLite: closing any other descriptor of
it would drop the locks of this process.

A ledger is a plain file of ours, writable, on a disk of this machine (B107). SQLite's and the system's faults are told in
words of ours: which status, and what to do (B107 to B110).
"""

import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError, ResourceError, ReticentError
from reticent.files import flush_folder, refusal
from reticent.privacy.ledger.entries import Entry, digest
from reticent.privacy.ledger.store import FORMAT, HEAD, BusyError, LedgerStore, StoredEntries, read_head


def fault(error: sqlite3.Error, name: str, timeout: float) -> ReticentError:
    """The error of ours for one of SQLite's. Its own text is dropped: it may hold paths."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BusyError(
            f"{name} was in use by another run for {timeout:g} seconds; nothing was added; try again.",
            field="ledger",
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG):
        return ResourceError(
            f"{name} could not be read or written to the end, as when a disk is full; make room, "
            "then `reticent resume`.",
            field="ledger",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return LedgerError(f"{name} or its folder cannot be written to; make both writable.", field="ledger")
    return LedgerError(
        f"{name} is no ledger, or is damaged; put back an undamaged copy of it and its head.", field="ledger"
    )


@contextmanager
def plain_faults(name: str, timeout: float) -> Iterator[None]:
    """Let our own errors pass and replace all others; the original is not told."""
    problem: ReticentError
    try:
        yield
    except sqlite3.Error as error:
        problem = fault(error, name, timeout)
    except OSError as error:
        problem = refusal(error, name, field="ledger")
        if problem.status == 2:
            problem = LedgerError(str(problem.args[0]), field="ledger")
    else:
        return
    raise problem from None


APPLICATION = 0x72657469  # "reti"
TABLE = (
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, "
    "answer BLOB, previous TEXT NOT NULL, hash TEXT NOT NULL)"
)
_ROWS = "SELECT number, kind, body, answer IS NOT NULL, previous, hash FROM entry ORDER BY number"


class FileEntries:
    """The rows of a ledger file, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every row, as it is stored."""
        yield from self._connection.execute(_ROWS)

    def insert(self, entry: Entry, body: str, answer: bytes | None) -> None:
        """Add one row."""
        row = (entry.number, entry.kind, body, answer, entry.previous, entry.hash)
        self._connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)

    def answer(self, number: int) -> object:
        """The bytes stored with an entry."""
        found = self._connection.execute("SELECT answer FROM entry WHERE number = ?", (number,)).fetchone()
        return found[0] if found else None

    def digest(self) -> str:
        """The digest of the whole file as SQLite sees it; empty where this SQLite cannot say."""
        serialize = getattr(self._connection, "serialize", None)
        return digest(serialize()) if serialize is not None else ""

    def check_whole(self) -> None:
        """Refuse a file whose pages do not hang together, or that is longer or shorter than they are."""
        sound = self._connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (size,) = self._connection.execute("PRAGMA page_size").fetchone()
        if not sound or os.stat(self._path).st_size != pages * size:
            raise LedgerError(
                f"{self._path.name} is damaged; put back an undamaged copy of it and its head.",
                field="ledger",
            )


class FileStore:
    """One ledger file and how long to wait for its lock."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.name

    @property
    def way_out(self) -> str:
        """What to do where the head does not fit."""
        return "put back the newest ledger together with its head"

    @property
    def head(self) -> Path:
        """Beside the file."""
        return head_path(self.path)

    @contextmanager
    def reading(self) -> Iterator[StoredEntries]:
        """One consistent view; writers wait for its end, so it is kept short."""
        with self._step("BEGIN") as held:
            yield held

    @contextmanager
    def writing(self) -> Iterator[StoredEntries]:
        """The only writer from here to the end; what it added is then on disk, or nothing is."""
        with self._step("BEGIN IMMEDIATE") as held:
            yield held

    @contextmanager
    def _step(self, begin: str) -> Iterator[StoredEntries]:
        with plain_faults(self.path.name, self.timeout), closing(self._connect()) as connection:
            connection.execute(begin)
            try:
                _check_kind(connection, self.path.name)
                yield FileEntries(connection, self.path)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        return connect(self.path, self.timeout)

    def start(self, first: Sequence[tuple[Entry, str]]) -> None:
        """Make the file with its first entries beside its place, and then give it its name."""
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.tmp")
        with plain_faults(self.path.name, 1.0):
            try:
                build(temporary)
                with FileStore(temporary, 1.0).writing() as held:
                    for entry, body in first:
                        held.insert(entry, body, None)
                os.link(temporary, self.path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            flush_folder(self.path.parent)

    def check_usable(self, *, allow_network: bool) -> None:
        """Refuse what cannot be a ledger in use, and a network disk."""
        check_file(self.path)
        check_disk(self.path.parent, allow_network=allow_network)

    def check_vacant(self, *, allow_network: bool) -> None:
        """Refuse to start over something, where there is no folder, and on a network disk."""
        check_vacant(self.path)
        if os.path.lexists(self.head):
            raise LedgerError(
                f"{self.head.name} shows that {self.name} existed before; put back the ledger that belongs to it.",
                field="ledger",
            )
        check_disk(self.path.parent, allow_network=allow_network)

    def others(self) -> Iterator[LedgerStore]:
        """The ledgers of the same folder."""
        yield from stores_in(self.path.parent, but=self.path)

    def orphans(self) -> Iterator[str]:
        """Heads of the same folder that have lost their ledger."""
        for head in sorted(self.path.parent.glob(f"*{HEAD}")):
            if _is_orphan(head):
                yield head.name


_PATIENCE = 5.0


def stores_in(folder: Path, *, but: Path | None) -> Iterator[LedgerStore]:
    """Every ledger with a head in a folder."""
    for head in sorted(folder.resolve().glob(f"*{HEAD}")):
        path = head.with_name(head.name.removesuffix(HEAD))
        if path.is_file() and path.resolve() != but:
            yield FileStore(path.resolve(), _PATIENCE)


def head_path(ledger: Path) -> Path:
    """`survey.ledger.db` has its head in `survey.ledger.db.head`."""
    return ledger.with_name(ledger.name + HEAD)


def _is_orphan(head: Path) -> bool:
    """Whether it is a head of ours without its ledger."""
    try:
        return (
            not os.path.lexists(head.with_name(head.name.removesuffix(HEAD))) and read_head(head) is not None
        )
    except LedgerError:
        return False


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that makes no file, keeps no freed text, and returns from COMMIT when all is on disk."""
    connection = sqlite3.connect(
        path.as_uri() + "?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in (
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "temp_store=MEMORY",
            "secure_delete=ON",
            "synchronous=EXTRA",
        ):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_kind(connection: sqlite3.Connection, name: str) -> None:
    """Refuse another program's file, a newer format, and any table, index or trigger that is not ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if application != APPLICATION:
        raise LedgerError(f"{name} is another program's file; give the path of a ledger.", field="ledger")
    if version != FORMAT:
        raise LedgerError(
            f"{name} has ledger format {version}, this version of reticent reads format {FORMAT}; "
            "use the version that wrote it, or a newer one.",
            field="ledger",
        )
    if journal != "delete" or connection.execute("SELECT sql FROM sqlite_master").fetchall() != [(TABLE,)]:
        raise LedgerError(
            f"{name} was changed by another program; put back a copy of the ledger and its head.",
            field="ledger",
        )


def build(path: Path) -> None:
    """Make an empty ledger file at a temporary path, readable by its owner only."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.chmod(path, 0o600)
    with closing(connect(path, 1.0)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute(TABLE)


# Locks of one machine are not seen by another on these, or not kept; SQLite says so of its own files.
_NETWORK = re.compile(
    r"(fuse\.)?(9p|afs|afpfs|beegfs|ceph|cifs|coda|davfs2?|gcsfuse|glusterfs|gpfs|lustre|ncpfs|nfs[34]?|ocfs2|"
    r"orangefs|rclone|s3fs|smb[23]?|smbfs|smbnetfs|sshfs|vboxsf|virtiofs|vmhgfs-fuse)"
)


def kind_of_disk(folder: Path, mounts: str) -> str:
    """The type of the file system that holds `folder`, read from the text of `/proc/self/mountinfo`."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if len(left.split()) < 5 or not right.split():
            continue
        point = Path(left.split()[4].encode().decode("unicode_escape", "replace"))
        # A later line with the same mount point lies on top of the earlier one.
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind


def check_disk(folder: Path, *, allow_network: bool) -> None:
    """Refuse a network disk, where two machines could both think they hold the lock."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return  # not Linux: nothing to ask
    kind = kind_of_disk(folder, mounts)
    if _NETWORK.fullmatch(kind) and not allow_network:
        raise LedgerError(
            f"the ledger lies on a network disk ({kind}), where locks may fail and a charge be lost; "
            "keep it on a disk of this machine.",
            field="ledger",
        )


def check_file(path: Path) -> None:
    """Refuse what cannot be a ledger in use: missing, a folder, a device, read-only."""
    name = path.name
    problem = ""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = 0
    if not mode:
        problem = f"there is no ledger {name}; open one with `reticent ledger open`, or correct the path."
    elif not stat.S_ISREG(mode):
        problem = f"{name} is not a file; give the path of a ledger."
    elif not mode & stat.S_IWUSR or not os.access(path, os.R_OK | os.W_OK):
        problem = f"{name} is read-only, so nothing can be charged to it; make it writable."
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        problem = f"the folder of {name} is read-only, so nothing can be charged safely; make it writable."
    elif os.stat(path).st_size == 0:
        problem = f"{name} is empty; put back a copy of the ledger and its head."
    if problem:
        raise LedgerError(problem, field="ledger")


def check_vacant(path: Path) -> None:
    """Refuse to start a ledger over something, or where there is no folder for it."""
    problem = ""
    if not path.parent.is_dir():
        problem = f"the folder of {path.name} does not exist; make it first."
    elif os.path.lexists(path):
        problem = f"{path.name} exists already; a ledger is never started over another file."
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        problem = f"the folder of {path.name} is read-only; choose another."
    if problem:
        raise LedgerError(problem, field="ledger")
