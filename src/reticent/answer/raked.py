"""Totals for weights from a noisy table raked to public margins: paid for once, constants from then on.

Where only margins of the population are known, the survey itself says how they hang together. Its table of base
cells is released with noise, mended and raked; what comes out stands for the unknown totals.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from reticent.answer.parts import Measurement, measure_table, plan_table
from reticent.errors import PlanError
from reticent.noise.source import Noise
from reticent.prepare.bins import LARGEST, BaseWeights
from reticent.refine.margins import Floats, Margin, Mask
from reticent.refine.raking import Raked, Status, rake
from reticent.refine.zeroes import Coarsening, mend
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.linear import bound_table
from reticent.sensitivity.neighbours import Neighbours
from reticent.sensitivity.poststrata import Tally

TABLE = "table of base cells"
FINE = 10**6
"""Totals are rounded to a power of ten at most this part of what a cell holds on average."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitting:
    """What is public of it: margins, cells known to be empty, how cells are joined while one holds less than `least`.

    `assumed` is the table that the margins alone give: previews use it, and a release whose noisy table
    cannot be raked. A plan whose margins no table can meet is refused when this is made.
    """

    shape: tuple[int, ...]
    margins: tuple[Margin, ...]
    ladder: tuple[Coarsening, ...]
    epsilon: Fraction
    zeroes: Mask | None = field(default=None, repr=False)
    least: float = 0.0
    tolerance: float = 1e-8
    cycles: int = 1000
    assumed: tuple[Fraction, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise PlanError(f"it is {self.epsilon}, but must be positive.", field="epsilon")
        if self.unit * LARGEST < 1:
            raise PlanError("they are too small to be told from 0; count in people", field="margins")
        whole = self.raked(np.ones(self.shape))
        if whole.status != "met" or self.margins[0].total > LARGEST // 4:
            raise PlanError("no table meets these margins and zeroes, or they are too large", field="margins")
        object.__setattr__(self, "assumed", self.rounded(whole.table))

    def raked(self, table: Floats) -> Raked:
        return rake(table, self.margins, zeroes=self.zeroes, tolerance=self.tolerance, cycles=self.cycles)

    @property
    def unit(self) -> Fraction:
        """What totals are rounded to: public, as margins and shape are."""
        most = Fraction(self.margins[0].total) / (FINE * int(np.prod(self.shape)))
        step = Fraction(1)
        while step > most:
            step /= 10
        while 10 * step <= most:
            step *= 10
        return step

    def rounded(self, table: Floats) -> tuple[Fraction, ...]:
        unit = self.unit
        return tuple(round(Fraction(cell) / unit) * unit for cell in table.reshape(-1).tolist())

    def bound(self, base: BaseWeights, neighbours: Neighbours) -> Global:
        """One record is in one cell, with at most the heaviest base weight."""
        return bound_table(base.heaviest, neighbours=neighbours)

    def part(self, base: BaseWeights, neighbours: Neighbours) -> Measurement:
        return plan_table(TABLE, bound=self.bound(base, neighbours), grid=base.unit, epsilon=self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class RakedTotals:
    """The totals, and how well the fit went. Every word of it was paid for.

    `joined` is the place of the coarsening that was needed, None where none was coarse enough. Where
    `is_assumed` the noisy table could not be raked and the margins alone were used.
    """

    totals: tuple[Fraction, ...]
    noisy: tuple[Fraction, ...]
    joined: int | None
    status: Status
    cycles: int
    error: float
    is_assumed: bool


def fit_totals(
    fitting: Fitting, tally: Tally, *, base: BaseWeights, neighbours: Neighbours, noise: Noise
) -> RakedTotals:
    """Release the table of base cells, weighted, and rake it.

    Guarantee   fitting.epsilon-DP for one call.
    Adjacency   neighbours.
    Theorem     THEORY 6.5 and 6.5a: Laplace noise on a weighted table of a partition; the rest is post-processing.
    Proof       proofs/answer/raked.md
    Assumes     margins, zeroes, ladder and the heaviest base weight public; `tally` is that of the base cells.
    Keeps back  the exact table.
    """
    noisy = measure_table(
        [int(each) for each in tally.total.tolist()],
        TABLE,
        bound=fitting.bound(base, neighbours),
        grid=base.unit,
        epsilon=fitting.epsilon,
        noise=noise,
    )
    return after_noise(fitting, tuple(cell.estimate for cell in noisy))


def after_noise(fitting: Fitting, noisy: tuple[Fraction, ...]) -> RakedTotals:
    """From noisy cells and public numbers alone."""
    cells = np.array([float(cell) for cell in noisy]).reshape(fitting.shape)
    mended = mend(cells, fitting.ladder, zeroes=fitting.zeroes, least=fitting.least)
    raked = fitting.raked(mended.table)
    usable = raked.status != "no cells" and _is_near(raked.table, fitting.margins[0].total)
    return RakedTotals(
        totals=fitting.rounded(raked.table) if usable else fitting.assumed,
        noisy=noisy,
        joined=mended.step,
        status=raked.status,
        cycles=raked.cycles,
        error=raked.error,
        is_assumed=not usable,
    )


def _is_near(table: Floats, total: float) -> bool:
    """Whether the cells are numbers that add up to the population, roughly at least."""
    return bool(np.isfinite(table).all()) and total / 2 <= float(table.sum()) <= 2 * total
