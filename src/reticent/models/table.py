"""Multinomial regression from a noisy table: every cell of the grouped predictors by every level, then softmax.

One pass over the rows is enough, and all that is private about it is the table. What is fitted to it, by Newton's steps in
doubles, costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.fit import ModelNoise
from reticent.privacy.claim import Change, Claim
from reticent.sensitivity.bounds import Neighbours, bound_table

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

ROUNDS = 60


def minimum(x: Floats, label: Whole, count: Whole, *, ridge: float, tilt: Floats) -> Floats:
    """The B, a line for each class, that minimises log loss + ridge |B|^2/2 + tilt'B.

    With one line there are two classes, and the line is the score of the second. The objective is strongly convex, so
    halved Newton steps go down until nothing is left to gain.
    """
    b = np.zeros_like(tilt)
    value = _value(b, x, label, count, ridge, tilt)
    for _ in range(ROUNDS):
        slope, curve = _slope_and_curve(b, x, label, count, ridge, tilt)
        step = np.linalg.solve(curve, slope.ravel()).reshape(b.shape)
        gain = float((slope * step).sum())
        size = 1.0
        while size > 1e-10:
            tried = b - size * step
            reached = _value(tried, x, label, count, ridge, tilt)
            if reached <= value - 0.25 * size * gain:
                break
            size /= 2
        else:
            break
        b, value = tried, reached
        if gain < 1e-18 * ridge:
            break
    return b


def _scores(b: Floats, x: Floats) -> Floats:
    scores = x @ b.T
    return np.column_stack([np.zeros(len(x)), scores]) if len(b) == 1 else scores


def _value(b: Floats, x: Floats, label: Whole, count: Whole, ridge: float, tilt: Floats) -> float:
    scores = _scores(b, x)
    top = scores.max(axis=1)
    total = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    loss = total - scores[np.arange(len(x)), label]
    return float(count @ loss + ridge * (b * b).sum() / 2 + (tilt * b).sum())


def _slope_and_curve(
    b: Floats, x: Floats, label: Whole, count: Whole, ridge: float, tilt: Floats
) -> tuple[Floats, Floats]:
    scores = _scores(b, x)
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    excess = chance.copy()
    excess[np.arange(len(x)), label] -= 1.0
    first = 1 if len(b) == 1 else 0
    chance, excess = chance[:, first:], excess[:, first:]
    slope = (excess * count[:, None]).T @ x + ridge * b + tilt
    k, p = b.shape
    curve = ridge * np.eye(k * p)
    for i in range(k):
        for j in range(k):
            weight = count * chance[:, i] * ((i == j) - chance[:, j])
            curve[i * p : (i + 1) * p, j * p : (j + 1) * p] += (x * weight[:, None]).T @ x
    return slope, curve


PAGE = "proofs/models/tabled.md"
THEOREM = "Laplace mechanism on a class table"
MOST_CELLS = 4_096
MOST_COEFFICIENTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """A predictor of a table: how many of its cells hold answers, how many stand for none, and whether order counts."""

    name: str
    answers: int
    silent: int
    ordered: bool

    @property
    def cells(self) -> int:
        return self.answers + self.silent

    @property
    def features(self) -> Floats:
        """A row for each cell: its place in [-1, 1], or an indicator for all answers but the first; then the silent."""
        silent = np.vstack([np.zeros((self.answers, self.silent)), np.eye(self.silent)])
        if self.ordered:
            place = np.linspace(-1, 1, self.answers) if self.answers > 1 else np.zeros(1)
            return np.column_stack([np.append(place, np.zeros(self.silent)), silent])
        told = np.vstack([np.eye(self.answers)[:, 1:], np.zeros((self.silent, self.answers - 1))])
        return np.column_stack([told, silent])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDesign:
    """The predictors and the number of levels of what is predicted. Public."""

    predictors: tuple[Grouped, ...]
    levels: int

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise PlanError("has one level, which needs no model.", field="column")
        if self.cells * self.levels > MOST_CELLS:
            raise PlanError(
                f"the table has {self.cells * self.levels} cells, at most {MOST_CELLS} are offered; group or leave out.",
                field="from",
            )
        if self.lines * self.features > MOST_COEFFICIENTS:
            raise PlanError(
                f"makes more than {MOST_COEFFICIENTS} coefficients; leave some out.", field="from"
            )

    @property
    def cells(self) -> int:
        """Of all predictors together."""
        found = 1
        for each in self.predictors:
            found *= each.cells
        return found

    @property
    def features(self) -> int:
        return 1 + sum(int(each.features.shape[1]) for each in self.predictors)

    @property
    def lines(self) -> int:
        """Two levels need one line of coefficients, others one each."""
        return 1 if self.levels == 2 else self.levels

    def matrix(self) -> Floats:
        """A row for each cell, the last predictor fastest: 1, then the features."""
        found = np.ones((1, 1))
        for each in self.predictors:
            mine, other = each.features, len(found)
            found = np.column_stack([np.repeat(found, len(mine), axis=0), np.tile(mine, (other, 1))])
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TabledFit:
    """For each cell of the predictors the chance of each level, and the claim."""

    chances: Floats
    claim: Claim


def fit_table(
    design: TableDesign,
    counts: Sequence[int],
    *,
    epsilon: Fraction,
    neighbours: Neighbours,
    noise: ModelNoise,
) -> TabledFit:
    """Chances by softmax regression on a noisy table; `counts` has the levels of each cell side by side.

    Guarantee   epsilon-DP for one call.
    Adjacency   `neighbours`.
    Theorem     a record is in one cell, or in none: `bound_table`; then the Laplace mechanism on the integers.
    Proof       proofs/models/tabled.md
    Assumes     a record's cell depends on that record alone; the design is public; exact arithmetic.
    Keeps back  the exact counts.
    """
    if epsilon <= 0:
        raise PlanError(f"it is {epsilon}, but must be positive.", field="epsilon")
    bound = int(bound_table(1, neighbours=neighbours).bound)
    noisy = noise.laplace_many(list(counts), sensitivity=bound, epsilon=epsilon)
    table = np.array(noisy, dtype=np.int64).reshape(design.cells, design.levels)
    change = Change.REPLACE if neighbours.replaced else Change.ADD_REMOVE
    claim = Claim(measure="pure", epsilon=epsilon, change=change, rests_on=((THEOREM, PAGE),))
    return TabledFit(chances=softened(design, table, scale=bound / float(epsilon)), claim=claim)


def softened(design: TableDesign, table: NDArray[np.int64], *, scale: float) -> Floats:
    """The chances of a softmax regression on noisy counts. Post-processing: reads no row.

    The loss of a cell is its total times a convex function, less a linear one, so counts below 0 do no harm as long as
    the total is not: cells with a total below 0 are left out. The ridge is what the noise does to a slope.
    """
    x, counts = design.matrix(), np.where(table.sum(axis=1, keepdims=True) > 0, table, 0)
    rows = np.repeat(x, design.levels, axis=0)
    label = np.tile(np.arange(design.levels), design.cells)
    ridge = 1 + scale * (2 * design.cells) ** 0.5
    start = np.zeros((design.lines, design.features))
    found = minimum(rows, label, counts.ravel(), ridge=ridge, tilt=start)
    scores = x @ found.T
    scores = np.column_stack([np.zeros(len(x)), scores]) if design.lines == 1 else scores
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))
