"""Intervals for shares, ratios and differences of cells of one released table: post-processing, free of charge.

Cells of one table have independent noise of one public scale, so the sum of n cells has a public law. Let x and y be sums
of disjoint cells and r = x / y. Then x~ - r y~ has the law of X - r Y, so r lies where |x~ - r y~| is within its quantile
(Fieller's idea, as in `refine/pivot`). Where r is larger than 1, the same is said of y / x.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from reticent.refine.combination import Draws, NoiseLaw, half_width

ROUNDS = 40
CLOSE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSum:
    """The released sum of some cells of a table, in steps of its grid, and how many cells (so draws of noise) it holds."""

    value: float
    cells: int


def ratio_interval(
    top: CellSum, bottom: CellSum, *, scale: float, level: float, law: NoiseLaw = NoiseLaw.LAPLACE
) -> tuple[float, float]:
    """The interval of x / y for sums of disjoint cells that are not negative; its end may be infinite.

    Guarantee   it holds x / y with probability at least `level`, if y > 0. No privacy is spent.
    Adjacency   none: it is a function of released numbers.
    Theorem     THEORY 14.6.
    Proof       proofs/refine/cell_ratio.md
    Assumes     every cell has independent noise of this `law` and `scale`, in steps; no cell is in both sums.
    Keeps back  nothing.
    """
    small = _at_most_one(top, bottom, scale, level, law)
    large = _at_most_one(bottom, top, scale, level, law)
    ends = [*(small or ()), *((_inverse(large[1]), _inverse(large[0])) if large else ())]
    if ends:
        return min(ends), max(ends)
    # The noise went further than the level allows: what is nearest to the released numbers.
    here = max(top.value, 0.0) / bottom.value if bottom.value > 0 else inf
    return here, here


def share_interval(
    part: CellSum, rest: CellSum, *, scale: float, level: float, law: NoiseLaw = NoiseLaw.LAPLACE
) -> tuple[float, float]:
    """The interval of x / (x + y): that of x / y, carried over by the rising r / (1 + r)."""
    low, high = ratio_interval(part, rest, scale=scale, level=level, law=law)
    return _share(low), _share(high)


def difference_width(cells: int, *, scale: float, level: float, law: NoiseLaw = NoiseLaw.LAPLACE) -> float:
    """How far the noise of a sum or difference of so many cells reaches, in steps."""
    return half_width([Draws(weight=1.0, scale=scale, count=cells, law=law)], level)


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio else inf


def _share(ratio: float) -> float:
    return 1.0 if ratio == inf else ratio / (1 + ratio)


def _at_most_one(
    top: CellSum, bottom: CellSum, scale: float, level: float, law: NoiseLaw
) -> tuple[float, float] | None:
    """An interval of [0, 1] outside which no ratio agrees with the released sums; None where none in it does."""
    width = _width(top.cells, bottom.cells, scale, level, law)
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        reach, before = width(high), high
        ends = _solve(top.value - reach, top.value + reach, bottom.value)
        low, high = max(low, ends[0]), min(high, ends[1])
        if low > high:
            return None
        if before - high <= CLOSE * before:
            break
    return low, high


def _solve(least: float, most: float, bottom: float) -> tuple[float, float]:
    """The r with least <= r bottom <= most: an interval, empty (its ends crossed) or the whole line."""
    if bottom == 0:
        return (-inf, inf) if least <= 0 <= most else (inf, -inf)
    ends = least / bottom, most / bottom
    return min(ends), max(ends)


def _width(tops: int, bottoms: int, scale: float, level: float, law: NoiseLaw) -> Callable[[float], float]:
    """How far X - r Y reaches, as a function of r that does not fall: a step's blur makes both laws fall off evenly."""

    def width(r: float) -> float:
        draws = [
            Draws(weight=1.0, scale=scale, count=tops, law=law),
            Draws(weight=1.0, law=NoiseLaw.UNIFORM),
            *(
                [Draws(weight=r, scale=scale, count=bottoms, law=law), Draws(weight=r, law=NoiseLaw.UNIFORM)]
                if r
                else []
            ),
        ]
        return half_width(draws, level) + (1 + r) / 2

    return width
