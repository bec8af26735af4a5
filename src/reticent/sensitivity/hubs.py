"""Hubs: how many recipients one donor can serve, now and after k respondents have come or gone.

Recipients take the answers of the K0 donors they prefer: the nearest by a public distance between cells, ties taken
clockwise on a ring on which every record has a place. A donor's reach is what one respondent can move. N_K bounds the
recipients for whom a donor, anywhere in the declared domain, is among the first K; V_k those that one donor can serve k
steps from here. Both are read off the rows and never shown. `HubCache` computes each once for all asks of an evaluation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from reticent.engine.wants import Ring, Tallies
from reticent.errors import PlanError
from reticent.prepare.distance import Distances, Row, distances_of
from reticent.prepare.repair import Bounding, Repair
from reticent.schema import Schema
from reticent.sensitivity import bounds as lad
from reticent.sensitivity.bounds import Ladder, LadderLine, Smooth
from reticent.sensitivity.donors import Constants, Moves

Counts = NDArray[np.int64]

LN2 = Fraction(693147180559945310, 10**18)
"""A rational just above ln 2: the least beta at which the doubling ladder has a bound."""

_CHUNK, _RUNGS = 2**23, 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rings:
    """What the rows say, cell by cell of the declared domain. All of it is private.

    `gaps` holds one number per donor, cells in order and each cell's donors clockwise: the weight of the
    recipients of the cell who come after the donor before and not after this one.
    """

    donors: Counts = field(repr=False)
    recipients: Counts = field(repr=False)
    gaps: Counts = field(repr=False)

    def __post_init__(self) -> None:
        if any(len(each) and each.min() < 0 for each in (self.donors, self.recipients, self.gaps)):
            raise ValueError("counts are not negative")
        if self.donors.shape != self.recipients.shape or len(self.gaps) != self.donors.sum():
            raise ValueError(
                "donors and recipients are counted over the same cells, with a gap for each donor"
            )
        sums = np.add.reduceat(np.append(self.gaps, 0), self.first)
        if (sums != self.recipients)[self.donors > 0].any():
            raise ValueError("the gaps of a cell's ring hold its recipients, each once")

    @property
    def first(self) -> Counts:
        """Where each cell's gaps begin."""
        return np.cumsum(self.donors) - self.donors


class Hubs:
    """N_K and V_k of one column's donors, found as they are asked for.

    `heaviest` is the largest weight a recipient may have, in the units of `rings`: 1 when heads are counted.
    With `newcomer_ties` every tie, also within a cell, goes to a donor who might come: a simpler and much
    larger ladder, for comparison.

    Guarantee   N_K and V_k are at least those of THEORY 3.1, and V_k(D) <= V_{k+1}(D') between neighbours.
    Adjacency   one respondent, a donor or a recipient of this column or neither, added or removed.
    Theorem     THEORY 3.2 and 3.4.
    Proof       proofs/sensitivity/hubs.md
    Assumes     every recipient's order is its own: distance between cells, then clockwise from its place on
                the ring, then label; attributes that are matched on are never imputed.
    Keeps back  all of it.
    """

    __slots__ = ("_distances", "_heaviest", "_k0", "_more", "_newcomer", "_reach", "_rings", "_serves")

    def __init__(
        self,
        distances: Distances,
        rings: Rings,
        *,
        k0: int = 1,
        heaviest: int = 1,
        newcomer_ties: bool = False,
    ) -> None:
        if k0 < 1 or heaviest < 1:
            raise PlanError("the number of donors and the largest weight are at least 1.", field="k")
        if len(rings.donors) != distances.cells:
            raise ValueError("rings and distances are over the same cells")
        self._distances, self._rings, self._newcomer = distances, rings, newcomer_ties
        self._k0, self._heaviest = k0, heaviest
        self._reach: list[int] = []
        self._more = self._reaches()
        self._serves: list[int] = []

    def reach(self, k: int) -> int:
        """N_k for k >= K0: over all cells t, at most this weight of recipients has a donor of t among its first k."""
        if k < self._k0:
            raise ValueError("a reach is asked for from K0 on")
        while k - self._k0 >= len(self._reach):
            is_full = self._reach and self._reach[-1] == self.everybody
            self._reach.append(self.everybody if is_full else next(self._more))
        return self._reach[k - self._k0]

    def serves(self, k: int) -> int:
        """V_k = max over r <= k of N_{K0+r} + (k - r) G, as V_k = max(N_{K0+k}, V_{k-1} + G)."""
        while k >= len(self._serves):
            after = self._serves[-1] + self._heaviest if self._serves else 0
            self._serves.append(max(self.reach(self._k0 + len(self._serves)), after))
        return self._serves[k]

    @property
    def everybody(self) -> int:
        """The weight of all recipients."""
        return int(self._rings.recipients.sum())

    @property
    def first(self) -> int:
        """L_1: what one respondent reaches, max(G, N_{K0}); exact where N_{K0} is."""
        return max(self._heaviest, self.reach(self._k0))

    def ladder(self, constants: Constants, *, start: int | None = None) -> Ladder:
        """U_k = c0 + c1 V_k, under the line c0 + c1 (|D_i| + k G); from rung `start`, public, the line itself."""
        c0, c1 = constants.c0, constants.c1
        line = LadderLine(base=c0 + c1 * self.everybody, slope=c1 * self._heaviest)
        exact = Ladder(rung=lambda k: c0 + c1 * self.serves(k), lines=(line,))
        return (
            exact if start is None else lad.mixture(exact, Ladder(rung=line.at, lines=(line,)), start=start)
        )

    def doubling(self, constants: Constants) -> Ladder:
        """The published ladder c0 + c1 2^k L_1. No line lies above it: alone it has no bound at small beta."""
        return Ladder(rung=lambda k: constants.c0 + constants.c1 * 2**k * self.first)

    def published(self, constants: Constants, *, epsilon: Fraction) -> Smooth:
        """The published bound c0 + c1 L_1, smooth in ln 2; refused where its noise is not proved private."""
        if epsilon < 2 * LN2:
            raise PlanError(
                f"it is {epsilon}; the published mechanism is proved for 2 ln 2 = 1.3863 or more, and below 0.87 it "
                "loses more than it claims; use the hub ladder, which serves every epsilon.",
                field="epsilon",
            )
        return Smooth(bound=constants.c0 + constants.c1 * self.first, beta=LN2)

    def _reaches(self) -> Iterator[int]:
        """N_K for K = K0, K0 + 1, ...; a pass over the cells gives as many as a chunk of memory holds."""
        low, width = self._k0, max(1, min(_RUNGS, _CHUNK // self._distances.cells))
        own = _Runs(self._rings).most if not self._newcomer else lambda k: self._rings.recipients
        while True:
            elsewhere = enumerate(self._elsewhere(low, width), start=low)
            yield from (int((others + own(k)).max()) for k, others in elsewhere)
            del elsewhere  # its memory, before the next pass takes as much
            low += width

    def _elsewhere(self, low: int, width: int) -> Counts:
        """For K = low, ..., low + width - 1 and each cell t: recipients of other cells with t among their first K.

        Row j collects recipients by the number of donors strictly nearer than t, j + low - 1 (in row 0: or
        fewer); summing the rows up to j leaves those with fewer than K = low + j of them.
        """
        table = np.zeros((width, self._distances.cells), np.int64)
        donors, farthest = self._rings.donors.astype(np.float64), self._distances.farthest
        radius = 0
        for cell in np.flatnonzero(self._rings.recipients).tolist():
            row = self._distances.row(cell)
            cells, nearer, radius = nearest_cells(row, donors, low + width - 1, radius, farthest)
            other = cells != cell
            table[np.maximum(nearer - low + 1, 0)[other], cells[other]] += self._rings.recipients[cell]
        return np.cumsum(table, axis=0, out=table)


def nearest_cells(
    row: Row, donors: NDArray[np.float64], k: int, guess: int, farthest: int
) -> tuple[Counts, Counts, int]:
    """The cells with fewer than k donors strictly nearer, how many those are, and how far the last cell is."""
    while True:
        cells = np.flatnonzero(row <= guess)
        near = row[cells]
        held = np.bincount(near, weights=donors[cells])
        upto = np.cumsum(held)
        if upto[-1] >= k or guess >= farthest:  # beyond the guess k donors are nearer, or nothing is there
            break
        guess = min(2 * guess + 1, farthest)
    nearer = (upto - held).astype(np.int64)
    radius = int(np.searchsorted(nearer, k)) - 1
    kept = near <= radius
    return cells[kept], nearer[near[kept]], radius


class _Runs:
    """The fullest run of k consecutive gaps on every cell's ring; all its recipients if it has at most k donors.

    A fullest run may be taken to begin with a gap that is not empty. Past a ring's last gap it goes on with
    the first.
    """

    __slots__ = ("_begins", "_cells", "_empty", "_first", "_size", "_starts", "_upto")

    def __init__(self, rings: Rings) -> None:
        self._begins = np.flatnonzero(rings.gaps)
        cells = np.repeat(np.arange(len(rings.donors)), rings.donors)[self._begins]
        self._first, self._size = rings.first[cells], rings.donors[cells]
        self._cells, self._starts = np.unique(cells, return_index=True)
        self._upto = np.concatenate([[0], np.cumsum(rings.gaps)])
        self._empty = np.where(rings.donors == 0, rings.recipients, 0)

    def most(self, k: int) -> Counts:
        begins, first, size, upto = self._begins, self._first, self._size, self._upto
        ends = begins + np.minimum(k, size)
        runs = upto[np.minimum(ends, first + size)] - upto[begins]
        runs += upto[np.maximum(ends - size, first)] - upto[first]
        most = self._empty.copy()
        if len(runs):
            most[self._cells] = np.maximum.reduceat(runs, self._starts)
        return most


class HubCache:
    """What the rings of one set of tallies say. All of it is private."""

    __slots__ = ("_distances", "_hubs", "_repair", "_schema", "_tallies")

    def __init__(self, tallies: Tallies, schema: Schema, repair: Repair) -> None:
        self._tallies, self._schema, self._repair = tallies, schema, repair
        self._hubs: dict[Ring, Hubs] = {}
        self._distances: dict[str, Distances] = {}

    def bound(self, moves: Moves, *, epsilon: Fraction) -> Smooth:
        """A smooth bound of what has these moves, for noise that runs at `epsilon` for one record.

        Guarantee   covers local sensitivity, and drifts by at most e^beta between neighbours; beta = epsilon/m,
                    or, as published, epsilon/(2(gamma - 1)) >= ln 2.
        Adjacency   one record added or removed.
        Theorem     THEORY 1.1, 1.2 and 3.3.
        Proof       proofs/sensitivity/book.md
        Assumes     the tallies hold the rings of `moves`; epsilon, m and the choice of ladder are public.
        Keeps back  the bound, and every hub.
        """
        if self.is_published(moves):
            return self._published(moves, epsilon)
        whole = lad.constant(moves.c0)
        for ring, c1 in moves.c1:
            whole = lad.total(whole, self._ladder(ring, c1))
        return lad.smooth_bound(whole, epsilon / self._repair.smoothness)

    def is_published(self, moves: Moves) -> bool:
        """Whether the plan asks for the published bound of these columns."""
        return any(self._repair.of(ring.column).bounding is Bounding.PUBLISHED for ring, _ in moves.c1)

    def hubs(self, ring: Ring) -> Hubs:
        """The hubs of a ring, computed as far as somebody has asked."""
        if ring not in self._hubs:
            donors, table = self._repair.of(ring.column), self._tallies.rings[ring]
            rings = Rings(donors=table.donors, recipients=table.recipients, gaps=table.gaps)
            self._hubs[ring] = Hubs(
                self._apart(ring.column),
                rings,
                k0=donors.k,
                heaviest=self._heaviest(ring),
                newcomer_ties=donors.bounding is Bounding.NEWCOMER,
            )
        return self._hubs[ring]

    def _ladder(self, ring: Ring, c1: Fraction) -> Ladder:
        hubs = self.hubs(ring)
        if self._repair.of(ring.column).bounding is Bounding.GLOBAL:
            return lad.straight(base=c1 * hubs.everybody, slope=c1 * self._heaviest(ring))
        return hubs.ladder(Constants(c0=Fraction(0), c1=c1))

    def _published(self, moves: Moves, epsilon: Fraction) -> Smooth:
        bounds = [
            self.hubs(ring).published(Constants(c0=Fraction(0), c1=c1), epsilon=epsilon).bound
            for ring, c1 in moves.c1
        ]
        return Smooth(bound=moves.c0 + sum(bounds), beta=published_beta(epsilon))

    def _apart(self, column: str) -> Distances:
        if column not in self._distances:
            self._distances[column] = distances_of(self._repair.of(column), self._schema)
        return self._distances[column]

    def _heaviest(self, ring: Ring) -> int:
        return self._schema.coded[ring.weight].high if ring.weight else 1


def published_beta(epsilon: Fraction) -> Fraction:
    """epsilon/(2(gamma - 1)) for gamma = 1 + epsilon/(2 ln 2), rounded down to sixteenths so that it can be drawn."""
    gamma = Fraction(floor(16 * (1 + epsilon / (2 * LN2))), 16)
    return epsilon / (2 * (gamma - 1))
