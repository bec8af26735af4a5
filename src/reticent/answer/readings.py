"""Readings: a sum with its noise, Laplace of public scale or smooth noise whose scale was read off the rows.

A quotient of two readings is centre + (noisy centred sum) / (noisy count), whatever kind of noise each has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot

from reticent.answer.context import Context, noisy
from reticent.answer.parts import AnyMeasurement, Interval
from reticent.answer.shares import Shares, SumSpec, is_published, smooth_parts
from reticent.refine.pivot import HiddenNoise, LogScale, NoisyValue, Pivot, Told, pivot, quotient_interval
from reticent.sensitivity.bounds import Smooth

ANY_LEVEL = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A noisy sum, the parts it cost, and what may be told of its noise: None where its scale is confidential."""

    estimate: Fraction
    parts: tuple[AnyMeasurement, ...]
    told: Told | None

    @property
    def sd(self) -> float | None:
        """Standard deviation of the noise; not told where its scale is confidential."""
        return self.parts[0].sd


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An ask's epsilon and the epsilon of its error bar, shared out: the bar to smooth tasks alone, as their shares."""

    epsilon: Fraction
    bar: Fraction
    smooth: Fraction

    def read(self, task: SumSpec, share: Fraction, exact: int, context: Context) -> Reading:
        """The task measured with its share."""
        if not task.is_smooth:
            return read_plain(task, exact, epsilon=self.epsilon * share, context=context)
        bar = self.bar * share / self.smooth
        return read_smooth(task, exact, epsilon=self.epsilon * share, bar=bar, context=context)


def sums_budget(epsilon: Fraction, bar: Fraction, shares: Shares) -> Budget:
    """The budgets of an ask's tasks."""
    smooth = sum((share for task, share in shares if task.is_smooth), Fraction(0))
    return Budget(epsilon=epsilon, bar=bar, smooth=smooth)


def read_plain(task: SumSpec, exact: int, *, epsilon: Fraction, context: Context) -> Reading:
    """A sum that no donor's answer enters, or those of capped donors: see `Context.measure`."""
    measured = context.measure(exact, task.what, bound=task.bound, grid=task.grid, epsilon=epsilon)
    return Reading(estimate=measured.estimate, parts=(measured.part,), told=noisy(measured))


def read_smooth(task: SumSpec, exact: int, *, epsilon: Fraction, bar: Fraction, context: Context) -> Reading:
    """A sum that donors' answers enter, with noise scaled by its smooth bound; with `bar`, the log scale too.

    Guarantee   (epsilon + bar)-DP for one call.
    Adjacency   context.neighbours.
    Theorem     THEORY 2.2, 3.3 and 3.5a; group privacy over the records of a respondent.
    Proof       proofs/answer/imputed.md
    Assumes     the tallies hold the exact sum and the task's rings; exact arithmetic.
    Keeps back  the exact sum, the smooth bound and its logarithm.
    """
    if context.in_rho:
        raise ValueError("noise scaled by a smooth bound is pure, and paid in epsilon")
    # Neighbours are `steps` records apart, so each record may have that part of epsilon.
    each = epsilon / context.neighbours.steps
    smooth = context.book.bound(task.moves, epsilon=each)
    parts = smooth_parts(task, epsilon, bar, neighbours=context.neighbours, repair=context.repair)
    if is_published(task, context.repair):
        steps = context.noise.cauchy(Fraction(exact), sensitivity=smooth, epsilon=each, grid=Fraction(1))
        return Reading(estimate=steps * task.grid, parts=parts, told=None)
    steps = context.noise.lomax(Fraction(exact), sensitivity=smooth, epsilon=each, grid=Fraction(1))
    value = steps * task.grid
    if bar:
        told: Told | None = _bought(task, smooth, value, each=each, bar=bar, context=context)
    else:
        told = _lent(task, smooth.beta, value, each=each, context=context)
    return Reading(estimate=value, parts=parts, told=told)


def _bought(
    task: SumSpec, smooth: Smooth, value: Fraction, *, each: Fraction, bar: Fraction, context: Context
) -> HiddenNoise:
    """The log scale, measured for `bar` and kept for later asks."""
    steps = context.neighbours.steps
    law = pivot(epsilon=each, beta=smooth.beta, epsilon_scale=bar, level=ANY_LEVEL, steps=steps)
    released = context.noise.laplace(law.height(smooth), sensitivity=int(law.sensitivity.bound), epsilon=bar)
    height = LogScale(number=len(context.heights), pivot=law, moves=task.moves, released=released)
    context.heights.append(height)
    return HiddenNoise(value=float(value), pivot=law, height=height, times=Fraction(1), unit=task.grid)


def _lent(
    task: SumSpec, beta: Fraction, value: Fraction, *, each: Fraction, context: Context
) -> HiddenNoise | None:
    """What an earlier ask's log scale tells of this one: of those that fit, the beta nearest below, then the first."""
    height = _nearest(task, beta, context.heights)
    times = height.lends(task.moves, beta=beta) if height else None
    if height is None or times is None:
        return None
    law = Pivot(
        epsilon=each,
        beta=beta,
        epsilon_scale=height.pivot.epsilon_scale,
        level=ANY_LEVEL,
        grid=height.pivot.grid,
        steps=height.pivot.steps,
        lent=height.pivot.smooth_in,
    )
    return HiddenNoise(value=float(value), pivot=law, height=height, times=times, unit=task.grid)


def _nearest(task: SumSpec, beta: Fraction, heights: Sequence[LogScale]) -> LogScale | None:
    fitting = [height for height in heights if height.lends(task.moves, beta=beta) is not None]
    return max(fitting, key=lambda height: height.pivot.smooth_in, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """value = centre + top / bottom, between public limits. `bottom` is None where the size is public."""

    top: Reading
    bottom: Reading | None
    size: int | None
    centre: Fraction
    low: Fraction
    high: Fraction

    @property
    def count(self) -> Fraction:
        """The size used as denominator: public, or measured and at least 1."""
        if self.bottom is None:
            return Fraction(self.size or 1)
        return max(Fraction(1), self.bottom.estimate)

    @property
    def value(self) -> Fraction:
        return min(self.high, max(self.low, self.centre + self.top.estimate / self.count))

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        return (*(self.bottom.parts if self.bottom else ()), *self.top.parts)

    @property
    def has_interval(self) -> bool:
        """Whether enough is told of both noises."""
        return self.top.told is not None and (self.bottom is None or self.bottom.told is not None)

    def interval(self, level: Fraction) -> Interval:
        """By Fieller's idea; the public limits where too little is told."""
        bottom = count_noise(self.bottom, self.count)
        if self.top.told is None or bottom is None:
            return self.low, self.high
        low, high = float(self.low - self.centre), float(self.high - self.centre)
        left, right = quotient_interval(self.top.told, bottom, level=float(level), low=low, high=high)
        return self.centre + Fraction(left), self.centre + Fraction(right)

    @property
    def sd(self) -> float | None:
        """First-order standard deviation of the noise; not told where a scale is confidential."""
        top, below = self.top.sd, self.bottom.sd if self.bottom else 0.0
        if top is None or below is None:
            return None
        return hypot(top, float(abs(self.value - self.centre)) * below) / float(self.count)

    def off(self, level: Fraction) -> Fraction:
        """How far the exact value may lie from the one that was released."""
        low, high = self.interval(level)
        return max(high - self.value, self.value - low)


def count_noise(bottom: Reading | None, count: Fraction) -> Told | None:
    """A count as a denominator: without noise where it is public."""
    return NoisyValue(value=float(count)) if bottom is None else bottom.told
