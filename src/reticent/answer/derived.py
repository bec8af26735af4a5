"""Differences and ratios of answers that are already released: post-processing, free of charge."""

from collections.abc import Callable
from fractions import Fraction
from math import hypot

from reticent.answer.context import Context
from reticent.answer.expect import DERIVED, Expected
from reticent.answer.parts import DERIVED_WORDS, UNBOUNDED, Answer, AnyMeasurement, Estimate, Interval
from reticent.answer.statistic import BaseRoute, Ground
from reticent.query.kinds import Derived


def answer_derived(query: Derived, first: Answer, second: Answer) -> Answer:
    """The derived answer.

    Guarantee   no cost of its own: it is a function of released numbers.
    Adjacency   that of the two answers.
    Theorem     post-processing.
    Proof       proofs/answer/derived.md
    Assumes     both answers carry their own claims.
    Keeps back  nothing.
    """
    (left,), (right,) = first.estimates, second.estimates
    if query.kind == "difference":
        value, combine, sd = left.value - right.value, _difference, _difference_sd(left, right)
    else:
        value, combine, sd = _quotient(left.value, right.value), _ratio, _ratio_sd(left, right)
    estimate = Estimate(
        value=value,
        interval=_interval(left, right, combine),
        noise_sd=sd,
        has_interval=_is_told(left, right),
        combine=combine,
    )
    return Answer(estimates=(estimate,), parts=(), meaning=DERIVED_WORDS)


def _interval(
    left: Estimate, right: Estimate, combine: Callable[[Interval, Interval], Interval]
) -> Callable[[Fraction], Interval]:
    def interval(level: Fraction) -> Interval:
        each = 1 - (1 - level) / 2
        a, b = left.interval(each), right.interval(each)
        if max(map(abs, (*a, *b))) >= UNBOUNDED:
            return -UNBOUNDED, UNBOUNDED
        return combine(a, b)

    return interval


def _difference(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _ratio(a: Interval, b: Interval) -> Interval:
    """All quotients of the two intervals; without limits (so wide that it says nothing) where b reaches 0."""
    if b[0] <= 0 <= b[1]:
        return -UNBOUNDED, UNBOUNDED
    corners = [x / y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(top: Fraction, bottom: Fraction) -> Fraction:
    return top / bottom if bottom else Fraction(0)


def _is_told(left: Estimate, right: Estimate) -> bool:
    """Whether there is anything to combine: not where a confidential scale left one of the two without limits."""
    return all(each.has_interval or each.noise_sd is not None for each in (left, right))


def _difference_sd(left: Estimate, right: Estimate) -> float | None:
    if left.noise_sd is None or right.noise_sd is None:
        return None
    return hypot(left.noise_sd, right.noise_sd)


def _ratio_sd(left: Estimate, right: Estimate) -> float | None:
    if left.noise_sd is None or right.noise_sd is None:
        return None
    if not right.value:
        return float("nan")
    ratio = float(left.value / right.value)
    return hypot(left.noise_sd, ratio * right.noise_sd) / abs(float(right.value))


class DerivedRoute(BaseRoute[Derived]):
    """A difference or ratio of two answers above: nothing is measured, and nothing paid."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        return ()

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return ()

    @property
    def no_bar(self) -> str:
        return "is not needed: this estimate follows from the statistics it uses, so its interval is free; remove it"

    def expect(self) -> Expected:
        return Expected(margin=None, how=DERIVED)

    def measured(self, context: Context) -> Answer:
        first, second = (context.before[name] for name in self.query.of)
        return answer_derived(self.query, first, second)
