"""The noise of an ask weighted to known totals, as it would be if respondents were spread over the bins as the totals are.

How many respondents share a bin is confidential, so a preview cannot know the noise. It can say what follows from
an assumption: the plan's expected rows, spread as the population is, with equal base weights.
"""

from dataclasses import replace
from fractions import Fraction
from math import hypot, sqrt

import numpy as np

from reticent.answer.poststrata import Law, Weighted
from reticent.answer.weighted import Asked, WeightedSum, pivot_of, sheets
from reticent.answer.weighting import Choice, Weighting
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Lomax, Student
from reticent.plan.asks import Statistic
from reticent.plan.plan import Plan
from reticent.prepare.strata import Crossing, Strategy
from reticent.query.kinds import Mean, Proportion
from reticent.refine.collapse import collapse
from reticent.refine.quantiles import half_width
from reticent.sensitivity.poststrata import closed_form, numeric_reach


def assumed_strategy(weighting: Weighting) -> Strategy:
    """The strategy that would score best, or the bins that would be put together."""
    strategies = weighting.candidates.strategies
    if weighting.crossing is not None:
        return _one_after_another(weighting.crossing, weighting.rows)
    if weighting.choice is Choice.COUNTS and weighting.order is not None:
        counts = _spread(strategies[0], weighting.rows).tolist()
        return collapse(
            strategies[0], weighting.order, counts, beta=weighting.least_beta, epsilon=weighting.epsilon
        )
    return max(strategies, key=lambda each: _score(each, weighting.rows))


def _score(strategy: Strategy, rows: int) -> Fraction:
    return strategy.size / _largest(strategy, rows)


def _one_after_another(crossing: Crossing, rows: int) -> Strategy:
    """The best way of every attribute, given those before it."""
    chosen: list[int] = []
    for _ in crossing.attributes:
        scores = [_score(each, rows) for each in crossing.candidates(chosen).strategies]
        chosen.append(scores.index(max(scores)))
    return crossing.strategy(chosen)


def _spread(strategy: Strategy, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    whole = sum(strategy.totals)
    return np.array([int(rows * total / whole) for total in strategy.totals], np.int64)


def _largest(strategy: Strategy, rows: int) -> Fraction:
    heads: list[int] = np.maximum(_spread(strategy, rows), 1).tolist()
    return max(total / n for total, n in zip(strategy.totals, heads, strict=True))


def weighted_error(ask: Statistic, plan: Plan, epsilon: Fraction | None = None) -> tuple[float, float] | None:
    """Standard deviation and half-width of the noise under the assumption; None where a quotient's size is not known."""
    weighting, query = plan.weight, ask.query
    if weighting is None or not isinstance(query, Asked):
        return None
    strategy = assumed_strategy(weighting)
    asked = ask if epsilon is None else replace(ask, epsilon=epsilon, bar=Fraction(0))
    parts = [_noise(sheet, asked, plan, weighting, strategy) for sheet in sheets(query, plan.schema)]
    if not isinstance(query, Mean | Proportion):
        return parts[0]
    size = _size(ask, strategy)
    if size is None:
        return None
    far = _distance(ask, sheets(query, plan.schema)[-1], plan) if len(parts) > 1 else 0.0
    sd, margin = (hypot(parts[-1][i], far * parts[0][i]) / float(size) for i in (0, 1))
    return sd, margin


def _noise(
    sheet: WeightedSum, ask: Statistic, plan: Plan, weighting: Weighting, strategy: Strategy
) -> tuple[float, float]:
    each = ask.epsilon * sheet.share / plan.neighbours.steps
    made = sheet.weighted(strategy, each, weighting)
    largest = float(closed_form(strategy, _spread(strategy, weighting.rows), beta=made.beta))
    smooth = largest * float(numeric_reach(made.low, made.high)) + float(made.grid)
    if ask.bar:
        law = pivot_of(each, ask.bar * sheet.share, weighting, plan.neighbours)
        width = smooth * replace(law, level=ask.level).factor()
    else:
        width = smooth / float(_a(made)) * float(half_width(_family(made), level=ask.level))
    return smooth / float(_a(made)) * sqrt(float(_family(made).variance())), width


def _family(made: Weighted) -> Lomax | Student | Cauchy:
    match made.law:
        case Law.LOMAX:
            return Lomax(int(made.epsilon / made.beta))
        case Law.STUDENT:
            return Student()
        case Law.CAUCHY:
            return Cauchy()


def _a(made: Weighted) -> Fraction:
    match made.law:
        case Law.LOMAX:
            return calibrate.lomax(epsilon=made.epsilon, beta=made.beta)
        case Law.STUDENT:
            return calibrate.student4(epsilon=made.epsilon, beta=made.beta)
        case Law.CAUCHY:
            return calibrate.cauchy(epsilon=made.epsilon, beta=made.beta, gamma=Fraction(4))


def _size(ask: Statistic, strategy: Strategy) -> Fraction | None:
    """The population that a quotient divides by: expected, public, or all where there is no condition."""
    if ask.expected is not None and ask.expected[1] is not None:
        return Fraction(ask.expected[1])
    if isinstance(ask.query, Mean | Proportion):
        if ask.query.size is not None:
            return Fraction(ask.query.size)
        return None if "where" in ask.written else sum(strategy.totals, Fraction(0))
    return None


def _distance(ask: Statistic, top: WeightedSum, plan: Plan) -> float:
    """|answer - centre|: expected, or at most."""
    if ask.expected is None:
        return float(max(abs(top.low), abs(top.high)))
    if isinstance(ask.query, Mean):
        column = ask.query.number(plan.schema)
        return float(abs(ask.expected[0] - (column.lower - top.low)))
    return float(abs(ask.expected[0] - Fraction(1, 2)))
