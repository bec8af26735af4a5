"""The curator: charge, then read, then answer, then commit, then publish, in that order and no other (R09).

What is published is the answer: JSON with every number and every synthetic row, and tables written from it. Pages come
after that, from the published JSON, and cannot stop anything (T35). A ledger's sum of epsilon does not say everything:
deltas, and releases that are observed and promise nothing, are told beside it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from reticent import files
from reticent.engine.protocol import Engine
from reticent.errors import ResourceError
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Ledger, Origin, Reservation
from reticent.privacy.ledger.entries import Entry
from reticent.release.release import JSON, Release, files_of, planned_files
from reticent.release.run import run_plan, try_plan
from reticent.release.survey import Survey


def beside_epsilon(entries: Iterable[Entry], *, upto: int | None = None) -> dict[str, Any]:
    """The exact sum of deltas and the observed releases, of all charges up to an entry; empty where all are pure."""
    charges = [e.body for e in entries if e.kind == "reserve" and (upto is None or e.number <= upto)]
    delta = sum((Fraction(str(body["claim"].get("delta", 0))) for body in charges), Fraction(0))
    observed = [str(body["release"]) for body in charges if body["claim"].get("measure") == "observed"]
    return {**({"delta": show(delta)} if delta else {}), **({"observed": observed} if observed else {})}


Step = Callable[[str], None]


class Pages(Protocol):
    """Further files that are drawn from a published release, such as `reticent.report.pages.ReportPages`."""

    @property
    def endings(self) -> Sequence[str]: ...

    def draw(self, published: Path) -> None:
        """Draw those that are missing beside the JSON file `published`."""
        ...


class Curator:
    """The data curator's side of a release: runs plans against one ledger.

    **Parameters**

    - `ledger`: the ledger that is charged.
    - `pages`: further files to draw from what is published, such as `reticent.report.pages.ReportPages`.
    """

    def __init__(self, ledger: Ledger, *, pages: Pages | None = None) -> None:
        self._ledger = ledger
        self._pages = pages

    def release(self, plan: Plan, survey: Survey, out: Path, *, step: Step = lambda _: None) -> Release:
        """Publish the plan into `out`. The same id and plan again give the same bytes and no charge.

        **Parameters**

        - `plan`: what is asked.
        - `survey`: the rows and their codebook.
        - `out`: the folder that the files of the release go into.
        - `step`: called with a word as each step is done, for a progress bar.
        """
        survey.check_apart(plan)
        if self._ledger.state(plan.release_id) != "none":
            return self._publish(self._reserve(plan), out)
        try_plan(plan)
        self._check_out(plan, out)
        engine = survey.open()
        try:
            self._check_engine(plan, engine)
            self._ledger.check_alone(engine.files, out)
            reservation = self._reserve(plan, engine.files)
            step("charged")
            return self._publish(self._committed(plan, engine, reservation, step), out)
        finally:
            engine.close()

    def resume(self, plan: Plan, survey: Survey, out: Path, *, step: Step = lambda _: None) -> Release:
        """Finish a release that was cut off: once, without a new charge.

        **Parameters**

        - `plan`: what is asked.
        - `survey`: the rows and their codebook.
        - `out`: the folder that the files of the release go into.
        - `step`: called with a word as each step is done, for a progress bar.
        """
        survey.check_apart(plan)
        answer = self._ledger.answer(plan.release_id)
        if answer is not None:
            return self._publish(self._reserve(plan), out)
        try_plan(plan)
        self._check_out(plan, out)
        engine = survey.open()
        try:
            self._check_engine(plan, engine)
            self._ledger.check_alone(engine.files, out)
            reservation = self._ledger.resume(plan.release_id, self._digest(plan), files=engine.files)
            return self._publish(self._committed(plan, engine, reservation, step), out)
        finally:
            engine.close()

    def _check_engine(self, plan: Plan, engine: Engine) -> None:
        """Refuse rows that do not fit the codebook, and a plan that their engine cannot carry out."""
        engine.check(plan.schema)
        if (stand_in := engine.stand_in()) is not None:
            try_plan(plan, stand_in)

    def _digest(self, plan: Plan) -> str:
        """The plan's digest; for a release that was charged before format 2, the one it was charged under."""
        charged = self._ledger.plan(plan.release_id)
        if charged is None or charged == plan.digest:
            return plan.digest
        return charged if charged in plan.former else plan.digest

    def _reserve(self, plan: Plan, files: Sequence[Origin] = ()) -> Reservation:
        return self._ledger.reserve(
            release_id=plan.release_id,
            plan_hash=self._digest(plan),
            dataset=plan.schema.name,
            change=plan.change.value,
            unit=plan.unit,
            amount=plan.cost,
            claim={**plan.claim.as_dict(), "accept_large": plan.accepts_large, **_observed(plan)},
            piece=plan.partition.piece if plan.partition else None,
            wave=plan.wave,
            files=files,
        )

    def _committed(self, plan: Plan, engine: Engine, reservation: Reservation, step: Step) -> Reservation:
        """Read the rows, add the noise, and put the answer on disk in the ledger before anybody sees it."""
        cut = plan.partition
        lot = cut.lot(self._ledger.key(cut.piece.partition)) if cut else None
        done = run_plan(plan, engine, lot, step=step)
        if not done.is_as_planned(plan):
            raise ResourceError(
                f"was planned at {show(plan.cost)} but ran otherwise; nothing is published", field="statistic"
            )
        made = done.to_document(
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
        made = {f"{release.id}{ending}": write(release) for ending, write in files_of(release).items()}
        files.make_folder(out)
        published = self._published(release.id)
        for name, data in made.items():
            if not (files.holds(out / name, data) or _is_published(out / name, published.get(name))):
                files.write_new(out / name, data, private=False)
        if self._ledger.state(release.id) != "published":
            self._ledger.publish(release.id, {name: sha256(data).hexdigest() for name, data in made.items()})
        self._draw(out / f"{release.id}{JSON}")
        return release

    def _draw(self, published: Path) -> None:
        """Whatever becomes of the pages, the release is out, and `resume` draws what is missing."""
        if self._pages is not None:
            with suppress(Exception):
                self._pages.draw(published)

    def _published(self, release_id: str) -> Mapping[str, str]:
        """Names and digests of the files that were published. A later version may write a table otherwise."""
        entries = (entry.body for entry in self._ledger.entries() if entry.kind == "publish")
        return next((body["files"] for body in entries if body["release"] == release_id), {})

    def _check_out(self, plan: Plan, out: Path) -> None:
        """Nothing is in the way: the folder is there or can be made, it can be written to, the names are free."""
        if not out.exists():
            files.check_new(out)
            return
        drawn = self._pages.endings if self._pages else ()
        for ending in (*planned_files(plan), *drawn):
            files.check_new(out / f"{plan.release_id}{ending}")


def _observed(plan: Plan) -> dict[str, Any]:
    """What the ledger says of tables that are observed: they promise nothing, and this much was reserved for them."""
    reserved = {name: cost for product in plan.products for name, cost in product.observed.items()}
    if not reserved:
        return {}
    return {"observed": {"tables": list(reserved), "reserved": show(sum(reserved.values(), Fraction(0)))}}


def _is_published(path: Path, digest: str | None) -> bool:
    return digest is not None and path.is_file() and sha256(path.read_bytes()).hexdigest() == digest
