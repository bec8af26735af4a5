"""Waves of a panel in one lifetime budget: of a respondent's waves only so many can be charged (THEORY 16.4).

A rotating panel asks each person in at most w of its W waves. What is released of a wave reads that wave's rows alone,
so of all waves the w that were charged most bound what anybody can lose. That nobody is in more is the office's word,
known from the design of the sample and never looked up in the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reticent.errors import PlanError
from reticent.privacy.ledger.entries import Facts, words

MOST_WAVES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedWave:
    """The wave that a release reads, and the design: a respondent is in `at_most` of the `of` waves.

    `again` says that the wave was released before, and that this release adds to what it cost.
    """

    name: str
    at_most: int
    of: int
    again: bool = False

    def __post_init__(self) -> None:
        words(self.name, field="wave.name", limit=100)
        if type(self.of) is not int or not 1 <= self.of <= MOST_WAVES:
            raise PlanError(
                f"is the number of waves the design has, from 1 to {MOST_WAVES}.", field="wave.of"
            )
        if type(self.at_most) is not int or not 1 <= self.at_most <= self.of:
            raise PlanError(
                f"is how many waves one respondent can be in, from 1 to {self.of}, by design of the sample.",
                field="wave.at_most",
            )

    def opening(self) -> dict[str, Any]:
        """The entry that fixes the design."""
        return {"at_most": self.at_most, "of": self.of}

    def charged(self, marks: frozenset[str]) -> dict[str, Any]:
        """What a charge says of it: its name, and the marks of the files that hold its rows."""
        return {"name": self.name, "marks": sorted(marks), **({"again": True} if self.again else {})}


@dataclass(slots=True)
class Waves:
    """The design of a panel, what was charged to each wave so far, and which files hold it."""

    at_most: int
    of: int
    spent: dict[str, Fraction] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Waves":
        """From an entry; whatever does not fit is refused by the caller."""
        design = ChargedWave(name="any", at_most=body["at_most"], of=body["of"])
        return cls(at_most=design.at_most, of=design.of)

    def counted(self, *, name: str = "", more: Fraction = Fraction(0)) -> Fraction:
        """What all waves add to `spent`, if wave `name` were charged `more`: the `at_most` largest sums together."""
        spent = dict(self.spent)
        if name:
            spent[name] = spent.get(name, Fraction(0)) + more
        return sum(sorted(spent.values())[-self.at_most :], Fraction(0))

    def charge(self, body: Mapping[str, Any], amount: Fraction) -> None:
        """Take a charge that was admitted."""
        name = body["name"]
        self.spent[name] = self.spent.get(name, Fraction(0)) + amount
        self.marks.setdefault(name, set()).update(body["marks"])

    def refusal(self, body: Mapping[str, Any]) -> str:
        """Why a charge to this wave cannot be, or nothing."""
        name, given = body["name"], set(body["marks"])
        taken = next((other for other, kept in self.marks.items() if other != name and kept & given), None)
        if taken is not None:
            return (
                f"these rows were released as wave {taken!r}; under two names they would be counted as two waves. Use "
                "that name with again = true, or keep the rows of each wave in a file of its own."
            )
        if name in self.spent and body.get("again") is not True:
            return (
                f"wave {name!r} was released before; give a new wave a name of its own, or write again = true, and what "
                "its releases cost adds up."
            )
        if name not in self.spent and len(self.spent) >= self.of:
            return f"the design has {self.of} waves, and all were released; correct the name of this one."
        return ""

    def check(self, wave: ChargedWave) -> None:
        """Refuse a plan that states another design."""
        if (wave.at_most, wave.of) != (self.at_most, self.of):
            raise PlanError(
                f"the ledger was charged under at_most = {self.at_most}, of = {self.of}, which cannot be changed; "
                "write these, or leave [wave] out, which counts the release in full.",
                field="wave",
            )

    def counting(self, facts: Facts) -> str:
        """Which waves count, in words, and what that rests on."""
        largest = (
            "the most costly one counts" if self.at_most == 1 else f"the {self.at_most} most costly count"
        )
        kept = (
            ", and one whose answers are replaced stays in the same ones"
            if "replaced" in facts.change
            else ""
        )
        return f"{largest}: by design of the sample a respondent is in at most {self.at_most} of {self.of} waves{kept}"
