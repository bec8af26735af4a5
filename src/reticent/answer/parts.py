"""Noisy measurements, the three ways a number leaves (one integer, a table of integers, a chosen candidate), and answers.

An answer is made of estimates with intervals, and of the measurements they came from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, expm1, sqrt

from reticent.noise.laplace import float_up
from reticent.noise.source import Noise
from reticent.refine.quantiles import laplace_half_width
from reticent.sensitivity.bounds import FINE, Global


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a part of an answer cost and how noisy it is: from public numbers, or numbers already released."""

    what: str
    epsilon: Fraction
    bound: Fraction
    unit: Fraction
    scale: Fraction
    is_coarse: bool = False
    mechanism: str = "discrete Laplace"
    theorem: str = "Laplace mechanism on the integers"
    proof: str = "proofs/answer/parts.md"

    @property
    def sd(self) -> float:
        """Standard deviation of the noise, in the answer's own unit: sqrt(2q)/(1-q) steps, q = e^(-1/scale)."""
        step = 1 / float(self.scale)
        return sqrt(2 * exp(-step)) / -expm1(-step) * float(self.unit)

    @property
    def blur(self) -> Fraction:
        """Half a step: what counting in steps of `unit` can add to a distance."""
        return self.unit / 2

    def half_width(self, level: Fraction) -> Fraction:
        """The noise stays within this distance with probability at least `level`, exactly computed."""
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
    def sd(self) -> None:
        """Confidential."""
        return None


AnyMeasurement = Measurement | HiddenScale


def is_as_planned(run: Sequence[AnyMeasurement], planned: Sequence[AnyMeasurement]) -> bool:
    """Whether what was measured is what was planned: the same sums, with the same noise, at the same price.

    A bound may be smaller than planned: that of squares is planned at its largest, and known once a mean is released.
    """

    def spent(parts: Sequence[AnyMeasurement]) -> list[tuple[str, str, Fraction, str]]:
        return [(part.what, part.mechanism, part.epsilon, part.proof) for part in parts]

    return spent(run) == spent(planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyInteger:
    """An integer with its noise, and the part that describes it."""

    part: Measurement
    steps: int

    @property
    def estimate(self) -> Fraction:
        return self.steps * self.part.unit


def plan_part(what: str, *, bound: Global, grid: Fraction, epsilon: Fraction) -> Measurement:
    """The part as it will be: the step size and the noise scale, from public numbers alone."""
    shift = _shift(bound)
    steps = ceil(bound.bound / 2**shift)
    scale = Fraction(float_up(steps / epsilon))
    return Measurement(
        what=what,
        epsilon=epsilon,
        bound=bound.bound * grid,
        unit=grid * 2**shift,
        scale=scale,
        is_coarse=shift > 0,
    )


def plan_table(what: str, *, bound: Global, grid: Fraction, epsilon: Fraction) -> Measurement:
    """The part a table will be: the noise of every cell, never in coarser steps."""
    scale = Fraction(float_up(bound.bound / epsilon))
    return Measurement(what=what, epsilon=epsilon, bound=bound.bound * grid, unit=grid, scale=scale)


def measure(
    exact: int, what: str, *, bound: Global, grid: Fraction, epsilon: Fraction, noise: Noise
) -> NoisyInteger:
    """One integer of grid steps, rounded to a public coarser step where its bound is large, plus noise.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `bound` was proved for.
    Theorem     the Laplace mechanism on the integers; |floor(x + 1/2) - floor(y + 1/2)| <= ceil(|x - y|).
    Proof       proofs/answer/parts.md
    Assumes     `exact` moves by at most bound.bound between neighbours; exact arithmetic.
    Keeps back  the exact integer.
    """
    shift = _shift(bound)
    rounded = (exact + (1 << shift >> 1)) >> shift
    steps = noise.laplace(rounded, sensitivity=ceil(bound.bound / 2**shift), epsilon=epsilon)
    return NoisyInteger(part=plan_part(what, bound=bound, grid=grid, epsilon=epsilon), steps=steps)


def measure_table(
    exact: Sequence[int], what: str, *, bound: Global, grid: Fraction, epsilon: Fraction, noise: Noise
) -> tuple[NoisyInteger, ...]:
    """Every cell of a table with its own noise, empty cells included; `bound` is in the L1 norm.

    Guarantee   epsilon-DP for the whole table.
    Adjacency   the one `bound` was proved for.
    Theorem     the Laplace mechanism on the integers in the L1 norm; no coarser steps are used.
    Proof       proofs/answer/parts.md
    Assumes     the table's length is public; its cells move by at most bound.bound in all.
    Keeps back  the exact integers.
    """
    part = plan_table(what, bound=bound, grid=grid, epsilon=epsilon)
    noisy = noise.laplace_many(list(exact), sensitivity=int(bound.bound), epsilon=epsilon)
    return tuple(NoisyInteger(part=part, steps=steps) for steps in noisy)


def _shift(bound: Global) -> int:
    return max(0, int(bound.bound).bit_length() - FINE)


Interval = tuple[Fraction, Fraction]

UNBOUNDED = Fraction(10**30)
"""An end so far off that it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One published number. `interval` covers the privacy noise; `sampling` is the variance of being a sample.

    `sampling` is a function of the design effect, or None where it cannot be told from what was released.
    Without an interval of its own, `interval` gives the public limits. `noise_sd` is None where the scale of the
    noise is confidential.
    """

    value: Fraction
    interval: Callable[[Fraction], Interval]
    noise_sd: float | None
    sampling: Callable[[float], float] | None = None
    has_interval: bool = True
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
            sampling=None if within is None else lambda effect: within(effect) * factor * factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The estimates of one ask, what was measured for them, and what the interval means in words."""

    estimates: tuple[Estimate, ...]
    parts: tuple[AnyMeasurement, ...]
    meaning: str

    @property
    def epsilon(self) -> Fraction:
        return sum((part.epsilon for part in self.parts), Fraction(0))

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
SELECTED_WORDS = "holds the exact quantile of the same respondents, to the nearest candidate, with at least the stated probability"
DERIVED_WORDS = (
    "holds whenever the intervals of both asks hold, each taken at half the allowed chance of error"
)
COPIES_WORDS = (
    "covers the value of those the sample stands for, if silence depends on what the lines see and the lines are right: "
    "sampling, filling, the uncertainty of the lines and all noise are in it, to first order"
)
