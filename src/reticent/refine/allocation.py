"""Which tables to measure, and at what share of the budget, so that the margins asked for are told best.

Everything here is decided from public lengths before a row is read. A margin of a table that is also asked for is never
measured by itself: it is told by the larger one.
"""

from collections.abc import Callable, Sequence
from math import prod

from reticent.refine.combination import NoiseLaw
from reticent.refine.residuals import Agreement, Axes, Measured

MOST_MEASURED = 1_000_000
"""Cells of a table that is measured."""


def largest(margins: Sequence[Axes]) -> tuple[Axes, ...]:
    """The margins that are no margin of another one, each once."""
    once = tuple(dict.fromkeys(margins))
    return tuple(axes for axes in once if not any(set(axes) < set(other) for other in once))


def mean_variance(found: Agreement, asked: Sequence[Axes]) -> float:
    """Of a cell, over all cells of the margins asked for, after they were made to agree."""
    cells = [found.cells(axes) for axes in asked]
    return sum(n * found.variance(axes) for n, axes in zip(cells, asked, strict=True)) / sum(cells)


def choose_tables(
    shape: tuple[int, ...],
    asked: Sequence[Axes],
    *,
    scale: Callable[[int], float],
    law: NoiseLaw = NoiseLaw.LAPLACE,
) -> Agreement:
    """The tables to measure: the joint table alone, or the largest margins at equal shares, whichever tells more.

    `scale` gives the scale of the noise of each table (or its sigma) where so many are measured.
    """
    apart = largest(asked)
    ways = [_way(shape, apart, scale(len(apart)), law)]
    joint = tuple(range(len(shape)))
    if prod(shape) <= MOST_MEASURED and apart != (joint,):
        ways.append(_way(shape, (joint,), scale(1), law))
    return min(ways, key=lambda way: mean_variance(way, asked))


def _way(shape: tuple[int, ...], tables: tuple[Axes, ...], scale: float, law: NoiseLaw) -> Agreement:
    return Agreement(shape, tuple(Measured(axes=axes, scale=scale, law=law) for axes in tables))
