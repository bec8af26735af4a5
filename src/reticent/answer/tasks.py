"""What an ask has to measure, known before a row is read: each sum with its global bound, its moves and its step.

A sum that no donor's answer enters keeps Laplace noise at its global bound. One that donors' answers enter has
moves with rings, and noise scaled by a smooth bound.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.context import weight_of
from reticent.answer.count import count_bound, total_bound
from reticent.answer.ratio import centre_code
from reticent.answer.variance import squares_bound
from reticent.prepare.donors import Repair
from reticent.query.imputed import roles
from reticent.query.kinds import Correlation, Count, Mean, Proportion, Total, Variance
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.constants import Span
from reticent.sensitivity.linear import bound_sum
from reticent.sensitivity.moves import Imputed, Moves
from reticent.sensitivity.neighbours import Neighbours

Linear = Count | Total | Mean | Proportion | Variance | Correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSpec:
    """One sum to be measured, in steps of `grid`."""

    what: str
    bound: Global
    moves: Moves
    grid: Fraction

    @property
    def is_smooth(self) -> bool:
        """Whether donors' answers enter it."""
        return bool(self.moves.c1)


class Tasks:
    """The sums that asks are made of, for one query: how each is bounded.

    Guarantee   each task's bound, or c0 and c1 of its moves, covers what one record can move the sum.
    Adjacency   `neighbours` for the bounds, one record added or removed for the moves.
    Theorem     `bound_sum`; THEORY 3.3.
    Proof       proofs/answer/imputed.md
    Assumes     codes lie in the columns' bounds; centres are public or were released.
    Keeps back  nothing: no row is read.
    """

    __slots__ = ("_among", "_grid", "_imputed", "_neighbours", "_schema", "_top")

    def __init__(self, query: Linear, schema: Schema, neighbours: Neighbours, repair: Repair) -> None:
        weight = weight_of(query.among, schema)
        self._top, self._grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
        self._among, self._schema, self._neighbours = query.among, schema, neighbours
        self._imputed = Imputed(roles=roles(query, schema, repair), repair=repair, heaviest=self._top)

    def count(self) -> SumSpec:
        """Members, or their weight."""
        bound, grid = count_bound(self._among, self._schema, self._neighbours)
        return SumSpec(what="count", bound=bound, moves=self._imputed.count(), grid=grid)

    def total(self, query: Total) -> SumSpec:
        """The sum of a column."""
        bound, grid = total_bound(query, self._schema, self._neighbours)
        column = query.number(self._schema)
        moves = self._imputed.total(_span(column, Fraction(0)), of=column.name)
        return SumSpec(what="total", bound=bound, moves=moves, grid=grid)

    def centred(self, column: Number, centre: Fraction | None, *, named: str = "") -> SumSpec:
        """The sum of 2y - 2c, in half steps of the column's grid."""
        twice = centre_code(column, centre)
        low, high = 2 * column.low, 2 * column.high
        span = Span(low=Fraction(low), high=Fraction(high), centre=Fraction(twice))
        bound = bound_sum(self._top * (low - twice), self._top * (high - twice), neighbours=self._neighbours)
        moves = self._imputed.total(span, of=column.name, step=2)
        return SumSpec(
            what=f"centred sum{named}", bound=bound, moves=moves, grid=self._grid * column.grid / 2
        )

    def share(self) -> SumSpec:
        """The sum of 2 [true] - 1 over those decided, in halves."""
        bound = bound_sum(-self._top, self._top, neighbours=self._neighbours)
        moves = self._imputed.total(Span(low=Fraction(-1), high=Fraction(1)), of=None)
        return SumSpec(what="centred sum", bound=bound, moves=moves, grid=self._grid / 2)

    def squares(self, column: Number, about: int, *, what: str = "squares about the mean") -> SumSpec:
        """The sum of (y - about)^2, in squared steps."""
        bound = squares_bound(column, about, self._top, self._neighbours)
        moves = self._imputed.squares(_span(column, Fraction(about)), of=column.name)
        return SumSpec(what=what, bound=bound, moves=moves, grid=self._grid * column.grid**2)

    def squares_of(self, column: Number, about: int) -> SumSpec:
        """The same where two columns have squares."""
        return self.squares(column, about, what=f"squares of {column.name} about its mean")

    def products(self, y: Number, z: Number, about: tuple[int, int]) -> SumSpec:
        """The sum of (y - about)(z - about), in steps of one times steps of the other."""
        corners = [(a - about[0]) * (b - about[1]) for a in (y.low, y.high) for b in (z.low, z.high)]
        bound = bound_sum(self._top * min(corners), self._top * max(corners), neighbours=self._neighbours)
        moves = self._imputed.products(
            _span(y, Fraction(about[0])), _span(z, Fraction(about[1])), of=(y.name, z.name)
        )
        return SumSpec(
            what="products about the means", bound=bound, moves=moves, grid=self._grid * y.grid * z.grid
        )


def _span(column: Number, centre: Fraction) -> Span:
    return Span(low=Fraction(column.low), high=Fraction(column.high), centre=centre)
