"""Theil-Sen with differential privacy: the median of lines through random pairs of points, by selection.

The estimator of Alabi, McMillan, Sarathy, Smith and Vadhan (2020), for the change of one respondent added or removed: in each
of several random matchings everybody has at most one partner; every pair gives the value of the line through it; a step of
the public grid is chosen by how evenly those values lie to its two sides. The compiled loops take values as whole steps,
sorted, from -1 (below the range) to one above its top, and the public steps in stretches of one score.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from flint import ctx
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.bits import Bits, Uniform, exp_bracket, words
from reticent.noise.bits import below as bits_below
from reticent.smallcells.estimators import CellMean, Predict, Slope
from reticent.smallcells.ladder import Floats, Whole, compiled, two_words
from reticent.smallcells.points import GridPoints
from reticent.smallcells.readings import CellReadings
from reticent.smallcells.table import Estimand

Words = NDArray[np.uint64]

_NOTHING = np.uint64(0)


class Through(NamedTuple):
    """Where the line through two points stands, in public whole numbers: the step floor((v - low) / step + 1/2).

    x0 is at_top / at_bottom of a grid of x_steps; low is low_top / low_bottom, a step is 1 / (per_top / per_bottom).
    """

    is_slope: bool
    x_steps: int
    y_steps: int
    at_top: int
    at_bottom: int
    low_top: int
    low_bottom: int
    per_top: int
    per_bottom: int
    top: int


@compiled
def below(n: int, words: Words, at: int) -> tuple[int, int]:
    """A whole number uniform on 0 .. n-1, and the place of the next word; the place is -1 where the words ran out.

    The high word of word * n, unless the low word is below 2^64 mod n: then each number has equally many words.
    """
    size = np.uint64(n)
    while at < len(words):
        high, low = two_words(words[at], size)
        at += 1
        if low >= size or low >= (_NOTHING - size) % size:
            return int(np.int64(high)), at
    return 0, -1


@compiled
def pair_up(order: Whole, words: Words, at: int) -> int:
    """Put a uniform matching into order[0], order[1]; order[2], order[3]; ...; the odd one out stands last."""
    n = len(order)
    if n % 2 == 1:
        j, at = below(n, words, at)
        if at < 0:
            return at
        order[j], order[n - 1] = order[n - 1], order[j]
    for i in range(0, n - 1, 2):
        j, at = below(n - n % 2 - 1 - i, words, at)
        if at < 0:
            return at
        order[i + 1], order[i + 1 + j] = order[i + 1 + j], order[i + 1]
    return at


@compiled
def step_through(line: Through, x1: int, y1: int, x2: int, y2: int) -> int:
    """The step of the line through two points with x1 < x2, from -1 to one above the top."""
    if line.is_slope:
        over, under = (y2 - y1) * line.x_steps, (x2 - x1) * line.y_steps
    else:
        d = line.at_bottom
        over = y1 * (x2 - x1) * d + (y2 - y1) * (line.at_top - d * x1)
        under = (x2 - x1) * d * line.y_steps
    above = (over * line.low_bottom - line.low_top * under) * line.per_top
    whole = under * line.low_bottom * line.per_bottom
    return max(-1, min(line.top + 1, (2 * above + whole) // (2 * whole)))


@compiled
def pairs_of(
    line: Through, x: Whole, y: Whole, matchings: int, words: Words, at: int, steps: Whole
) -> tuple[int, int]:
    """Steps through the pairs of one cell into `steps`: how many, and the place of the next word, -1 if they ran out."""
    order, count = np.arange(len(x)), 0
    for _ in range(matchings):
        at = pair_up(order, words, at)
        if at < 0:
            return 0, at
        for i in range(0, len(x) - 1, 2):
            one, two = min(order[i], order[i + 1]), max(order[i], order[i + 1])
            if x[one] < x[two]:
                steps[count] = step_through(line, x[one], y[one], x[two], y[two])
                count += 1
    return count, at


@compiled
def pairs_of_all(
    line: Through,
    starts: Whole,
    x: Whole,
    y: Whole,
    matchings: int,
    words: Words,
    room: Whole,
    steps: Whole,
    counts: Whole,
) -> int:
    """The same for every cell, from room[g] on; how many were done, for a cell that runs out of words begins anew."""
    at = int(np.int64(0))  # not a constant, so that everything is compiled once
    for g in range(len(counts)):
        first, after = starts[g], starts[g + 1]
        counts[g], at = pairs_of(line, x[first:after], y[first:after], matchings, words, at, steps[room[g] :])
        if at < 0:
            return g
    return len(counts)


@compiled
def keep(parts: Whole, kept: int, begin: int, end: int, far: int, top: int) -> int:
    """Put down what a stretch has in 0 .. top, if anything; how many there are now."""
    parts[0, kept], parts[1, kept], parts[2, kept] = max(begin, 0), min(end, top), far
    return kept + 1 if parts[0, kept] <= parts[1, kept] else kept


@compiled
def balances(z: Whole, low: int, high: int) -> Whole:
    """Stretches of low .. high with one g(s) = #(z < s) - #(z > s): where they begin, where they end, and g; `z` is sorted."""
    size, count, begin, i = len(z), 0, low, 0
    parts = np.empty((3, 2 * size + 1), np.int64)
    while i <= size:
        end = z[i] - 1 if i < size else high  # up to the next value: i below, the others above
        if begin <= end:
            parts[0, count], parts[1, count], parts[2, count] = begin, end, 2 * i - size
            count += 1
        if i == size:
            break
        j = i
        while j < size and z[j] == z[i]:
            j += 1
        parts[0, count], parts[1, count], parts[2, count] = z[i], z[i], i + j - size
        count, begin, i = count + 1, z[i] + 1, j
    return parts[:, :count]


@compiled
def stretches(z: Whole, top: int, widen: int) -> Whole:
    """The steps 0 .. top in stretches of one score: where each begins and ends, and how far it is from balance.

    g does not fall. At r the distance is max(0, -g(r + widen), g(r - widen)): what lies below balance is moved down by
    `widen`, what lies above it up, and all between is as good as balance.
    """
    old = balances(z, -1 - widen, top + 1 + widen)
    parts = np.empty((3, old.shape[1] + 2), np.int64)
    kept, middle, is_past = 0, 0, False
    for s in range(old.shape[1]):
        begin, end, off = old[0, s], old[1, s], old[2, s]
        if off < 0:
            kept = keep(parts, kept, begin - widen, end - widen, -off, top)
            middle = end - widen + 1
        if off > 0:
            if not is_past:
                kept = keep(parts, kept, middle, begin + widen - 1, 0, top)
                is_past = True
            kept = keep(parts, kept, begin + widen, end + widen, off, top)
    if not is_past:
        kept = keep(parts, kept, middle, top, 0, top)
    return parts[:, :kept]


@compiled
def choose(parts: Whole, decay: Floats, word: np.uint64) -> int:
    """The stretch that a uniform number with these 64 digits falls on, or -1 where they do not decide.

    Stretches count with their length times e^(-rate far); `decay` holds that power, 0 beyond its end.
    """
    count, best, total = parts.shape[1], parts[2, 0], 0.0
    for i in range(count):
        best = min(best, parts[2, i])
    upto = np.empty(count)
    for i in range(count):
        far = parts[2, i] - best
        total += float(parts[1, i] - parts[0, i] + 1) * decay[far] if far < len(decay) else 0.0
        upto[i] = total
    margin = 2.0**-36 + count * 2.0**-50
    low = float(word) * 2.0**-64 * total * (1.0 - margin)
    high = (float(word) + 1.0) * 2.0**-64 * total * (1.0 + margin)
    i = 0
    while i < count - 1 and upto[i] < high:
        i += 1
    if i > 0 and (word == np.uint64(0) or upto[i - 1] * (1.0 + margin) > low):
        return -1
    return i if i == count - 1 or high <= upto[i] * (1.0 - margin) else -1


@compiled
def choose_all(
    steps: Whole, starts: Whole, top: int, widen: int, decay: Floats, words: Words, out: Whole
) -> None:
    """A step for every cell from three words each; -1 where they do not decide. `steps` is sorted in each cell."""
    for g in range(len(out)):
        parts = stretches(steps[starts[g] : starts[g + 1]], top, widen)
        i, out[g] = choose(parts, decay, words[3 * g]), -1
        if i >= 0:
            place, at = below(parts[1, i] - parts[0, i] + 1, words[3 * g + 1 : 3 * g + 3], int(np.int64(0)))
            out[g] = parts[0, i] + place if at >= 0 else -1


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
        return self.told(self.read(points, bits=bits))

    def read(self, points: GridPoints, *, bits: Bits) -> CellReadings:
        """The choice of every cell, made of its own points and bits of its own; how many points it has is private."""
        chosen: list[int] = []
        for first, after in _batches(points.starts, min(_MOST, _BATCH // self.matchings)):
            chosen += self._batch(points, first, after, bits)
        return CellReadings(sizes=points.sizes, steps=np.array(chosen, object))

    def told(self, read: CellReadings) -> "TheilSenTable":
        """What `measure` gives."""
        return TheilSenTable(asked=self, steps=read.steps.tolist())

    def _batch(self, points: GridPoints, first: int, after: int, bits: Bits) -> list[int]:
        """The choices of some cells."""
        starts = points.starts[first : after + 1]
        room = self.matchings * ((starts - starts[0]) // 2 + np.arange(len(starts)))
        steps, counts = np.zeros(int(room[-1]), np.int64), np.zeros(len(starts) - 1, np.int64)
        line, done = self.through(points), 0
        while done < len(counts):
            rest = starts[done:]
            drawn = words(self.matchings * int(-(-np.diff(rest) // 2).sum()) + 64, bits)
            done += pairs_of_all(
                line, rest, points.x, points.y, self.matchings, drawn, room[done:], steps, counts[done:]
            )
        return self._chosen(*_sorted(steps, room, counts, self.aim.steps), bits)

    def _chosen(self, steps: Whole, starts: Whole, bits: Bits) -> list[int]:
        """The choice of every cell from the steps through its pairs."""
        top, widen, out = self.aim.steps, self.widen, np.zeros(len(starts) - 1, np.int64)
        digits = words(3 * len(out), bits)
        choose_all(steps, starts, top, widen, _decay(self.rate), digits, out)
        for g in np.flatnonzero(out < 0):
            parts = stretches(steps[starts[g] : starts[g + 1]], top, widen)
            i = settle(parts, self.rate, Uniform(bits, int(digits[3 * g]), 64))
            out[g] = int(parts[0, i]) + bits_below(int(parts[1, i] - parts[0, i]) + 1, bits)
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
