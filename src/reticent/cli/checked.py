"""Whether `check` has been run on these rows and this codebook: a note in the plan's folder, and a reminder without it.

The note holds digests of names, sizes and times of files and of the codebook's text. No row is read for it or told by it, so
the reminder may come before a charge.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import typer

from reticent.engine.sources.open import is_remote
from reticent.files import matching, replace_file, write_new
from reticent.plan.plan import Plan

NOTE = ".reticent-checked"
MOST = 1_000


def remember_check(path: Path, plan: Plan, rows: str) -> None:
    """Note that the rows have been checked. Where nothing can be written nothing is, and the reminder stays."""
    note, mark = path.parent / NOTE, _mark(path, plan, rows)
    if mark is None:
        return
    known = [each for each in _known(note) if each != mark][-MOST:]
    data = "\n".join([*known, mark, ""]).encode()
    with suppress(Exception):
        replace_file(note, data) if note.exists() else write_new(note, data, private=True)


def remind_of_check(path: Path, plan: Plan, rows: str) -> None:
    """One line where `check` has not been run on these rows and this codebook, as they are now."""
    mark = _mark(path, plan, rows)
    if mark is not None and mark not in _known(path.parent / NOTE):
        typer.echo(
            f"note: `reticent check {path.name}` has not been run on these rows and this codebook. What does not fit the codebook, "
            "such as levels in other case or a decimal comma, counts as missing, and no release says so."
        )


def _known(note: Path) -> list[str]:
    with suppress(OSError, UnicodeDecodeError):
        return note.read_text(encoding="ascii").split()
    return []


def _mark(path: Path, plan: Plan, rows: str) -> str | None:
    """A digest of what was checked; None where the rows are not there."""
    try:
        codebook = hashlib.sha256((path.parent / plan.codebook).read_bytes()).hexdigest()
        held = [rows, plan.relation] if is_remote(rows) else [_stamp(each) for each in matching(rows)]
    except (OSError, ValueError):
        return None
    return hashlib.sha256(json.dumps(["reticent-checked", codebook, held]).encode()).hexdigest()


def _stamp(name: str) -> list[object]:
    found = os.stat(name)
    return [os.path.basename(name), found.st_size, found.st_mtime_ns]
