"""Post-stratified counts and totals: the sum over bins of N A/B, with noise for the largest weight.

A is the base weight of the members who match, or of w y for a numeric y; B that of all members. An empty bin, and
a bin of total 0, adds nothing. Each bin's share is rounded to a public grid, so that sums are of whole numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from reticent.answer.parts import Interval
from reticent.errors import PlanError
from reticent.noise import calibrate
from reticent.noise.bits import Bits
from reticent.noise.cauchy import add_cauchy, add_student
from reticent.noise.laplace import add_laplace, add_lomax
from reticent.prepare.strata import EQUAL, BaseWeights, Strategy
from reticent.refine.pivot import Pivot, pivot
from reticent.sensitivity import bounds as lad
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.poststrata import Tally, numeric_reach, weight_ladder


class Law(StrEnum):
    """Noises that bear a smooth bound."""

    LOMAX = "lomax"
    STUDENT = "student"
    CAUCHY = "cauchy"


_ADD: dict[Law, Callable[..., int]] = {
    Law.LOMAX: add_lomax,
    Law.STUDENT: add_student,
    Law.CAUCHY: add_cauchy,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A weighted answer with its noise in steps of the grid, and the noisy height of its scale if there is a bar."""

    steps: int
    height: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A post-stratified count, or the total of a value between `low` and `high` told in steps of `unit`.

    `grid` is what a bin's share and the answer are rounded to. Epsilon, beta, law and grid are fixed before any
    row is read; beta is epsilon/8 unless said otherwise. `bar` is the price of an error bar, for Lomax noise.
    """

    strategy: Strategy
    epsilon: Fraction
    base: BaseWeights = EQUAL
    grid: Fraction = Fraction(1)
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    unit: Fraction = Fraction(1)
    law: Law = Law.LOMAX
    beta: Fraction = Fraction(0)
    bar: Fraction | None = None
    level: Fraction = Fraction(95, 100)

    def __post_init__(self) -> None:
        for name in ("epsilon", "grid", "unit"):
            if not getattr(self, name) > 0:
                raise PlanError(f"it is {getattr(self, name)}, but must be positive.", field=name)
        if not self.beta:
            object.__setattr__(self, "beta", self.epsilon / 8)
        numeric_reach(self.low, self.high)
        self._refuse_early()

    def _refuse_early(self) -> None:
        if self.bar is not None:
            if self.law is not Law.LOMAX:
                raise PlanError(
                    "intervals are proved for Lomax noise; take it, or ask for none.", field="law"
                )
            _ = self.pivot
        match self.law:
            case Law.LOMAX:
                calibrate.lomax(epsilon=self.epsilon, beta=self.beta)
            case Law.STUDENT:
                calibrate.student4(epsilon=self.epsilon, beta=self.beta)
            case Law.CAUCHY:
                calibrate.cauchy(epsilon=self.epsilon, beta=self.beta, gamma=Fraction(4))

    @property
    def cost(self) -> Fraction:
        return self.epsilon + (self.bar or 0)

    @property
    def pivot(self) -> Pivot:
        """The public parameters of the error bar."""
        if self.bar is None:
            raise PlanError("no error bar was paid for.", field="bar")
        return pivot(epsilon=self.epsilon, beta=self.beta, epsilon_scale=self.bar, level=self.level)

    def exact(self, tally: Tally) -> int:
        """The answer in steps of the grid, every bin's share rounded by floor(x + 1/2). Private.

        `tally` is that of the base cells. A y beyond its bounds must have been clamped where it was read.
        """
        bins = tally.merged(self.strategy)
        shares = zip(self.strategy.totals, bins.matching.tolist(), bins.total.tolist(), strict=True)
        return sum(_rounded(n * a * self.unit / self.grid, b) for n, a, b in shares if b)

    def bound(self, tally: Tally) -> Smooth:
        """S: what one respondent can move `exact`, times the grid.

        Guarantee   a beta-smooth bound on the local sensitivity of grid * exact.
        Adjacency   one respondent added or removed.
        Theorem     THEORY 6.1, 6.2, 6.5a, and 2.6 for the rounding.
        Proof       proofs/answer/poststrata.md
        Assumes     values within low and high; bins, totals, weights' grid and K public.
        Keeps back  the bound.
        """
        weights = weight_ladder(self.strategy, tally.merged(self.strategy), base=self.base)
        moved = weights.scaled(numeric_reach(self.low, self.high))
        return lad.smooth_bound(lad.total(moved, lad.constant(self.grid)), self.beta)

    def release(self, tally: Tally, *, bits: Bits) -> Released:
        """The noisy answer and, where one was paid for, the noisy height its error bar is read off.

        Guarantee   cost-DP for one call: epsilon, and the bar's price on top.
        Adjacency   one respondent added or removed.
        Theorem     THEORY 2.1 to 2.4 at a smooth bound; 3.5a for the bar.
        Proof       proofs/answer/poststrata.md
        Assumes     as for `bound`.
        Keeps back  the exact answer, the bound and the scale.
        """
        smooth = self.bound(tally)
        steps = _ADD[self.law](
            self.exact(tally) * self.grid,
            sensitivity=smooth,
            epsilon=self.epsilon,
            grid=self.grid,
            bits=bits,
        )
        if self.bar is None:
            return Released(steps=steps)
        height = self.pivot.height(smooth)
        noisy = add_laplace(height, sensitivity=self.pivot.sensitivity, epsilon=self.bar)
        return Released(steps=steps, height=noisy)

    def interval(self, released: Released) -> Interval:
        """Where the answer without noise lies with at least the level's probability, from what was released.

        Half a step for each bin and for the answer itself is added, for they were rounded.
        """
        if released.height is None:
            raise PlanError("no error bar was paid for.", field="bar")
        blur = self.grid * (self.strategy.size + 1) / 2
        half = Fraction(self.pivot.half_width(released.height)) + blur
        return released.steps * self.grid - half, released.steps * self.grid + half


def _rounded(over: Fraction, under: int) -> int:
    """floor(over/under + 1/2) in whole numbers."""
    return (2 * over.numerator + over.denominator * under) // (2 * over.denominator * under)
