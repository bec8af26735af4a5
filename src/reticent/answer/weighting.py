"""Post-stratification to known totals: how bins are found and where totals come from, all that is public of it.

**Bins** are fixed in the plan, or chosen privately among strategies, all at once or attribute by attribute, or put together
until their noisy counts are large enough. A strategy of |S| bins scores |S|/W_0, with W_0 the largest weight anybody has
or would have: many bins, unless they make somebody's weight too large. The score never falls when a respondent is
added, so no factor of two is lost, whatever the base weights are.

**Totals** are known, or raked. Where only margins of the population are known, the survey itself says how they hang
together: its table of base cells is released with noise, mended and raked, paid for once. What comes out stands for the
unknown totals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor

import numpy as np
from flint import arb, ctx

from reticent.answer.factors import FactorPurchase
from reticent.answer.parts import Measurement, measure_table, plan_table
from reticent.answer.poststrata import Law
from reticent.engine.wants import Bins, Key, Rows, Sum
from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.bits import Bits
from reticent.noise.selection import exponential
from reticent.noise.source import Noise
from reticent.prepare.strata import EQUAL, LARGEST, BaseWeights, Candidates, Crossing, Order, Strategy, summed
from reticent.refine.margins import Floats, Margin, Mask
from reticent.refine.raking import Coarsening, Raked, Status, mend, rake
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global, Neighbours, bound_table
from reticent.sensitivity.poststrata import Tally, rungs_needed, weight_ladder

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


STEPS = 2**20
"""Scores are counted in steps of Delta/STEPS, so that one respondent moves them by exactly STEPS at most."""

_DECIMALS = 10**12


def score(strategy: Strategy, tally: Tally, *, base: BaseWeights) -> Fraction:
    """|S|/W_0, from the tally of the base cells. Private."""
    return strategy.size / weight_ladder(strategy, tally.merged(strategy), base=base).rung(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice among strategies at a price: with probability in proportion to e^(alpha score)."""

    candidates: Candidates
    epsilon: Fraction
    base: BaseWeights = EQUAL

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise PlanError(f"it is {self.epsilon}, but must be positive.", field="epsilon")

    @property
    def alpha(self) -> Fraction:
        """epsilon/Delta."""
        return self.epsilon / self.candidates.delta

    def scores(self, tally: Tally) -> list[int]:
        """Every strategy's score in steps of Delta/STEPS, rounded down. Private."""
        step = self.candidates.delta / STEPS
        return [floor(score(each, tally, base=self.base) / step) for each in self.candidates.strategies]

    def choose(self, tally: Tally, *, bits: Bits) -> Strategy:
        """The strategy to use.

        Guarantee   epsilon-DP for one call, epsilon = alpha Delta.
        Adjacency   one respondent added or removed.
        Theorem     THEORY 6.4; McSherry and Talwar 2007 for monotone scores.
        Proof       proofs/answer/strategy.md
        Assumes     strategies, totals and the heaviest base weight public; `tally` is that of the base cells.
        Keeps back  the scores.
        """
        chosen = exponential(
            self.scores(tally), sensitivity=STEPS, epsilon=self.epsilon, monotone=True, bits=bits
        )
        return self.candidates.strategies[chosen]

    def chances(self, tally: Tally) -> list[arb]:
        """How likely each strategy is, as balls. Private: for rehearsals and tests."""
        with ctx.workprec(128):
            scores = self.scores(tally)
            rate = self.epsilon / STEPS
            weights = [ball(rate * (each - max(scores))).exp() for each in scores]
            whole = sum(weights, arb(0))
            return [each / whole for each in weights]


def tolerating(
    candidates: Candidates, *, chance: Fraction, gap: Fraction, base: BaseWeights = EQUAL
) -> Selection:
    """The cheapest choice that takes a strategy scoring `gap` or more below the best at most with this chance.

    At worst all m - 1 others lie just so far below, each e^(-alpha gap) as likely as the best; so
    alpha gap >= ln((m - 1)(1 - chance)/chance). Epsilon is rounded up to twelve decimals.
    """
    epsilon = tolerable(len(candidates.strategies), candidates.delta, chance=chance, gap=gap)
    return Selection(candidates=candidates, epsilon=epsilon, base=base)


def tolerable(several: int, delta: Fraction, *, chance: Fraction, gap: Fraction) -> Fraction:
    """The epsilon that `tolerating` needs for so many strategies; it never falls when `delta` grows."""
    odds = (several - 1) * (1 - chance) / chance if 0 < chance < 1 else 0
    steps = floor(gap * STEPS / delta)  # what the rounding of scores leaves of the gap
    if not odds > 1 or steps < 1:
        raise PlanError(
            "a poor choice needs a chance below that of drawing lots, and a gap that can be told.",
            field="chance",
        )
    with ctx.workprec(128):
        least = ball(odds).log() * STEPS / steps * _DECIMALS
        return Fraction(ceil(_above(least)), _DECIMALS)


def _above(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    return mantissa * Fraction(2) ** exponent


ROWS = 2**20
"""Respondents to plan for where the plan expects no number; with more, rungs are missing and noise grows."""


class Choice(StrEnum):
    """How the bins are found."""

    FIXED = "fixed"
    PRIVATE = "private"
    COUNTS = "noisy counts"
    EACH = "each attribute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """All that is public: base cells, base weights, strategies with their totals, and how one of them is found.

    `column` is the base weight, or None where all are equal. With noisy counts, `order` says which bins of the
    first strategy are put together; attribute by attribute, `crossing` says which ways there are. `epsilon` is the
    price of finding the bins. With a `fitting` the totals here are only assumed: those that are used come of a
    noisy table. `smoothness` is epsilon/beta of every ask. With `factors` bought, weights are public multiples of base
    weights, and statistics have noise of public scale. `mean` is what a respondent is expected to weigh on average.
    """

    name: str
    keys: tuple[Key, ...]
    silent: tuple[int, ...]
    candidates: Candidates
    labels: tuple[str, ...]
    column: str | None = None
    base: BaseWeights = EQUAL
    choice: Choice = Choice.FIXED
    order: Order | None = None
    crossing: Crossing | None = None
    fitting: Fitting | None = None
    epsilon: Fraction = Fraction(0)
    law: Law = Law.LOMAX
    smoothness: int = 8
    rows: int = ROWS
    least_beta: Fraction = Fraction(1, 8)
    factors: FactorPurchase | None = None
    mean: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.choice is Choice.FIXED) != (self.epsilon == 0):
            raise PlanError("a choice of bins has its price, and fixed bins have none.", field="epsilon")
        if (self.choice is Choice.COUNTS) != (self.order is not None):
            raise PlanError("noisy counts go with an order in which bins are put together.", field="order")
        priced = self.crossing.epsilon if self.crossing else self.epsilon
        if (self.choice is Choice.EACH) != (self.crossing is not None) or priced != self.epsilon:
            raise PlanError("each attribute has its ways, and their prices add up.", field="attribute")

    @property
    def price(self) -> Fraction:
        """What is paid before any ask: for totals, and for bins."""
        bought = self.factors.epsilon if self.factors else Fraction(0)
        return self.epsilon + bought + (self.fitting.epsilon if self.fitting else 0)

    def fitted(self, totals: tuple[Fraction, ...]) -> "Weighting":
        """The same strategies with these totals of base cells."""
        # Attribute by attribute the crossing makes its own candidates, from the same totals.
        kept = self.candidates.strategies[:1] if self.crossing else self.candidates.strategies
        made = tuple(summed(each.name, each.bins, totals) for each in kept)
        crossing = replace(self.crossing, totals=totals) if self.crossing else None
        return replace(self, candidates=Candidates(strategies=made), crossing=crossing, fitting=None)

    def serving(self, betas: Sequence[Fraction]) -> "Weighting":
        """The same, with as many of the largest weights kept as asks with these betas have a use for."""
        least = min(betas, default=self.least_beta)
        kept = rungs_needed(beta=least, rows=self.rows) if self.base.heaviest > 1 else 0
        return replace(self, base=replace(self.base, kept=kept), least_beta=least)

    def want(self, sum_: Sum) -> Bins:
        """What is wanted of every base cell for a plain sum: its rows and value, weighted."""
        return Bins(
            rows=sum_.rows,
            value=sum_.value,
            keys=self.keys,
            silent=self.silent,
            weight=self.column,
            kept=self.base.kept,
        )

    @property
    def wanted(self) -> Bins:
        """What is wanted to find the bins: no ask's rows."""
        return self.want(Sum(rows=Rows()))

    def parts(self, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """What totals, bins and factors cost, from public numbers; nothing where they are known and fixed."""
        bought = (self.factors.part(neighbours),) if self.factors else ()
        return (*self.found(neighbours), *bought)

    def told(self, schema: Schema) -> Schema:
        """The codebook that statistics are read with: where factors are bought, the weight is a base weight there."""
        if self.factors is None:
            return schema
        total = sum(self.candidates.strategies[0].totals, Fraction(0))
        return self.factors.planned(schema, total, None if self.rows == ROWS else self.rows, self.mean)

    def found(self, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """What totals and bins cost."""
        table = (self.fitting.part(self.base, neighbours),) if self.fitting else ()
        if self.choice is Choice.COUNTS:
            bound = moved(neighbours)
            return (*table, plan_table(COUNTS, bound=bound, grid=Fraction(1), epsilon=self.epsilon))
        if self.crossing is not None:
            priced = [each for each in self.crossing.attributes if each.epsilon]
            return (*table, *(_chosen(_by(each.by), each.epsilon, neighbours) for each in priced))
        return (*table, _chosen(BINS, self.epsilon, neighbours)) if self.epsilon else table


BINS, COUNTS = "choice of bins", "counts of bins"


def _by(names: Sequence[str]) -> str:
    return f"{BINS} by {' and '.join(names)}"


def _chosen(what: str, epsilon: Fraction, neighbours: Neighbours) -> Measurement:
    """A choice among scores, which are told in units of Delta: one record moves them by one."""
    return Measurement(
        what=what,
        epsilon=epsilon,
        bound=Fraction(neighbours.steps),
        unit=Fraction(1, STEPS),
        scale=STEPS * neighbours.steps / epsilon,
        mechanism="permute-and-flip",
        theorem="choice among scores that rise together",
        proof="proofs/answer/weighing.md",
    )


def moved(neighbours: Neighbours) -> Global:
    """Each record is in one bin, so a table of counts moves by as many as come or go."""
    return Global(bound=Fraction(neighbours.steps))
