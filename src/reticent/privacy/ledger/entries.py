"""What a ledger is made of, and what it hands out: entries, receipts, reservations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

KINDS = ("open", "source", "rows", "partition", "reserve", "resume", "commit", "publish", "note")


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

    def as_dict(self) -> dict[str, Any]:
        """Plain values, in the order a reader would ask for them; a piece and a separate budget where there is one."""
        seldom = ("piece", "separate_budget")
        plain = {
            name: getattr(self, name) for name in self.__slots__ if name not in seldom or getattr(self, name)
        }
        plain["raises"] = [each.as_dict() for each in self.raises]
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
