"""CONFIDENTIAL: rows, sums and sums of products for every pattern of missing answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.engine.silences import Line

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
