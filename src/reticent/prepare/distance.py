"""Distances for donor matching: public, between the cells of a declared domain, as integers, so that ties are ties.

A cell is one value of each matching attribute; cells are numbered with the last attribute fastest. The distance from a
recipient's cell to a donor's is the sum over attributes of a public table. Declared as rationals and scaled to integers by
their common denominator, distances keep their order exactly. The table of all pairs of cells is never made:
`Distances.row` gives the distances from one cell to all. Whether a repair fits its codebook is judged here too, before any
row is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, gcd, lcm, prod

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.prepare.repair import CappedDonors, Chances, Donors, Edit, Match, Metric, RegressionLine, Repair
from reticent.schema import Levels, Number, Schema

Row = NDArray[np.uint16]
Position = Fraction | int | None

MOST_VALUES = 4096
FARTHEST = 2**16 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distances:
    """One table of whole numbers per attribute: nothing between equal values, and never negative."""

    tables: tuple[NDArray[np.uint16], ...]

    def __post_init__(self) -> None:
        if not self.tables:
            raise PlanError("no attribute to match on; name one.", field="match")
        for table in self.tables:
            if table.ndim != 2 or not 0 < len(table) == table.shape[1] or table.dtype != np.uint16:
                raise ValueError("a table of distances is square and holds 16-bit numbers")
            if table.diagonal().any():
                raise ValueError("a value is at no distance from itself")
        _check(self.farthest)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(table) for table in self.tables)

    @property
    def cells(self) -> int:
        return prod(self.shape)

    @property
    def farthest(self) -> int:
        """The largest distance between two cells."""
        return sum(int(table.max()) for table in self.tables)

    def row(self, cell: int) -> Row:
        """The distance from `cell` to every cell, in their order."""
        row: Row = np.zeros(1, np.uint16)
        for table in reversed(self.tables):  # the longest vector last and innermost: numpy's fast case
            cell, value = divmod(cell, len(table))
            row = (table[value][:, None] + row).ravel()
        return row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribute:
    """One attribute's distances: whole steps between its values, each worth `unit`, a public rational."""

    steps: NDArray[np.int64]
    unit: Fraction

    def __post_init__(self) -> None:
        if self.unit < 0:
            raise PlanError("a weight is negative; make it 0 or more.", field="match")

    def reduced(self) -> "Attribute":
        """The same distances in as few steps as they allow."""
        most = int(np.gcd.reduce(self.steps, axis=None)) or 1
        return Attribute(steps=self.steps // most, unit=self.unit * most)

    def rounded(self, grain: Fraction) -> "Attribute":
        """The distances rounded to multiples of `grain` by floor(x/g + 1/2)."""
        if grain <= 0:
            raise PlanError(f"it is {grain}, but must be positive.", field="grain")
        values, at = np.unique(self.steps, return_inverse=True)
        whole = [floor(step * self.unit / grain + Fraction(1, 2)) for step in values.tolist()]
        _check(max(whole))
        return Attribute(steps=np.array(whole, np.int64)[at].reshape(self.steps.shape), unit=grain)


def scaled(positions: Sequence[Position], *, weight: Fraction = Fraction(1)) -> Attribute:
    """weight |p - q| / (span of the positions): ordinal and numeric attributes, one position per value.

    A value without a position (None: "not stated") is at the full weight from every other.
    """
    known = [Fraction(p) for p in positions if p is not None]
    scale = lcm(*(p.denominator for p in known))
    low = min(known, default=Fraction(0))
    span = int((max(known, default=low) - low) * scale) or 1
    if span > 2**62:
        raise PlanError("positions have no small common denominator; round them.", field="match")
    # Beyond every other by the span; two without a position are the same value only when they are one.
    at = np.array([-1 if p is None else int((Fraction(p) - low) * scale) for p in positions], np.int64)
    steps = np.abs(at[:, None] - at)
    steps[at < 0, :] = steps[:, at < 0] = span
    np.fill_diagonal(steps, 0)
    return _attribute(steps, Fraction(weight) / span)


def mismatch(values: int, *, weight: Fraction = Fraction(1)) -> Attribute:
    """weight where two values differ: categorical attributes."""
    return _attribute(1 - np.eye(values, dtype=np.int64), Fraction(weight))


def distances(attributes: Sequence[Attribute], *, grain: Fraction | None = None) -> Distances:
    """The sum of the attributes' distances on one scale of integers, exact.

    With a `grain` each attribute's distances are first rounded to its multiples. That is another public
    distance, not an approximation of a promise.
    """
    if grain is not None:
        attributes = [each.rounded(grain) for each in attributes]
    attributes = [each.reduced() for each in attributes]
    below = lcm(*(each.unit.denominator for each in attributes))
    common = Fraction(gcd(*(int(each.unit * below) for each in attributes)) or 1, below)
    _check(sum(int(each.steps.max()) * int(each.unit / common) for each in attributes))
    return Distances(tables=tuple(_whole(each, int(each.unit / common)) for each in attributes))


def one_hot_euclidean(attributes: Sequence[int | Sequence[int | None]]) -> Distances:
    """The published distance: Euclidean after one-hot coding. A number of values is coded, positions are not.

    The integers are in the order of its squares, 2 for each mismatch and (p - q)^2 between positions; the root
    would keep that order, ties included, so it is not taken. A value without a position is as far from every
    other as the two positions farthest apart, and no nearer than a mismatch.
    """

    def square(each: int | Sequence[int | None]) -> Attribute:
        if isinstance(each, int):
            return mismatch(each, weight=Fraction(2))
        known = [p for p in each if p is not None]
        low = min(known, default=0)
        at = np.array([-1 if p is None else p - low for p in each], np.int64)
        steps = (at[:, None] - at) ** 2
        steps[at < 0, :] = steps[:, at < 0] = max(2, (max(known, default=low) - low) ** 2)
        np.fill_diagonal(steps, 0)
        return _attribute(steps, Fraction(1))

    return distances([square(each) for each in attributes])


def _attribute(steps: NDArray[np.int64], unit: Fraction) -> Attribute:
    if not 0 < len(steps) <= MOST_VALUES:
        raise PlanError(
            f"an attribute has {len(steps)} values to match on, but from 1 to {MOST_VALUES} are compared; "
            "group them.",
            field="match",
        )
    return Attribute(steps=steps, unit=unit)


def _check(steps: int) -> None:
    if steps > FARTHEST:
        raise PlanError(
            f"distances reach {steps} steps, but at most {FARTHEST} can be told apart; choose weights and "
            "positions with smaller common denominators, or a grain such as 1/1000.",
            field="match",
        )


def _whole(each: Attribute, factor: int) -> NDArray[np.uint16]:
    whole = (each.steps * factor).astype(np.uint16)
    whole.flags.writeable = False
    return whole


MOST = 2**18
"""The most cells a column's donors may be matched on: rings and bounds go over all of them."""


def distances_of(donors: Donors, schema: Schema) -> Distances:
    """How far apart the cells of the matching attributes are; cells as a table numbers them.

    An attribute's values are its levels, its groups, or the codes of a number; then "missing", and "not
    asked" where it has a universe. Numbers and ordinal levels lie on a scale, silent values beside it.
    """
    for match in donors.near:
        _check_metric(match, schema)
    cells = prod(values(match, schema) for match in donors.near)
    if cells > MOST:
        raise PlanError(
            f"has {cells} cells to match on, but at most {MOST} are compared; name fewer attributes, or group "
            "them.",
            field="match",
        )
    if donors.metric is Metric.ONE_HOT:
        return _one_hot(donors, schema)
    return distances([_declared(match, schema) for match in donors.near])


def values(match: Match, schema: Schema) -> int:
    """How many values the attribute has, silent ones included."""
    return answers(match, schema) + silences(match, schema)


def answers(match: Match, schema: Schema) -> int:
    """How many of its values are answers: groups, levels or codes."""
    column = schema.coded[match.column]
    return len(match.starts) or column.high - column.low + 1


def silences(match: Match, schema: Schema) -> int:
    """Missing and, where the column has a universe, not asked."""
    return 1 if schema.columns[match.column].universe is None else 2


def _check_metric(match: Match, schema: Schema) -> None:
    schema.column(match.column, field="match")
    if answers(match, schema) > MOST_VALUES - 2:
        raise PlanError(
            f"{match.column} has too many values to match on one by one; group it, as in "
            f'{{ column = "{match.column}", starts = [...] }}.',
            field="match",
        )
    if match.weight <= 0:
        # Cells at no distance from each other would be one cell for donors and two for the bound.
        raise PlanError(f"the weight of {match.column} is not above 0; leave the column out.", field="match")


def _declared(match: Match, schema: Schema) -> Attribute:
    column, silent = schema.coded[match.column], silences(match, schema)
    if isinstance(column, Levels) and not column.ordered:
        return mismatch(values(match, schema), weight=match.weight)
    return scaled([*_positions(match, column), *[None] * silent], weight=match.weight)


def _positions(match: Match, column: Levels | Number) -> list[Position]:
    if match.starts:
        return list(range(len(match.starts)))
    if isinstance(column, Levels) and column.positions:
        return list(column.positions)
    return list(range(column.low, column.high + 1))


def _one_hot(donors: Donors, schema: Schema) -> Distances:
    """As published: numbers as they are, everything else coded; a silent value is a value like any other."""
    if any(match.weight != 1 for match in donors.near):
        raise PlanError("the published distance has no weights; leave them out.", field="match")
    return one_hot_euclidean([_coded(match, schema) for match in donors.near])


def _coded(match: Match, schema: Schema) -> int | list[int | None]:
    column = schema.coded[match.column]
    if isinstance(column, Levels) or match.starts:
        return values(match, schema)
    return [*range(column.low, column.high + 1), *[None] * silences(match, schema)]


def check_repair(repair: Repair, schema: Schema) -> None:
    """Every code within its column's, every match on a column that no donor fills."""
    for edit in repair.edits:
        _check_edit(edit, schema)
    if len(repair.filled()) < len(repair.donors) + sum(len(group.columns) for group in repair.capped):
        raise PlanError("two repairs fill the same column; keep one.", field="column")
    for group in repair.capped:
        _check_capped(group, repair, schema)
    for donors in repair.donors:
        _check_donors(donors, repair, schema)
    for line in repair.lines:
        _check_line(line, schema)


def _check_edit(edit: Edit, schema: Schema) -> None:
    column = schema.column(edit.column, field="column")
    if edit.code is not None and not column.low <= edit.code <= column.high:
        raise PlanError(f"{edit.column} has no such answer; take one of its own.", field="value")


def _check_donors(donors: Donors, repair: Repair, schema: Schema) -> None:
    column = schema.column(donors.column, field="column")
    if column.role == "weight":
        raise PlanError(f"{donors.column} is the base weight; donors do not fill it.", field="column")
    if any(not column.low <= code <= column.high for code in donors.defaults):
        raise PlanError(f"a default of {donors.column} is outside its bounds.", field="default")
    filled = [match.column for match in donors.near if match.column in repair.filled()]
    if filled:
        raise PlanError(f"{filled[0]} is filled by donors itself; match on another column.", field="match")
    distances_of(donors, schema)


MOST_LEVEL_CELLS = 2**24


def _check_capped(group: CappedDonors, repair: Repair, schema: Schema) -> None:
    for name, default in zip(group.columns, group.defaults, strict=True):
        column = schema.column(name, field="column")
        if column.role == "weight":
            raise PlanError(f"{name} is the base weight; donors do not fill it.", field="column")
        if any(not column.low <= each <= column.high for each in (default.code, *default.codes)):
            raise PlanError(f"a default of {name} is outside its bounds.", field="default")
    chained = sorted(group.matched & repair.filled())
    if chained:
        raise PlanError(f"{chained[0]} is filled by donors itself; match on another column.", field="match")
    for level in group.levels:
        if prod(values(match, schema) for match in level.on) > MOST_LEVEL_CELLS:
            raise PlanError("a level has too many cells; group its attributes.", field="match")


def _check_line(line: RegressionLine | Chances, schema: Schema) -> None:
    column = schema.column(line.column, field="column")
    if column.role == "weight":
        raise PlanError(f"{line.column} is the base weight; no line fills it.", field="column")
    if not column.low <= line.low <= line.high <= column.high:
        raise PlanError(f"a line would leave the bounds of {line.column}.", field="column")
    if isinstance(line, Chances):
        for side in line.sides:
            schema.column(side.column, field="from")
        return
    for term in line.terms:
        known = schema.column(term.column, field="from")
        is_whole = term.level is None
        if is_whole and not (term.low == known.low <= term.gap <= known.high == term.high):
            raise PlanError(f"a line takes {term.column} for another column.", field="from")
