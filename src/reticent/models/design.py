"""What a model is of: one bounded column given others. Everything here is public.

A column is measured from the middle of its bounds, in halves of its width, so that every value lies in [-1, 1]
and one respondent moves each sum of products by little. Codes stay whole numbers: z = 2 code - (low + high).
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.errors import PlanError
from reticent.schema.columns import Levels, Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A column between public bounds: the value of a code is `origin` + code x `grid`."""

    name: str
    low: int
    high: int
    grid: Fraction = Fraction(1)
    origin: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise PlanError("its lower bound must lie below its upper bound.", field=self.name)
        if self.grid <= 0:
            raise PlanError("its grid must be positive.", field=self.name)

    @classmethod
    def of(cls, column: Levels | Number) -> "Bounded":
        """A column of the codebook; levels count by their number."""
        grid = column.grid if isinstance(column, Number) else Fraction(1)
        return cls(name=column.name, low=column.low, high=column.high, grid=grid)

    @classmethod
    def between(cls, name: str, lower: Fraction, upper: Fraction, *, steps: int = 2048) -> "Bounded":
        """Real numbers from `lower` to `upper`, told apart in `steps` steps."""
        return cls(name=name, low=0, high=steps, grid=(upper - lower) / steps, origin=lower)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionDesign:
    """The predictors, the response, and whether the line may miss the origin.

    `size` is the number of rows, where it is public and every row counts; it then gets no noise, and the change
    to be hidden must be a replacement.
    """

    predictors: tuple[Bounded, ...]
    response: Bounded
    intercept: bool = True
    size: int | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise PlanError("it is named twice; name every column once.", field="predictors")
        if not self.predictors and not self.intercept:
            raise PlanError("there is nothing to predict from.", field="predictors")
        if not self.intercept and any(column.origin for column in self.columns):
            raise PlanError("without one, codes must be counted from zero.", field="intercept")
        if self.size is not None and self.size < 1:
            raise PlanError("a public number of rows is at least 1.", field="size")

    @property
    def columns(self) -> tuple[Bounded, ...]:
        """The predictors, then the response."""
        return (*self.predictors, self.response)

    @property
    def features(self) -> int:
        """How many coefficients there are."""
        return len(self.predictors) + self.intercept

    def centre(self, column: Bounded) -> int:
        """Twice the code that z is counted from: the middle, or zero where the line goes through the origin."""
        return column.low + column.high if self.intercept else 0

    def width(self, column: Bounded) -> int:
        """The largest |z|."""
        centre = self.centre(column)
        return max(abs(2 * column.low - centre), abs(2 * column.high - centre))

    @property
    def widths(self) -> tuple[int, ...]:
        """The largest |z| of a count, of each predictor, and of the response."""
        return (1, *(self.width(column) for column in self.columns))
