"""The maximum observed sensitivity: the largest N times local sensitivity, over all cells or within declared groups.

Chetty and Friedman's envelope chi / N lies on or above every cell's own local sensitivity. It is read off the rows, so
noise scaled to it is *observed, not differentially private*.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.sensitivity.bounds import Observed
from reticent.smallcells.fits import Floats

Whole = NDArray[np.int64]
DECIMALS = 10**9
"""chi is rounded up to nine decimals, so that what is printed is what was used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Envelope:
    """chi of every group, and for each cell the sensitivity its noise is scaled to; None for cells left out.

    `chi` is 0 for a group without a cell in use. With `equal_sizes` the cells of one size take the largest local
    sensitivity among themselves, and chi / N is only above it.
    """

    chi: tuple[Fraction, ...]
    bounds: tuple[Observed | None, ...]


def envelope(
    local: Floats,
    sizes: Whole,
    *,
    groups: Whole | None = None,
    least: int = 1,
    equal_sizes: bool = False,
) -> Envelope:
    """The envelope over cells with a local sensitivity and at least `least` respondents.

    `groups[g]` numbers the declared group of cell g from 0. All three arrays have one entry for each declared cell.
    """
    if least < 1:
        raise PlanError("an estimate needs at least one respondent.", field="least")
    of = np.zeros(len(sizes), dtype=np.int64) if groups is None else groups
    if len(of) != len(sizes) or (len(of) and of.min() < 0):
        raise PlanError("every cell has one group.", field="groups")
    used = np.flatnonzero((sizes >= least) & ~np.isnan(local))
    chi = _largest(of[used], _up(local[used] * sizes[used]), int(of.max(initial=0)) + 1)
    bounds: list[Observed | None] = [None] * len(sizes)
    own = _among_equals(local[used], sizes[used], of[used]) if equal_sizes else None
    for place, g in enumerate(used.tolist()):
        bound = chi[of[g]] / int(sizes[g]) if own is None else Fraction(own[place])
        bounds[g] = Observed(bound=bound)
    return Envelope(chi=chi, bounds=tuple(bounds))


def _largest(groups: Whole, values: Floats, count: int) -> tuple[Fraction, ...]:
    """The largest value of each group, rounded up to a decimal."""
    largest = np.zeros(count)
    np.maximum.at(largest, groups, values)
    return tuple(Fraction(-(-Fraction(x) * DECIMALS // 1), DECIMALS) for x in largest.tolist())


def _up(values: Floats) -> Floats:
    """The next double: at least the exact product that was rounded."""
    return np.nextafter(values, np.inf)


def _among_equals(local: Floats, sizes: Whole, groups: Whole) -> list[float]:
    """The largest local sensitivity among cells of the same group and size."""
    order = np.lexsort((sizes, groups))
    keys = np.stack([groups[order], sizes[order]])
    is_first = np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)][: len(order)]
    largest = np.full(int(is_first.sum()), -np.inf)
    run = np.cumsum(is_first) - 1
    np.maximum.at(largest, run, local[order])
    own = np.empty(len(local))
    own[order] = largest[run]
    return [float(x) for x in own]
