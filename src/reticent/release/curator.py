"""The curator: charge, then read, then answer, then commit, then publish, in that order and no other (R09)."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from reticent import files
from reticent.decimals import show
from reticent.engine.base import Engine
from reticent.errors import ResourceError
from reticent.privacy.ledger import Ledger, Reservation
from reticent.release.beside import beside_epsilon
from reticent.release.carry import carry_out
from reticent.release.evaluate import wants_of
from reticent.release.model_fit import check_models
from reticent.release.plan import Plan
from reticent.release.release import Release
from reticent.release.survey import Survey
from reticent.release.synth_pages import synth_pages
from reticent.release.tables import check_cells

Pages = Mapping[str, Callable[[Release], bytes]]
Step = Callable[[str], None]


class Curator:
    """Runs plans against one ledger. `pages` turn a release into further files, by their ending."""

    def __init__(self, ledger: Ledger, *, pages: Pages | None = None) -> None:
        self._ledger = ledger
        self._pages: Pages = {".json": Release.to_bytes, ".csv": Release.to_csv, **(pages or {})}

    def release(self, plan: Plan, survey: Survey, out: Path, *, step: Step = lambda _: None) -> Release:
        """Publish the plan into `out`. The same id and plan again give the same bytes and no charge."""
        wants_of(plan)
        if self._ledger.state(plan.release_id) != "none":
            return self._publish(self._reserve(plan), out)
        check_cells(plan)
        check_models(plan)
        self._check_out(plan, out)
        engine = survey.open()
        try:
            engine.check(plan.schema)
            reservation = self._reserve(plan)
            step("charged")
            return self._publish(self._committed(plan, engine, reservation, step), out)
        finally:
            engine.close()

    def resume(self, plan: Plan, survey: Survey, out: Path, *, step: Step = lambda _: None) -> Release:
        """Finish a release that was cut off: once, without a new charge."""
        wants_of(plan)
        answer = self._ledger.answer(plan.release_id)
        if answer is not None:
            return self._publish(self._reserve(plan), out)
        check_cells(plan)
        check_models(plan)
        self._check_out(plan, out)
        engine = survey.open()
        try:
            engine.check(plan.schema)
            reservation = self._ledger.resume(plan.release_id, self._digest(plan))
            return self._publish(self._committed(plan, engine, reservation, step), out)
        finally:
            engine.close()

    def _digest(self, plan: Plan) -> str:
        """The plan's digest; for a release that was charged before format 2, the one it was charged under."""
        charged = self._ledger.plan(plan.release_id)
        return charged if charged is not None and charged in plan.former else plan.digest

    def _reserve(self, plan: Plan) -> Reservation:
        return self._ledger.reserve(
            release_id=plan.release_id,
            plan_hash=self._digest(plan),
            dataset=plan.schema.name,
            change=plan.change.value,
            unit="epsilon",
            amount=plan.cost,
            claim={**plan.claim.as_dict(), "accept_large": plan.accepts_large, **_observed(plan)},
            piece=plan.partition.piece if plan.partition else None,
        )

    def _committed(self, plan: Plan, engine: Engine, reservation: Reservation, step: Step) -> Reservation:
        """Read the rows, add the noise, and put the answer on disk in the ledger before anybody sees it."""
        cut = plan.partition
        lot = cut.lot(self._ledger.key(cut.piece.partition)) if cut else None
        done = carry_out(plan, engine, lot, step=step)
        if done.epsilon != plan.cost:
            raise ResourceError(
                f"was planned at {show(plan.cost)} but ran otherwise; nothing is published", field="statistic"
            )
        made = done.told(
            plan,
            receipt=reservation.receipt.as_dict(),
            engine=engine.version,
            beside=beside_epsilon(self._ledger.entries(), upto=reservation.receipt.entry),
        )
        data = Release(made).to_bytes()
        self._ledger.commit(reservation, data)
        return self._reserve(plan)

    def _publish(self, reservation: Reservation, out: Path) -> Release:
        """Write what the ledger holds. A file that is already there must be this one, or the one published."""
        if reservation.answer is None:
            raise ResourceError("the ledger holds no answer for this release", field="ledger")
        release = Release.from_bytes(reservation.answer)
        synths = sum(len(table["tables"]) for table in release.document.get("synth", []))
        pages = self._pages_of(bool(release.document.get("cells")), synths)
        made = {f"{release.id}{ending}": page(release) for ending, page in pages.items()}
        files.make_folder(out)
        published = self._published(release.id)
        for name, data in made.items():
            if not (files.holds(out / name, data) or _is_published(out / name, published.get(name))):
                files.write_new(out / name, data, private=False)
        if self._ledger.state(release.id) != "published":
            self._ledger.publish(release.id, {name: sha256(data).hexdigest() for name, data in made.items()})
        return release

    def _published(self, release_id: str) -> Mapping[str, str]:
        """Names and digests of the files that were published. A later version may draw the page otherwise."""
        entries = (entry.body for entry in self._ledger.entries() if entry.kind == "publish")
        return next((body["files"] for body in entries if body["release"] == release_id), {})

    def _check_out(self, plan: Plan, out: Path) -> None:
        """Nothing is in the way: the folder is there or can be made, it can be written to, the names are free."""
        if not out.exists():
            files.check_new(out)
            return
        for ending in self._pages_of(bool(plan.cells), sum(synth.tables for synth in plan.synths)):
            files.check_new(out / f"{plan.release_id}{ending}")

    def _pages_of(self, has_cells: bool, synths: int) -> Pages:
        """The pages of every release, and those of its tables, by their ending."""
        cells: Pages = {".cells.csv": Release.cells_csv} if has_cells else {}
        return {**self._pages, **cells, **synth_pages(synths)}


def _observed(plan: Plan) -> dict[str, Any]:
    """What the ledger says of tables that are observed: they promise nothing, and this much was reserved for them."""
    tables = [cells for cells in plan.cells if cells.is_observed]
    if not tables:
        return {}
    reserved = sum((cells.cost for cells in tables), Fraction(0))
    return {"observed": {"tables": [cells.name for cells in tables], "reserved": show(reserved)}}


def _is_published(path: Path, digest: str | None) -> bool:
    return digest is not None and path.is_file() and sha256(path.read_bytes()).hexdigest() == digest
