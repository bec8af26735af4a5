"""Looking for loss and change: in the ledger file, its head, its answers, and the receipts others hold."""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError
from reticent.privacy.ledger.head import Head, head_path
from reticent.privacy.ledger.history import History
from reticent.privacy.ledger.place import check_vacant
from reticent.privacy.ledger.store import answer_at, file_digest

_LARGEST = 64 * 2**20


def check_unopened(path: Path, dataset: str, outputs: Path | None) -> None:
    """Refuse a second ledger for a data set that has been charged before (L11)."""
    check_vacant(path)
    if os.path.lexists(head_path(path)):
        raise LedgerError(
            f"{head_path(path).name} shows that {path.name} existed before; put back the ledger that belongs to it.",
            field="ledger",
        )
    if outputs is not None and any(each["dataset"] == dataset for each in receipts_in(outputs)):
        raise LedgerError(
            f'the output folder holds receipts of "{dataset}", so it has a ledger; put that ledger back.',
            field="ledger",
        )


def receipts_in(folder: Path, *, deep: bool = True) -> Iterator[dict[str, Any]]:
    """Every receipt in the JSON files of a folder and, if `deep`, the folders in it, by name."""
    for path in sorted(folder.glob("**/*.json" if deep else "*.json")):
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST:
                yield from _receipts_within(json.loads(path.read_bytes()))
        except (OSError, ValueError, RecursionError):
            continue  # not one of our files


def _receipts_within(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if set(value) >= {"ledger", "dataset", "entry", "hash", "release"}:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _receipts_within(each)


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose pages do not hang together, or that is longer or shorter than they are."""
    sound = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    if not sound or os.stat(path).st_size != pages * size:
        raise LedgerError(
            f"{path.name} is damaged; put back an undamaged copy of it and its head.", field="ledger"
        )


def check_bytes(connection: sqlite3.Connection, head: Head, name: str) -> None:
    """Refuse a file that differs in any byte from the one the head file was written for."""
    found = file_digest(connection)
    if head.file and found and head.file != found:
        raise LedgerError(
            f"{name} was changed by another program after its last entry; put back an unchanged copy.",
            field="ledger",
        )


def check_answers(connection: sqlite3.Connection, history: History) -> None:
    """Refuse an answer that is not the one that was committed."""
    for standing in history.releases.values():
        if standing.answer is not None:
            answer_at(connection, standing.committed, standing.answer)


def check_receipt(given: Mapping[str, Any], history: History) -> None:
    """Refuse a receipt that this ledger did not give, and a ledger that ends before the receipt (L10)."""
    problem = ""
    facts, number = history.known(), given.get("entry")
    kept = {each.receipt.entry: each.receipt for each in history.releases.values()}
    if given.get("ledger") != facts.ledger:
        problem = "was given by another ledger"
    elif type(number) is not int:
        problem = "names no entry"
    elif number > history.number:
        problem = f"is for entry {number}, but the ledger ends at {history.number}: it is an old or cut copy"
    elif number not in kept or kept[number].as_dict() != dict(given):
        problem = f"does not match entry {number}"
    if problem:
        name = given.get("release") if isinstance(given.get("release"), str) else "?"
        raise LedgerError(f"the receipt of release {name} {problem}.", field="receipt")
