"""Sums of products over complete rows: all that least squares reads. Whole numbers, and confidential."""

from dataclasses import dataclass, field
from fractions import Fraction

from reticent.engine.results import SufficientStatistics
from reticent.engine.wants import Rows, Sum
from reticent.models.design import RegressionDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """`products[i][j]` is the sum of z_i z_j, where z is 1, then the predictors, then the response."""

    design: RegressionDesign
    products: tuple[tuple[int, ...], ...] = field(repr=False)

    def unit(self, i: int, j: int) -> Fraction:
        """The same sum with every column in [-1, 1]."""
        widths = self.design.widths
        return Fraction(self.products[i][j], widths[i] * widths[j])

    def ordinary(self) -> tuple[list[list[Fraction]], list[Fraction], Fraction]:
        """X'X, X'y and y'y of the unit columns, as exact numbers."""
        last = len(self.products) - 1
        at = range(0 if self.design.intercept else 1, last)
        gram = [[self.unit(i, j) for j in at] for i in at]
        return gram, [self.unit(i, last) for i in at], self.unit(last, last)


def wants(design: RegressionDesign, rows: Rows) -> tuple[Sum, ...]:
    """What an engine must sum: the count, every code, every product of codes, over rows that answered all."""
    names = tuple(column.name for column in design.columns)
    over = Rows(where=rows.where, known=rows.known, answered=tuple(dict.fromkeys((*rows.answered, *names))))
    return (
        Sum(rows=over),
        *(Sum(rows=over, value=name, power=1) for name in names),
        *(
            Sum(rows=over, value=a, power=2) if a == b else Sum(rows=over, value=a, power=1, other=b)
            for i, a in enumerate(names)
            for b in names[i:]
        ),
    )


def from_engine(design: RegressionDesign, rows: Rows, statistics: SufficientStatistics) -> Sums:
    """The sums of products of z from those of codes: z = 2 code - m, so all is whole."""
    found = [statistics[want] for want in wants(design, rows)]
    size = len(design.columns)
    count, singles, pairs = found[0], found[1 : size + 1], iter(found[size + 1 :])
    middle = [design.centre(column) for column in design.columns]
    table = [[0] * (size + 1) for _ in range(size + 1)]
    table[0][0] = count
    for i in range(size):
        table[0][i + 1] = table[i + 1][0] = 2 * singles[i] - middle[i] * count
        for j in range(i, size):
            # (2a - s)(2b - t) = 4ab - 2ta - 2sb + st
            moved = 4 * next(pairs) - 2 * middle[j] * singles[i] - 2 * middle[i] * singles[j]
            table[i + 1][j + 1] = table[j + 1][i + 1] = moved + middle[i] * middle[j] * count
    return Sums(design=design, products=tuple(map(tuple, table)))
