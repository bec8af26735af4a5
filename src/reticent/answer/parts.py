"""Noisy measurements, the three ways a number leaves (one integer, a table of integers, a chosen candidate), and answers.

An answer is made of estimates with intervals, and of the measurements they came from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, expm1, sqrt
from typing import Any

from reticent.exact import float_up
from reticent.noise.gaussian import gaussian_scale
from reticent.noise.source import Noise
from reticent.refine.quantiles import GRID_STEPS, gaussian_half_width, laplace_half_width
from reticent.refine.total import SampleSize
from reticent.sensitivity.bounds import FINE, Global

GAUSSIAN = "discrete Gaussian"
LEAST_LEVEL, WIDE = Fraction(3, 4), 1000
"""A half-width of wide Gaussian noise is decided at this level or above; at a lower one it covers more often than asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a part of an answer cost and how noisy it is: from public numbers, or numbers already released.

    It cost epsilon, or rho; then sums have Gaussian noise, and `scale` is its deviation in steps.
    """

    what: str
    epsilon: Fraction
    bound: Fraction
    unit: Fraction
    scale: Fraction
    is_coarse: bool = False
    mechanism: str = "discrete Laplace"
    theorem: str = "Laplace mechanism on the integers"
    proof: str = "proofs/answer/parts.md"
    rho: Fraction = Fraction(0)

    @property
    def amount(self) -> Fraction:
        """What it cost, in its own unit."""
        return self.rho or self.epsilon

    @property
    def is_gaussian(self) -> bool:
        return self.mechanism == GAUSSIAN

    @property
    def sd(self) -> float:
        """Standard deviation of the noise, in the answer's own unit: sqrt(2q)/(1-q) steps, q = e^(-1/scale).

        Of Gaussian noise its parameter, which is never below the deviation.
        """
        if self.is_gaussian:
            return float(self.scale * self.unit)
        step = 1 / float(self.scale)
        return sqrt(2 * exp(-step)) / -expm1(-step) * float(self.unit)

    @property
    def blur(self) -> Fraction:
        """Half a step: what counting in steps of `unit` can add to a distance."""
        return self.unit / 2

    @property
    def reach(self) -> Fraction:
        """What the steps add to noise of this scale on the line, and to its sums: with a coarser step its rounding, too."""
        own = self.unit * GRID_STEPS if self.is_gaussian else self.blur
        return own + (self.blur if self.is_coarse else 0)

    def half_width(self, level: Fraction) -> Fraction:
        """The noise stays within this distance with probability at least `level`, exactly computed."""
        if self.is_gaussian:
            at = max(level, LEAST_LEVEL) if self.scale >= WIDE else level
            return gaussian_half_width(self.scale, at) * self.unit
        return laplace_half_width(self.scale, level) * self.unit


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenScale:
    """A part whose noise has a scale that was read off the rows: there is a cost, a law and a step to tell, no scale.

    `source` says what makes the scale confidential: donors, or weights.
    """

    what: str
    epsilon: Fraction
    unit: Fraction
    beta: Fraction
    mechanism: str = "double Lomax"
    theorem: str = "noise scaled by a smooth bound"
    proof: str = "proofs/answer/imputed.md"
    source: str = "donors"

    @property
    def amount(self) -> Fraction:
        """What it cost: epsilon, since noise of a confidential scale is pure."""
        return self.epsilon

    @property
    def rho(self) -> Fraction:
        return Fraction(0)

    @property
    def sd(self) -> None:
        """Confidential."""
        return None


AnyMeasurement = Measurement | HiddenScale


def is_as_planned(run: Sequence[AnyMeasurement], planned: Sequence[AnyMeasurement]) -> bool:
    """Whether what was measured is what was planned: the same sums, with the same noise, at the same price.

    A bound may be smaller than planned: that of squares is planned at its largest, and known once a mean is released.
    """

    def spent(parts: Sequence[AnyMeasurement]) -> list[tuple[str, str, Fraction, str]]:
        return [(part.what, part.mechanism, part.amount, part.proof) for part in parts]

    return spent(run) == spent(planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyInteger:
    """An integer with its noise, and the part that describes it."""

    part: Measurement
    steps: int

    @property
    def estimate(self) -> Fraction:
        return self.steps * self.part.unit


def plan_part(
    what: str, *, bound: Global, grid: Fraction, epsilon: Fraction, in_rho: bool = False
) -> Measurement:
    """The part as it will be: the step size and the noise scale, from public numbers alone.

    Here and below, `epsilon` is an amount of rho where `in_rho`.
    """
    shift = _shift(bound)
    steps = Global(bound=Fraction(ceil(bound.bound / 2**shift)))
    return _planned(
        what, steps, epsilon, in_rho, bound=bound.bound * grid, unit=grid * 2**shift, is_coarse=shift > 0
    )


def plan_table(
    what: str, *, bound: Global, grid: Fraction, epsilon: Fraction, in_rho: bool = False
) -> Measurement:
    """The part a table will be: the noise of every cell, never in coarser steps."""
    return _planned(what, bound, epsilon, in_rho, bound=bound.bound * grid, unit=grid)


def _planned(what: str, steps: Global, amount: Fraction, in_rho: bool, **known: Any) -> Measurement:
    """Laplace noise for an amount of epsilon, Gaussian noise for one of rho."""
    if not in_rho:
        scale = Fraction(float_up(steps.bound / amount))
        return Measurement(what=what, epsilon=amount, scale=scale, **known)
    return Measurement(
        what=what,
        epsilon=Fraction(0),
        rho=amount,
        scale=Fraction(gaussian_scale(steps, amount)),
        mechanism=GAUSSIAN,
        theorem="Gaussian mechanism on the integers",
        **known,
    )


def measure(
    exact: int,
    what: str,
    *,
    bound: Global,
    grid: Fraction,
    epsilon: Fraction,
    noise: Noise,
    in_rho: bool = False,
) -> NoisyInteger:
    """One integer of grid steps, rounded to a public coarser step where its bound is large, plus noise.

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where `in_rho`.
    Adjacency   the one `bound` was proved for.
    Theorem     the Laplace or the Gaussian mechanism on the integers; |floor(x + 1/2) - floor(y + 1/2)| <= ceil(|x - y|).
    Proof       proofs/answer/parts.md
    Assumes     `exact` moves by at most bound.bound between neighbours; exact arithmetic.
    Keeps back  the exact integer.
    """
    shift = _shift(bound)
    rounded, sensitivity = (exact + (1 << shift >> 1)) >> shift, ceil(bound.bound / 2**shift)
    if in_rho:
        steps = noise.gaussian(rounded, sensitivity=sensitivity, rho=epsilon)
    else:
        steps = noise.laplace(rounded, sensitivity=sensitivity, epsilon=epsilon)
    part = plan_part(what, bound=bound, grid=grid, epsilon=epsilon, in_rho=in_rho)
    return NoisyInteger(part=part, steps=steps)


def measure_table(
    exact: Sequence[int],
    what: str,
    *,
    bound: Global,
    grid: Fraction,
    epsilon: Fraction,
    noise: Noise,
    in_rho: bool = False,
) -> tuple[NoisyInteger, ...]:
    """Every cell of a table with its own noise, empty cells included; `bound` is in the L1 norm, in L2 where `in_rho`.

    Guarantee   epsilon-DP for the whole table; `epsilon`-zCDP where `in_rho`.
    Adjacency   the one `bound` was proved for.
    Theorem     the Laplace mechanism on the integers in the L1 norm, the Gaussian one in L2; no coarser steps are used.
    Proof       proofs/answer/parts.md
    Assumes     the table's length is public; its cells move by at most bound.bound in all, in that norm.
    Keeps back  the exact integers.
    """
    part = plan_table(what, bound=bound, grid=grid, epsilon=epsilon, in_rho=in_rho)
    if in_rho:
        noisy = noise.gaussian_many(list(exact), sensitivity=bound.bound, rho=epsilon)
    else:
        noisy = noise.laplace_many(list(exact), sensitivity=ceil(bound.bound), epsilon=epsilon)
    return tuple(NoisyInteger(part=part, steps=steps) for steps in noisy)


def _shift(bound: Global) -> int:
    return max(0, int(bound.bound).bit_length() - FINE)


Interval = tuple[Fraction, Fraction]
Sampling = Callable[[SampleSize | None], float | None]
"""The variance of an estimate from a simple random sample, given the sample's size; None where that is not enough."""

UNBOUNDED = Fraction(10**30)
"""An end so far off that it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One published number. `interval` covers the privacy noise; `sampling` is the variance a simple random sample would give.

    `sampling` is a function of the sample's size, where that is known, and None where it cannot be told from what was
    released. Without an interval of its own, `interval` gives the public limits. `noise_sd` is None where the scale of the
    noise is confidential. `total` is an interval for sampling and noise that was bought with the estimate. An estimate that
    is derived from two others says how their intervals `combine`, and one that is another in a different form, such as a ratio
    of a share, that its total is `carried` over from there. `size` is what it was divided by, respondents or their
    weight, and outside `limits` it cannot lie. One that is chosen among candidates may be off by half of `grain`, how far they
    lie apart around it.
    """

    value: Fraction
    interval: Callable[[Fraction], Interval]
    noise_sd: float | None
    sampling: Sampling | None = None
    has_interval: bool = True
    total: Callable[[Fraction], Interval] | None = None
    combine: Callable[[Interval, Interval], Interval] | None = None
    carried: "tuple[Estimate, Callable[[float], float]] | None" = None
    size: Fraction | None = None
    limits: tuple[Fraction | None, Fraction | None] = (None, None)
    grain: Fraction = Fraction(0)
    cell: tuple[tuple[str, str], ...] = ()

    def scaled(self, scale: Fraction) -> "Estimate":
        """The same multiplied by a public number, as the estimate of a piece is to speak of the whole survey."""

        def interval(level: Fraction) -> Interval:
            low, high = self.interval(level)
            return low * scale, high * scale

        within, factor = self.sampling, float(scale)
        return replace(
            self,
            value=self.value * scale,
            interval=interval,
            noise_sd=None if self.noise_sd is None else self.noise_sd * factor,
            sampling=None if within is None else lambda size: _times(within(size), factor * factor),
        )


def _times(variance: float | None, factor: float) -> float | None:
    return None if variance is None else variance * factor


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBasis:
    """What the cells of a table are sums of: respondents, or their `weight`. Sampling errors of what is made of cells rest on it.

    `rows` are the respondents that are expected, and `wider` by how much missing answers widen a variance; None where that is
    not known.
    """

    weight: str | None = None
    rows: int | None = None
    wider: float | None = 1.0

    def size(self, known: SampleSize | None) -> SampleSize | None:
        """The sample's size: as known, or as expected."""
        return known or (SampleSize(respondents=self.rows) if self.rows is not None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The estimates of one ask, what was measured for them, and what their intervals mean in words.

    `total_meaning` is said of total intervals that were bought with the estimates, and `counted` of the cells of a table.
    """

    estimates: tuple[Estimate, ...]
    parts: tuple[AnyMeasurement, ...]
    meaning: str
    total_meaning: str = ""
    counted: CellBasis | None = None

    @property
    def epsilon(self) -> Fraction:
        return sum((part.epsilon for part in self.parts), Fraction(0))

    @property
    def rho(self) -> Fraction:
        return sum((part.rho for part in self.parts), Fraction(0))

    def scaled(self, scale: Fraction) -> "Answer":
        """Every estimate multiplied by a public number."""
        if scale == 1:
            return self
        return replace(self, estimates=tuple(each.scaled(scale) for each in self.estimates))


EXACT_WORDS = "covers the privacy noise with at least the stated probability, computed exactly from its law"
RATIO_WORDS = (
    "covers the value that the same respondents would give without privacy noise, with at least the stated "
    "probability; the noise of numerator and count are both in it"
)
RANK_WORDS = "bounds, with at least the stated probability, how many respondents lie between this value and the exact one"
WEIGHT_WORDS = "bounds, with at least the stated probability, what the respondents weigh who lie between this value and the exact one"
SELECTED_WORDS = "holds the exact quantile of the same respondents, to the nearest candidate, with at least the stated probability"
GAPS_WORDS = "; of the same respondents with their missing values filled, and how far filled answers are from true ones is not in it"
DERIVED_WORDS = (
    "holds whenever the intervals of both asks hold, each taken at half the allowed chance of error"
)
COPIES_WORDS = (
    "covers the value of those the sample stands for, if nonresponse depends on what the lines see and the lines are right: "
    "sampling, filling, the uncertainty of the lines and all noise are in it, to first order"
)
