"""The sums that queries are made of, whatever their kind: one sum, a mean, squares about a mean, products about two.

Answers with donors, with known totals and over copies are written for shapes, so that a new kind which has one of them is
answered by what is there. Everything is public: it follows from the query and the codebook.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.engine.wants import Sum
from reticent.schema import Number


def centre_code(column: Number, centre: Fraction | None) -> int:
    """Twice the centre in grid steps: the midpoint of the bounds, or the plan's own public guess."""
    return column.low + column.high if centre is None else int(2 * centre / column.grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedSum:
    """One sum over rows: each adds its code in `number`, or 1 where there is no column."""

    sum: Sum
    number: Number | None = None

    @property
    def what(self) -> str:
        return "total" if self.number else "count"

    @property
    def low(self) -> Fraction:
        return self.number.lower if self.number else Fraction(0)

    @property
    def high(self) -> Fraction:
        return self.number.upper if self.number else Fraction(1)

    @property
    def grid(self) -> Fraction:
        return self.number.grid if self.number else Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedMean:
    """centre + (sum of answers less centre) / count. Without a column the answers are true and false, 1 and 0.

    `twice` is twice the centre in steps of the grid; with a public `size` the count is not measured.
    """

    count: Sum
    total: Sum
    twice: int
    number: Number | None = None
    size: int | None = None

    @property
    def low(self) -> Fraction:
        return self.number.lower if self.number else Fraction(0)

    @property
    def high(self) -> Fraction:
        return self.number.upper if self.number else Fraction(1)

    @property
    def half(self) -> Fraction:
        """Half a step of the grid: centred sums are counted in these."""
        return (self.number.grid if self.number else Fraction(1)) / 2

    @property
    def centre(self) -> Fraction:
        return self.twice * self.half


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaresAboutMean:
    """The sum of squares about a mean that is measured first."""

    mean: CodedMean
    number: Number
    squares: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductsAboutMeans:
    """The sums of squares about two means, and of products about both."""

    means: tuple[CodedMean, CodedMean]
    numbers: tuple[Number, Number]


Shape = CodedSum | CodedMean | SquaresAboutMean | ProductsAboutMeans
