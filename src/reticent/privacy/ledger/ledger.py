"""The ledger: charge first, answer once, publish last; never over budget and never a refund (R09)."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.notebook import html_table, paragraph
from reticent.privacy.ledger import book as audit
from reticent.privacy.ledger import entries, origins
from reticent.privacy.ledger.approvals import Approval, SignOff
from reticent.privacy.ledger.book import LedgerBook, Page, start, store_at
from reticent.privacy.ledger.entries import Entry, Facts, Reservation, decimal_text, digest
from reticent.privacy.ledger.history import ChargedPiece, Cut, History, Standing
from reticent.privacy.ledger.origins import Origin
from reticent.privacy.ledger.store import ledger_service, read_head
from reticent.privacy.ledger.waves import ChargedWave, Waves

_PATIENCE = 60.0


class Ledger:
    """One data set's budget and everything charged to it, in one file or on a server, with a head file on this machine.

    Guarantee   the charges never sum to more than the budget, in exact arithmetic, whoever writes at once; of the
                pieces of a partition the one that was charged most is counted, or two where answers that are
                replaced decide who is in which; of the waves of a panel as many as a respondent can be in.
    Adjacency   the one change the ledger was opened for; a release under another is refused.
    Theorem     composition by addition up to a fixed budget, of epsilon or of rho; THEORY 5.2 for pieces, 16.4 for waves.
    Proof       proofs/privacy/ledger.md
    Assumes     a disk that keeps what was flushed; nobody rewrites the file and its head together.
    Keeps back  the keys of partitions, its own key, and what it keeps under that: marks of files and a fingerprint of
                the rows. No row, count or bound is ever handed to it.
    """

    def __init__(self, book: LedgerBook) -> None:
        self._book = book

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        dataset: str,
        change: str,
        unit: str,
        budget: str,
        outputs: Path | None = None,
        files: Sequence[Origin] = (),
        separate_budget: bool = False,
        sign_off: SignOff | None = None,
        allow_network: bool = False,
    ) -> Self:
        """Start a ledger; refused where the data set or its `files` show signs of having had one (L11, L13).

        The signs are a head file, another ledger beside it, receipts of the data set among the JSON files in the
        folder `outputs`, and another ledger that is for one of the same files. With `separate_budget` these others
        are left to their own budgets, and every receipt says so.

        **Parameters**

        - `path`: where the file will lie, or `postgres:SERVICE/NAME`.
        - `dataset`: the public name of the data set.
        - `change`: the adjacency that all releases share.
        - `unit`: what the budget is counted in, for good: `"epsilon"`, or `"rho"` for zCDP.
        - `budget`: the privacy budget in that unit, a decimal as text.
        - `outputs`: the folder of published releases, looked through for receipts.
        - `files`: the files of rows that the ledger is for.
        - `separate_budget`: start a budget beside another ledger's.
        - `sign_off`: who has to approve each charge before it is made.
        - `allow_network`: accept a disk that is not this machine's.
        """
        place = store_at(path, _PATIENCE, new=True)
        facts = entries.opening(
            dataset=dataset, change=change, unit=unit, budget=budget, separate=separate_budget
        )
        found = origins.resolved(files)
        audit.check_unopened(
            place, dataset, None if separate_budget else outputs, allow_network=allow_network
        )
        if not separate_budget:
            origins.check_name(place, dataset)
            origins.check_files(place, "", found, outputs)
        start(place, facts, sign_off.opening() if sign_off else None)
        made = cls.open(path, allow_network=allow_network)
        made._mark(found)
        return made

    @classmethod
    def open(cls, path: Path, *, timeout: float = _PATIENCE, allow_network: bool = False) -> Self:
        """A ledger that exists. Its chain is read through, its head file compared and brought up.

        **Parameters**

        - `path`: the ledger file, or `postgres:SERVICE/NAME`.
        - `timeout`: how many seconds to wait for another writer.
        - `allow_network`: accept a disk that is not this machine's.
        """
        place = store_at(path, timeout)
        place.check_usable(allow_network=allow_network)
        book = LedgerBook(place)
        with book.reading() as page:
            head = read_head(place.head)
            is_behind = head is None or head.entry < page.history.number
        if is_behind:
            book.mark()
        return cls(book)

    @classmethod
    def join(cls, path: Path, *, receipts: Iterable[Mapping[str, Any]] = ()) -> Self:
        """Begin to use a ledger of a server from this machine, which then remembers its last entry.

        Every receipt must agree with it. A ledger in a file has its head beside it and is not joined.

        **Parameters**

        - `path`: the ledger, `postgres:SERVICE/NAME`.
        - `receipts`: of releases that were published from it.
        """
        place = store_at(path, _PATIENCE)
        if ledger_service(os.fspath(path)) is None:
            raise PlanError("a ledger in a file has its head beside it; put that back.", field="ledger")
        place.check_usable(allow_network=False)
        LedgerBook(place).join(receipts)
        return cls.open(path)

    @property
    def name(self) -> str:
        """The file's name, or `postgres:SERVICE/NAME`."""
        return self._book.place.name

    @property
    def facts(self) -> Facts:
        """Data set, change, unit, budget after all raises, and the raises."""
        return self._history().known()

    @property
    def spent(self) -> Fraction:
        """The sum of all charges, whatever became of the releases."""
        return self._history().spent

    @property
    def left(self) -> Fraction:
        """Budget less spent; never negative."""
        return self._history().left

    def __repr__(self) -> str:
        """The data set, what was spent and what is left; a ledger keeps no row."""
        facts = self.facts
        told = [decimal_text(each, field="budget") for each in (self.spent, facts.budget, self.left)]
        return f"<ledger of {facts.dataset!r}: {facts.unit} {told[0]} spent of {told[1]}, {told[2]} left>"

    def _repr_html_(self) -> str:
        charges = [entry.body for entry in self.entries() if entry.kind == "reserve"]
        rows = [
            (str(each["release"]), str(each["amount"]), self.state(str(each["release"]))) for each in charges
        ]
        return paragraph(repr(self).strip("<>")) + html_table(("release", self.facts.unit, "state"), rows)

    def state(self, release_id: str) -> str:
        """How far a release has come: none, reserved, committed or published."""
        standing = self._history().releases.get(release_id)
        return "none" if standing is None else standing.state

    def plan(self, release_id: str) -> str | None:
        """The digest of the plan that a release was charged under, if it was charged."""
        standing = self._history().releases.get(release_id)
        return None if standing is None else standing.plan

    def answer(self, release_id: str) -> bytes | None:
        """The bytes that were committed for a release, if any."""
        with self._book.reading() as page:
            return page.answer(release_id)

    def entries(self) -> Iterator[Entry]:
        """Every entry from the first to the last, as they were when asked."""
        return iter(self._book.entries())

    def verify(self, receipts: Iterable[Mapping[str, Any]] = ()) -> None:
        """Check the file, the chain, the answers, the head file, and each receipt against the chain."""
        history = self._book.verify()
        for receipt in receipts:
            audit.check_receipt(receipt, history)

    def check_alone(self, files: Sequence[Origin], out: Path | None = None) -> None:
        """Refuse rows that have another budget: by their files, and by the receipts in the folder `out` (L11, L13).

        Looks at names, links and what the system says of a file, never at a row.
        """
        facts = self.facts
        if facts.separate:
            return
        origins.check_files(self._book.place, facts.ledger, origins.resolved(files), out)
        if out is not None:
            origins.check_published(out, facts.ledger, facts.dataset)

    def reserve(
        self,
        *,
        release_id: str,
        plan_hash: str,
        dataset: str,
        change: str,
        unit: str,
        amount: Fraction,
        claim: Mapping[str, Any],
        piece: ChargedPiece | None = None,
        wave: ChargedWave | None = None,
        files: Sequence[Origin] = (),
    ) -> Reservation:
        """Charge a release, on disk, before any row is read; to a `piece` or a `wave`, where it reads only that.

        A partition that is not known yet is made, with a fresh secret key. Of its pieces the one that was charged
        most counts, or two (see `Cut.counted`). The first wave fixes the design of the panel (see `Waves.counted`).

        The same id and plan again: no charge, and the answer that was given. While there is none yet the
        call is refused: another run is at work on it, or was cut off and waits for `resume` (L06).

        The `files` that rows will come from are marked as this ledger's, here and beside them.
        """
        body = entries.reserving(release_id=release_id, plan_hash=plan_hash, amount=amount, claim=claim)
        if piece is not None:
            body["piece"] = piece.charged
        found = origins.resolved(files)
        with self._book.adding() as page:
            entries.same_facts(page.history.known(), dataset=dataset, change=change, unit=unit)
            standing = page.history.releases.get(release_id)
            if standing is not None:
                entries.same_plan(release_id, plan_hash, standing.plan)
                return _given(page, release_id, standing)
            if piece is not None:
                _cut(page, piece)
            if wave is not None:
                body["wave"] = wave.charged(origins.marks(page.history.key, found))
                _panel(page, wave, body)
            if not page.history.is_approved(body):
                raise _unsigned(page.history, body)
            if page.history.more(amount, body) > page.history.left:
                raise _too_little(page.history, amount, page.history.more(amount, body))
            _source(page, found)
            page.add("reserve", body)
        self._claim(page.history.known(), found)
        return _right(release_id, page.history.releases[release_id])

    def growth(
        self, amount: Fraction, *, piece: ChargedPiece | None = None, wave: ChargedWave | None = None
    ) -> Fraction:
        """How much a charge would add to what is spent: less than its amount where pieces or waves count but in part.

        **Parameters**

        - `amount`: what would be charged.
        - `piece`: the piece of a partition that it would be charged to.
        - `wave`: the wave of a panel that it would be charged to.
        """
        history = self._history()
        if piece is not None:
            known = piece.partition in history.cuts
            return history.more(amount, {"piece": piece.charged}) if known else amount
        return history.more(amount, {"wave": {"name": wave.name}}) if wave is not None else amount

    def is_used_up(self, release_id: str) -> bool:
        """Whether a release was cut off a second time, so that its charge gives no more right to an answer."""
        standing = self._history().releases.get(release_id)
        return standing is not None and standing.answer is None and standing.resumed

    @property
    def sign_off(self) -> SignOff | None:
        """Who has to approve a charge, and who has; None where nobody has to."""
        return self._history().sign_off

    def approve(self, approval: Approval) -> None:
        """Add a person's signed approval of a charge that is still to come; the same one again changes nothing."""
        with self._book.adding() as page:
            asked, facts = page.history.sign_off, page.history.known()
            if asked is None:
                raise PlanError("this ledger asks for no approval; release the plan.", field="sign-off")
            problem = asked.refusal(approval, facts.ledger)
            if problem:
                raise PlanError(f"{problem}; nothing was added.", field="approval")
            if approval.by in asked.by(approval.release, approval.plan, approval.amount):
                return
            if approval.release in page.history.releases:
                raise PlanError(
                    f"release {approval.release} was charged already; nothing is left to approve.",
                    field="approval",
                )
            page.add("approve", approval.as_dict())

    def resume(self, release_id: str, plan_hash: str, *, files: Sequence[Origin] = ()) -> Reservation:
        """Finish what was cut off, on the curator's word.

        With an answer on disk: that answer, as often as asked (L05). Without one: the right to answer, once
        (L04); whoever held the right before has lost it. The `files` it will read are marked as for a charge.
        """
        found = origins.resolved(files)
        with self._book.adding() as page:
            standing = _standing(page.history, release_id)
            entries.same_plan(release_id, plan_hash, standing.plan)
            if standing.answer is not None:
                return _given(page, release_id, standing)
            if standing.resumed:
                raise LedgerError(
                    f"release {release_id} was resumed once already and its charge is used up; "
                    "it needs a new release id, which is charged anew.",
                    field="release",
                )
            _source(page, found)
            page.add("resume", {"release": release_id})
        self._claim(page.history.known(), found)
        return _right(release_id, standing)

    def commit(self, reservation: Reservation, answer: bytes) -> None:
        """Keep the answer's bytes, on disk, before anybody sees them; once, by the holder of the right."""
        release_id = reservation.release_id
        with self._book.adding() as page:
            standing = _standing(page.history, release_id)
            if standing.answer is not None or not reservation.fresh:
                raise LedgerError(
                    f"release {release_id} has its answer already; use that one.", field="release"
                )
            if reservation.holder != standing.holder:
                raise LedgerError(
                    f"release {release_id} was resumed by another run, whose answer counts; drop this one.",
                    field="release",
                )
            body = {"release": release_id, "holder": standing.holder, "answer": digest(answer)}
            page.add("commit", body, bytes(answer))

    def publish(self, release_id: str, files: Mapping[str, str]) -> None:
        """Record which files, by name and SHA-256, carry the answer; the same ones again change nothing."""
        named = entries.published(files)
        with self._book.adding() as page:
            standing = _standing(page.history, release_id)
            if standing.answer is None:
                raise LedgerError(f"release {release_id} has no answer to publish yet.", field="release")
            if standing.files is None:
                page.add("publish", {"release": release_id, "files": named})
            elif standing.files != named:
                raise LedgerError(
                    f"release {release_id} was published already, as other files.", field="release"
                )

    def key(self, partition: str) -> str:
        """The secret key of a partition. Whoever has it and the rows knows who is in which piece."""
        cut = self._history().cuts.get(partition)
        if cut is None:
            raise LedgerError(
                "there is no such partition; charge one of its pieces first.", field="partition"
            )
        return cut.key

    def pieces(self) -> dict[str, tuple[Fraction, ...]]:
        """What was charged to every piece of every partition."""
        return {name: tuple(cut.spent) for name, cut in self._history().cuts.items()}

    def counting(self) -> dict[str, str]:
        """For every partition, which of its pieces count, in words."""
        history = self._history()
        facts = history.known()
        return {name: cut.counting(facts) for name, cut in history.cuts.items()}

    def waves(self) -> Waves | None:
        """The design of the panel and what was charged to each wave; None where no wave was charged."""
        return self._history().waves

    def note(self, text: str, *, raise_budget_to: str | None = None, separate_budget: bool = False) -> None:
        """A human's remark; with a new budget, the reason for the raise, which every later receipt repeats.

        With `separate_budget`, the reason why these rows have another budget beside this one; every later receipt
        says that they do.
        """
        with self._book.adding() as page:
            body = entries.noting(text, raise_budget_to, page.history.known(), separate=separate_budget)
            page.add("note", body)

    def remember_rows(self, fingerprint: str) -> None:
        """Keep a fingerprint of the rows, under this ledger's key. It is for the curator and decides nothing."""
        with self._book.adding() as page:
            kept = origins.keyed(page.history.key, fingerprint)
            if kept not in page.history.fingerprints:
                page.add("rows", {"fingerprint": kept})

    def _mark(self, found: Sequence[Origin]) -> None:
        with self._book.adding() as page:
            _source(page, found)

    @staticmethod
    def _claim(facts: Facts, found: Sequence[Origin]) -> None:
        """Leave a marker beside the rows; a separate budget claims none."""
        act = origins.take_marker if facts.separate else origins.leave_marker
        act(facts.ledger, found)

    def _history(self) -> History:
        with self._book.reading() as page:
            return page.history


def _cut(page: Page, piece: ChargedPiece) -> None:
    """Make the partition, or check that it is the one that was made."""
    known = page.history.cuts.get(piece.partition)
    if known is not None:
        known.check(piece)
        return
    body = piece.opening()
    if not Cut.read(body).fits(page.history.known()):
        raise PlanError(
            "pieces are worked out for a ledger in epsilon, and pieces of fixed sizes for replaced answers.",
            field="partition",
        )
    if page.history.waves is not None:
        raise PlanError(_NOT_BOTH, field="partition")
    page.add("partition", body)


_NOT_BOTH = (
    "a respondent of several waves can be in another piece in each, so a ledger has pieces or waves; leave one of them out, "
    "and the release is counted in full."
)


def _panel(page: Page, wave: ChargedWave, body: Mapping[str, Any]) -> None:
    """Fix the design, or check that it is the one that was fixed, and that this wave may be charged."""
    if page.history.cuts or body.get("piece") is not None:
        raise PlanError(_NOT_BOTH, field="wave")
    if page.history.waves is None:
        page.add("waves", wave.opening())
    known = page.history.waves
    if known is None:
        return
    known.check(wave)
    problem = known.refusal(body["wave"])
    if problem:
        raise PlanError(problem, field="wave")


def _source(page: Page, found: Sequence[Origin]) -> None:
    """Mark files that are not known yet as this ledger's."""
    new = origins.marks(page.history.key, found) - page.history.marks
    if new:
        page.add("source", {"marks": sorted(new)})


def _right(release_id: str, standing: Standing) -> Reservation:
    return Reservation(
        release_id=release_id, fresh=True, answer=None, receipt=standing.receipt, holder=standing.holder
    )


def _given(page: Page, release_id: str, standing: Standing) -> Reservation:
    answer = page.answer(release_id)
    if answer is None:
        raise LedgerError(
            f"release {release_id} is charged but has no answer yet: another run is at work on it, or was cut "
            f"off; wait for it, or finish it with `reticent resume {release_id}`.",
            field="release",
        )
    return Reservation(release_id=release_id, fresh=False, answer=answer, receipt=standing.receipt, holder="")


def _standing(history: History, release_id: str) -> Standing:
    standing = history.releases.get(release_id)
    if standing is None:
        raise LedgerError(f"release {release_id} was never charged; release it first.", field="release")
    return standing


def _unsigned(history: History, body: Mapping[str, Any]) -> BudgetError:
    asked, given = history.sign_off, history.approved_by(body)
    needed = asked.needed if asked else 0
    return BudgetError(
        f"the ledger asks for {needed} approvals of this release, plan and amount, and has {len(given)}"
        f"{' (' + ', '.join(given) + ')' if given else ''}; add one with `reticent ledger approve`. Nothing was charged.",
        field="sign-off",
    )


def _too_little(history: History, amount: Fraction, more: Fraction) -> BudgetError:
    facts = history.known()
    left, budget, asked, adds = (
        decimal_text(each, field="budget") for each in (history.left, facts.budget, Fraction(amount), more)
    )
    counts = "" if history.waves is None else f" and adds {adds} to what counts"
    return BudgetError(
        f'the release costs {asked}{counts}, but {left} of {budget} is left for "{facts.dataset}"; ask for less.',
        field=facts.unit,
    )
