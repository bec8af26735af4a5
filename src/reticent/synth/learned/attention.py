"""The exact step of an attention network: one column from embeddings of earlier columns, in whole numbers.

Every answer of an earlier column has an embedding of ten numbers. A column's model weighs the earlier columns that the row
answered by a softmax over one score each, adds up their embeddings with these weights, and makes logits of the sum by a
matrix and a bias (Wu and others 2020, *Attention-based learning for missing data imputation*; Ge and others 2021,
*Kamino*). A row that left the column open has no loss; an earlier column that it left open has no weight.

Per-row gradients are whole numbers in steps of 2**-20, clipped together, and summed in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import compiled
from reticent.engine.protocol import Cells
from reticent.synth.learned.gradient import EXPONENTIALS, divisor, drawn_group
from reticent.synth.marginals.study import View

Whole = NDArray[np.int64]
Words = NDArray[np.uint64]

WIDE = 10
"""Numbers of an embedding."""
FARTHEST = 4.0
"""Embeddings and matrices are kept this near to zero, so that no square overflows."""
FARTHEST_LOGIT = 30.0
"""Scores and biases are kept this near to zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOrder:
    """Columns in the order in which they are learned and drawn. Public: made of the codebook and the plan.

    Parameters
    ----------
    order : the places of the columns in their domain
    into : for every column of the order the group of each of its cells, -1 where it is missing and has no part
    sizes : how many groups each column of the order has
    offsets : where their groups begin, were those of all columns numbered through
    """

    order: Whole
    into: Whole = field(repr=False)
    sizes: Whole
    offsets: Whole

    @classmethod
    def of(cls, view: View, order: Sequence[int]) -> "ColumnOrder":
        sides = [view.sides[place] for place in order]
        sizes = np.array([side.size for side in sides], dtype=np.int64)
        into = np.full((len(sizes), max(len(side.into) for side in sides)), -1, dtype=np.int64)
        for at, side in enumerate(sides):
            into[at, : len(side.into)] = side.into
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(order=np.array(order, dtype=np.int64), into=into, sizes=sizes, offsets=offsets)

    def ends(self, column: int) -> tuple[int, int, int, int]:
        """Where scores, embeddings, matrix and bias of a column's model end."""
        size = int(self.sizes[column])
        embedded = column + WIDE * int(self.offsets[column])
        return column, embedded, embedded + WIDE * size, embedded + (WIDE + 1) * size

    def length(self, column: int) -> int:
        """How many numbers the model of a column has; none for the first."""
        return self.ends(column)[-1] if column else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradient:
    """The sum over records of the clipped gradient of one column's model, at public weights.

    Guarantee   one record moves the sum by its own vector, of whole numbers and of Euclidean length at most `LENGTH`.
    Adjacency   one record added or removed.
    Theorem     each record's vector is a function of that record and of public numbers.
    Proof       proofs/synth/learned/attention.md
    Assumes     the weights are public or released, and within their bounds; cells lie within their columns.
    Keeps back  the sum, until noise is added.

    Parameters
    ----------
    columns : the columns in their order
    column : which of them is learned
    weights : its parameters, in steps of 1/256
    """

    columns: ColumnOrder
    column: int
    weights: Whole = field(repr=False)

    @property
    def length(self) -> int:
        return self.columns.length(self.column)

    def add(self, block: Cells, totals: Whole) -> None:
        """Add the gradients of a block of rows, a line for each column."""
        at = self.columns
        add_gradients(
            block, at.order, at.into, at.sizes, at.offsets, self.column, self.weights, EXPONENTIALS, totals
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFill:
    """Missing cells of one column drawn from its model and the row's own earlier cells: a `RowFill`.

    Guarantee   a row is filled from itself, from released numbers and from bits of its own.
    Adjacency   one record added or removed.
    Theorem     rows mapped one by one have stability one.
    Proof       proofs/synth/learned/attention.md
    Assumes     the weights were released; a word for each row.
    Keeps back  the rows, and which cells were filled.

    Parameters
    ----------
    columns : the columns in their order
    column : which of them is filled
    weights : its parameters, in steps of 1/256; for the first column the bias alone
    silence : the cell that stands for a missing answer
    cells : the cell of every group
    barred : the group of those who were not asked, -1 where there is none: nobody is filled with it
    """

    columns: ColumnOrder
    column: int
    weights: Whole = field(repr=False)
    silence: int
    cells: Whole = field(repr=False)
    barred: int = -1

    def fill(self, block: Cells, words: Words) -> None:
        """Write into the block."""
        at = self.columns
        fill_cells(block, words, at.order, at.into, at.sizes, at.offsets, self.column, self.weights, EXPONENTIALS,
                   self.silence, self.cells, self.barred)  # fmt: skip


@compiled
def read_row(block: Cells, i: int, order: Whole, into: Whole, last: int, row: Whole) -> None:
    """The groups of a row's columns up to the last one wanted."""
    for k in range(last + 1):
        row[k] = into[k, block[order[k], i]]


@compiled
def attend(
    row: Whole, column: int, offsets: Whole, weights: Whole, table: Whole, alpha: Whole, mixed: Whole
) -> None:
    """Weights of the answered earlier columns in units of 2**-14, and the mixed embedding in the same units."""
    top = np.int64(-(1 << 40))
    for k in range(column):
        if row[k] >= 0:
            top = max(top, weights[k])
    total = np.int64(0)
    for k in range(column):
        alpha[k] = table[min(top - weights[k], len(table) - 1)] if row[k] >= 0 else 0
        total += alpha[k]
    for e in range(len(mixed)):
        mixed[e] = 0
    for k in range(column):
        if alpha[k] > 0:
            alpha[k] = (alpha[k] << 14) // total
            line = column + (offsets[k] + row[k]) * len(mixed)
            for e in range(len(mixed)):
                mixed[e] += alpha[k] * weights[line + e]
    for e in range(len(mixed)):
        mixed[e] >>= 8


@compiled
def chances_of(
    column: int, sizes: Whole, offsets: Whole, weights: Whole, table: Whole, mixed: Whole, out: Whole
) -> None:
    """The chances of the column's groups given the mixed embedding, in units of 2**-20, rounded down."""
    wide, width = len(mixed), sizes[column]
    matrix = column + offsets[column] * wide if column > 0 else 0
    bias = matrix + width * wide if column > 0 else 0
    top = np.int64(-(1 << 40))
    for v in range(width):
        logit = np.int64(0)
        if column > 0:
            for e in range(wide):
                logit += weights[matrix + v * wide + e] * mixed[e]
        out[v] = (logit >> 14) + weights[bias + v]
        top = max(top, out[v])
    total = np.int64(0)
    for v in range(width):
        out[v] = table[min(top - out[v], len(table) - 1)]
        total += out[v]
    for v in range(width):
        out[v] = (out[v] << 20) // total


@compiled
def row_gradient(
    row: Whole,
    column: int,
    sizes: Whole,
    offsets: Whole,
    weights: Whole,
    table: Whole,
    alpha: Whole,
    mixed: Whole,
    own: Whole,
    back: Whole,
    pulls: Whole,
) -> np.int64:
    """Residuals `own`, what goes back to the mixed embedding, and to every score; the squared length of it all."""
    wide, width = len(mixed), sizes[column]
    attend(row, column, offsets, weights, table, alpha, mixed)
    chances_of(column, sizes, offsets, weights, table, mixed, own)
    own[row[column]] -= 1 << 20
    matrix, square = column + offsets[column] * wide, np.int64(0)
    for e in range(wide):
        pulled = np.int64(0)
        for v in range(width):
            pulled += own[v] * weights[matrix + v * wide + e]
        back[e] = pulled >> 8
    for v in range(width):
        square += own[v] * own[v]
        for e in range(wide):
            part = (own[v] * mixed[e]) >> 14
            square += part * part
    for k in range(column):
        pulls[k] = 0
        if alpha[k] > 0:
            line, pull = column + (offsets[k] + row[k]) * wide, np.int64(0)
            for e in range(wide):
                pull += ((weights[line + e] << 6) - mixed[e]) * back[e]
                part = (alpha[k] * back[e]) >> 14
                square += part * part
            pulls[k] = ((pull >> 14) * alpha[k]) >> 14
            square += pulls[k] * pulls[k]
    return square


@compiled
def shortened(value: np.int64, factor: np.int64) -> np.int64:
    """value x factor / 2**30, towards zero."""
    return (value * factor) >> 30 if value > 0 else -((-value * factor) >> 30)


@compiled
def add_gradients(
    block: Cells,
    order: Whole,
    into: Whole,
    sizes: Whole,
    offsets: Whole,
    column: int,
    weights: Whole,
    table: Whole,
    totals: Whole,
) -> None:
    """Row by row: the gradient of the column's loss, its length, and the shortened vector into the sum."""
    wide, width = WIDE, sizes[column]
    row, alpha, pulls = np.empty(column + 1, np.int64), np.empty(column, np.int64), np.empty(column, np.int64)
    mixed, back, own = np.empty(wide, np.int64), np.empty(wide, np.int64), np.empty(width, np.int64)
    matrix = column + offsets[column] * wide
    bias = matrix + width * wide
    for i in range(block.shape[1]):
        read_row(block, i, order, into, column, row)
        if row[column] < 0:
            continue
        square = row_gradient(row, column, sizes, offsets, weights, table, alpha, mixed, own, back, pulls)
        factor = (np.int64(1) << 44) // divisor(square)
        for v in range(width):
            totals[bias + v] += shortened(own[v], factor)
            for e in range(wide):
                totals[matrix + v * wide + e] += shortened((own[v] * mixed[e]) >> 14, factor)
        for k in range(column):
            if alpha[k] > 0:
                line = column + (offsets[k] + row[k]) * wide
                totals[k] += shortened(pulls[k], factor)
                for e in range(wide):
                    totals[line + e] += shortened((alpha[k] * back[e]) >> 14, factor)


@compiled
def fill_cells(
    block: Cells,
    words: Words,
    order: Whole,
    into: Whole,
    sizes: Whole,
    offsets: Whole,
    column: int,
    weights: Whole,
    table: Whole,
    silence: int,
    cells: Whole,
    barred: int,
) -> None:
    """For every row whose cell is missing, a cell in proportion to its chances, by the row's own word."""
    row, alpha = np.empty(column + 1, np.int64), np.empty(column, np.int64)
    mixed, odds = np.empty(WIDE, np.int64), np.empty(sizes[column], np.int64)
    place = order[column]
    for i in range(block.shape[1]):
        if block[place, i] != silence:
            continue
        read_row(block, i, order, into, column, row)
        attend(row, column, offsets, weights, table, alpha, mixed)
        chances_of(column, sizes, offsets, weights, table, mixed, odds)
        block[place, i] = cells[drawn_group(odds, words[i], barred)]
