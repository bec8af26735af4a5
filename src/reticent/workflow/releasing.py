"""What every door does with a plan file, between reading it and showing what came of it: release, rehearse, check the rows.

A check is CONFIDENTIAL, for the curator's eyes. That it was done is noted in the plan's folder by digests of names, sizes and
times of files and of the codebook's text: no row is read for the note or told by it, so a reminder may come before a charge.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os.path import isdir
from pathlib import Path
from secrets import token_hex

from reticent.engine.confidential import Finding, Patterns, coarse_identifiers, inspect, patterns
from reticent.engine.open import open_engine
from reticent.engine.sources.open import is_remote, located, open_source
from reticent.errors import PlanError
from reticent.files import matching, replace_file, write_new
from reticent.plan.plan import Plan, read_plan
from reticent.prepare.repair import NO_REPAIR
from reticent.privacy.ledger import Ledger
from reticent.privacy.ledger.store import ledger_at
from reticent.release.check import Gaps, gaps
from reticent.release.curator import Curator, Pages
from reticent.release.doubts import Doubt, doubts
from reticent.release.release import Release, producers
from reticent.release.run import run_plan, try_plan
from reticent.release.survey import Survey, simulate
from reticent.workflow.opening import found_nearby

Step = Callable[[str], None]


def rows_of(path: Path, plan: Plan, data: str | None = None) -> str:
    """Where the rows of the plan at `path` are; `data` takes their place where it is given."""
    return data if data is not None else located(path.parent, plan.source)


def folder_of(path: Path, out: Path | None = None) -> Path:
    """Where releases of the plan at `path` go."""
    if out is not None:
        if not isdir(out):  # a path that is too long is no folder either
            raise PlanError("is not a folder; make it first", field="out")
        return out
    return path.parent / "releases"  # made when there is something to publish


def steps_of(plan: Plan) -> int:
    """At most how many steps a release of the plan tells of."""
    return sum(producer.steps for producer in producers(plan)) + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRelease:
    """A plan file with its ledger, rows and folder at hand. Nothing has been read off the rows or charged.

    **Fields**

    - `path`: the plan file.
    - `plan`: what it says.
    - `ledger`: what is charged.
    - `survey`: the rows.
    - `rows`: where they are.
    - `folder`: where the release goes.
    - `resumes`: whether it finishes one that was cut off.
    """

    path: Path
    plan: Plan
    ledger: Ledger = field(repr=False)
    survey: Survey = field(repr=False)
    rows: str
    folder: Path
    resumes: bool = False

    def run(self, pages: Pages | None = None, step: Step = lambda _: None) -> Release:
        """Charge, compute, publish; `step` hears names of the plan alone."""
        curator = Curator(self.ledger, pages=pages)
        act = curator.resume if self.resumes else curator.release
        return act(self.plan, self.survey, self.folder, step=step)


def get_ready(
    path: Path,
    *,
    data: str | None = None,
    ledger: Path | None = None,
    out: Path | None = None,
    resume: str | None = None,
    plan: Plan | None = None,
) -> ReadyRelease:
    """The release of the plan at `path`, or of a part of it, `plan`; `resume` names one that was cut off."""
    plan = plan or read_plan(path, rows=data, ledger=ledger)
    if resume is not None and resume != plan.release_id:
        raise PlanError(
            f"the plan's release is {plan.release_id!r}; name its own plan with --plan", field="ID"
        )
    rows = rows_of(path, plan, data)
    book = Ledger.open(ledger or ledger_at(path.parent, plan.ledger))
    return ReadyRelease(
        path=path,
        plan=plan,
        ledger=book,
        survey=Survey(rows, codebook=path.parent / plan.codebook, relation=plan.relation),
        rows=rows,
        folder=folder_of(path, out),
        resumes=resume is not None,
    )


def rehearse(plan: Plan, step: Step = lambda _: None) -> Release:
    """The whole plan on made-up rows; nothing is charged, nothing may be published, and the document says so."""
    try_plan(plan)
    engine = open_engine(simulate(plan.schema, plan.rows))
    try:
        lot = plan.partition.lot(token_hex(32)) if plan.partition else None
        done = run_plan(plan, engine, lot, step=step)
    finally:
        engine.close()
    return Release(done.to_document(plan, receipt=None, engine=engine.version))


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
