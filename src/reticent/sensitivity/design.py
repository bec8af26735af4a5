"""How far one respondent moves a design-based standard error: sums of residuals by primary sampling unit, in whole numbers.

A record adds u = weight x (fine x value - about) to the sum of its unit, `about` being a number that was released before,
or nothing. Two things are made of the sums. `paired_total` adds up absolute values of differences between paired
units, dealt into groups, over several items: a record is in one unit, one pair and one group. `unit_error` and
`replicate_error` are the roots of a design variance: seminorms of the residuals, so one record moves them by no more
than its own. THEORY 13.1 to 13.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.sensitivity.bounds import Global, Neighbours, additive_bound

Whole = NDArray[np.object_]
"""Whole numbers of any size, one for each unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """What a record adds to one item: weight x (fine x value - about), counted `times` in a pooled sum.

    Values lie in [low, high], weights in [0, heaviest]. All of it is public, or was released before.
    """

    low: int
    high: int
    about: int = 0
    fine: int = 1
    heaviest: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        if self.low > self.high or min(self.fine, self.heaviest, self.times) < 1:
            raise ValueError("a residual has ordered limits, and whole factors from 1 on")

    @property
    def reach(self) -> int:
        """No record adds more, in absolute value, before `times`."""
        ends = (self.fine * self.low - self.about, self.fine * self.high - self.about)
        return max(1, self.heaviest * max(map(abs, ends)))

    def of(self, totals: Sequence[int], sizes: Sequence[int]) -> Whole:
        """The sums of the units, from those of weight x value and of weight."""
        pairs = zip(totals, sizes, strict=True)
        return np.array([self.fine * int(t) - self.about * int(n) for t, n in pairs], dtype=object)


def bound_paired(items: Sequence[Residual], *, neighbours: Neighbours) -> Global:
    """The bound of `paired_total`.

    Guarantee   no pair of neighbours has totals further apart.
    Adjacency   `neighbours`.
    Theorem     THEORY 13.2 and 13.3: a record that comes or goes moves one group of every item, by at most its reach; in
                sums apart, THEORY 14.1.
    Proof       proofs/sensitivity/design.md
    Assumes     unit and residual of a record depend on that record alone, and on numbers released before; integers.
    Keeps back  nothing: every input is public.
    """
    bound = Global(bound=Fraction(neighbours.steps * sum(item.times * item.reach for item in items)))
    return additive_bound(bound, records=neighbours.records) if neighbours.apart else bound


def paired_total(
    items: Sequence[Residual], sums: Sequence[Whole], *, group: NDArray[np.int64], sign: NDArray[np.int64]
) -> int:
    """The sum over groups and items of the absolute signed sum of residuals, each item `times` its factor."""
    found = 0
    for item, each in zip(items, sums, strict=True):
        held = np.zeros(int(group.max()) + 1, dtype=object)
        np.add.at(held, group, each * sign)
        found += item.times * sum(abs(int(one)) for one in held)
    return found


def bound_error(item: Residual, *, reach: Fraction = Fraction(1), neighbours: Neighbours) -> Global:
    """The bound of `unit_error`, and of `replicate_error` with the `reach` that replicate factors are held to.

    Guarantee   no pair of neighbours has errors further apart.
    Adjacency   `neighbours`.
    Theorem     THEORY 13.1: the root of a design variance is a seminorm, and is 1 on one record's unit vector.
    Proof       proofs/sensitivity/design.md
    Assumes     numbers of units are declared; the squares of a record's replicate deviations, times the method's factors,
                add up to at most (reach x weight)^2; integers.
    Keeps back  nothing: every input is public.
    """
    each = ceil(reach * item.times * item.reach)
    return Global(bound=Fraction(neighbours.steps * each))


def unit_error(sums: Whole, strata: Sequence[int]) -> int:
    """The standard error of a sum over units drawn with replacement within strata, rounded down to a whole number.

    v = sum over strata of n/(n - 1) sum (U - mean U)^2 = sum of (n sum U^2 - (sum U)^2)/(n - 1), n as declared.
    """
    variance = Fraction(0)
    for stratum in set(strata):
        held = [int(each) for each, own in zip(sums, strata, strict=True) if own == stratum]
        if len(held) < 2:
            raise PlanError(
                "a stratum of one unit has no variance; join it with its neighbour", field="design"
            )
        squares = len(held) * sum(each * each for each in held) - sum(held) ** 2
        variance += Fraction(squares, len(held) - 1)
    return isqrt(floor(variance))


def replicate_error(deviations: Sequence[int], factors: Sequence[Fraction]) -> int:
    """The root of sum of c_r S_r^2, rounded down; S_r is the sum of (w_ir - w_i)(fine y_i - about)."""
    pairs = zip(factors, deviations, strict=True)
    return isqrt(floor(sum((factor * each * each for factor, each in pairs), Fraction(0))))


def joined_strata(strata: Sequence[int]) -> tuple[int, ...]:
    """Strata of one unit joined with the stratum before them, or after where there is none: no stratum has one unit."""
    order = sorted(set(strata))
    into: dict[int, int] = {}
    held: list[list[int]] = []
    for stratum in order:
        if held and (strata.count(stratum) == 1 or sum(strata.count(each) for each in held[-1]) == 1):
            held[-1].append(stratum)
        else:
            held.append([stratum])
    for place, members in enumerate(held):
        into |= dict.fromkeys(members, place)
    if len(held) > 1 and sum(strata.count(each) for each in held[-1]) == 1:
        into[held[-1][0]] = len(held) - 2
    return tuple(into[stratum] for stratum in strata)
