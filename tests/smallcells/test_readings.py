"""What is read off the points of a cell does not depend on where runs of cells end: the numbers are the same bytes."""

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from reticent.smallcells import observed
from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.observed import ObservedCells
from reticent.smallcells.points import GridPoints
from reticent.smallcells.pooled import PooledCells
from reticent.smallcells.readings import CellReadings, joined
from reticent.smallcells.smooth import SmoothCells
from reticent.smallcells.table import Estimand
from reticent.smallcells.theilsen import TheilSenCells
from tests.noise.seeded import SeededBits
from tests.smallcells.tiny import points_of, random_cells

GRID = {"x_steps": 60, "y_steps": 40}
CELLS = random_cells(60, most=25, seed=11, **GRID)
ESTIMATORS: tuple[Estimator, ...] = (Predict(at=Fraction(1, 4)), Slope(), CellMean())
Read = Callable[[GridPoints], CellReadings]


def smooth(estimator: Estimator) -> Read:
    return SmoothCells(aim=Estimand(estimator=estimator), epsilon=Fraction(4)).read


def pooled(estimator: Estimator) -> Read:
    budgets = {"epsilon": Fraction(2), "count_epsilon": Fraction(1), "noise_epsilon": Fraction(1)}
    return PooledCells(aim=Estimand(estimator=estimator), delta=Fraction(1, 10**6), least=5, **budgets).read


def seen(estimator: Estimator) -> Read:
    ask = ObservedCells(
        estimator=estimator, epsilon=Fraction(4), count_epsilon=Fraction(1), error_epsilon=Fraction(1)
    )
    return lambda points: observed.read(points, ask)


def bounded(estimator: Estimator) -> Read:
    ask = ObservedCells(
        estimator=estimator, epsilon=Fraction(4), count_epsilon=Fraction(1), span=Fraction(1), least=4
    )
    return lambda points: observed.read(points, ask)


def raw(read: CellReadings) -> list[object]:
    """All entries: doubles by their bits, whole numbers of any size as they are."""
    found: list[object] = []
    for each in fields(CellReadings):
        column = getattr(read, each.name)
        found.append(column.tolist() if column.dtype == object else column.view(np.int64).tolist())
    return found


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["predict", "slope", "mean"])
@pytest.mark.parametrize("method", [smooth, pooled, seen, bounded])
def test_cells_by_runs_and_all_at_once_are_the_same_bytes(
    method: Callable[[Estimator], Read], estimator: Estimator
):
    """60 cells of up to 25 points, some of them empty or all alike, in runs cut at random, and one by one."""
    read, dice = method(estimator), Random(5)
    whole = raw(read(points_of(CELLS, **GRID)))
    cuts = [[*range(1, 60)], *([*sorted(dice.sample(range(1, 60), k))] for k in (1, 3, 10))]
    for ends in cuts:
        pairs = zip([0, *ends], [*ends, 60], strict=True)
        parts = [read(points_of(CELLS[first:last], **GRID)) for first, last in pairs]
        assert raw(joined(parts)) == whole
    assert len(whole[1]) == 60  # type: ignore[arg-type]


def test_a_reading_that_looks_at_other_cells_is_noticed():
    """The naive twin, bounds scaled by the largest of all cells at hand, is another one in every run."""
    read = smooth(Slope())

    def naive(points: GridPoints) -> CellReadings:
        made = read(points)
        return CellReadings(
            sizes=made.sizes, steps=made.steps, bounds=np.full(points.cells, made.bounds.max())
        )

    one = raw(naive(points_of(CELLS, **GRID)))
    assert raw(joined([naive(points_of([cell], **GRID)) for cell in CELLS])) != one


def test_a_choice_among_lines_is_made_in_every_cell_however_they_come():
    """Theil-Sen draws within a run: every cell has its step, and one of 25 equal lines gets it in any run."""
    asked = TheilSenCells(aim=Estimand(estimator=Slope(), steps=100), epsilon=Fraction(400))
    cell = tuple((i, i // 2) for i in range(0, 40, 2))
    for size in (1, 3, 6):
        parts = [
            asked.read(points_of([cell] * size, x_steps=40, y_steps=40), bits=SeededBits(place))
            for place in range(6 // size)
        ]
        read = joined(parts)
        assert read.sizes.tolist() == [20] * 6 and set(read.steps.tolist()) == {50}
