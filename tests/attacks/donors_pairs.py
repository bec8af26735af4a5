"""Hand-made neighbours for attacks on donors: eighteen situations in which one person answers for many."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.attacks.donors_surveys import person
from tests.tables import ADD, REPLACE, Row

Rows = Sequence[Row]


@dataclass(frozen=True)
class Pair:
    """Two surveys that differ by one respondent, who came or answers otherwise."""

    name: str
    here: Rows
    there: Rows
    change: str = ADD


SILENT = person()
CROWD = [person(hours=i % 5, mood=("low", None, "high")[i % 3]) for i in range(998)]
TWO = [person(3, 5), person(8, -3, mood="high")]
FEW = [person(hours=i % 5, mood=None) for i in range(9)]
SCATTERED = [person(site, mood=None) for site in (2, 3, 4, 6, 7, 8) for _ in range(2)]
HEAVY = {"w": 3}


def comes(name: str, rows: Rows, newcomer: Row) -> Pair:
    return Pair(name, rows, [newcomer, *rows])


def answers(name: str, rows: Rows, before: Row, after: Row) -> Pair:
    return Pair(name, [before, *rows], [after, *rows], REPLACE)


PAIRS = [
    comes("two donors and 998 recipients: one of the two", [TWO[0], *CROWD], TWO[1]),
    comes("two donors and 998 recipients: a third, next to all", [*TWO, *CROWD], person(5, 5)),
    comes("two donors and 998 recipients: one recipient more", [*TWO, *CROWD], SILENT),
    comes("one donor: it is the only one", FEW, person(5, 5)),
    comes("one donor: somebody far away", [*FEW, person(5, -3)], person(20, 5)),
    comes("nobody answered: one more who does not", FEW, SILENT),
    comes("nobody answered: nobody was there", [], SILENT),
    comes("nobody was there: somebody answers", [], person(5, 5)),
    comes("the only answer of a cell", [*FEW, person(6, -3), person(7, -3)], person(5, 5)),
    comes("as far on either side", [*FEW, person(3, -3), person(3, -3)], person(7, 5)),
    comes("between cells without a donor", [*SCATTERED, person(20, -3)], person(5, 5)),
    comes("not asked", [*FEW, *TWO], person(5, 5, job="no", hours=0)),
    comes("asked only after an edit", [*FEW, *TWO], person(5, 5, job=None, hours=4)),
    comes("what is matched on is missing", [*FEW, *TWO], person(None, 5, sex=None)),
    comes("the same as somebody", [*FEW, *TWO, person(5, 5)], person(5, 5)),
    comes("heavy, and silent to all", [*FEW, *TWO], person(mood=None, hours=None, **HEAVY)),
    answers("a donor falls silent", [*FEW, *TWO, *FEW], person(5, 5, mood="low", **HEAVY), SILENT),
    answers("a donor answers otherwise", [*FEW, TWO[0]], person(5, 5, mood="mid"), person(5, -3, mood=None)),
]
