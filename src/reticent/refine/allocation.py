"""Which tables to measure, and at what share of the budget, so that the margins asked for are told best.

Everything here is decided from public lengths before a row is read. A margin of a table that is also asked for is never
measured by itself: it is told by the larger one.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt, prod

from reticent.refine.combination import NoiseLaw
from reticent.refine.residuals import Agreement, Axes, Measured, ResidualAgreement, subsets

MOST_MEASURED = 1_000_000
"""Cells of a table that is measured."""
FINE = 10**6
"""Roots are taken to three digits: shares are rationals, and add up to 1."""


def largest(margins: Sequence[Axes]) -> tuple[Axes, ...]:
    """The margins that are no margin of another one, each once."""
    once = tuple(dict.fromkeys(margins))
    return tuple(axes for axes in once if not any(set(axes) < set(other) for other in once))


def mean_variance(found: Agreement, asked: Sequence[Axes]) -> float:
    """Of a cell, over all cells of the margins asked for, after they were made to agree."""
    cells = [found.cells(axes) for axes in asked]
    return sum(n * found.variance(axes) for n, axes in zip(cells, asked, strict=True)) / sum(cells)


def shares_of(cells: Sequence[int], law: NoiseLaw) -> tuple[Fraction, ...]:
    """The share of the budget that each table has: even ones of epsilon; of rho, in proportion to the root of its cells.

    A share r of rho leaves a variance of 1/r in each cell, and the sum of cells/r is least where r goes with their root. Of
    epsilon the best shares would go with the cube root; even ones are as good to a hundredth, and easier to tell.
    """
    roots = [isqrt(n * FINE) for n in cells] if law is NoiseLaw.GAUSSIAN else [1] * len(cells)
    return tuple(Fraction(root, sum(roots)) for root in roots)


def choose_tables(
    shape: tuple[int, ...],
    asked: Sequence[Axes],
    *,
    scale: Callable[[Axes, Fraction], float],
    law: NoiseLaw = NoiseLaw.LAPLACE,
) -> Agreement:
    """The tables to measure: the joint table alone, or the largest margins, whichever tells more.

    `scale` gives the scale of the noise (or its sigma) of a table over some axes that has a share of the budget.
    """
    joint, apart = tuple(range(len(shape))), largest(asked)
    ways = [measured_apart(shape, apart, scale=scale, law=law)]
    if prod(shape) <= MOST_MEASURED and apart != (joint,):
        ways.append(measured_apart(shape, (joint,), scale=scale, law=law))
    return min(ways, key=lambda way: mean_variance(way, asked))


def told_by(asked: Sequence[Axes]) -> tuple[Axes, ...]:
    """Every residual that some margin asked for is made of, the grand total first."""
    found = dict.fromkeys(s for axes in asked for s in subsets(axes))
    return tuple(sorted(found, key=lambda s: (len(s), s)))


def residual_shares(shape: tuple[int, ...], asked: Sequence[Axes]) -> tuple[Fraction, ...]:
    """The share of rho that each residual of `told_by` has, where the mean variance of a cell is least (THEORY 15.3).

    With u_s the mean over cells of 1/spread^2, a variance sigma_s^2 of residual s adds p_s u_s sigma_s^2 to the mean variance
    and costs p_s/(2 sigma_s^2), p_s the product of (n - 1)/n over its axes. So the best share goes with p_s sqrt(u_s).
    """
    cells = {axes: prod(shape[axis] for axis in axes) for axes in (*asked, *told_by(asked))}
    whole = sum(cells[axes] for axes in asked)
    roots = []
    for s in told_by(asked):
        spread = sum(Fraction(cells[s] ** 2, cells[axes]) for axes in asked if set(s) <= set(axes)) / whole
        p = prod((Fraction(shape[axis] - 1, shape[axis]) for axis in s), start=Fraction(1))
        roots.append(max(1, isqrt(int(p * p * spread * FINE**4))))
    return tuple(Fraction(root, sum(roots)) for root in roots)


def measured_residuals(
    shape: tuple[int, ...], asked: Sequence[Axes], *, scale: Callable[[Axes, Fraction], float]
) -> ResidualAgreement:
    """Every residual by itself, each at its share of rho; `scale` gives sigma of a table over its axes."""
    shares = zip(told_by(asked), residual_shares(shape, asked), strict=True)
    measured = (Measured(axes=s, scale=scale(s, share), law=NoiseLaw.GAUSSIAN) for s, share in shares)
    return ResidualAgreement(shape, tuple(measured))


def measured_apart(
    shape: tuple[int, ...],
    tables: Sequence[Axes],
    *,
    scale: Callable[[Axes, Fraction], float],
    law: NoiseLaw = NoiseLaw.LAPLACE,
) -> Agreement:
    """Each of these tables, at its share."""
    shares = shares_of([prod(shape[axis] for axis in axes) for axes in tables], law)
    return Agreement(
        shape,
        tuple(
            Measured(axes=axes, scale=scale(axes, share), law=law)
            for axes, share in zip(tables, shares, strict=True)
        ),
    )
