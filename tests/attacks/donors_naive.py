"""What others do about gaps, each in a few lines, with the noise for one record that they then add.

Every twin fills the pay of those who were asked and gives the total as it would meet the noise. None of them is
private, and the tests that ours passes must say so.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from tests.doubles import Call
from tests.tables import Row

LOW, HIGH, OWN = -3, 5, 5
"""The bounds of pay, and the most that one record's own pay is."""

Fill = Callable[[Sequence[Row]], list[Fraction]]


def _asked(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["job"] == "yes"]


def _answers(rows: Sequence[Row]) -> list[int]:
    return [row["pay"] for row in rows if row["pay"] is not None]


def mean(rows: Sequence[Row]) -> list[Fraction]:
    """Everybody who is silent earns the mean."""
    there = _answers(rows)
    middle = Fraction(sum(there), len(there)) if there else Fraction(0)
    return [middle if row["pay"] is None else Fraction(row["pay"]) for row in rows]


def regression(rows: Sequence[Row]) -> list[Fraction]:
    """Everybody who is silent earns what a line over the sites says, within the bounds."""
    points = [(row["site"] or 0, row["pay"]) for row in rows if row["pay"] is not None]
    n = len(points) or 1
    x, y = (Fraction(sum(each), n) for each in (zip(*points, strict=True) if points else ([], [])))
    spread = sum((a - x) ** 2 for a, _ in points)
    slope = sum((a - x) * (b - y) for a, b in points) / spread if spread else Fraction(0)
    line = [min(max(y + slope * ((row["site"] or 0) - x), Fraction(LOW)), Fraction(HIGH)) for row in rows]
    return [
        Fraction(guess if row["pay"] is None else row["pay"]) for row, guess in zip(rows, line, strict=True)
    ]


def hot_deck(rows: Sequence[Row]) -> list[Fraction]:
    """Everybody who is silent earns what the last one in the file who answered earns."""
    last, filled = 0, []
    for row in rows:
        last = last if row["pay"] is None else row["pay"]
        filled.append(Fraction(last))
    return filled


def rotation(rows: Sequence[Row]) -> list[Fraction]:
    """Donors take turns, so that none of them serves more than its share."""
    there = _answers(rows) or [0]
    turn, filled = 0, []
    for row in rows:
        filled.append(Fraction(there[turn % len(there)] if row["pay"] is None else row["pay"]))
        turn += row["pay"] is None
    return filled


def naive_calls(fill: Fill, rows: Sequence[Row], sensitivity: int = OWN) -> list[Call]:
    """The total of women's pay after filling, with noise for `sensitivity`."""
    asked = _asked(rows)
    women = [pay for row, pay in zip(asked, fill(asked), strict=True) if row["sex"] == "f"]
    return [Call("laplace", (sum(women, Fraction(0)),), sensitivity, Fraction(1))]


def most_served(rows: Sequence[Row]) -> int:
    """How many recipients a donor has where donors take turns."""
    asked = _asked(rows)
    donors = len(_answers(asked))
    return -(-(len(asked) - donors) // max(donors, 1))
