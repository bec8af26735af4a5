"""Release a plan file, and rehearse one: what every door does between reading the plan and showing what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from os.path import isdir
from pathlib import Path
from secrets import token_hex

from reticent.engine.open import open_engine
from reticent.engine.sources.open import located
from reticent.errors import PlanError
from reticent.plan.plan import Plan, read_plan
from reticent.privacy.ledger import Ledger
from reticent.privacy.ledger.store import ledger_at
from reticent.release.curator import Curator, Pages
from reticent.release.release import Release, producers
from reticent.release.run import run_plan, try_plan
from reticent.release.survey import Survey, simulate

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
