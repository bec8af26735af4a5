"""Compiled loops for Theil-Sen: random pairs of the points of a cell, and the line through each pair."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.smallcells.kernel import Whole, compiled, two_words

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
