"""CONFIDENTIAL: check the rows of a plan for the curator's eyes, and note in the plan's folder that it was done.

The note holds digests of names, sizes and times of files and of the codebook's text. No row is read for it or told by it, so
the reminder may come before a charge.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from reticent.engine.confidential import Finding, Patterns, coarse_identifiers, inspect, patterns
from reticent.engine.open import open_engine
from reticent.engine.sources.open import is_remote, open_source
from reticent.files import matching, replace_file, write_new
from reticent.plan.plan import Plan
from reticent.prepare.repair import NO_REPAIR
from reticent.privacy.ledger.store import ledger_at
from reticent.release.check import Gaps, gaps
from reticent.release.doubts import Doubt, doubts
from reticent.workflow.opening import found_nearby
from reticent.workflow.releasing import folder_of, rows_of

WARNING = "CONFIDENTIAL: read off the rows, for the curator's eyes only. Do not publish or forward."


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """CONFIDENTIAL: what `check` has found. Nothing of it is ever published.

    **Fields**

    - `unit`: the identifier of respondents.
    - `findings`: by column, what is missing and what does not fit.
    - `doubts`: what should make the curator stop.
    - `coarse`: how many rows have an identifier that floating point cannot tell from others.
    - `patterns`: what goes missing together; None where nothing is missing.
    - `gaps`: what each repair meets.
    - `same_rows`: other ledgers of the same rows.
    """

    unit: str
    findings: Sequence[Finding] = field(repr=False)
    doubts: Sequence[Doubt] = field(repr=False)
    coarse: int = field(repr=False)
    patterns: Patterns | None = field(repr=False)
    gaps: Sequence[Gaps] = field(repr=False)
    same_rows: Sequence[tuple[str, str]] = field(repr=False)


def check_rows(path: Path, plan: Plan, data: str | None = None, ledger: Path | None = None) -> RowCheck:
    """Read the rows of the plan at `path` for the curator. Nothing is charged; that it was done is noted."""
    rows = rows_of(path, plan, data)
    engine = open_engine(open_source(rows, table=plan.relation, schema=plan.schema))
    try:
        engine.check(plan.schema)
        findings = inspect(engine, plan.schema)
        silent = [found.column for found in findings if found.missing]
        near = found_nearby(
            ledger or ledger_at(path.parent, plan.ledger),
            engine.fingerprint(plan.schema),
            engine,
            folder_of(path),
        )
        done = RowCheck(
            unit=plan.schema.unit,
            findings=findings,
            doubts=doubts(engine, plan, findings),
            coarse=coarse_identifiers(engine, plan.schema),
            patterns=patterns(engine, plan.schema, silent) if silent else None,
            gaps=gaps(engine, plan) if plan.repair != NO_REPAIR else (),
            same_rows=near,
        )
    finally:
        engine.close()
    remember_check(path, plan, rows)
    return done


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


def is_unchecked(path: Path, plan: Plan, rows: str) -> bool:
    """Whether the rows are there and `check` has not been run on them and this codebook, as they are now."""
    mark = _mark(path, plan, rows)
    return mark is not None and mark not in _known(path.parent / NOTE)


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
