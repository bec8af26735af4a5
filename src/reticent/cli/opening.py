"""Open a ledger: look for others that the same rows are charged to, by file for everybody and by fingerprint for the curator."""

from dataclasses import dataclass, replace
from pathlib import Path

import typer

from reticent.cli.show import show_same_rows
from reticent.engine.open import open_engine
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import located, open_source
from reticent.errors import PlanError, ResourceError, SourceError
from reticent.plan.plan import Plan, read_plan
from reticent.privacy.claim import Change, Unit
from reticent.privacy.ledger import Ledger, Origin, same_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the command line says of a new ledger; what it leaves out, a plan says."""

    ledger: Path | None
    dataset: str | None
    change: str | None
    unit: Unit
    budget: str
    outputs: Path | None
    separate: bool

    def start(self, files: tuple[Origin, ...] = ()) -> Ledger:
        """Make the ledger, or say what is in the way."""
        if self.ledger is None or self.dataset is None:
            raise PlanError("name the file and its --dataset, or a --plan that says both", field="ledger")
        change = self.change or Change.ADD_REMOVE.value
        made = Ledger.create(
            self.ledger,
            dataset=self.dataset,
            change=change,
            unit=self.unit,
            budget=self.budget,
            outputs=self.outputs,
            files=files,
            separate_budget=self.separate,
        )
        typer.echo(f"opened {self.ledger.name} for {self.dataset}: {self.unit} {self.budget}, {change}")
        return made


def open_by_name(asked: Opening) -> None:
    """A ledger for rows that are not named yet: their files are marked at the first charge."""
    asked.start()


def open_by_plan(asked: Opening, path: Path, data: str | None) -> None:
    """A ledger for the rows of a plan. Rows that are not there yet, or do not fit, leave no fingerprint."""
    plan, folder = read_plan(path, rows=data, ledger=asked.ledger), path.parent / "releases"
    asked = replace(
        asked,
        ledger=asked.ledger or path.parent / plan.ledger,
        dataset=asked.dataset or plan.schema.name,
        change=asked.change or plan.change.value,
        outputs=asked.outputs or (folder if folder.is_dir() else None),
    )
    engine = _rows(plan, data if data is not None else located(path.parent, plan.source))
    if engine is None:
        asked.start()
        typer.echo("the rows could not be opened, so the ledger keeps no fingerprint of them")
        return
    try:
        ledger = asked.start(engine.files)
        _remember(ledger, engine, plan, asked)
    finally:
        engine.close()


def _rows(plan: Plan, data: str) -> CuratorEngine | None:
    try:
        return open_engine(open_source(data, table=plan.relation, schema=plan.schema))
    except SourceError:
        return None


def _remember(ledger: Ledger, engine: CuratorEngine, plan: Plan, asked: Opening) -> None:
    fingerprint = fingerprint_of(engine, plan)
    if fingerprint is None or asked.ledger is None:
        typer.echo("the rows do not fit the codebook, so the ledger keeps no fingerprint of them")
        return
    ledger.remember_rows(fingerprint)
    show_same_rows(found_nearby(asked.ledger, fingerprint, engine, asked.outputs))


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
    return same_rows(ledger.parent.resolve() / ledger.name, fingerprint, folders)
