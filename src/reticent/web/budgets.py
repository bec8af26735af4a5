"""The budget page: what is left, what was spent by release, verification, and the opening of a ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from starlette.responses import Response

from reticent.errors import LedgerError, ReticentError
from reticent.exact import show
from reticent.privacy.claim import in_words
from reticent.privacy.ledger import Ledger, receipts_in
from reticent.privacy.ledger.entries import Entry
from reticent.privacy.ledger.store import ledger_service
from reticent.release.curator import beside_epsilon
from reticent.report.pages import installed
from reticent.web import compose
from reticent.web.asked import Asked, elsewhere
from reticent.web.desk import NoSuchError, ledger_key
from reticent.workflow.approving import terms
from reticent.workflow.opening import OpenedLedger, Opening, open_by_plan
from reticent.workflow.releasing import WARNING, folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One release in a ledger: what it charged, how far it has come, and the files that are there."""

    release: str
    amount: str
    state: str
    share: float
    receipt: Mapping[str, Any] = field(default_factory=dict)
    recorded: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """A ledger in numbers."""

    key: str
    name: str
    dataset: str
    change: str
    unit: str
    budget: str
    spent: str
    left: str
    share: float
    lines: tuple[LedgerLine, ...]
    said: tuple[str, ...] = ()
    sign_off: tuple[int, tuple[str, ...]] = (0, ())

    @property
    def sign(self) -> str:
        """The letter of the unit."""
        return "ρ" if self.unit == "rho" else "ε"


def view_of(book: Ledger, name: str, folder: Path) -> BudgetView:
    """What the ledger holds, and which of its files are in the folder of releases."""
    facts, spent, asked = book.facts, book.spent, book.sign_off
    entries = list(book.entries())
    return BudgetView(
        key=ledger_key(name),
        name=name,
        dataset=facts.dataset,
        change=facts.change,
        unit=facts.unit,
        budget=show(facts.budget),
        spent=show(spent),
        left=show(book.left),
        share=float(spent / facts.budget),
        lines=tuple(lines_of(book, entries, folder)),
        said=tuple(_said(book, entries)),
        sign_off=(asked.needed, tuple(asked.approvers)) if asked else (0, ()),
    )


def _said(book: Ledger, entries: list[Entry]) -> Iterator[str]:
    facts = book.facts
    if facts.unit == "rho":
        yield f"spent: {in_words(book.spent, Fraction(1, 10**6))}"
    charged = sum(
        (Fraction(str(each.body["amount"])) for each in entries if each.kind == "reserve"), Fraction(0)
    )
    if charged != book.spent:
        yield f"charged in all: {show(charged)}; of pieces or waves only those count that one respondent can be in"
    beside = beside_epsilon(entries)
    if "delta" in beside:
        yield f"delta {beside['delta']} in all"
    for release in beside.get("observed", []):
        yield f"{release}: observed, not differentially private; its epsilon bounds nothing"
    for each in facts.raises:
        yield f"the budget was raised from {each.before} to {each.after}: {each.reason}"


def lines_of(book: Ledger, entries: list[Entry], folder: Path) -> Iterator[LedgerLine]:
    """Every release that was charged, in order."""
    published = {str(each.body["release"]): each.body["files"] for each in entries if each.kind == "publish"}
    for entry in entries:
        if entry.kind != "reserve":
            continue
        release, amount = str(entry.body["release"]), str(entry.body["amount"])
        recorded = published.get(release, {})
        there = [each for each in recorded if (folder / each).is_file()]
        drawn = installed() if f"{release}.json" in there else ()
        yield LedgerLine(
            release=release,
            amount=amount,
            state=book.state(release),
            share=float(Fraction(amount) / book.facts.budget),
            receipt={"entry": entry.number, "hash": entry.hash, "charged": amount},
            recorded=recorded,
            files=(*drawn, *(each.removeprefix(release) for each in there)),
        )


def budget(
    asked: Asked, *, done: str = "", problem: str = "", opened: OpenedLedger | None = None
) -> Response:
    """What is spent, by release, and what is left."""
    plan = asked.plan
    view, missing, unit, may_open = None, "", "epsilon", False
    try:
        whole = asked.desk.whole(plan)
        unit, may_open = whole.unit, True
        view = view_of(asked.desk.ledger(whole), whole.ledger, folder_of(plan.path))
    except ReticentError as refused:
        missing = refused.told
        if may_open and not ledger_service(whole.ledger) and not (asked.desk.folder / whole.ledger).exists():
            missing = f"So far there is no ledger {whole.ledger}. A release is charged to one."
    return asked.page(
        "budget.html.j2",
        status=409 if problem else 200,
        plan=plan,
        view=view,
        missing=missing,
        may_open=may_open,
        sign="ρ" if unit == "rho" else "ε",
        done=done,
        problem=problem,
        opened=opened,
        warning=WARNING,
        keys=list(asked.desk.approvers()),
    )


def verify(asked: Asked) -> Response:
    """Check the chain, the head file and the receipts in the folder of releases."""
    plan = asked.plan
    whole, folder = asked.desk.whole(plan), folder_of(plan.path)
    known = list(receipts_in(folder)) if folder.is_dir() else []
    book = asked.desk.ledger(whole)
    try:
        own = [each for each in known if each.get("ledger") == book.facts.ledger]
        book.verify(own)
    except LedgerError as refused:
        return budget(asked, problem=refused.told)
    agree = "1 receipt agrees" if len(own) == 1 else f"{len(own)} receipts agree"
    return budget(asked, done=f"{whole.ledger} is whole; {agree} with it")


def open_ledger(asked: Asked) -> Response:
    """Start the ledger that a plan names, as `ledger open --plan` does. Its budget, and who must sign, are for ever."""
    try:
        with asked.desk.one_at_a_time():
            opened = open_by_plan(_opening(asked), asked.plan.path)
    except ReticentError as refused:
        return budget(asked, problem=refused.told)
    if opened.unread or opened.same_rows:
        return budget(asked, opened=opened)  # said once, and kept nowhere
    return elsewhere("plans", asked.plan.name, "budget")


def _opening(asked: Asked) -> Opening:
    form, there = asked.form, asked.desk.approvers()
    named = compose.many(form, "approver")
    if not {*named} <= {*there}:
        raise NoSuchError("there is no such key in this folder")
    needed = compose.whole(form, "sign-off", "sign-off") if compose.one(form, "sign-off") else 0
    return Opening(
        ledger=None,
        dataset=None,
        change=None,
        unit=asked.desk.whole(asked.plan).unit,
        budget=compose.amount(form, "budget", "budget"),
        outputs=None,
        separate=False,
        sign_off=terms(needed, [there[each] for each in named]),
    )
