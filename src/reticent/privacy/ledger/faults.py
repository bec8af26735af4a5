"""SQLite's and the system's faults in words of ours: which status, and what to do (B107 to B110)."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from reticent.errors import LedgerError, ResourceError, ReticentError
from reticent.files import refusal


class BusyError(LedgerError):
    """Somebody else held the lock for the whole waiting time."""


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
