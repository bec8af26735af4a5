"""What five documents print, and where each item is found here: a table of facts, read from `facts.toml`.

`printed` is a word for digits that stand in a document. A number of our statements, or one that somebody measured, is not
printed, and has another name. Experiments take their printed numbers from here, so a wrong digit is wrong in one place.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, Self

from reticent.errors import PlanError

STATUSES = ("recomputed", "repeated", "corrected", "shown", "left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperItem:
    """One figure, table, theorem, example or stated finding of a document.

    `command` runs it, `page` tells of it, `status` is one of `STATUSES`, and `differs` says in what ours is not theirs.
    `printed` holds the digits of the document by what they are of; several in one text stand in the document's order.
    """

    document: str
    item: str
    what: str
    command: str
    page: str
    status: str
    differs: str
    printed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES or not (self.command or self.status == "left out"):
            raise PlanError(f"{self.item} has a status, and a command unless it is left out", field="item")

    def row(self) -> dict[str, Any]:
        """As `reticent lab papers --json` prints it."""
        kept = ("document", "item", "what", "command", "page", "status", "differs")
        return {**{name: getattr(self, name) for name in kept}, "printed": dict(self.printed)}


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files("reticent.lab.papers").joinpath("facts.toml").read_text(encoding="utf-8"))


def documents() -> dict[str, str]:
    """Short names and titles of the documents."""
    return dict(_read()["documents"])


@cache
def items() -> tuple[PaperItem, ...]:
    """Every item, document by document."""
    return tuple(PaperItem(**each) for each in _read()["item"])


class Printed(float):
    """A number as it stands in a document: .17, 4/143, 100k or 33×10⁻⁶. It keeps these digits, and where they stand.

    Parameters
    ----------
    digits : as they are printed
    stands_in : the document's short name, and the item
    """

    digits: str
    stands_in: str

    def __new__(cls, digits: str, stands_in: str) -> Self:
        made = super().__new__(cls, Fraction(digits.replace("×10", "e").replace("k", "e3").translate(RAISED)))
        made.digits, made.stands_in = digits, stands_in
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.digits, self.stands_in

    def row(self) -> dict[str, Any]:
        """As it stands in a row of numbers."""
        return {"stands_in": self.stands_in, "printed": float(self), "printed_digits": self.digits}


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def printed(document: str, item: str, what: str) -> Printed:
    """The number that the document prints for this."""
    (number,) = several(document, item, what)
    return number


def several(document: str, item: str, what: str) -> list[Printed]:
    """The numbers that the document prints side by side, in its order."""
    (found,) = [each for each in items() if (each.document, each.item) == (document, item)]
    return [Printed(text, f"{document}, {item}") for text in found.printed[what].split()]
