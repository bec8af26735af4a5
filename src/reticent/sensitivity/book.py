"""The hubs of one evaluation, each computed once and shared between asks, and the smooth bounds they give."""

from fractions import Fraction
from math import floor

from reticent.engine.results import Tallies
from reticent.engine.wants import Ring
from reticent.prepare.distance import Distances
from reticent.prepare.donors import Bounding, Repair
from reticent.prepare.metric import distances_of
from reticent.schema import Schema
from reticent.sensitivity import ladder as lad
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.constants import Constants
from reticent.sensitivity.hubs import LN2, Hubs, Rings
from reticent.sensitivity.ladder import Ladder
from reticent.sensitivity.moves import Moves


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
