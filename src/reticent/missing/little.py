"""CONFIDENTIAL: Little's test of whether answers are missing completely at random, for the curator.

Little, A test of missing completely at random for multivariate data with missing values, JASA 83 (1988). Each pattern of
missing answers has means of its own; they are compared with the means and the covariance that all rows together give
under a normal law. A small p speaks against MCAR. A large one does not speak for it: the test sees means
of observed answers only, and never whether nonresponse depends on the answer that was not given.

CONFIDENTIAL: rows, sums and sums of products for every pattern of missing answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.engine.confidential import MOST_COLUMNS, Line
from reticent.engine.wants import has_universe
from reticent.schema import Number, Schema

FITS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternMoments:
    """A line for each pattern: what is `observed`, how many `rows`, their `sums` and `products`, 0 where missing."""

    observed: NDArray[np.bool_] = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    sums: NDArray[Any] = field(repr=False)
    products: NDArray[Any] = field(repr=False)

    def kept(self, columns: Sequence[int]) -> "PatternMoments":
        """These columns alone, without patterns that then show nothing. Patterns that now look alike stay apart."""
        chosen = np.asarray(columns, dtype=int)
        some = self.observed[:, chosen].any(axis=1)
        return PatternMoments(
            observed=self.observed[some][:, chosen],
            rows=self.rows[some],
            sums=self.sums[some][:, chosen],
            products=self.products[some][:, chosen][:, :, chosen],
        )

    def about(self, level: NDArray[Any]) -> "PatternMoments":
        """About whole numbers `level`, exactly, so that a large level takes no digits from a small spread."""
        rows, sums, by = self.rows.astype(object)[:, None], self.sums.astype(object), level * self.observed
        cross = sums[:, :, None] * by[:, None, :]
        both = rows[:, :, None] * by[:, :, None] * by[:, None, :]
        seen = self.observed[:, :, None] * self.observed[:, None, :]
        products = (self.products.astype(object) - cross - cross.swapaxes(1, 2) + both) * seen
        return PatternMoments(
            observed=self.observed, rows=self.rows, sums=sums - rows * by, products=products
        )

    def standard(self) -> tuple["PatternMoments", NDArray[np.float64]]:
        """About the means of what was observed and in units of its spread; and each column's variance before."""
        counts = np.maximum(1, (self.rows[:, None] * self.observed).sum(axis=0))
        totals = self.sums.sum(axis=0)
        level = [round(total / int(n)) for total, n in zip(totals, counts, strict=True)]
        near = self.about(np.array(level, dtype=object))
        sums, products = near.sums.astype(float), near.products.astype(float)
        spread = np.einsum("jkk->k", products) / counts - (sums.sum(axis=0) / counts) ** 2
        scale = np.sqrt(np.where(spread > 0, spread, 1.0))
        told = PatternMoments(
            observed=self.observed,
            rows=self.rows,
            sums=sums / scale,
            products=products / np.outer(scale, scale),
        )
        return told, spread


def moments_of(values: NDArray[Any], mask: NDArray[np.bool_]) -> PatternMoments:
    """The moments of codes in an array, true in `mask` where an answer is missing."""
    patterns, place = np.unique(~np.asarray(mask, dtype=bool), axis=0, return_inverse=True)
    lines = [_line(values[place.ravel() == j], seen) for j, seen in enumerate(patterns)]
    rows, sums, products = zip(*lines, strict=True)
    return PatternMoments(
        observed=patterns, rows=np.array(rows), sums=np.array(sums), products=np.array(products)
    )


def moments_from(lines: Sequence[Line], size: int) -> PatternMoments:
    """The moments that the engine summed for each pattern of `size` columns."""
    masks = np.array([mask for mask, *_ in lines], dtype=np.int64)
    sums = np.array([each for _, _, each, _ in lines], dtype=object).reshape(len(lines), size)
    products = np.zeros((len(lines), size, size), dtype=object)
    upper = np.triu_indices(size)
    for place, (*_, each) in enumerate(lines):
        products[place][upper] = each
        products[place].T[upper] = each
    return PatternMoments(
        observed=(masks[:, None] >> np.arange(size) & 1) == 0,
        rows=np.array([rows for _, rows, *_ in lines], dtype=np.int64),
        sums=sums,
        products=products,
    )


def _line(values: NDArray[Any], seen: NDArray[np.bool_]) -> tuple[int, NDArray[Any], NDArray[Any]]:
    x = np.where(seen, values, 0)
    largest = int(np.abs(x).max(initial=0))
    if largest * largest * len(x) >= FITS:
        x = x.astype(object)
    return len(x), x.sum(axis=0), x.T @ x


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
        for name, column in ((name, schema.coded[name]) for name in schema.questions)
        if not has_universe(schema, name)
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
