"""A quotient of two readings: centre + (noisy centred sum) / (noisy count), whatever kind of noise each has."""

from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.base import Interval
from reticent.answer.parts import AnyMeasurement
from reticent.answer.readings import Reading
from reticent.refine.ratio import NoisyValue, Told, quotient_interval


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
        bottom = told_count(self.bottom, self.count)
        if self.top.told is None or bottom is None:
            return self.low, self.high
        low, high = float(self.low - self.centre), float(self.high - self.centre)
        left, right = quotient_interval(self.top.told, bottom, level=float(level), low=low, high=high)
        return self.centre + Fraction(left), self.centre + Fraction(right)

    def off(self, level: Fraction) -> Fraction:
        """How far the exact value may lie from the one that was released."""
        low, high = self.interval(level)
        return max(high - self.value, self.value - low)


def told_count(bottom: Reading | None, count: Fraction) -> Told | None:
    """A count as a denominator: without noise where it is public."""
    return NoisyValue(value=float(count)) if bottom is None else bottom.told
