"""Open a ledger: look for others that the same rows are charged to, by file for everybody and by fingerprint for the curator."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reticent.engine.open import open_engine
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import located, open_source
from reticent.errors import PlanError, ResourceError, SourceError
from reticent.plan.plan import Plan, read_plan
from reticent.privacy.claim import Change, Unit
from reticent.privacy.ledger import Ledger, Origin, SignOff, same_rows
from reticent.privacy.ledger.store import ledger_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is said of a new ledger; what is left out, a plan says."""

    ledger: Path | None
    dataset: str | None
    change: str | None
    unit: Unit
    budget: str
    outputs: Path | None
    separate: bool
    sign_off: SignOff | None = None
    unit_name: str = "respondent"

    @property
    def changed(self) -> str:
        """The protected change, in words."""
        return self.change or Change.ADD_REMOVE.value

    @property
    def worded(self) -> str:
        """The same, in words that say household where the codebook does."""
        return self.changed.replace("one respondent", f"one {self.unit_name}")

    def start(self, files: tuple[Origin, ...] = ()) -> Ledger:
        """Make the ledger, or say what is in the way."""
        if self.ledger is None or self.dataset is None:
            raise PlanError("name the file and its --dataset, or a --plan that says both", field="ledger")
        return Ledger.create(
            self.ledger,
            dataset=self.dataset,
            change=self.changed,
            unit=self.unit,
            budget=self.budget,
            outputs=self.outputs,
            files=files,
            separate_budget=self.separate,
            sign_off=self.sign_off,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLedger:
    """A ledger that was opened by a plan; CONFIDENTIAL which others are of the same rows.

    **Fields**

    - `ledger`: the ledger.
    - `asked`: what was asked for, with what the plan says.
    - `unread`: why it keeps no fingerprint of the rows, if it keeps none.
    - `same_rows`: other ledgers of the same rows.
    """

    ledger: Ledger = field(repr=False)
    asked: Opening
    unread: str = ""
    same_rows: Sequence[tuple[str, str]] = field(default=(), repr=False)


def open_by_plan(asked: Opening, path: Path, data: str | None = None) -> OpenedLedger:
    """A ledger for the rows of a plan. Rows that are not there yet, or do not fit, leave no fingerprint."""
    plan, folder = read_plan(path, rows=data, ledger=asked.ledger), path.parent / "releases"
    asked = replace(
        asked,
        ledger=asked.ledger or ledger_at(path.parent, plan.ledger),
        dataset=asked.dataset or plan.schema.name,
        unit_name=plan.schema.unit_name,
        change=asked.change or plan.change.value,
        outputs=asked.outputs or (folder if folder.is_dir() else None),
    )
    engine = _rows(plan, data if data is not None else located(path.parent, plan.source))
    if engine is None:
        return OpenedLedger(ledger=asked.start(), asked=asked, unread="the rows could not be opened")
    try:
        return _remembered(asked.start(engine.files), engine, plan, asked)
    finally:
        engine.close()


def _rows(plan: Plan, data: str) -> CuratorEngine | None:
    try:
        return open_engine(open_source(data, table=plan.relation, schema=plan.schema))
    except SourceError:
        return None


def _remembered(ledger: Ledger, engine: CuratorEngine, plan: Plan, asked: Opening) -> OpenedLedger:
    fingerprint = fingerprint_of(engine, plan)
    if fingerprint is None or asked.ledger is None:
        return OpenedLedger(ledger=ledger, asked=asked, unread="the rows do not fit the codebook")
    ledger.remember_rows(fingerprint)
    near = found_nearby(asked.ledger, fingerprint, engine, asked.outputs)
    return OpenedLedger(ledger=ledger, asked=asked, same_rows=near)


def fingerprint_of(engine: CuratorEngine, plan: Plan) -> str | None:
    """CONFIDENTIAL: the fingerprint of the rows, or None where they cannot be read."""
    try:
        engine.check(plan.schema)
        return engine.fingerprint(plan.schema)
    except (SourceError, ResourceError):
        return None


def found_nearby(
    ledger: Path, fingerprint: str, engine: CuratorEngine, outputs: Path | None
) -> list[tuple[str, str]]:
    """CONFIDENTIAL: other ledgers of the same rows, in its folder, beside the rows and among the releases."""
    folders = [*(path.resolve().parent for path, _ in engine.files), *([outputs] if outputs else [])]
    return same_rows(ledger, fingerprint, folders)
