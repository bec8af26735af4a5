"""Theil-Sen with differential privacy: the median of lines through random pairs of points, by selection.

The estimator of Alabi, McMillan, Sarathy, Smith and Vadhan (2020), for the change of one respondent added or removed:
in each of several random matchings everybody has at most one partner; every pair gives the value of the line through
it; a step of the public grid is chosen by how evenly those values lie to its two sides.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import ctx
from numpy.typing import NDArray

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.noise.bits import Bits, below, words
from reticent.noise.coins import exp_bracket
from reticent.noise.lazy import Uniform
from reticent.smallcells import matching, median
from reticent.smallcells.aim import Estimand
from reticent.smallcells.estimators import CellMean, Predict, Slope
from reticent.smallcells.matching import Through
from reticent.smallcells.points import GridPoints

Whole = NDArray[np.int64]

_MOST, _BATCH = 1 << 20, 1 << 23
_DEEPEST, _LONGEST = 600, 1 << 22
"""Powers below e^-600 count for nothing in doubles; a table of the others has no more than 2^22 entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TheilSenCells:
    """The public numbers of one table. `widen` counts steps: so far from the median every step is as good as it."""

    aim: Estimand
    epsilon: Fraction
    matchings: int = 8
    widen: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.aim.estimator, CellMean):
            raise PlanError("a mean has no line through two points; use another method.", field="estimate")
        if self.epsilon <= 0:
            raise PlanError("it must be positive.", field="epsilon")
        if not 1 <= self.matchings <= 1 << 16:
            raise PlanError(f"it is {self.matchings}, but must be from 1 to 65536.", field="matchings")
        if self.rate * _LONGEST < _DEEPEST:
            raise PlanError(
                f"{self.epsilon} is too little for {self.matchings} matchings; use fewer.", field="epsilon"
            )
        if not 0 <= self.widen <= self.aim.steps:
            raise PlanError("it must be a number of steps within the range.", field="widen")

    @property
    def cost(self) -> Fraction:
        """What the whole table costs."""
        return self.epsilon

    @property
    def rate(self) -> Fraction:
        """A respondent moves a score by at most two for each matching, up or down: epsilon / (2 * 2 * matchings)."""
        return Fraction(self.epsilon) / (4 * self.matchings)

    def measure(self, points: GridPoints, *, bits: Bits) -> "TheilSenTable":
        """A step for every cell, near the median of the lines through its pairs; any step where there is no pair.

        Guarantee   epsilon-DP for the whole table.
        Adjacency   one point added to or removed from one cell.
        Theorem     Alabi et al. 2020, DPTheilSen with matchings; McSherry and Talwar 2007; parallel composition.
        Proof       proofs/smallcells/theilsen.md
        Assumes     the cells, the aim and every other field are public.
        Keeps back  the pairs, the lines through them and all scores.
        """
        chosen: list[int] = []
        for first, after in _batches(points.starts, min(_MOST, _BATCH // self.matchings)):
            chosen += self._batch(points, first, after, bits)
        return TheilSenTable(asked=self, steps=chosen)

    def _batch(self, points: GridPoints, first: int, after: int, bits: Bits) -> list[int]:
        """The choices of some cells."""
        starts = points.starts[first : after + 1]
        room = self.matchings * ((starts - starts[0]) // 2 + np.arange(len(starts)))
        steps, counts = np.zeros(int(room[-1]), np.int64), np.zeros(len(starts) - 1, np.int64)
        line, done = self.through(points), 0
        while done < len(counts):
            rest = starts[done:]
            drawn = words(self.matchings * int(-(-np.diff(rest) // 2).sum()) + 64, bits)
            done += matching.pairs_of_all(
                line, rest, points.x, points.y, self.matchings, drawn, room[done:], steps, counts[done:]
            )
        return self._chosen(*_sorted(steps, room, counts, self.aim.steps), bits)

    def _chosen(self, steps: Whole, starts: Whole, bits: Bits) -> list[int]:
        """The choice of every cell from the steps through its pairs."""
        top, widen, out = self.aim.steps, self.widen, np.zeros(len(starts) - 1, np.int64)
        digits = words(3 * len(out), bits)
        median.choose_all(steps, starts, top, widen, _decay(self.rate), digits, out)
        for g in np.flatnonzero(out < 0):
            parts = median.stretches(steps[starts[g] : starts[g + 1]], top, widen)
            i = settle(parts, self.rate, Uniform(bits, int(digits[3 * g]), 64))
            out[g] = int(parts[0, i]) + below(int(parts[1, i] - parts[0, i]) + 1, bits)
        return [int(step) for step in out]

    def through(self, points: GridPoints) -> Through:
        """The line through two points in whole numbers, or a refusal where they might not fit a word."""
        is_slope, per = isinstance(self.aim.estimator, Slope), 1 / self.aim.step
        at = (
            self.aim.estimator.at * points.x_steps if isinstance(self.aim.estimator, Predict) else Fraction(0)
        )
        low, x, y = self.aim.low, points.x_steps, points.y_steps
        wide = at.denominator * x * y
        most = (2 * wide * low.denominator + abs(low.numerator) * wide) * per.numerator
        if 2 * most + 2 * wide * low.denominator * per.denominator >= 1 << 62:
            raise PlanError("the grids are too fine together; use fewer steps.", field="steps")
        return Through(
            is_slope, x, y, at.numerator, at.denominator, low.numerator, low.denominator,
            per.numerator, per.denominator, self.aim.steps,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TheilSenTable:
    """What leaves: a step of the grid per cell."""

    asked: TheilSenCells
    steps: list[int] = field(repr=False)

    def estimates(self) -> list[Fraction]:
        """The chosen estimates, exactly; all lie within the range."""
        return [self.asked.aim.value(step) for step in self.steps]


def _sorted(steps: Whole, room: Whole, counts: Whole, top: int) -> tuple[Whole, Whole]:
    """The steps through all pairs, cell by cell and each cell's in order, and where the cells begin.

    Steps lie in -1 .. top + 1 and cells are at most 2^21, so a cell and its step fit one word.
    """
    starts = np.concatenate([[0], np.cumsum(counts)])
    owner = np.repeat(np.arange(len(counts)), counts)
    held = steps[np.arange(len(owner)) - np.repeat(starts[:-1] - room[:-1], counts)]
    return np.sort(owner * (top + 3) + held + 1) % (top + 3) - 1, starts


@lru_cache(maxsize=8)
def _decay(rate: Fraction) -> NDArray[np.float64]:
    """Doubles within 2^-52 of e^(-rate d) for d = 0, 1, ... as long as that is not below e^-600."""
    count = int(_DEEPEST / rate) + 1
    with ctx.workprec(80):
        return np.array([float(ball(-rate * d).exp()) for d in range(count)])


def _batches(starts: Whole, size: int) -> list[tuple[int, int]]:
    """Runs of cells with about `size` points and cells together, or one cell; memory does not grow with the table."""
    ends, places = [0], starts + np.arange(len(starts))
    while ends[-1] < len(starts) - 1:
        after = int(np.searchsorted(places, places[ends[-1]] + size, side="right")) - 1
        ends.append(max(after, ends[-1] + 1))
    return list(pairwise(ends))


def settle(parts: Whole, rate: Fraction, u: Uniform) -> int:
    """The stretch on which u falls, each as wide as its length times e^(-rate far), by integers and as many digits as it takes."""
    begins, ends, far = parts.tolist()
    best = min(far)
    while True:
        places = u.known + 32
        each = [exp_bracket(rate * (d - best), places) for d in far]
        sizes = [end - begin + 1 for begin, end in zip(begins, ends, strict=True)]
        lows = _upto([size * low for size, (low, _) in zip(sizes, each, strict=True)])
        highs = _upto([size * high for size, (_, high) in zip(sizes, each, strict=True)])
        for i in range(len(far)):
            is_after = u.prefix * lows[-1] >= highs[i] << u.known
            if is_after and (u.prefix + 1) * highs[-1] <= lows[i + 1] << u.known:
                return i
        u.refine(32)


def _upto(sizes: list[int]) -> list[int]:
    """0 and the running sums."""
    sums = [0]
    for size in sizes:
        sums.append(sums[-1] + size)
    return sums
