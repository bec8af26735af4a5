"""In how many steps a sum over filled rows could come to zero, or to any number, with the nearest donors (THEORY 12.3).

One respondent who comes or goes moves a recipient's value to anything there is, but only in one block, the recipients whom
one donor serves in its own cell, and among visitors, whose cell has no donor. So what k respondents can add to a sum is at most
k rows, the k blocks that have most to gain, and what all visitors have to gain. How many respondents it takes to bring a
rank to balance moves by one where a respondent comes or goes, however busy donors are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from reticent.engine.wants import NOBODY_SERVES, NOT_COUNTED, BlockTable

LARGEST = 2**62
"""Sums that could be larger are kept as numbers of any size."""

Whole = NDArray[np.int64] | NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gains:
    """What blocks have to gain, the most first, each added to those before; what all visitors have; and what a row of one's
    own is worth at most. `held` is what 1, 2, ... steps make up, as long as there are blocks."""

    blocks: Whole = field(repr=False)
    visitors: int = field(repr=False)
    own: int
    held: Whole = field(init=False, repr=False)

    def __post_init__(self) -> None:
        steps: Whole = np.arange(1, len(self.blocks) + 1, dtype=self.blocks.dtype)
        object.__setattr__(self, "held", steps * self.own + self.blocks + self.visitors)

    def upto(self, steps: int) -> int:
        """What so many steps make up."""
        if steps <= 0:
            return 0
        if steps <= len(self.held):
            return int(self.held[steps - 1])
        return steps * self.own + self.visitors + self._all_blocks

    def reached(self, size: int) -> int:
        """The fewest steps with which these make up `size`."""
        if size <= 0:
            return 0
        found = int(np.searchsorted(self.held, size, side="left"))
        return found + 1 if found < len(self.held) else max(found + 1, -(-self._left(size) // self.own))

    def within(self, size: int) -> int:
        """The most steps with which these stay within `size`."""
        found = int(np.searchsorted(self.held, size, side="right"))
        return found if found < len(self.held) else max(found, self._left(size) // self.own)

    @property
    def _all_blocks(self) -> int:
        return int(self.blocks[-1]) if len(self.blocks) else 0

    def _left(self, size: int) -> int:
        """What is left to own rows when all blocks are taken."""
        return size - self.visitors - self._all_blocks


class RankLengths:
    """For every candidate, in how many steps b B - a W could come to zero, B the weight below it and W all weight.

    `cells` holds the weight of everybody on each candidate, filled recipients among them; `held` recipients by block;
    `heaviest` is the largest weight of a record.

    Guarantee   each length moves by at most 1 where a record comes or goes.
    Adjacency   one record added or removed.
    Theorem     THEORY 12.3.
    Proof       proofs/answer/value_ladder.md
    Assumes     recipients take their nearest donor, one, in the order of THEORY 3.1a; of the filled columns one alone decides
                where a recipient is counted, or whether.
    Keeps back  all of it.
    """

    def __init__(self, cells: Sequence[int], held: BlockTable, at: Fraction, *, heaviest: int) -> None:
        self._a, self._b = at.numerator, at.denominator
        self._own = heaviest * max(self._a, self._b - self._a)
        self._known: dict[int, tuple[int, int]] = {}
        self._below = [0, *accumulate(cells)]
        order = np.argsort(held.block, kind="stable")
        block, self._cell = held.block[order], held.cell[order]
        is_large = self._b * int(held.weight.sum()) + self._own * (len(order) + 1) >= LARGEST
        self._weight: Whole = held.weight[order].astype(object) if is_large else held.weight[order]
        self._visits = int(np.searchsorted(block, NOBODY_SERVES, side="right"))
        served = block[self._visits :]
        self._starts = np.flatnonzero(np.diff(served, prepend=NOBODY_SERVES))

    def at(self, place: int) -> tuple[int, int]:
        """The two lengths of a boundary, each found once."""
        if place not in self._known:
            self._known[place] = self._at(place)
        return self._known[place]

    def _at(self, place: int) -> tuple[int, int]:
        """The length of b B - a W at a candidate, or behind the last one, and that of its negative. Above zero it is first
        reached from above, below zero and at it, the last that is not past it."""
        whole = self._below[-1]
        sum_ = self._b * self._below[place] - self._a * whole
        size = abs(sum_)
        gains = self.gains(place, upwards=sum_ <= 0)
        first, last = gains.reached(size), -gains.within(size)
        return (first, last) if sum_ > 0 else (last, first)

    def gains(self, place: int, *, upwards: bool) -> Gains:
        """What recipients can add to the sum, or take from it: its largest term or its least, less their own."""
        a, b = self._a, self._b
        is_below = (self._cell < place) & (self._cell != NOT_COUNTED)
        moves = np.where(is_below, 0, b) if upwards else np.where(is_below, b, 0)
        moves = np.where(self._cell == NOT_COUNTED, b - a if upwards else a, moves)
        gain = self._weight * moves
        blocks = np.add.reduceat(gain[self._visits :], self._starts) if len(self._starts) else gain[:0]
        visitors = int(gain[: self._visits].sum())
        return Gains(blocks=np.cumsum(np.sort(blocks)[::-1]), visitors=visitors, own=self._own)


def length_scores(lengths: RankLengths, candidates: int, shift: int = 0) -> list[int]:
    """Minus how many steps each candidate is from the wanted rank.

    With a `shift` in steps the wanted rank is lower (shift > 0) or higher (shift < 0), and one candidate is added beyond the end
    that the target may cross, so that some candidate always scores 0.
    """
    found = [lengths.at(place) for place in range(candidates + 1)]
    inside = [-max(0, found[i][0] + shift, found[i + 1][1] - shift) for i in range(candidates)]
    if shift > 0:
        return [-max(0, found[0][1] - shift), *inside]
    if shift < 0:
        return [*inside, -max(0, found[-1][0] + shift)]
    return inside


class CountLengths:
    """In how many steps a count of filled rows could be any other number; `ladder` makes the gains of its recipients.

    `count` is the weight of all members, filled recipients among them; `held` recipients by block, whose one cell is that of
    members; `heaviest` is the largest weight of a record.

    Guarantee   `steps`, `below` and `above` of every number move by at most 1 where a record comes or goes.
    Adjacency   one record added or removed.
    Theorem     THEORY 12.3.
    Proof       proofs/answer/length_count.md
    Assumes     those of `RankLengths`.
    Keeps back  all of it.
    """

    def __init__(
        self, count: int, held: BlockTable, *, heaviest: int, ladder: type[RankLengths] = RankLengths
    ) -> None:
        # The weight below the one boundary behind members: b B - a W with a = 0 and b = 1.
        ranks = ladder([count], held, Fraction(0), heaviest=heaviest)
        self.count = count
        self.up, self.down = (ranks.gains(1, upwards=upwards) for upwards in (True, False))

    def steps(self, number: int) -> int:
        """The fewest steps in which the count could reach a number."""
        way = self.up if number > self.count else self.down
        return way.reached(abs(number - self.count))

    def below(self, number: int) -> int:
        """The length of the count less a number: in how many steps it could fall so far; not above 0 where it lies there."""
        if number < self.count:
            return self.down.reached(self.count - number)
        return -self.up.within(number - self.count)

    def above(self, number: int) -> int:
        """The length of a number less the count: in how many steps it could rise so far; not above 0 where it lies there."""
        if number > self.count:
            return self.up.reached(number - self.count)
        return -self.down.within(self.count - number)
