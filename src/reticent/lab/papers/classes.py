"""Logistic and multinomial models of a categorical column, by objective perturbation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.lab.papers.objective import curvature_loss, least_ridge, tilt_epsilon
from reticent.models.design import Bounded, RegressionDesign, codes, floats, root_up
from reticent.models.fit import MOST, ModelNoise, check, claim_of, no_delta, on_grid
from reticent.models.perturbed import STEP
from reticent.models.table import Floats, Whole, minimum
from reticent.privacy.claim import Claim
from reticent.sensitivity.bounds import Neighbours

PAGE = "proofs/models/classes.md"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labelled:
    """Cells of unit predictors, the class of each, and how many rows there are of it. Confidential.

    The classes are 0 .. levels - 1 in the order of the codebook. A class table has one line for each declared cell
    and class; rows have a count of 1 each.
    """

    design: RegressionDesign
    z: Whole = field(repr=False)
    label: Whole = field(repr=False)
    count: Whole = field(repr=False)

    @property
    def levels(self) -> int:
        """How many classes there are, by the codebook."""
        return self.design.response.high - self.design.response.low + 1

    def unit(self) -> Floats:
        """The rows of X: 1 where there is an intercept, then the predictors in [-1, 1]."""
        x = self.z / np.array([self.design.width(c) for c in self.design.predictors], dtype=np.float64)
        return np.column_stack([np.ones(len(x)), x]) if self.design.intercept else x


def labelled(
    design: RegressionDesign, x: NDArray[Any], label: NDArray[Any], count: Whole | None = None
) -> Labelled:
    """Rows or cells from arrays; those without an answer everywhere, or with a class of no name, do not count."""
    found = [codes(each, c) for each, c in zip(np.asarray(x).T, design.predictors, strict=True)]
    z = [2 * code - design.centre(c) for (code, _), c in zip(found, design.predictors, strict=True)]
    named, is_named = codes(label, design.response)
    is_named &= floats(label) == named
    kept = np.logical_and.reduce([is_named, *(answered for _, answered in found)])
    stacked = np.column_stack(z) if z else np.zeros((len(named), 0), dtype=np.int64)
    counts = np.ones(len(named), dtype=np.int64) if count is None else count
    return Labelled(
        design=design, z=stacked[kept], label=(named - design.response.low)[kept], count=counts[kept]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFit:
    """For each class the coefficients of its score, the intercept first; chances are in proportion to exp(score)."""

    coefficients: tuple[tuple[Fraction, ...], ...]
    claim: Claim

    def chances(self, x: NDArray[Any]) -> Floats:
        """A row for each row of predictors, a column for each class."""
        table = np.array([[float(c) for c in line] for line in self.coefficients])
        score = np.column_stack([np.ones(len(x)), np.asarray(x, dtype=np.float64)]) @ table.T
        grown = np.exp(score - score.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxRegression:
    """Softmax regression; with two classes, logistic regression with one line.

    Minimises the log loss over rows plus ridge |b|^2/2 plus t'b in unit columns, t random.
    """

    ridge: Fraction = Fraction(10)

    def __post_init__(self) -> None:
        if self.ridge <= 0:
            raise PlanError(f"it is {self.ridge}, but must be positive.", field="ridge")

    def fit(
        self,
        data: Labelled,
        *,
        epsilon: Fraction,
        delta: Fraction | None = None,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> ClassFit:
        """The minimiser of the tilted objective, told on a grid.

        Guarantee   epsilon-DP for one call, in ideal reals.
        Adjacency   `neighbours`.
        Theorem     Chaudhuri, Monteleoni and Sarwate 2011; the determinant bounded for K classes.
        Proof       proofs/models/classes.md
        Assumes     the tilt has a density and the minimiser is exact; ours is found in doubles.
        Keeps back  the rows, their classes, and the tilt.
        """
        no_delta(delta)
        check(data.design, epsilon=epsilon, delta=delta, neighbours=neighbours)
        lines, features = max(1, data.levels - 1 if data.levels == 2 else data.levels), data.design.features
        ridge, tilt = self._tilt(lines, features, epsilon=epsilon, neighbours=neighbours, noise=noise)
        theta = minimum(data.unit(), data.label, data.count, ridge=float(ridge), tilt=tilt)
        claim = claim_of(
            PAGE, "objective perturbation", epsilon=epsilon, neighbours=neighbours, arithmetic="ideal reals"
        )
        told = [line_of(data.design, row) for row in theta.tolist()]
        first = [(Fraction(0),) * (len(data.design.predictors) + 1)] if lines == 1 else []
        return ClassFit(coefficients=tuple(first + told), claim=claim)

    def _tilt(
        self, lines: int, features: int, *, epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
    ) -> tuple[Fraction, Floats]:
        if lines * features > MOST:
            raise PlanError(
                f"there are {lines * features} coefficients, at most {MOST} are offered.", field="x"
            )
        curve, slope, rank = shape(lines, features)
        ridge = least_ridge(curve, self.ridge, rank=rank, epsilon=epsilon, neighbours=neighbours)
        told = curvature_loss(curve, rank=rank, ridge=ridge, neighbours=neighbours)
        bound = ceil(neighbours.steps * slope / STEP)
        drawn = noise.spherical(
            [0] * (lines * features), sensitivity=bound, epsilon=tilt_epsilon(epsilon, told)
        )
        return ridge, np.array(drawn, dtype=np.float64).reshape(lines, features) * float(STEP)


def shape(lines: int, features: int) -> tuple[Fraction, Fraction, int]:
    """Of one row's loss: the mean of its curvatures, its steepest slope, and in how many directions it curves.

    One line: p s(1 - s) <= p/4, |(s - y) x| <= sqrt p. K lines: diag(s) - ss' has rank K - 1 and trace at most
    1 - 1/K, so K - 1 curvatures of mean at most p/K; |(s - e) x x'| <= sqrt(2 p).
    """
    if lines == 1:
        return Fraction(features, 4), root_up(Fraction(features)), 1
    return Fraction(features, lines), root_up(Fraction(2 * features)), lines - 1


def line_of(design: RegressionDesign, theta: Sequence[float]) -> tuple[Fraction, ...]:
    """A line in unit columns, brought to the units of the codebook: the intercept, then the slopes."""
    told = [on_grid(value) for value in theta]
    first, rest = (told[0], told[1:]) if design.intercept else (Fraction(0), told)
    slopes = [2 * b / (c.grid * design.width(c)) for b, c in zip(rest, design.predictors, strict=True)]
    shift = sum((b * _middle(design, c) for b, c in zip(slopes, design.predictors, strict=True)), Fraction(0))
    return (first - shift, *slopes)


def _middle(design: RegressionDesign, column: Bounded) -> Fraction:
    return column.origin + column.grid * Fraction(design.centre(column), 2)
