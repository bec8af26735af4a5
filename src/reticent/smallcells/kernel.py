"""Compiled loops over the points of many cells. They are given numbers that fit; whoever calls them sees to it.

Sums are whole numbers, in one word or in two. What is computed from them in doubles is made of positive terms by
+ * / and square roots alone, so relative errors add up and proofs/smallcells/ladder.md can bound them.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

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
def climb(scale: Scale, starts: Whole, x: Whole, is_left_out: NDArray[np.bool_], out: Floats) -> None:
    """`highest` of every cell that is not left out, for n steps max(steps, at_bottom) below 2^62."""
    for g in range(len(starts) - 1):
        if is_left_out[g]:
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
