"""The exact step of a learned synthesizer: clipped per-row gradients of an autoregressive model, summed as whole numbers.

Columns stand in a public order. The logits of a column are its bias plus, for every earlier column that the row answered, a
line of weights; a softmax makes chances of them. The gradient of a row's loss has, for every column that the row answered
and every line of weights that it used there, the chances less the row's own cell. A column that the row left open has no
loss and no line: it is absent, not filled. Biases have no part in the gradient: what is known of single columns is
measured by itself, and a row's length is spent on what it says of pairs.

All of it is whole numbers: logits on a grid of 1/256, exponentials from a table, chances by division towards zero, in doubles
that hold the whole numbers (a processor divides these several at a time). So the sum over rows does not depend on their
order, on how they are cut into blocks, or on the machine.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import compiled
from reticent.engine.protocol import Cells
from reticent.noise.bits import exp_bracket
from reticent.synth.marginals.study import View

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

GRID = 256
"""Steps of a logit that make one."""
LENGTH = 1 << 14
"""The Euclidean length that no record's gradient exceeds, in steps."""
UNIT = 1 << 20
"""A chance of one."""

_LAST = 14 * GRID
EXPONENTIALS = np.array([exp_bracket(Fraction(i, GRID), 20)[0] for i in range(_LAST + 1)], dtype=np.int64)
"""About 2**20 exp(-i / 256); what is farther below the largest logit counts as the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLayout:
    """Where the parameters of a chain stand, in one long list. Public: it rests on the codebook alone.

    Parameters
    ----------
    into : the group of every cell of a column, -1 where the cell is missing and has no part in the model
    sizes : how many groups each column has
    offsets : where the groups of each column begin, were those of all columns numbered through
    starts : where the block of each column begins. It has a line for each group of each earlier column, then the bias.
    """

    into: Whole = field(repr=False)
    sizes: Whole
    offsets: Whole
    starts: Whole

    @classmethod
    def of(cls, view: View) -> "ChainLayout":
        sizes = np.array([side.size for side in view.sides], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum((offsets + 1) * sizes)]).astype(np.int64)
        into = np.full((len(sizes), max(len(side.into) for side in view.sides)), -1, dtype=np.int64)
        for place, side in enumerate(view.sides):
            into[place, : len(side.into)] = side.into
        return cls(into=into, sizes=sizes, offsets=offsets, starts=starts)

    @property
    def parameters(self) -> int:
        return int(self.starts[-1])

    def block(self, parameters: Floats, place: int) -> Floats:
        """The lines of one column, its bias last; a view, so that what is written there stays."""
        own = parameters[self.starts[place] : self.starts[place + 1]]
        return own.reshape(-1, int(self.sizes[place]))

    def lines(self, given: int) -> slice:
        """Those lines of a later column's block that stand for the groups of column `given`."""
        return slice(int(self.offsets[given]), int(self.offsets[given] + self.sizes[given]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainGradient:
    """The sum over records of the clipped gradient of each, at public weights.

    Guarantee   one record moves the sum by its own vector, of whole numbers and of Euclidean length at most `LENGTH`.
    Adjacency   one record added or removed.
    Theorem     each record's vector is a function of that record and of public numbers.
    Proof       proofs/synth/learned/gradient.md
    Assumes     the weights are public or released; cells lie within their columns.
    Keeps back  the sum, until noise is added.

    Parameters
    ----------
    layout : where the parameters stand
    weights : the parameters, in steps of 1/256
    """

    layout: ChainLayout
    weights: Whole = field(repr=False)

    @property
    def length(self) -> int:
        return self.layout.parameters

    def add(self, block: Cells, totals: Whole) -> None:
        """Add the gradients of a block of rows, a line for each column."""
        add_gradients(block, self.layout.into, self.layout.sizes, self.layout.offsets, self.layout.starts,
                      self.weights, EXPONENTIALS, totals)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFill:
    """Missing cells of one column drawn from a chain and the row's own earlier cells: a `RowFill`.

    Guarantee   a row is filled from itself, from released numbers and from bits of its own.
    Adjacency   one record added or removed.
    Theorem     rows mapped one by one have stability one.
    Proof       proofs/synth/learned/gradient.md
    Assumes     the weights were released; a word for each row.
    Keeps back  the rows, and which cells were filled.

    Parameters
    ----------
    layout : where the parameters stand
    weights : the parameters, in steps of 1/256
    column : which column is filled
    silence : the cell that stands for a missing answer
    cells : the cell of every group
    barred : the group of those who were not asked, -1 where there is none: nobody is filled with it
    """

    layout: ChainLayout
    weights: Whole = field(repr=False)
    column: int
    silence: int
    cells: Whole = field(repr=False)
    barred: int = -1

    def fill(self, block: Cells, words: NDArray[np.uint64]) -> None:
        """Write into the block."""
        at = self.layout
        fill_chain(block, words, at.into, at.sizes, at.offsets, at.starts, self.column, self.weights, EXPONENTIALS,
                   self.silence, self.cells, self.barred)  # fmt: skip


@compiled
def drawn_group(odds: Whole, word: np.uint64, barred: int) -> np.int64:
    """A group in proportion to its odds, by one word; never the one that is barred."""
    odds += 1  # so that there is always somebody to draw, whatever is barred
    if barred >= 0:
        odds[barred] = 0
    at = np.int64((word >> np.uint64(32)) * np.uint64(odds.sum()) >> np.uint64(32))
    group = np.int64(0)
    while group < len(odds) - 1 and at >= odds[group]:
        at -= odds[group]
        group += 1
    return group


@compiled
def fill_chain(
    block: Cells,
    words: NDArray[np.uint64],
    into: Whole,
    sizes: Whole,
    offsets: Whole,
    starts: Whole,
    column: int,
    weights: Whole,
    table: Whole,
    silence: int,
    cells: Whole,
    barred: int,
) -> None:
    """For every row whose cell is missing, a cell in proportion to its chances, by the row's own word."""
    row, odds = np.empty(column, np.int64), np.empty(sizes[column], np.int64)
    for i in range(block.shape[1]):
        if block[column, i] != silence:
            continue
        for k in range(column):
            row[k] = into[k, block[k, i]]
        chances(row, column, sizes, offsets, starts, weights, table, odds)
        block[column, i] = cells[drawn_group(odds, words[i], barred)]


@compiled
def chances(
    row: Whole,
    column: int,
    sizes: Whole,
    offsets: Whole,
    starts: Whole,
    weights: Whole,
    table: Whole,
    out: Whole,
) -> None:
    """The chances of one column given the earlier cells of the row, in units of 2**-20, rounded down."""
    width, start = sizes[column], starts[column]
    bias = start + offsets[column] * width
    for v in range(width):
        out[v] = weights[bias + v]
    for k in range(column):
        if row[k] >= 0:
            line = start + (offsets[k] + row[k]) * width
            for v in range(width):
                out[v] += weights[line + v]
    top = out[0]
    for v in range(1, width):
        top = max(top, out[v])
    total = np.int64(0)
    for v in range(width):
        out[v] = table[min(top - out[v], len(table) - 1)]
        total += out[v]
    whole = np.float64(total)
    for v in range(width):
        out[v] = np.int64((out[v] << 20) / whole)


@compiled
def divisor(square: np.int64) -> np.int64:
    """The least whole number whose square is not below `square`, and never less than 2**20."""
    root = np.int64(np.sqrt(square))
    while root * root < square:
        root += 1
    while root > 0 and (root - 1) * (root - 1) >= square:
        root -= 1
    return root if root > 1 << 20 else np.int64(1 << 20)


@compiled
def add_gradients(
    block: Cells,
    into: Whole,
    sizes: Whole,
    offsets: Whole,
    starts: Whole,
    weights: Whole,
    table: Whole,
    totals: Whole,
) -> None:
    """Row by row: residuals of every answered column after the first, their length, and the shortened vector into the sum."""
    columns = len(sizes)
    row = np.empty(columns, np.int64)
    residuals = np.empty(sizes.sum(), np.int64)
    for i in range(block.shape[1]):
        for j in range(columns):
            row[j] = into[j, block[j, i]]
        square, lines, first = np.int64(0), np.int64(0), columns
        for j in range(columns):
            if row[j] >= 0:
                first = min(first, j)
                if lines > 0:
                    own = residuals[offsets[j] : offsets[j] + sizes[j]]
                    chances(row, j, sizes, offsets, starts, weights, table, own)
                    own[row[j]] -= 1 << 20
                    for v in range(sizes[j]):
                        square += lines * own[v] * own[v]
                lines += 1
        by = np.float64(divisor(square))
        for j in range(first + 1, columns):
            if row[j] >= 0:
                own = residuals[offsets[j] : offsets[j] + sizes[j]]
                for v in range(sizes[j]):
                    own[v] = np.int64((own[v] << 14) / by)
                _add_lines(row, j, own, sizes, offsets, starts, totals)


@compiled
def _add_lines(
    row: Whole, column: int, own: Whole, sizes: Whole, offsets: Whole, starts: Whole, totals: Whole
) -> None:
    """The residuals of one column to every line that the row used."""
    width, start = sizes[column], starts[column]
    for k in range(column):
        if row[k] >= 0:
            line = start + (offsets[k] + row[k]) * width
            for v in range(width):
                totals[line + v] += own[v]
