"""The hash chain: each entry carries the hash of the one before, so that none can be changed alone.

Every body carries a random salt. Receipts publish hashes, and a commit entry holds only things a reader knows
(the published answer) besides the clock: without the salt its time, hence how long the run took, could be
found by trying all seconds.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from reticent.errors import LedgerError
from reticent.privacy.ledger.entries import KINDS, Entry

START = "0" * 64


def canonical(value: object) -> str:
    """One text per JSON value: keys sorted, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def entry_hash(number: int, kind: str, body: str, previous: str) -> str:
    """The hash of an entry; `body` is the stored text itself."""
    return digest(canonical([number, kind, body, previous]).encode())


def sealed(number: int, kind: str, body: Mapping[str, Any], previous: str) -> tuple[Entry, str]:
    """A new entry, with clock and salt added, and its body as stored."""
    full = {**body, "clock": clock(), "salt": secrets.token_hex(16)}
    text = canonical(full)
    entry = Entry(
        number=number, kind=kind, body=full, previous=previous, hash=entry_hash(number, kind, text, previous)
    )
    return entry, text


def opened(row: tuple[Any, ...], number: int, previous: str) -> Entry:
    """The entry in a stored row, if it is the one that follows `previous` under this number."""
    stored, kind, text, has_answer, before, own = row
    whole = all(isinstance(each, str) for each in (kind, text, before, own))
    if not whole or kind not in KINDS or bool(has_answer) != (kind == "commit"):
        raise LedgerError(
            f"entry {number} is damaged; put back an undamaged copy of the ledger and its head."
        )
    if stored != number or before != previous or own != entry_hash(number, kind, text, before):
        raise LedgerError(
            f"entry {number} is not the one that was written: the chain of hashes breaks there; "
            "put back an unchanged copy of the ledger and its head."
        )
    return Entry(number=number, kind=kind, body=_parsed(text), previous=before, hash=own)


def _parsed(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else {}  # an empty body breaks every rule, and is refused there


def clock() -> str:
    """The time as a remark; nothing is ever decided by it (L14)."""
    return datetime.now(UTC).isoformat(timespec="seconds")
