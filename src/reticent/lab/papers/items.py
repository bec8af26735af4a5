"""What five documents print, and where each item is found here: a table of facts, read from `facts.toml`.

`printed` is a word for digits that stand in a document. A number of our statements, or one that somebody measured, is not
printed, and has another name. Experiments take their printed numbers from here, so a wrong digit is wrong in one place.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import nan
from typing import Any, Self

from reticent.errors import PlanError, nearest

STATUSES = ("recomputed", "repeated", "corrected", "shown", "left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperItem:
    """One figure, table, theorem, example or stated finding of a document.

    `command` runs it, `page` tells of it, `status` is one of `STATUSES`, and `differs` says in what ours is not theirs.
    `printed` holds the digits of the document by what they are of; several in one text stand in the document's order.
    `setting` is the document's own, of an experiment. `rows` say which rows of the experiment are about the item: each of
    them holds keys of a row and what may stand there, where a name under `item` stands for all that begin with it.
    """

    document: str
    item: str
    what: str
    command: str
    page: str
    status: str
    differs: str
    printed: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""
    rows: Sequence[Mapping[str, Sequence[object]]] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES or not (self.command or self.status == "left out"):
            raise PlanError(f"{self.item} has a status, and a command unless it is left out", field="item")

    @property
    def experiment(self) -> str:
        """The experiment that its command runs; no name where it is left out."""
        return "".join(self.command.split()[3:4])

    def row(self) -> dict[str, Any]:
        """As `reticent lab papers --json` prints it; the command shows the rows of this item alone."""
        kept = ("document", "item", "what", "command", "page", "status", "setting", "differs")
        shown = {"command": f'{self.command} --item "{self.item}"'} if self.command else {}
        return {**{name: getattr(self, name) for name in kept}, **shown, "printed": dict(self.printed)}

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether this row of the experiment is about the item."""
        return any(_fits(row, keys) for keys in self.rows)


def _fits(row: Mapping[str, Any], keys: Mapping[str, Sequence[object]]) -> bool:
    if "item" in row or "item" in keys:
        return str(row.get("item", "")).startswith(tuple(map(str, keys.get("item", ()))))
    return all(row.get(key) in allowed for key, allowed in keys.items())


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


def item_of(experiment: str, name: str) -> PaperItem:
    """The item of this name whose command runs the experiment."""
    found = {each.item: each for each in items() if each.experiment == experiment}
    if name not in found:
        there = nearest(name, found) or f"; there are {', '.join(found) or 'none'}"
        raise PlanError(f"{experiment} has no item called {name[:80]!r}{there}", field="item")
    return found[name]


class Printed(float):
    """A number as it stands in a document: .17, 4/143, 100k or 33×10⁻⁶. It keeps these digits, and where they stand.

    N/A stands in a document too, and is no number: its row has the letters and no value.

    Parameters
    ----------
    digits : as they are printed
    stands_in : the document's short name, and the item
    """

    digits: str
    stands_in: str

    def __new__(cls, digits: str, stands_in: str) -> Self:
        plain = digits.replace(",", "").replace("×10", "e").replace("k", "e3").translate(RAISED)
        over, _, under = plain.partition("/")
        made = super().__new__(cls, nan if digits == NO_NUMBER else Fraction(over) / Fraction(under or 1))
        made.digits, made.stands_in = digits, stands_in
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.digits, self.stands_in

    def row(self) -> dict[str, Any]:
        """As it stands in a row of numbers."""
        value = None if self.digits == NO_NUMBER else float(self)
        return {"stands_in": self.stands_in, "printed": value, "printed_digits": self.digits}


NO_NUMBER = "N/A"
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def printed(document: str, item: str, what: str) -> Printed:
    """The number that the document prints for this."""
    (number,) = several(document, item, what)
    return number


def several(document: str, item: str, what: str) -> list[Printed]:
    """The numbers that the document prints side by side, in its order."""
    (found,) = [each for each in items() if (each.document, each.item) == (document, item)]
    return [Printed(text, f"{document}, {item}") for text in found.printed[what].split()]
