"""Per-row gradients as whole-number factors, clipped together and summed in any order: the exact step of every network.

A layer's gradient for one row is the outer product of what went in and what came back: a line of inputs, and a line of
residuals. Both are whole numbers here, inputs in steps of 1/4096 and residuals in steps of 2**-14. The factors of all
layers of all networks that read the row are shortened by one number, so that together they are no longer than `LENGTH`
(Abadi and others 2016 clip the gradient of a row so); the length is tested in whole numbers afterwards. Sums of products
are made in doubles that hold whole numbers below 2**53, and so are the same in any order, in any blocks and on any machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import compiled
from reticent.engine.protocol import Cells

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

GRID = 256
"""Steps of a weight that make one."""
INPUT = 1 << 12
"""Steps of what goes into a layer that make one."""
STEPS = 1 << 14
"""Steps of a residual that make one."""
LENGTH = INPUT * STEPS
"""The Euclidean length that no row's gradient exceeds: a gradient of length one, in steps of the sum."""
MOST_INPUT, MOST_RESIDUAL, MOST_WIDTH = 1 << 19, 1 << 20, 1 << 12
"""No input and no residual is larger in size, in steps; no layer is wider. So a squared length is below 2**53."""
CHUNK = 1024
"""Rows that are worked on at once. Of twice as many the arrays of a wide layer are so large that every one of them is fetched
from the system and given back, which takes as long as the sums."""

_ABOVE = 1 + 2.0**-40
_FAR = 2.0**60


@dataclass(frozen=True, slots=True)
class Dense:
    """One layer's gradient, for each row an outer product: `inputs` (rows, n) and `residuals` (rows, m), n x m numbers."""

    inputs: Floats = field(repr=False)
    residuals: Floats = field(repr=False)

    @property
    def squares(self) -> Floats:
        """The squared length of each row's inputs."""
        return np.asarray((self.inputs * self.inputs).sum(axis=1))

    def add(self, kept: Floats, totals: Whole) -> None:
        """Add the products with the shortened residuals `kept` to the layer's numbers."""
        inputs = np.where(np.isfinite(self.inputs), self.inputs, 0.0)
        totals += (inputs.T @ kept).astype(np.int64).ravel()


@dataclass(frozen=True, slots=True)
class Lines:
    """The gradient of lines of weights, of which each row uses some: `used` (rows, k) are their numbers, -1 for none.

    Every used line gets the row's `residuals` (rows, m), as if its input were one. A row uses no line twice.
    """

    used: Whole = field(repr=False)
    residuals: Floats = field(repr=False)

    @property
    def squares(self) -> Floats:
        return np.asarray((self.used >= 0).sum(axis=1) * float(INPUT * INPUT))

    def add(self, kept: Floats, totals: Whole) -> None:
        add_lines(self.used, (INPUT * kept).astype(np.int64), totals.reshape(-1, kept.shape[1]))


@compiled
def add_lines(used: Whole, steps: Whole, totals: Whole) -> None:
    """Add the steps of every row to each line that it uses."""
    for i in range(used.shape[0]):
        for k in range(used.shape[1]):
            line = used[i, k]
            if line >= 0:
                for at in range(steps.shape[1]):
                    totals[line, at] += steps[i, at]


Factor = Dense | Lines


class RowNetwork(Protocol):
    """A network that reads rows: a function of one row and of public weights, in whole numbers."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each of its layers has, in the order of `factors`."""
        ...

    def factors(self, rows: Cells) -> Sequence[Factor]:
        """For rows, a column for each, the factors of every layer's gradient. Each row's are made of that row alone."""
        ...


@dataclass(frozen=True, slots=True)
class JointGradient:
    """The sum over records of the gradient of all `networks`, clipped together: a `RowSum`.

    Guarantee   one record moves the sum by its own vector, of whole numbers and of Euclidean length at most `LENGTH`.
    Adjacency   one record added or removed.
    Theorem     each record's vector is a function of that record and of public numbers.
    Proof       proofs/synth/learned/factors.md
    Assumes     the weights are public or released; a network's factors of a row are made of that row.
    Keeps back  the sum, until noise is added.
    """

    networks: tuple[RowNetwork, ...]

    @property
    def length(self) -> int:
        return sum(sum(network.sizes) for network in self.networks)

    def add(self, block: Cells, totals: Whole) -> None:
        """Add the vectors of a block of rows, a line for each column."""
        for first in range(0, block.shape[1], CHUNK):
            self._add(block[:, first : first + CHUNK], totals)

    def _add(self, rows: Cells, totals: Whole) -> None:
        factors = [factor for network in self.networks for factor in network.factors(rows)]
        sizes = [size for network in self.networks for size in network.sizes]
        start = 0
        for factor, kept, size in zip(factors, clipped(factors), sizes, strict=True):
            factor.add(kept, totals[start : start + size])
            start += size


def clipped(factors: Sequence[Factor]) -> list[Floats]:
    """The residuals of every factor, shortened so that each row's whole gradient is no longer than `LENGTH`.

    The divisor is worked out in doubles and rounded up; residuals are cut towards zero, which never lengthens. A row that
    fails the test in whole numbers all the same counts as zero.
    """
    inputs = [factor.squares for factor in factors]
    square = sum(
        (a * _square(factor.residuals) for a, factor in zip(inputs, factors, strict=True)), np.zeros(1)
    )
    by = np.maximum(np.sqrt(square) * _ABOVE, float(LENGTH))[:, None]
    with np.errstate(invalid="ignore"):  # what is no number fails the test
        kept = [np.trunc(factor.residuals * float(LENGTH) / by) for factor in factors]
    fits = _is_short(inputs, kept)[:, None]
    return [np.where(fits, each, 0.0) for each in kept]


def _is_short(inputs: Sequence[Floats], kept: Sequence[Floats]) -> NDArray[np.bool_]:
    """Whether the squared lengths add up to no more than the bound, in whole numbers that do not overflow."""
    pairs = [(a, _square(each)) for a, each in zip(inputs, kept, strict=True)]
    is_near = np.all([a * d < _FAR / 64 for a, d in pairs], axis=0)
    whole = [tuple(np.where(is_near, each, 0.0).astype(np.int64) for each in pair) for pair in pairs]
    exact = sum((a * d for a, d in whole), np.zeros(1, np.int64))
    return np.asarray(is_near & (exact <= LENGTH * LENGTH))


def _square(values: Floats) -> Floats:
    """Squared lengths of rows. Whole numbers below 2**53, so exact in any order."""
    return np.asarray((values * values).sum(axis=1))
