"""What bins take from a number: sums of the distances between answers and the midpoints of their bins.

A synthesizer counts a number in bins, and the mean of bin midpoints is not the mean: weekly hours pile up at 40, capital
gains at 0. One entry more in a noisy list, the sum over its rows of (answer - midpoint), says what is missing. It is a whole
number of half steps of the column's grid, so it is summed exactly, and a row moves it by at most the largest half bin.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.engine.wants import Key
from reticent.errors import PlanError
from reticent.schema import Number, Schema
from reticent.synth.base import Counted, Counts, Floats, MissingMethod, Places
from reticent.synth.domain import Axis, Domain, bins
from reticent.synth.spending import RowSums

MOST_FINE = 2**15
"""Fine cells of one number: two bytes hold them."""
WIDEST = 2**31
"""Steps of one number: twice as much, summed over 2^31 rows, stays within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FineAxis:
    """A binned number once more, in steps of `step` codes: how far answers lie from the midpoints of their bins.

    Everything here is public. `place` is the number's own axis, `fine` that of its steps.
    """

    place: int
    fine: int
    axis: Axis
    step: int
    ends: Counted
    """For each bin the sum of its first and its last code, counted from the lowest: twice its midpoint."""
    most: int
    """The largest distance between an answer and the midpoint of its bin, in half codes."""

    def doubled(self) -> Counted:
        """Twice the code that each fine cell stands for, counted from the lowest."""
        return 2 * self.step * np.arange(self.axis.answers, dtype=np.int64)


def fine_axes(domain: Domain) -> tuple[FineAxis, ...]:
    """One for each number that is put into bins, in the order of the domain, to stand behind its axes."""
    binned = [place for place, axis in enumerate(domain.axes) if axis.key.starts]
    return tuple(_fine(place, len(domain.axes) + at, domain) for at, place in enumerate(binned))


def with_fine_axes(domain: Domain) -> Domain:
    """The domain in which rows are counted where residuals are measured: its own axes, then the fine ones."""
    return Domain(schema=domain.schema, axes=(*domain.axes, *(each.axis for each in fine_axes(domain))))


def _fine(place: int, fine: int, domain: Domain) -> FineAxis:
    axis, schema = domain.axes[place], domain.schema
    column = schema.coded[axis.column]
    if column.high - column.low > WIDEST:
        raise PlanError(
            f"{axis.column} has more than {WIDEST:,} steps, and sums of them could leave 64 bits; declare a coarser grid",
            field="inference",
        )
    step = _step(axis.column, schema)
    key = Key(column=axis.column, step=step, silent=True)
    starts, widths = bins(axis, schema)
    # A code is at most (width - 1)/2 from the midpoint, and at most step/2 from the fine cell's.
    rounding = step if step > 1 else 0
    return FineAxis(
        place=place,
        fine=fine,
        axis=Axis(key=key, answers=key.answers(schema), has_unasked=axis.has_unasked),
        step=step,
        ends=2 * (starts - column.low) + widths - 1,
        most=max(1, int(widths.max()) - 1 + rounding),
    )


def _step(column: str, schema: Schema) -> int:
    """1, 2, 5, 10, 20, 50, ...: the first with at most MOST_FINE cells, so that round answers stay what they are."""
    step, factor = 1, 0
    while Key(column=column, step=step, silent=True).answers(schema) > MOST_FINE:
        step, factor = step * (2, 5, 2)[factor] // (1, 2, 1)[factor], (factor + 1) % 3
    return step


def check_residuals(missing: MissingMethod, domain: Domain) -> None:
    """Refuse residuals of rows that are changed before they are counted: a filled cell has a bin and no number."""
    if missing not in (MissingMethod.AVAILABLE, MissingMethod.WEIGHTED, MissingMethod.VALUES):
        raise PlanError(
            f"{missing.value!r} changes rows before they are counted, and intervals would not hold; use "
            "'response-weighted', 'available' or 'category'",
            field="missing",
        )
    fine_axes(domain)


def column_residual(counts: Counts, fine: FineAxis) -> RowSums:
    """CONFIDENTIAL: the sum over all who answered, in half codes.

    Guarantee   one record moves one entry by at most `fine.most`.
    Adjacency   one record added or removed.
    Theorem     an answer is at most half a bin from the midpoint of its bin, and half a step from its fine cell.
    Proof       proofs/synth/residuals.md
    Assumes     `counts` maps rows one by one, and was coded by `with_fine_axes`.
    Keeps back  the sum.
    """
    steps, cells = counts.count([(fine.fine,), (fine.place,)])
    return RowSums(sums=_difference(steps, cells, fine).reshape(1), most=fine.most)


def pair_residual(counts: Counts, fine: FineAxis, other: int, into: Counted, groups: int) -> RowSums:
    """CONFIDENTIAL: the same for each group of another column; `into` has the group of each of its cells, -1 for none.

    Guarantee   one record moves one entry by at most `fine.most`.
    Adjacency   one record added or removed.
    Theorem     as for `column_residual`; a record is in one group of the other column or in none.
    Proof       proofs/synth/residuals.md
    Assumes     `counts` maps rows one by one, and was coded by `with_fine_axes`.
    Keeps back  the sums.
    """
    steps, cells = counts.count([(fine.fine, other), (fine.place, other)])
    found = _difference(steps, cells, fine)
    made = np.zeros(groups, dtype=np.int64)
    np.add.at(made, into[into >= 0], found[into >= 0])
    return RowSums(sums=made, most=fine.most)


def _difference(steps: Counted, cells: Counted, fine: FineAxis) -> Counted:
    """Twice the sum of answers less twice the sum of their midpoints, for each cell of a further column if there is one."""
    answers = np.tensordot(fine.doubled(), steps[: fine.axis.answers], axes=1)
    midpoints = np.tensordot(fine.ends, cells[: len(fine.ends)], axes=1)
    return np.asarray(answers - midpoints)


def grid_of(column: str, schema: Schema) -> float:
    """What one code is worth, in the column's own unit."""
    found = schema.coded[column]
    return float(found.grid) if isinstance(found, Number) else 1.0


def half_widths(axis: Axis, domain: Domain) -> Floats:
    """For each bin of a number how far an answer may lie from its midpoint, in the column's own unit, coded in fine steps."""
    _, widths = bins(axis, domain.schema)
    step = _step(axis.column, domain.schema)
    return np.asarray((widths - 1 + (step if step > 1 else 0)) / 2 * grid_of(axis.column, domain.schema))


def residual_places(places: Places, fines: Sequence[FineAxis]) -> list[tuple[FineAxis, int | None]]:
    """For a measured set, which residuals are in its list, and by which other column: in the order of the list."""
    by_place = {fine.place: fine for fine in fines}
    if len(places) == 1:
        return [(by_place[places[0]], None)] if places[0] in by_place else []
    if len(places) > 2:
        return []
    one, other = places
    pairs = ((one, other), (other, one))
    return [(by_place[place], by) for place, by in pairs if place in by_place]


def midpoints(axis: Axis, schema: Schema) -> Floats:
    """For each answer's cell of a number its midpoint, in the column's own unit."""
    starts, widths = bins(axis, schema)
    return np.asarray((starts + (widths - 1) / 2) * grid_of(axis.column, schema))
