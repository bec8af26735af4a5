"""A released table of chances as rows can follow it: for each cell of the predictors, how a gap's level is chosen."""

from dataclasses import dataclass, field

from reticent.errors import PlanError
from reticent.prepare.lines import Draw

WHOLE = 1 << 19
"""Chances are counted in steps of 2^-19; a draw is one of so many numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorCells:
    """One predictor: the levels of a column, or groups that begin at the codes `starts`; then silence, then not asked."""

    column: str
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """Fills `column` with low + the number of a cell's `steps` that the row's draw has reached.

    `steps[k]` holds, for every cell of the sides, the last side fastest, the chance of the first k + 1 levels. Without a
    `draw` every row has the number `middle`, in place of a number of its own. All of it was released before.
    """

    column: str
    low: int
    high: int
    sides: tuple[PredictorCells, ...]
    steps: tuple[tuple[int, ...], ...]
    middle: int = WHOLE // 2
    draw: Draw | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.steps) != self.high - self.low or not self.steps:
            raise PlanError("takes a row of chances for every level but the last.", field=self.column)
        if any(side.column == self.column for side in self.sides) or not self.sides:
            raise PlanError("is predicted from other columns.", field=self.column)
        if len({len(row) for row in self.steps}) != 1:
            raise PlanError("takes as many chances for every level.", field=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that it speaks of."""
        return tuple(dict.fromkeys((self.column, *(side.column for side in self.sides))))

    @property
    def cells(self) -> int:
        """How many cells the sides make."""
        return len(self.steps[0])
