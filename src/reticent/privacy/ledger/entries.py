"""Entries of a ledger: exact amounts, the hash chain, receipts and reservations, and what a caller may hand in.

Amounts of budget are decimals written as text and held as rationals, so that sums are exact (R07, L08). Each entry carries
the hash of the one before, so that none can be changed alone. Every body carries a random salt. Receipts publish hashes, and
a commit entry holds only things a reader knows (the published answer) besides the clock: without the salt its time, hence
how long the run took, could be found by trying all seconds. What is handed in is checked before anything is locked or
written.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from reticent.errors import LedgerError, PlanError
from reticent.exact import exact_text
from reticent.privacy.claim import UNITS

KINDS = (
    *("open", "sign-off", "source", "rows", "partition", "waves"),
    *("approve", "reserve", "resume", "commit", "publish", "note"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger. It is only ever added; the clock inside it is a remark and orders nothing."""

    number: int
    kind: str
    body: Mapping[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A budget that was raised, where, and the reason a human gave."""

    entry: int
    before: str
    after: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """As it stands in every later receipt."""
        return {"entry": self.entry, "from": self.before, "to": self.after, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the ledger was opened for, and its budget as it stands after all raises.

    `separate` is true where the same rows have, or may have, another budget in another ledger.
    """

    ledger: str
    dataset: str
    change: str
    unit: str
    budget: Fraction
    raises: tuple[Raise, ...]
    separate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of one charge, for the published file: a function of the ledger at the moment of the charge."""

    ledger: str
    dataset: str
    entry: int
    hash: str
    previous: str
    release: str
    unit: str
    charged: str
    spent_before: str
    left_after: str
    raises: tuple[Raise, ...]
    piece: str = ""
    separate_budget: bool = False
    wave: str = ""
    counted: str = ""
    approved_by: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, in the order a reader would ask for them; a piece, a wave and a separate budget where there is one.

        In a wave, `counted` is what the charge adds to the lifetime sum: less than `charged` where other waves cost more.
        Where the ledger asks for sign-off, `approved_by` names who approved.
        """
        seldom = ("piece", "separate_budget", "wave", "counted", "approved_by")
        plain = {
            name: getattr(self, name) for name in self.__slots__ if name not in seldom or getattr(self, name)
        }
        plain["raises"] = [each.as_dict() for each in self.raises]
        plain |= {"approved_by": list(self.approved_by)} if self.approved_by else {}
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The right to answer once (`fresh`), or the answer that was given already.

    `holder` names the entry that gave the right: a reservation that was resumed elsewhere has lost it.
    """

    release_id: str
    fresh: bool
    answer: bytes | None = field(repr=False)
    receipt: Receipt
    holder: str = field(repr=False)


PLACES = 12
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def exact(text: object, *, field: str) -> Fraction:
    """The rational a decimal stands for; anything but plain digits and one point is refused."""
    if not isinstance(text, str) or _DECIMAL.fullmatch(text) is None:
        raise PlanError(
            'amounts are decimals in quotes, at most 12 digits on each side of the point, such as "0.5".',
            field=field,
        )
    return Fraction(text)


def decimal_text(amount: object, *, field: str) -> str:
    """The shortest decimal equal to `amount`; refused where there is none of twelve places."""
    if isinstance(amount, bool) or not isinstance(amount, int | Fraction):
        raise PlanError("amounts are exact; give a Fraction, not a float.", field=field)
    text = exact_text(Fraction(amount), places=PLACES)
    if text is None or not 0 <= amount < 10**PLACES:
        raise PlanError(
            "the amount is no decimal of at most 12 digits on each side of the point; round it up to one.",
            field=field,
        )
    return text


START = "0" * 64


def canonical(value: object) -> str:
    """One text per JSON value: keys sorted, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def entry_hash(number: int, kind: str, body: str, previous: str) -> str:
    """The hash of an entry; `body` is the stored text itself."""
    return digest(canonical([number, kind, body, previous]).encode())


def sealed(number: int, kind: str, body: Mapping[str, Any], previous: str) -> tuple[Entry, str]:
    """A new entry, with clock and salt added, and its body as stored."""
    full = {**body, "clock": clock(), "salt": secrets.token_hex(16)}
    text = canonical(full)
    entry = Entry(
        number=number, kind=kind, body=full, previous=previous, hash=entry_hash(number, kind, text, previous)
    )
    return entry, text


def opened(row: tuple[Any, ...], number: int, previous: str) -> Entry:
    """The entry in a stored row, if it is the one that follows `previous` under this number."""
    stored, kind, text, has_answer, before, own = row
    whole = all(isinstance(each, str) for each in (kind, text, before, own))
    if not whole or kind not in KINDS or bool(has_answer) != (kind == "commit"):
        raise LedgerError(
            f"entry {number} is damaged; put back an undamaged copy of the ledger and its head."
        )
    if stored != number or before != previous or own != entry_hash(number, kind, text, before):
        raise LedgerError(
            f"entry {number} is not the one that was written: the chain of hashes breaks there; "
            "put back an unchanged copy of the ledger and its head."
        )
    return Entry(number=number, kind=kind, body=_parsed(text), previous=before, hash=own)


def _parsed(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else {}  # an empty body breaks every rule, and is refused there


def clock() -> str:
    """The time as a remark; nothing is ever decided by it (L14)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


_HASH = re.compile(r"[0-9a-f]{64}")
_OTHER_UNIT = {
    "epsilon": "write the plan without measure, and its amounts as epsilon, or use a ledger opened with --rho.",
    "rho": 'write measure = "zcdp" and rho in [protect], where pure statistics may keep their epsilon, or use a ledger in '
    "epsilon.",
}
"""What to write, by the unit of the ledger."""


def words(text: object, *, field: str, limit: int = 200) -> str:
    """Text for people: some, of one line, printable, not endless."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > limit:
        raise PlanError(f"give one printable line of 1 to {limit} characters.", field=field)
    return text


def opening(*, dataset: str, change: str, unit: str, budget: str, separate: bool = False) -> dict[str, Any]:
    """The body of the first entry."""
    if unit not in UNITS:
        raise PlanError('a ledger counts in "epsilon" or in "rho"; choose one.', field="unit")
    amount = exact(budget, field="budget")
    if amount == 0:
        raise PlanError("a budget is more than 0.", field="budget")
    return {
        "dataset": words(dataset, field="dataset"),
        "change": words(change, field="change"),
        "unit": unit,
        "budget": decimal_text(amount, field="budget"),
        **({"separate": True} if separate else {}),
    }


def reserving(
    *, release_id: str, plan_hash: str, amount: Fraction, claim: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a charge."""
    text = decimal_text(amount, field="amount")
    if text == "0":
        raise PlanError("a release costs more than 0.", field="amount")
    return {
        "release": words(release_id, field="release"),
        "plan": words(plan_hash, field="plan"),
        "amount": text,
        "claim": plain_json(claim),
    }


def plain_json(claim: Mapping[str, Any]) -> Any:
    """A copy that holds JSON values only, so that it reads back as it was written."""
    try:
        copy = json.loads(canonical(dict(claim)))
    except (TypeError, ValueError, RecursionError):
        copy = None
    if copy is None or copy != claim:
        raise PlanError(
            "the claim holds something JSON cannot; use text, whole numbers and lists.", field="claim"
        )
    return copy


def same_facts(facts: Facts, *, dataset: str, change: str, unit: str) -> None:
    """Refuse a plan for another data set, change or unit than the ledger's (L12). The unit of a ledger never changes."""
    for name, given in (("dataset", dataset), ("change", change)):
        kept = getattr(facts, name)
        if given != kept:
            raise PlanError(f'the plan says "{given}", the ledger "{kept}"; use its own ledger.', field=name)
    if unit != facts.unit:
        raise PlanError(
            f'the plan says "{unit}", the ledger "{facts.unit}"; {_OTHER_UNIT[facts.unit]}', field="unit"
        )


def same_plan(release_id: str, given: str, kept: str) -> None:
    """Refuse another plan under an id that was used (L06)."""
    if given != kept:
        raise PlanError(
            f"release id {release_id} belongs to another plan; use a new id, which is charged anew.",
            field="release",
        )


def published(files: Mapping[str, str]) -> dict[str, str]:
    """Names and digests of published files."""
    for name, own in files.items():
        words(name, field="files", limit=255)
        if not isinstance(own, str) or _HASH.fullmatch(own) is None:
            raise PlanError(f"{name} needs its SHA-256 in hex.", field="files")
    if not files:
        raise PlanError("name at least one published file.", field="files")
    return dict(files)


def noting(text: str, budget: str | None, facts: Facts, *, separate: bool = False) -> dict[str, Any]:
    """The body of a remark, with or without a raise of the budget (L12), or that it is a separate one (L13)."""
    body: dict[str, Any] = {"text": words(text, field="note", limit=1000)}
    body |= {"separate": True} if separate else {}
    if budget is None:
        return body
    amount = exact(budget, field="budget")
    if amount <= facts.budget:
        raise PlanError(
            f"the budget is {decimal_text(facts.budget, field='budget')}; it can only be raised.",
            field="budget",
        )
    return {**body, "budget": decimal_text(amount, field="budget")}
