"""Which columns tell most about a column: chosen one by one while each is worth its cells. After the noise."""

from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.synth.base import Places
from reticent.synth.domain import Domain

Cells = NDArray[np.int64]

MOST_GIVEN = 4
MOST_CELLS = 1 << 21
LOOKED_AT = 50_000
"""Rows looked at when choosing, taken at even distances."""


def associated(cells: Cells, domain: Domain, place: int) -> Places:
    """Columns to fill `place` from, the best first, silence in them taken as a value.

    The next one is that which raises the likelihood of the answers most, less one for each free number that it adds
    (Akaike 1974); none, where nothing is gained.
    """
    rows = cells[:: max(1, len(cells) // LOOKED_AT)]
    rows = rows[rows[:, place] < domain.axes[place].answers]
    chosen: Places = ()
    worth = _worth(rows, domain, place, chosen)
    while len(chosen) < MOST_GIVEN:
        others = [p for p in range(len(domain.axes)) if p != place and p not in chosen]
        tries = {
            p: _worth(rows, domain, place, (*chosen, p)) for p in others if _fits(domain, place, (*chosen, p))
        }
        best = max(tries, key=lambda p: tries[p], default=place)
        if best == place or tries[best] <= worth:
            break
        chosen, worth = (*chosen, best), tries[best]
    return chosen


def _fits(domain: Domain, place: int, given: Places) -> bool:
    return prod(domain.sizes((*given, place))) <= MOST_CELLS


def _worth(rows: Cells, domain: Domain, place: int, given: Places) -> float:
    """The log likelihood of the answers, less the free numbers of the lines that occur."""
    answers = domain.axes[place].answers
    line = numbered(rows, domain, given)
    each = np.bincount(line)
    joint = np.bincount(line * answers + rows[:, place])
    return _sum(joint) - _sum(each) - (answers - 1) * float((each > 0).sum())


def _sum(counts: Cells) -> float:
    some = counts[counts > 0].astype(np.float64)
    return float((some * np.log(some)).sum())


def numbered(rows: Cells, domain: Domain, given: Places) -> Cells:
    """The number of each row's line in a table over the cells of `given`."""
    line = np.zeros(len(rows), dtype=np.int64)
    for place in given:
        line = line * domain.axes[place].size + rows[:, place]
    return line
