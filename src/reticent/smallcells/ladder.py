"""Smooth bounds for the estimate of every cell: how far one respondent can move it, here and k steps away.

The tightest n - j points of a cell bound what any neighbour's line can do (THEORY 8.4). All of it is read off the
rows and never shown.

Loops over the points of many cells are compiled. They are given numbers that fit; whoever calls them sees to it. Sums are
whole numbers, in one word or in two. What is computed from them in doubles is made of positive terms by + * / and square
roots alone, so relative errors add up and proofs/smallcells/ladder.md can bound them.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.points import GridPoints
from reticent.smallcells.table import Estimand

SLACK = Fraction(1, 2**34)
MARGIN = 1.0 + 2.0**-36
LEAST_BETA = Fraction(1, 2**20)
_BLOCK = 1024
_ROOM = 1 << 62

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


F = TypeVar("F", bound=Callable[..., Any])
Whole = NDArray[np.int64]

PREDICT, SLOPE, MEAN = 0, 1, 2
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_NOTHING, _ONE = np.uint64(0), np.uint64(1)


def compiled(function: F) -> F:
    """The same function as machine code; doubles stay those of the standard, without short cuts."""
    return cast(F, numba.njit(nogil=True)(function))


class Scale(NamedTuple):
    """The public numbers of a ladder. x0 is at_top / at_bottom of `steps`; `unit` counts grid steps in 1, `top` in all.

    e^(-bk) is coarse[k // 1024] * fine[k % 1024]. With `pooled` every rung is multiplied by n + 1 + k.
    """

    kind: int
    steps: int
    at_top: int
    at_bottom: int
    unit: float
    top: float
    fine: Floats
    coarse: Floats
    pooled: bool


class Cell(NamedTuple):
    """What a rung needs of a cell: its size, |x0 - xbar| and max(xbar, 1 - xbar)."""

    n: int
    lean: float
    side: float


@compiled
def two_words(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """a * b for words of 64 bits, as (high, low)."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low, first, second = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (first & _LOW) + (second & _LOW)
    high = a1 * b1 + (first >> _HALF) + (second >> _HALF) + (middle >> _HALF)
    return high, (middle << _HALF) | (low & _LOW)


@compiled
def least_in_one(p: Whole, q: Whole, n: int, j: int) -> float:
    """The least w Q - P^2 over runs of w = n - j points, P and Q their sum and sum of squares, in one word."""
    w = n - j
    least = np.int64(-1)
    for i in range(j + 1):
        total = p[i + w] - p[i]
        spread = w * (q[i + w] - q[i]) - total * total
        if least < 0 or spread < least:
            least = spread
    return float(least)


@compiled
def least_in_two(p: Whole, q: Whole, n: int, j: int) -> float:
    """The same in two words, for w Q below 2^126; as a double within relative 2^-51."""
    w = n - j
    best_high, best_low = ~_NOTHING, ~_NOTHING
    for i in range(j + 1):
        total = np.uint64(p[i + w] - p[i])
        high, low = two_words(np.uint64(w), np.uint64(q[i + w] - q[i]))
        less_high, less_low = two_words(total, total)
        borrow = _ONE if low < less_low else _NOTHING
        high, low = high - less_high - borrow, low - less_low
        if high < best_high or (high == best_high and low < best_low):
            best_high, best_low = high, low
    return float(best_high) * 18446744073709551616.0 + float(best_low)


@compiled
def rung(scale: Scale, cell: Cell, j: int, spread: float) -> float:
    """U_k in grid steps for k = j - 1 (THEORY 8.4); `spread` is w Q - P^2 of the tightest w = n - j points."""
    w, steps = float(cell.n - j), float(scale.steps)
    if w < 1.0 or (scale.kind != MEAN and (w < 2.0 or spread == 0.0)):
        return scale.top
    far = min(1.0, cell.side + j / w)
    if scale.kind == MEAN:
        return min(scale.top, scale.unit * far / (w + 1.0) + 1.0)
    inverse = w * (steps * steps) / spread
    lead = math.sqrt(inverse)
    if scale.kind == PREDICT:
        end = max(scale.at_top, scale.steps * scale.at_bottom - scale.at_top)
        rho = min(end / (steps * float(scale.at_bottom)), cell.lean + j / w)
        lead = math.sqrt(1.0 / w + rho * rho * inverse)
    h = 1.0 / w + far * far * inverse
    hat = math.sqrt(h) / (1.0 + h) if h < 1.0 else 0.5
    miss = 0.5 + 0.5 * math.sqrt(1.0 + far * far * float(cell.n + j - 1) * inverse)
    return min(scale.top, scale.unit * (lead * hat * miss) + 1.0)


@compiled
def weight(scale: Scale, n: int, k: int) -> float:
    """What rung k counts for."""
    decay = float(scale.coarse[k >> 10] * scale.fine[k & 1023])
    return decay * float(n + 1 + k) if scale.pooled else decay


@compiled
def is_over(scale: Scale, n: int, k: int, best: float) -> bool:
    """Whether no rung from k on can win: each is at most `top`, and their weights fall from here on."""
    falls = not scale.pooled or scale.fine[1] * float(n + 2 + k) <= float(n + 1 + k)
    return bool(falls and weight(scale, n, k) * scale.top <= best)


@compiled
def highest(scale: Scale, cell: Cell, p: Whole, q: Whole) -> float:
    """The largest weighted rung of a cell with prefix sums p of its points and q of their squares."""
    best, k, n = 0.0, 0, cell.n
    is_narrow = float(n) * float(n) * float(scale.steps) * float(scale.steps) < 4.0e18
    while not is_over(scale, n, k, best):
        spread = 0.0
        if scale.kind != MEAN and n - k - 1 >= 2:
            spread = least_in_one(p, q, n, k + 1) if is_narrow else least_in_two(p, q, n, k + 1)
        best = max(best, weight(scale, n, k) * rung(scale, cell, k + 1, spread))
        k += 1
    return best


@compiled
def climb(scale: Scale, starts: Whole, x: Whole, is_large: NDArray[np.bool_], out: Floats) -> None:
    """`highest` of every cell that is not too large: for n steps max(steps, at_bottom) below 2^62."""
    for g in range(len(starts) - 1):
        if is_large[g]:
            continue
        n = starts[g + 1] - starts[g]
        p, q = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        for i in range(n):
            at = x[starts[g] + i]
            p[i + 1], q[i + 1] = p[i] + at, q[i] + at * at
        lean, side, full = 0.0, 1.0, n * scale.steps
        if n > 0:
            lean = abs(n * scale.at_top - scale.at_bottom * p[n]) / (float(full) * float(scale.at_bottom))
            side = max(p[n], full - p[n]) / float(full)
        out[g] = highest(scale, Cell(n, lean, side), p, q)


def smooth_bounds(points: GridPoints, aim: Estimand, *, beta: Fraction) -> Floats:
    """For each cell a beta-smooth bound, in steps of the aim, on how far one respondent moves its estimate.

    Guarantee   the bound of a cell covers the local sensitivity of its rounded estimate and drifts by at most e^beta
                between neighbours; the bounds of all other cells stay as they are.
    Adjacency   one point added to or removed from one cell.
    Theorem     THEORY 8.4 and 1.1, with the rational scale of 2.6.
    Proof       proofs/smallcells/ladder.md
    Assumes     beta and the aim are public; `steps_of` gives the estimates.
    Keeps back  the bounds, every rung, and the rung they were found on.
    """
    scale = _scale(points, aim, beta=beta, pooled=False)
    return _climbed(points, aim, scale)


def pooled_bounds(points: GridPoints, aim: Estimand, *, beta: Fraction) -> Floats:
    """For each cell its part in `pooled_bound`: the largest weighted rung, (n + 1 + k) times U_k, in steps. Private."""
    return _climbed(points, aim, _scale(points, aim, beta=beta, pooled=True))


def largest_of(bounds: Floats, is_left_out: Flags) -> float:
    """The largest of the cells that are not left out; at least 1."""
    return float(max(1.0, bounds[~is_left_out].max(initial=0.0)))


def pooled_bound(points: GridPoints, aim: Estimand, *, beta: Fraction, is_left_out: Flags) -> float:
    """A beta-smooth bound on (n + 1) LS, in steps, over the cells that are not left out; at least 1.

    Guarantee   at least (n + 1) times the local sensitivity of every cell that counts; drifts by at most e^beta.
    Adjacency   one point added to or removed from one cell.
    Theorem     THEORY 8.5 and 1.1, with the rational scale of 2.6.
    Proof       proofs/smallcells/ladder.md
    Assumes     beta, the aim and the choice of cells are public; `steps_of` gives the estimates.
    Keeps back  the bound.
    """
    return largest_of(pooled_bounds(points, aim, beta=beta), is_left_out)


def rungs(points: GridPoints, aim: Estimand, *, cell: int, count: int) -> list[float]:
    """U_0, U_1, ... of one cell in steps, each rounding and the extra step included. Private."""
    scale = _scale(points, aim, beta=Fraction(1), pooled=False)
    values = _read(points, aim.estimator)[points.starts[cell] : points.starts[cell + 1]]
    seen = _Seen(scale, values)
    return [seen.rung(k) for k in range(count)]


def _scale(points: GridPoints, aim: Estimand, *, beta: Fraction, pooled: bool) -> Scale:
    if beta < LEAST_BETA:
        raise PlanError(f"it is {beta}, but must be at least 2^-20; use a larger epsilon.", field="beta")
    kind, steps = _kind(aim.estimator), _steps(points, aim.estimator)
    at = aim.estimator.at * steps if isinstance(aim.estimator, Predict) else Fraction(0)
    fine, coarse = _decay(beta - SLACK, aim.steps)
    unit, top = float(1 / aim.step), float(aim.steps)
    return Scale(kind, steps, at.numerator, at.denominator, unit, top, fine, coarse, pooled)


@lru_cache(maxsize=16)
def _decay(rate: Fraction, top: int) -> tuple[Floats, Floats]:
    """Doubles just above e^(-rate k), in blocks, for all k that a search can come to: (1 + k) e^(-rate k) top > 1/2."""
    last = _BLOCK
    with ctx.workprec(96):
        while last * rate < 1 or not (1 + last) * ball(-rate * last).exp() * top < ball(Fraction(1, 2)):
            last *= 2
        fine = [_above(ball(-rate * k).exp()) for k in range(_BLOCK)]
        coarse = [_above(ball(-rate * k * _BLOCK).exp()) for k in range(last // _BLOCK + 1)]
    return np.array(fine), np.array(coarse)


def _above(value: arb) -> float:
    """A double at most 2^-52 of itself above the ball."""
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    return float(np.nextafter(float(Fraction(mantissa) * Fraction(2) ** exponent), np.inf))


def _kind(estimator: Estimator) -> int:
    match estimator:
        case Predict():
            return PREDICT
        case Slope():
            return SLOPE
        case CellMean():
            return MEAN


def _steps(points: GridPoints, estimator: Estimator) -> int:
    """The grid of the coordinate that the ladder reads."""
    steps = points.y_steps if isinstance(estimator, CellMean) else points.x_steps
    if steps >= 1 << 31:
        raise PlanError("the grid has 2^31 steps or more; declare coarser steps.", field="step")
    return steps


def _read(points: GridPoints, estimator: Estimator) -> NDArray[np.int64]:
    """The coordinate that the ladder reads: x, sorted in each cell, or y for a mean."""
    if isinstance(estimator, CellMean):
        return points.y
    falls = np.flatnonzero(np.diff(points.x) < 0) + 1
    if not np.isin(falls, points.starts).all():
        raise ValueError("the points of a cell are sorted by x")
    return points.x


def _climbed(points: GridPoints, aim: Estimand, scale: Scale) -> Floats:
    """The largest weighted rung of every cell, rounded up; cells too large for a word go by Python's integers."""
    x = _read(points, aim.estimator)
    limit = _ROOM // (scale.steps * max(scale.steps, scale.at_bottom))
    is_large = points.sizes > limit
    out = np.zeros(points.cells)
    climb(scale, points.starts, x, is_large, out)
    for g in np.flatnonzero(is_large):
        out[g] = _Seen(scale, x[points.starts[g] : points.starts[g + 1]]).highest()
    return np.asarray(out * MARGIN)


class _Seen:
    """One cell by Python's integers, whatever its size: the twin of the compiled loop."""

    __slots__ = ("_cell", "_p", "_q", "_scale")

    def __init__(self, scale: Scale, values: NDArray[np.int64]) -> None:
        n, wide = len(values), values.astype(object)
        zero = np.zeros(1, object)
        self._scale = scale
        self._p, self._q = (np.concatenate([zero, np.cumsum(each)]) for each in (wide, wide * wide))
        total, full = int(self._p[-1]), n * scale.steps
        lean = Fraction(abs(n * scale.at_top - scale.at_bottom * total), max(1, full * scale.at_bottom))
        side = Fraction(max(total, full - total), full) if n else Fraction(1)
        self._cell = Cell(n, float(lean), float(side))

    def rung(self, k: int) -> float:
        return float(rung(self._scale, self._cell, k + 1, float(self._spread(k + 1))))

    def highest(self) -> float:
        best, k, n = 0.0, 0, self._cell.n
        while not is_over(self._scale, n, k, best):
            best = max(best, weight(self._scale, n, k) * self.rung(k))
            k += 1
        return best

    def _spread(self, j: int) -> int:
        """w Q - P^2 of the tightest w = n - j points, exactly; 0 where there is no line."""
        w = self._cell.n - j
        if self._scale.kind == MEAN or w < 2:
            return 0
        totals, squares = (each[w:] - each[: j + 1] for each in (self._p, self._q))
        return int((w * squares - totals * totals).min())
