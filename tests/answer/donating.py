"""Donors in plain Python, written to be read: every record may be listed, and so may every neighbour of a table.

A person is a row of codes with a label; the label fixes the place on the ring. What an engine would hand over for
a plan with donors is made here literally, from the order of section 3 of the theory.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from reticent.engine.wants import Ring, RingTable, SufficientStatistics, Sum, Tallies
from reticent.plan.plan import Plan
from reticent.prepare.distance import answers, distances_of, values
from reticent.prepare.repair import Donors, Scheme
from reticent.release.statistics import wants_of
from reticent.schema import Schema
from reticent.schema.bind import MISSING, STRUCTURAL, Absent, Cell
from tests.tables import _counts, cells_of

CIRCLE = 5
Person = Mapping[str, int | None]
Cells = Mapping[str, Cell]
Labels = tuple[int, ...]


def place(label: int) -> int:
    """Where a label stands on a circle so small that places are shared."""
    return (3 * label) % CIRCLE


@dataclass(frozen=True)
class World:
    """A plan, and everybody who could be in the survey."""

    plan: Plan
    people: Sequence[Person]

    def given(self, labels: Labels) -> dict[int, Cells]:
        return {label: cells_of(self.people[label], self.plan.schema) for label in labels}

    def filled(self, labels: Labels) -> dict[int, dict[str, Cell]]:
        """Every missing cell of a column that donors fill gets their answer."""
        given = self.given(labels)
        found = {label: dict(cells) for label, cells in given.items()}
        for donors in self.plan.repair.donors:
            for label, cells in given.items():
                if cells[donors.column] is MISSING:
                    found[label][donors.column] = self.donated(donors, label, given)
        return found

    def donated(self, donors: Donors, label: int, given: Mapping[int, Cells]) -> int:
        row = distances_of(donors, self.plan.schema).row(cell(donors, given[label], self.plan.schema))

        def preference(t: int) -> tuple[int, int, int]:
            away = int(row[cell(donors, given[t], self.plan.schema)])
            return away, (place(t) - place(label)) % CIRCLE, t

        able = [t for t, cells in given.items() if not isinstance(cells[donors.column], Absent)]
        first = [int(given[t][donors.column]) for t in sorted(able, key=preference)[: donors.k]]  # type: ignore[arg-type]
        first += donors.defaults[: donors.k - len(first)]
        if donors.scheme is Scheme.MEAN:
            return floor(Fraction(sum(first), donors.k) + Fraction(1, 2))
        votes = Counter(first)
        return min(code for code in first if votes[code] == max(votes.values()))

    def tallies(
        self, labels: Labels, *, among: Callable[[Ring, Cells, Cells], bool] | None = None
    ) -> Tallies:
        """What the plan wants. `among` may choose other recipients for a ring, from given and filled cells."""
        wants, given, filled = wants_of(self.plan), self.given(labels), self.filled(labels)
        sums = {want: summed(want, filled.values()) for want in wants if isinstance(want, Sum)}
        rings = {
            want: self.ring(want, given, filled, among or (lambda ring, own, _: _counts(ring.rows, own)))
            for want in wants
            if isinstance(want, Ring)
        }
        return Tallies(statistics=SufficientStatistics(sums=sums), tables={}, rings=rings)

    def ring(
        self,
        want: Ring,
        given: Mapping[int, Cells],
        filled: Mapping[int, Cells],
        among: Callable[[Ring, Cells, Cells], bool],
    ) -> RingTable:
        donors, schema = self.plan.repair.of(want.column), self.plan.schema
        cells = distances_of(donors, schema).cells
        at = {label: cell(donors, own, schema) for label, own in given.items()}
        gives = {t for t, own in given.items() if not isinstance(own[want.column], Absent)}
        asks = {x for x, own in given.items() if own[want.column] is MISSING and among(want, own, filled[x])}
        weigh = {x: int(given[x][want.weight]) if want.weight else 1 for x in asks}  # type: ignore[arg-type]
        gaps: list[int] = []
        for here in range(cells):
            ring = sorted((place(t), t) for t in gives if at[t] == here)
            held = [0] * len(ring)
            for x in asks:
                if ring and at[x] == here:
                    first = min(range(len(ring)), key=lambda j: ((ring[j][0] - place(x)) % CIRCLE, j))
                    held[first] += weigh[x]
            gaps += held
        return RingTable(
            want=want,
            donors=np.array([sum(at[t] == here for t in gives) for here in range(cells)], np.int64),
            recipients=np.array([sum(weigh[x] for x in asks if at[x] == c) for c in range(cells)], np.int64),
            gaps=np.array(gaps, np.int64),
        )

    def neighbours(self, labels: Labels) -> list[Labels]:
        """One record more or one less, each that there is."""
        others = [label for label in range(len(self.people)) if label not in labels]
        return [tuple(sorted((*labels, other))) for other in others] + [
            tuple(label for label in labels if label != gone) for gone in labels
        ]


def cell(donors: Donors, cells: Cells, schema: Schema) -> int:
    """The number of a record's cell; silent values come after the answers."""
    number = 0
    for match in donors.near:
        own, told = cells[match.column], answers(match, schema)
        if isinstance(own, Absent):
            value = told + (own is STRUCTURAL)
        elif match.starts:
            value = max(i for i, start in enumerate(match.starts) if start <= own)
        else:
            value = own - schema.coded[match.column].low
        number = number * values(match, schema) + value
    return number


def summed(want: Sum, people: Any) -> int:
    total = 0
    for person in people:
        if _counts(want.rows, person):
            term = int(person[want.weight]) if want.weight else 1
            term *= int(person[want.value]) ** want.power if want.value else 1
            total += term * (int(person[want.other]) if want.other else 1)
    return total
