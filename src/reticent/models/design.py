"""The design of a regression, one bounded column given others, with its sums of products and their sensitivity.

A column is measured from the middle of its bounds, in halves of its width, so that every value lies in [-1, 1] and one
respondent moves each sum of products by little. Codes stay whole numbers: z = 2 code - (low + high). A row that does not
count is z = 0. Designs are public; sums and complete rows are CONFIDENTIAL, and are not printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.engine.wants import Rows, SufficientStatistics, Sum
from reticent.errors import PlanError
from reticent.schema.columns import Levels, Number
from reticent.sensitivity.bounds import Neighbours


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


Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

EXACT = 1 << 53
"""Whole numbers up to here are exact in a double, and so are their sums in any order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """One line for each row that has all its answers: z of every predictor, then of the response."""

    design: RegressionDesign
    z: Whole = field(repr=False)

    def sums(self) -> Sums:
        """All sums of products, exactly."""
        counted = np.column_stack([np.ones(len(self.z), dtype=np.int64), self.z])
        return Sums(design=self.design, products=_products(counted, max(self.design.widths)))

    def scaled(self, steps: int) -> Whole:
        """Every row with its count first, each entry in steps of 1/`steps`: integers in [-steps, steps]."""
        # Beyond 2^40 the last digits of z go first, so that the product fits.
        spare = [max(0, width.bit_length() - 40) for width in self.design.widths[1:]]
        z = self.z >> np.array(spare, dtype=np.int64)
        widths = np.array(self.design.widths[1:], dtype=np.int64) >> np.array(spare, dtype=np.int64)
        rounded = np.clip((2 * z * steps + widths) // (2 * widths), -steps, steps)
        return np.column_stack([np.full(len(self.z), steps, dtype=np.int64), rounded])


def _products(z: Whole, widest: int) -> tuple[tuple[int, ...], ...]:
    if len(z) * widest * widest < EXACT:
        floats = z.astype(np.float64)
        found: NDArray[Any] = (floats.T @ floats).astype(np.int64)
    elif len(z) * widest * widest < 1 << 62:
        found = z.T @ z
    else:
        found = z.astype(object).T @ z.astype(object)
    return tuple(tuple(int(entry) for entry in row) for row in found)


def codes(values: NDArray[Any], column: Bounded) -> tuple[Whole, Flags]:
    """Codes of an array of numbers, and which are answers. Outside the bounds is clamped; NaN is no answer."""
    raw = floats(values)
    is_answer = ~np.isnan(raw)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.floor((raw - float(column.origin)) / float(column.grid) + 0.5)
    kept = np.clip(np.where(is_answer, steps, column.low), column.low, column.high)
    return kept.astype(np.int64), np.asarray(is_answer)


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """An array of doubles; what is no number becomes NaN, and is not quoted."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return np.array([_float(value) for value in array.ravel()], dtype=np.float64).reshape(array.shape)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def records(design: RegressionDesign, x: NDArray[Any], y: NDArray[Any]) -> Records:
    """Rows from arrays: `x` with a column for each predictor, `y` the response; incomplete rows do not count."""
    if np.ndim(x) != 2 or np.shape(x)[1] != len(design.predictors) or np.shape(y) != np.shape(x)[:1]:
        raise PlanError("x needs a column for each predictor, and y a value for each row.", field="x")
    found = [codes(each, c) for each, c in zip((*np.asarray(x).T, y), design.columns, strict=True)]
    z = np.column_stack(
        [2 * code - design.centre(column) for (code, _), column in zip(found, design.columns, strict=True)]
    )
    is_complete = np.logical_and.reduce([answered for _, answered in found])
    return Records(design=design, z=z[is_complete])


_FINE = 1 << 40


def root_up(square: Fraction) -> Fraction:
    """A rational at or above the square root, by less than 2^-39 of 1 or of itself."""
    return Fraction(isqrt(int(square * _FINE * _FINE)) + 1, _FINE)


def products_l1(scales: Sequence[Fraction], *, neighbours: Neighbours) -> Fraction:
    """The L1 bound of (a_i^2 Z_ii, 2 a_i a_j Z_ij for i < j), Z the sum of zz' over rows and a the `scales`.

    Guarantee   no pair of neighbours has them further apart, summed over entries.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     THEORY 7.3, with a scale for each column: records x (a_0 + ... + a_m)^2.
    Proof       proofs/models/moves.md
    Assumes     entries of z in [-1, 1]; the scales are public and not negative.
    Keeps back  nothing: every input is public.
    """
    return neighbours.records * sum(scales, Fraction(0)) ** 2


def products_l2(columns: int, *, neighbours: Neighbours) -> Fraction:
    """The Euclidean bound of (Z_ij for i <= j), Z the sum of zz' over rows of `columns` entries.

    Guarantee   no pair of neighbours has them further apart.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     records x sqrt(m(m+1)/2) for a row that comes or goes, sqrt(m^2 + m/2) for one that is replaced.
    Proof       proofs/models/moves.md
    Assumes     entries of z in [-1, 1].
    Keeps back  nothing: every input is public.
    """
    m = columns
    square = Fraction(2 * m * m + m, 2) if neighbours.replaced else Fraction(m * (m + 1), 2)
    return neighbours.records * root_up(square)


def gradient(features: int, largest: Fraction, *, neighbours: Neighbours) -> tuple[Fraction, Fraction]:
    """The L1 and Euclidean bounds of a sum of r x over rows, |r| <= `largest`, x of `features` entries in [-1, 1].

    Guarantee   no pair of neighbours has the sums further apart.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     |r x|_1 <= largest x p and |r x|_2 <= largest x sqrt p; twice that for a replaced row.
    Proof       proofs/models/moves.md
    Assumes     r and x of a row depend on that row and public numbers alone.
    Keeps back  nothing: every input is public.
    """
    reach = neighbours.steps * largest
    return reach * features, reach * root_up(Fraction(features))
