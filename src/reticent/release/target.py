"""Which epsilon would do: the least at which the noise alone has a wanted coefficient of variation."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf

from reticent.answer.parts import Measurement
from reticent.errors import PlanError
from reticent.query.kinds import Correlation, Derived, Mean, Proportion, Quantile, Variance
from reticent.release.plan import Plan, Statistic
from reticent.release.preview import Expectation
from reticent.release.spread import error_of, expected_value, foreseen, is_smooth, size_of
from reticent.release.weights_seen import weighted_error

ASSUMED_HUB = 5
MOST_STEPS = 2**20


def epsilon_for(expectation: Expectation, ask: Statistic, plan: Plan, cv: float) -> Fraction | None:
    """The least epsilon, to three digits, at which the noise alone has the wanted coefficient of variation.

    The expected answer is the ask's own `expect`, or the expected rows for a count. None where the plan expects
    no answer. Where the scale is confidential the busiest donor is assumed to serve `ASSUMED_HUB` recipients.
    """
    value, divisor = expected_value(ask, plan), 1
    if ask.weighted:
        return _weighted(ask, plan, cv * abs(float(ask.expected[0]))) if ask.expected else None
    if isinstance(ask.query, Mean | Proportion | Variance):
        divisor = size_of(ask, plan) or 0
    if not value or not divisor or isinstance(ask.query, Quantile | Correlation | Derived):
        return None
    allowed = cv * abs(float(value)) * divisor
    if plan.partition is not None and ask.expected is not None and divisor == 1:
        allowed *= float(plan.partition.share)  # what is expected speaks of the whole survey
    if is_smooth(ask, plan):
        return _least(lambda epsilon: _assumed_error(ask, plan, epsilon) <= allowed)
    # Public noise is as good as proportional to 1 / epsilon, so one division finds it.
    parts = [part for part in expectation.parts if isinstance(part, Measurement)]
    steps = ask.epsilon * Fraction(error_of(ask, plan, parts) / allowed) * 1000
    return Fraction(-(-steps.numerator // steps.denominator), 1000)


def _weighted(ask: Statistic, plan: Plan, allowed: float) -> Fraction | None:
    """With respondents spread as the totals are."""

    def enough(epsilon: Fraction) -> bool:
        noise = weighted_error(ask, plan, epsilon)
        return noise is not None and noise[0] <= allowed

    return _least(enough) if plan.rows and allowed else None


def _assumed_error(ask: Statistic, plan: Plan, epsilon: Fraction) -> float:
    """The error at another epsilon; without end where no noise can run at it."""
    try:
        parts = foreseen(replace(ask, epsilon=epsilon, bar=Fraction(0)), plan, ASSUMED_HUB)
    except PlanError:
        return inf
    return error_of(ask, plan, parts)


def _least(enough: Callable[[Fraction], bool]) -> Fraction | None:
    """The least thousandth at which the noise is small enough; it falls as epsilon grows. None above 1000."""
    low, high = 0, 1
    while not enough(Fraction(high, 1000)):
        low, high = high, 2 * high
        if high > MOST_STEPS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(Fraction(middle, 1000)) else (middle, high)
    return Fraction(high, 1000)
