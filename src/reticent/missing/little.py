"""CONFIDENTIAL: Little's test of whether answers are missing completely at random, for the curator.

Little, A test of missing completely at random for multivariate data with missing values, JASA 83 (1988). Each pattern of
missing answers has means of its own; they are compared with the means and the covariance that all rows together give
under a normal law. A small p speaks against MCAR. A large one does not speak for it: the test sees means
of observed answers only, and never whether silence depends on the answer that was not given.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.engine.patterns import MOST_COLUMNS
from reticent.engine.wants import has_universe
from reticent.missing.moments import PatternMoments
from reticent.schema import Number, Schema

Floats = NDArray[np.float64]

MOST_ROUNDS = 5_000
SETTLED = 1e-10
RIDGE = 1e-9  # in standard units: keeps columns that repeat each other apart
AT_ONCE = 1_000
WIDEST = 2**43  # so that products of 2^40 rows fit 128 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Little:
    """Exact and without noise: for the curator's eyes, never for a release."""

    statistic: float = field(repr=False)
    freedom: int = field(repr=False)
    p: float = field(repr=False)
    patterns: int = field(repr=False)


def little(moments: PatternMoments) -> Little:
    """Little's d-squared with its chi-square tail.

    Left out: columns that never vary, columns that repeat an earlier one in other units, rows without an answer.
    """
    found, _ = moments.kept(_telling(moments)).standard()
    mean, covariance = normal_law(found)
    statistic = 0.0
    for observed, rows, sums, _ in _slices(found):
        off = (sums - rows[:, None] * mean) * observed
        inverse = _inverse(covariance, observed)
        statistic += float(np.einsum("jk,jkl,jl,j->", off, inverse, off, 1 / rows))
    freedom = int(found.observed.sum()) - found.observed.shape[1] if len(found.rows) else 0
    return Little(
        statistic=statistic,
        freedom=freedom,
        p=chi_square_tail(statistic, freedom),
        patterns=len(found.rows),
    )


def ordered_columns(schema: Schema) -> tuple[str, ...]:
    """Columns with an order that everybody is asked, but weights; at most as many as a pattern can name."""
    names = [
        name
        for name, column in schema.coded.items()
        if column.role != "weight"
        and not has_universe(schema, name)
        and (isinstance(column, Number) or column.ordered)
        and column.high - column.low < WIDEST
    ]
    return tuple(names[:MOST_COLUMNS])


def _telling(moments: PatternMoments) -> list[int]:
    """Columns that vary and are no repetition: no correlation of 1 with an earlier one, where both were observed."""
    found, spread = moments.standard()
    kept: list[int] = []
    for k in np.flatnonzero(spread > 0).tolist():
        if not any(_repeats(found.kept([other, k])) for other in kept):
            kept.append(k)
    return kept


def _repeats(pair: PatternMoments) -> bool:
    """Whether two columns lie on one line in all rows that show both; at least three rows, or nothing can be said."""
    both = pair.observed.all(axis=1)
    rows = int(pair.rows[both].sum())
    sums, products = pair.sums[both].sum(axis=0), pair.products[both].sum(axis=0)
    about = products - np.outer(sums, sums) / max(rows, 1)
    return rows > 2 and bool(about[0, 1] ** 2 > (1 - RIDGE) * about[0, 0] * about[1, 1] > 0)


def normal_law(moments: PatternMoments) -> tuple[Floats, Floats]:
    """The normal law of greatest likelihood, by expectation and maximisation on the moments of every pattern.

    Given mean m and covariance C, a row's expected deviation is B (x - m) with B = C C_oo^-1 on what is observed, and
    what stays unknown has covariance C - B C. Both are linear in sums and products, so no row is looked at again.
    """
    size, total = moments.observed.shape[1], max(1, int(moments.rows.sum()))
    mean, covariance = np.zeros(size), np.eye(size)
    for _ in range(MOST_ROUNDS):
        first, second = np.zeros(size), np.zeros((size, size))
        for observed, rows, sums, products in _slices(moments):
            known = _inverse(covariance, observed)
            by = covariance @ known
            off = (sums - rows[:, None] * mean) * observed
            cross = sums[:, :, None] * mean
            about = products - cross - cross.swapaxes(1, 2) + rows[:, None, None] * np.outer(mean, mean)
            about = about * observed[:, :, None] * observed[:, None, :]
            first += np.einsum("jkl,jl->k", by, off)
            second += np.einsum("jkl,jlm,jnm->kn", by, about, by, optimize=True)
            second += np.einsum("j,jkl->kl", rows, covariance - by @ covariance)
        step = first / total
        new = second / total - np.outer(step, step)
        moved = max(float(np.abs(step).max(initial=0)), float(np.abs(new - covariance).max(initial=0)))
        mean, covariance = mean + step, (new + new.T) / 2
        if moved < SETTLED:
            break
    return mean, covariance


def chi_square_tail(statistic: float, freedom: int) -> float:
    """The chance that a chi-square variable exceeds `statistic`; 1 where there is nothing to compare."""
    if freedom < 1 or statistic <= 0:
        return 1.0
    with ctx.workprec(128):
        return float(arb(statistic / 2).gamma_upper(arb(freedom) / 2, regularized=1))


def _slices(moments: PatternMoments) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """What is observed, rows, sums and products, for some patterns at a time."""
    for start in range(0, len(moments.rows), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        yield (
            moments.observed[part].astype(float),
            moments.rows[part].astype(float),
            np.asarray(moments.sums[part], dtype=float),
            np.asarray(moments.products[part], dtype=float),
        )


def _inverse(covariance: Floats, observed: Floats) -> Floats:
    """For each pattern the inverse of the observed block, zero elsewhere: invert it with ones for what is missing."""
    both = observed[:, :, None] * observed[:, None, :]
    eye = np.eye(covariance.shape[0])
    padded = both * covariance + eye * (RIDGE + 1 - observed)[:, :, None]
    return np.asarray(np.linalg.inv(padded) * both)
