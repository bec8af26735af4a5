"""Multilayer perceptrons in two halves: floating point for what is public, whole numbers for what reads rows.

`Perceptron` is the public half: weights, forward and backward passes over made-up rows, and the penalty on the slope at
them (Gulrajani and others 2017). `RowPerceptron` is the same network at the same weights, put on a grid, over confidential
rows: it gives the factors of each row's gradient as whole numbers. The first layer has a line of weights for every cell of
every column; a cell without a line, such as a missing one, has no part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from reticent.engine.coded import compiled
from reticent.engine.protocol import Cells
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.synth.domain import uniforms
from reticent.synth.learned.factors import (
    GRID,
    INPUT,
    MOST_INPUT,
    MOST_RESIDUAL,
    MOST_WIDTH,
    STEPS,
    Dense,
    Factor,
    Floats,
    Lines,
    Whole,
)
from reticent.synth.learned.gradient import EXPONENTIALS, UNIT

FINER = INPUT // GRID
LEAK = 4
"""A negative input counts a fourth."""
MOST_WEIGHT = 32.0
"""Weights are kept this near to zero, so that a product of a layer stays below 2**53."""


@dataclass(slots=True)
class Perceptron:
    """A network with widths `widths`, from inputs to outputs: a matrix and a bias for each layer, in one list `values`."""

    widths: tuple[int, ...]
    values: Floats = field(repr=False)

    @classmethod
    def started(cls, widths: Sequence[int], bits: Bits) -> "Perceptron":
        """Even weights by Glorot and Bengio 2010, biases zero."""
        parts = []
        for n, m in pairwise(widths):
            far = (6.0 / (n + m)) ** 0.5
            parts += [far * (2 * uniforms(n * m, bits) - 1), np.zeros(m)]
        return cls(tuple(widths), np.concatenate(parts))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each matrix and each bias has, in order."""
        return tuple(size for n, m in pairwise(self.widths) for size in (n * m, m))

    def layers(self, values: Floats) -> list[tuple[Floats, Floats]]:
        """Matrices and biases, as views of a list of all numbers."""
        parts = np.split(values, np.cumsum(self.sizes)[:-1])
        shapes = pairwise(self.widths)
        return [(parts[2 * i].reshape(shape), parts[2 * i + 1]) for i, shape in enumerate(shapes)]

    def forward(self, inputs: Floats) -> list[Floats]:
        """The inputs of every layer, and the outputs last."""
        found, layers = [inputs], self.layers(self.values)
        for i, (matrix, bias) in enumerate(layers):
            made = found[-1] @ matrix + bias
            found.append(made if i == len(layers) - 1 else np.where(made > 0, made, made / LEAK))
        return found

    def backward(self, found: Sequence[Floats], residuals: Floats) -> tuple[Floats, Floats]:
        """The gradient of the weights, summed over rows, and that of the inputs, for residuals of the outputs."""
        gradient, back = np.zeros_like(self.values), residuals
        parts = self.layers(gradient)
        for i, (matrix, _) in reversed(list(enumerate(self.layers(self.values)))):
            parts[i][0][:], parts[i][1][:] = found[i].T @ back, back.sum(axis=0)
            back = back @ matrix.T
            back = back if i == 0 else np.where(found[i] > 0, back, back / LEAK)
        return gradient, back

    def penalty(self, inputs: Floats) -> Floats:
        """The gradient of the mean of (slope - 1)**2, the slope of the one output at made-up `inputs`.

        The network is linear between its corners: a slope is a product of matrices, so each matrix's share of its change is
        what comes from the left times what comes from the right.
        """
        found, layers = self.forward(inputs), self.layers(self.values)
        scales = [np.where(each > 0, 1.0, 1.0 / LEAK) for each in found[1:-1]]
        right = [np.ones((len(inputs), 1))]
        for (matrix, _), scale in zip(layers[:0:-1], scales[::-1], strict=True):
            right.append((right[-1] @ matrix.T) * scale)
        right = right[::-1]
        slopes = right[0] @ layers[0][0].T
        norms = np.sqrt((slopes * slopes).sum(axis=1, keepdims=True)) + 1e-12
        left = 2 * (norms - 1) / norms * slopes / len(inputs)
        gradient = np.zeros_like(self.values)
        for i, (part, _) in enumerate(self.layers(gradient)):
            part[:] = left.T @ right[i]
            left = (left @ layers[i][0]) * scales[i] if i < len(scales) else left
        return gradient

    def on_grid(self) -> list[tuple[Floats, Floats]]:
        """Matrices and biases in whole steps of 1/256, none above `MOST_WEIGHT`."""
        return self.layers(np.rint(np.clip(self.values, -MOST_WEIGHT, MOST_WEIGHT) * GRID))


Residual = Callable[[Whole, Cells], Whole]
"""From outputs in steps of 1/256, a line for each row, and the rows, a column for each, to the residuals of the loss."""


@dataclass(frozen=True, slots=True)
class RowPerceptron:
    """A perceptron over rows, in whole numbers: a `RowNetwork`.

    Guarantee   the factors of a row are whole numbers within their bounds, and made of that row alone.
    Adjacency   one record added or removed.
    Theorem     products of whole numbers below 2**53 are exact in doubles.
    Proof       proofs/synth/learned/factors.md
    Assumes     `residual` makes each line of one row; the weights are public or released.
    Keeps back  everything it gives.

    Parameters
    ----------
    network : the public half, whose first width is the number of lines
    lines : for every column and cell the line of the first layer, -1 for none; no line for two columns
    residual : the loss's derivative at the outputs
    """

    network: Perceptron
    lines: Whole = field(repr=False)
    residual: Residual

    def __post_init__(self) -> None:
        check_widest("a network", max(self.network.widths[1:]))

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.network.sizes

    def factors(self, rows: Cells) -> list[Factor]:
        """Forward, then backward, everything cut to its bounds."""
        layers = self.network.on_grid()
        used = np.stack([line[cells] for line, cells in zip(self.lines, rows, strict=True)], axis=1)
        bare = FINER * (_first(layers[0][0], used) + layers[0][1])
        found: list[Floats] = []
        for matrix, bias in layers[1:]:
            found.append(_bent(bare))
            bare = np.floor(found[-1] @ matrix / GRID) + FINER * bias
        outputs = np.floor(np.clip(bare, -MOST_INPUT, MOST_INPUT) / FINER)
        back = _cut(self.residual(outputs.astype(np.int64), rows).astype(np.float64))
        return _factors(used, found, [matrix for matrix, _ in layers], back)


def check_widest(name: str, width: int) -> None:
    """Refuse a layer over rows that is too wide for exact sums. Lines of the first layer are added one by one, and may be more."""
    if width > MOST_WIDTH:
        raise PlanError(
            f"{name} would read rows by a layer of {width:,} numbers, and above {MOST_WIDTH:,} its sums would not be exact; name fewer "
            "columns or bins, or use another method",
            field="columns",
        )


def _first(matrix: Floats, used: Whole) -> Floats:
    """The sum of the lines that a row uses; number -1 is the empty line."""
    padded = np.concatenate([matrix, np.zeros((1, matrix.shape[1]))])
    made = np.zeros((len(used), matrix.shape[1]))
    for line in used.T:
        made += padded[line]
    return made


def _bent(bare: Floats) -> Floats:
    made = np.where(bare > 0, bare, np.trunc(bare / LEAK))
    return np.clip(made, -MOST_INPUT, MOST_INPUT)


def _cut(residuals: Floats) -> Floats:
    return np.clip(residuals, -MOST_RESIDUAL, MOST_RESIDUAL)


def _factors(used: Whole, found: Sequence[Floats], matrices: Sequence[Floats], back: Floats) -> list[Factor]:
    """From the last layer to the first, then turned round: matrix and bias of each layer."""
    made: list[Factor] = []
    ones = np.full((len(used), 1), float(INPUT))
    for inputs, matrix in zip(found[::-1], matrices[:0:-1], strict=True):
        made += [Dense(ones, back), Dense(inputs, back)]
        back = np.floor(back @ matrix.T / GRID)
        back = _cut(np.where(inputs > 0, back, np.trunc(back / LEAK)))
    made += [Dense(ones, back), Lines(used, back)]
    return made[::-1]


def praise(outputs: Whole, rows: Cells) -> Whole:
    """The residual of -output: a Wasserstein critic's loss at a real row."""
    return np.full_like(outputs, -STEPS)


def logistic(outputs: Whole, rows: Cells) -> Whole:
    """The residual of -log sigmoid(output), a discriminator's loss at a real row: sigmoid less one, in whole numbers."""
    small = EXPONENTIALS[np.minimum(np.abs(outputs), len(EXPONENTIALS) - 1)]
    top = np.where(outputs > 0, small, UNIT)
    return np.asarray(-(STEPS * top) // (UNIT + small), dtype=np.int64)


def softmax_residual(into: Whole, sizes: Whole) -> Residual:
    """The residual of the cross-entropy of every answered column, its groups side by side in the outputs; missing ones zero.

    `into` has for every column and cell its group, -1 where it has no part; `sizes` how many groups each column has.
    """
    starts = np.cumsum(sizes) - sizes

    def residual(outputs: Whole, rows: Cells) -> Whole:
        made = np.zeros_like(outputs)
        write_softmax(outputs, rows, into, sizes, starts, EXPONENTIALS, made)
        return made

    return residual


@compiled
def write_softmax(
    logits: Whole, rows: Cells, into: Whole, sizes: Whole, starts: Whole, table: Whole, made: Whole
) -> None:
    """Row by row and column by column: chances rounded down, in steps, less one at the row's own group, where it has any."""
    for i in range(len(logits)):
        for j in range(len(sizes)):
            own, start, end = into[j, rows[j, i]], starts[j], starts[j] + sizes[j]
            if own < 0:
                continue
            top, total = logits[i, start:end].max(), np.int64(0)
            for v in range(start, end):
                made[i, v] = table[min(top - logits[i, v], len(table) - 1)]
                total += made[i, v]
            whole = np.float64(total)
            for v in range(start, end):
                made[i, v] = np.int64(made[i, v] * STEPS / whole)
            made[i, start + own] -= STEPS
