"""Noisy tables that share axes, made to agree: least squares by residuals, and the public law of what is left of the noise.

A table over the axes m is a sum of residuals, one for each set s of axes within m: the part that depends on the axes of s
and sums to zero along each of them. Noise that is independent and alike in all cells of a table leaves residuals of
different sets uncorrelated. So generalized least squares over all tables is an average of each residual by itself
(ResidualPlanner has the same basis), and no matrix is inverted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.refine.combination import Draws, NoiseLaw, half_width

Floats = NDArray[np.float64]
Axes = tuple[int, ...]
"""Numbers of axes, rising."""


def subsets(axes: Axes) -> list[Axes]:
    """All sets of some of the axes, none and all among them."""
    return list(chain.from_iterable(combinations(axes, size) for size in range(len(axes) + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A table that is measured: its axes, and the scale (or sigma) and law of the noise in each of its cells."""

    axes: Axes
    scale: float
    law: NoiseLaw = NoiseLaw.LAPLACE

    @property
    def variance(self) -> float:
        return Draws(weight=1.0, scale=self.scale, law=self.law).variance


@dataclass(frozen=True)
class Agreement:
    """What is measured over axes of the lengths `shape`, and how much of each residual every table tells."""

    shape: tuple[int, ...]
    measured: tuple[Measured, ...]

    def __post_init__(self) -> None:
        for table in self.measured:
            if list(table.axes) != sorted(set(table.axes)) or not set(table.axes) <= set(
                range(len(self.shape))
            ):
                raise PlanError(f"{table.axes} are no axes, in order, of this table.", field="margins")
        if len({table.axes for table in self.measured}) < len(self.measured) or not self.measured:
            raise PlanError("name each margin once, and at least one.", field="margins")

    def cells(self, axes: Axes) -> int:
        """How many cells a table over these axes has."""
        return prod(self.shape[axis] for axis in axes)

    @cached_property
    def shares(self) -> Mapping[Axes, tuple[tuple[int, float], ...]]:
        """For each residual, the tables that tell it, each with its share of the average: inverse to its variance."""
        told: dict[Axes, list[tuple[int, float]]] = {}
        for place, table in enumerate(self.measured):
            for s in subsets(table.axes):
                summed = self.cells(table.axes) // self.cells(s)
                told.setdefault(s, []).append((place, 1 / (table.variance * summed)))
        return {
            s: tuple((place, precision / sum(p for _, p in tables)) for place, precision in tables)
            for s, tables in told.items()
        }

    def precision(self, s: Axes) -> float:
        """One over the variance of the residual's cells, but for the centring."""
        return sum(
            1 / (self.measured[place].variance * (self.cells(self.measured[place].axes) // self.cells(s)))
            for place, _ in self.shares[s]
        )

    def estimate(self, tables: Sequence[Floats]) -> dict[Axes, Floats]:
        """The averaged residuals, each as a table over its own axes: sums over the others, centred along each axis."""
        return {
            s: np.asarray(
                sum(share * centred(self._sums(tables[place], place, s)) for place, share in told),
            )
            for s, told in self.shares.items()
        }

    def _sums(self, table: Floats, place: int, s: Axes) -> Floats:
        gone = tuple(at for at, axis in enumerate(self.measured[place].axes) if axis not in s)
        return np.asarray(table.sum(axis=gone))

    def margin(self, residuals: Mapping[Axes, Floats], axes: Axes) -> Floats:
        """The table over these axes that the residuals make: each spread evenly over the axes it does not speak of."""
        self._check_told(axes)
        found = np.zeros(tuple(self.shape[axis] for axis in axes))
        for s in subsets(axes):
            spread = self.cells(axes) // self.cells(s)
            lengths = [self.shape[axis] if axis in s else 1 for axis in axes]
            found += residuals[s].reshape(lengths) / spread
        return found

    def _check_told(self, axes: Axes) -> None:
        if axes not in self.shares:
            raise PlanError(f"no measured table tells a margin over {axes}.", field="margins")

    def variance(self, axes: Axes) -> float:
        """Of the noise that is left in each cell of the margin: the same for all of its cells."""
        self._check_told(axes)
        total = 0.0
        for s in subsets(axes):
            spread = self.cells(axes) // self.cells(s)
            total += prod(1 - 1 / self.shape[axis] for axis in s) / (self.precision(s) * spread**2)
        return total

    def noise(self, axes: Axes) -> list[Draws]:
        """The noise that is left in a cell of the margin: weights of all the draws it is made of, alike ones together.

        A draw's weight depends on the table it stands in, and on the axes along which its cell agrees with ours.
        """
        self._check_told(axes)
        found = []
        for place, table in enumerate(self.measured):
            common = tuple(axis for axis in axes if axis in table.axes)
            beyond = self.cells(tuple(axis for axis in table.axes if axis not in axes))
            for agree in subsets(common):
                weight = self._weight(place, axes, common, agree)
                differ = prod(self.shape[axis] - 1 for axis in common if axis not in agree)
                if differ and abs(weight) > 1e-15:
                    found.append(
                        Draws(weight=weight, scale=table.scale, count=beyond * differ, law=table.law)
                    )
        return found

    def _weight(self, place: int, axes: Axes, common: Axes, agree: Axes) -> float:
        total = 0.0
        for s in subsets(common):
            share = dict(self.shares[s]).get(place, 0.0)
            spread = self.cells(axes) // self.cells(s)
            total += share / spread * prod((axis in agree) - 1 / self.shape[axis] for axis in s)
        return total

    def half_width(self, axes: Axes, level: float) -> float:
        """The noise that is left in a cell of the margin stays within this with probability at least `level`.

        Guarantee   the interval around a cell of `margin` holds the exact cell as often as stated. No privacy is spent.
        Adjacency   none: every input is public.
        Theorem     THEORY 15.1.
        Proof       proofs/refine/residuals.md
        Assumes     independent noise of the stated law in every cell of every measured table.
        Keeps back  nothing.
        """
        return _reach(tuple(self.noise(axes)), level)


@dataclass(frozen=True)
class ResidualAgreement(Agreement):
    """Residuals that are measured one by one: each table is over the axes of one of them, and tells that one alone."""

    @cached_property
    def shares(self) -> Mapping[Axes, tuple[tuple[int, float], ...]]:
        """Each residual is told by its own table."""
        return {table.axes: ((place, 1.0),) for place, table in enumerate(self.measured)}


@lru_cache(maxsize=256)
def _reach(draws: tuple[Draws, ...], level: float) -> float:
    return half_width(draws, level)


def centred(table: Floats) -> Floats:
    """The table less its mean along every axis in turn: it sums to zero along each of them."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
