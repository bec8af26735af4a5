"""One fit in progress: confidential tables behind a purse, and what was measured of them on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

import numpy as np

from reticent.privacy.claim import Claim
from reticent.synth.base import Counted, Counts, Floats, MissingMethod, Places
from reticent.synth.domain import Domain
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable, Zeroes, estimate
from reticent.synth.marginals.views import SHARES, UNIT, Flags, View, distance, merged, misfit, plain
from reticent.synth.network import Network, one_scale, simplex, total_of
from reticent.synth.rules import lawful_pairs
from reticent.synth.spending import Accountant, NoisyCounts


@dataclass(slots=True, kw_only=True)
class MarginalFit:
    """Tables of `counts` are looked at through `view`; nothing of them leaves but through the purse.

    With available cells a table holds only the rows that answered all its columns. It is measured with one cell more, for
    the rows it leaves out, which costs nothing: every row is in exactly one cell. So its sum is known as well as
    one cell is, and it is brought to the common `total` with a deviation of its own. Where columns have universes there is
    such a cell for every block of who was asked what.
    """

    counts: Counts = field(repr=False)
    domain: Domain
    missing: MissingMethod
    purse: Accountant
    lawful: dict[Places, Flags] = field(init=False, repr=False)
    view: View = field(init=False, repr=False)
    total: float = field(init=False, default=1.0)
    rates: list[float] = field(init=False, default_factory=list)
    measured: list[NoisyTable] = field(init=False, default_factory=list, repr=False)
    held: dict[Places, Counted] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.lawful = lawful_pairs(self.domain)
        self.view = plain(self.domain, self.missing)

    @property
    def is_parted(self) -> bool:
        """Whether tables leave out rows, each its own."""
        return self.missing is MissingMethod.AVAILABLE

    def hold(self, sets: Sequence[Places]) -> None:
        """Count these tables now, by one pass, and keep them here."""
        new = [places for places in sets if places not in self.held]
        self.held |= dict(zip(new, self.counts.count(new), strict=True))

    def start(self, *, amount: Fraction, merge: float) -> None:
        """All columns one by one: the total, who answered what, and cells below `merge` deviations put together."""
        places = [(place,) for place in range(len(self.domain.axes))]
        self.hold(places)
        noisy = self.purse.measure([self._list(each) for each in places], amount=amount)
        self.total = total_of(noisy)
        ones = [self._scaled(*each) for each in zip(noisy, places, strict=True)]
        self.rates = [each.deviation / one.deviation for each, one in zip(noisy, ones, strict=True)]
        clean = [simplex(one.cells, self.total) for one in ones]
        is_kept = [side.into >= 0 for side in self.view.sides]
        self.view = merged(self.view, clean, least=[merge * one.deviation for one in ones])
        for place, one in enumerate(ones):
            side = self.view.sides[place]
            table = np.zeros(side.size)
            np.add.at(table, side.into[is_kept[place]], clean[place])
            self.measured.append(NoisyTable(places=(place,), table=table, deviation=one.deviation))

    def measure(self, places: Places, *, amount: Fraction) -> NoisyTable:
        """One more table, on the common scale."""
        self.hold([places])
        (noisy,) = self.purse.measure([self._list(places)], amount=amount)
        scaled = self._scaled(noisy, places)
        table = scaled.cells.reshape([self.view.shape[place] for place in places])
        self.measured.append(NoisyTable(places=places, table=table, deviation=scaled.deviation))
        return self.measured[-1]

    def score(self, places: Places, model: Floats) -> int:
        """CONFIDENTIAL: how far the table is from the model's, in steps of which `grain` make a record."""
        table = self.view.table(self.held[places], places)
        return misfit(table, self._answered(model, places)) if self.is_parted else distance(table, model)

    @property
    def grain(self) -> int:
        return SHARES if self.is_parted else UNIT

    @property
    def reach(self) -> int:
        """How far neighbours move one score."""
        neighbours = self.purse.spend.neighbours
        return 2 * SHARES * neighbours.records if self.is_parted else UNIT * neighbours.steps

    def rate(self, places: Places) -> float:
        """About which share of all rows is in a table, from what was released."""
        return float(np.prod([self.rates[place] for place in places]))

    def fit(self, *, iterations: int, start: FittedGraph | None = None) -> FittedGraph:
        """The model nearest to what was measured, in which what cannot be has no chance."""
        return estimate(
            self.view.shape,
            self.measured,
            total=self.total,
            start=start,
            iterations=iterations,
            zeroes=[
                Zeroes(places=pair, allowed=self.view.allowed(can_be, pair))
                for pair, can_be in self.lawful.items()
            ],
        )

    def network(self, fitted: FittedGraph, claim: Claim) -> Network:
        """The fitted model over all cells."""
        steps = tuple(self.view.widened(step) for step in fitted.conditionals())
        return Network(domain=self.domain, steps=steps, total=self.total, claim=claim)

    def _list(self, places: Places) -> Counted:
        counted = self.held[places]
        if self.is_parted:
            return self.view.parted(counted, places)
        return self.view.table(counted, places).ravel()

    def _answered(self, model: Floats, places: Places) -> Floats:
        """The model's table as far as it would be answered: of those asked a share, of those not asked everybody."""
        sides = [self.view.sides[place] for place in places]
        if all(side.unasked is None for side in sides):
            return model  # one share for all, which a misfit does not see
        shares = [
            np.where(side.group_blocks, 1.0, self.rates[p]) for side, p in zip(sides, places, strict=True)
        ]
        return np.asarray(model * reduce(np.multiply.outer, shares))

    def _scaled(self, noisy: NoisyCounts, places: Places) -> NoisyCounts:
        return one_scale(noisy, self.total, self.view.blocks(places)) if self.is_parted else noisy
