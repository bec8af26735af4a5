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
from typing import Any

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


def printed(document: str, item: str, what: str) -> float:
    """The number that the document prints for this."""
    (number,) = several(document, item, what)
    return number


def several(document: str, item: str, what: str) -> list[float]:
    """The numbers that the document prints side by side, in its order."""
    (found,) = [each for each in items() if (each.document, each.item) == (document, item)]
    return [number(text) for text in found.printed[what].split()]


def digits(experiment: str, value: float) -> str:
    """The digits that a document prints for this number, in an item that the experiment runs; nothing where none does."""
    held = [each for each in items() if each.command.split()[3:4] == [experiment]]
    texts = [text for each in held for said in each.printed.values() for text in said.split()]
    return next((text for text in texts if number(text) == value), "")


def number(text: str) -> float:
    """What the digits are worth: .17, 5/1000, 33e-6."""
    return float(Fraction(text))
