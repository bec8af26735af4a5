"""The route of a statistic weighted to known totals, and the noise to expect if respondents are spread as the totals are.

How many respondents share a bin is confidential, so a preview cannot know the noise. It can say what follows from
an assumption: the plan's expected rows, spread as the population is, with equal base weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, sqrt

import numpy as np

from reticent.answer.context import Context
from reticent.answer.expect import AS_TOTALS, UNKNOWN, Expected, least_epsilon
from reticent.answer.parts import Answer, AnyMeasurement
from reticent.answer.poststrata import Law, Weighted
from reticent.answer.statistic import HEAVY, LAPLACE, PIVOT, WEIGHTS, BaseRoute, Ground, Statistic
from reticent.answer.weighted import (
    LAWS,
    Weightable,
    WeightedSum,
    answer_weighted,
    pivot_of,
    sheets,
    weighted_parts,
    weighted_wants,
)
from reticent.answer.weighting import Choice, Weighting
from reticent.engine.wants import Aggregate
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Lomax, Student
from reticent.prepare.strata import Crossing, Strategy
from reticent.query.base import CodedSum, Query
from reticent.refine.collapse import collapse
from reticent.refine.quantiles import half_width
from reticent.sensitivity.bounds import Neighbours
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


def weighted_error(
    ask: Statistic,
    shape: Weightable,
    weighting: Weighting,
    neighbours: Neighbours,
    *,
    size: Fraction | None = None,
) -> tuple[float, float] | None:
    """Standard deviation and half-width of the noise under the assumption; None where a quotient's size is not known.

    `size` is the population that it is expected to be about.
    """
    strategy, measured = assumed_strategy(weighting), sheets(shape)
    parts = [_noise(sheet, ask, weighting, strategy, neighbours) for sheet in measured]
    if isinstance(shape, CodedSum):
        return parts[0]
    size = size or _size(ask, shape.size, strategy)
    if size is None:
        return None
    far = _distance(ask, measured[-1], shape.centre) if len(parts) > 1 else 0.0
    sd, margin = (hypot(parts[-1][i], far * parts[0][i]) / float(size) for i in (0, 1))
    return sd, margin


def _noise(
    sheet: WeightedSum, ask: Statistic, weighting: Weighting, strategy: Strategy, neighbours: Neighbours
) -> tuple[float, float]:
    each = ask.epsilon * sheet.share / neighbours.steps
    made = sheet.weighted(strategy, each, weighting)
    largest = float(closed_form(strategy, _spread(strategy, weighting.rows), beta=made.beta))
    smooth = largest * float(numeric_reach(made.low, made.high)) + float(made.grid)
    if ask.bar:
        law = pivot_of(each, ask.bar * sheet.share, weighting, neighbours)
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


def _size(ask: Statistic, public: int | None, strategy: Strategy) -> Fraction | None:
    """The population that a quotient divides by: public, or all where there is no condition."""
    if public is not None:
        return Fraction(public)
    return None if "where" in ask.written else sum(strategy.totals, Fraction(0))


def _distance(ask: Statistic, top: WeightedSum, centre: Fraction) -> float:
    """|answer - centre|: expected, or at most."""
    if ask.expected is None:
        return float(max(abs(top.low), abs(top.high)))
    return float(abs(ask.expected.value - centre))


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRoute(BaseRoute[Query]):
    """A sum or mean weighted to known totals: noise scaled by the largest weight, an interval if it is bought."""

    shape: Weightable
    weighting: Weighting

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return weighted_wants(self.shape, self.weighting)

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        ask, neighbours = self.statistic, self.setting.neighbours
        return weighted_parts(self.shape, ask.epsilon, ask.bar, self.weighting, neighbours=neighbours)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        told = (PIVOT, LAPLACE) if self.statistic.bar else ()
        return (*WEIGHTS, HEAVY[LAWS[self.weighting.law]], *told)

    @property
    def no_bar(self) -> str:
        """The scale of its noise is confidential, so an interval is bought; there is one for Lomax noise."""
        is_proved = self.weighting.law is Law.LOMAX
        return "" if is_proved else "intervals are proved for Lomax noise; take it, or no interval"

    def unit(self, units: Mapping[str, str]) -> str:
        """Weighted respondents stand for people."""
        return "people" if self.query.counts_respondents else self.query.unit(self.setting.schema, units)

    def expect(self) -> Expected:
        """As if respondents were spread as the totals are."""
        noise = self._error(self.statistic) if self.setting.rows else None
        if noise is None:
            return Expected(margin=None, how=UNKNOWN)
        return Expected(margin=Fraction(noise[1]), how=AS_TOTALS)

    def _error(self, ask: Statistic) -> tuple[float, float] | None:
        expected, held = ask.expected, self.setting
        size = expected.weight if expected is not None else None
        if expected is not None and expected.size is not None and held.rows:
            whole = sum(self.weighting.candidates.strategies[0].totals, Fraction(0))
            size = expected.size * whole / held.rows
        return weighted_error(ask, self.shape, self.weighting, held.neighbours, size=size)

    @property
    def expected_value(self) -> Fraction | None:
        """The statistic's own: what the expected rows weigh, the totals say, and not who is counted."""
        return self.statistic.expected.value if self.statistic.expected else None

    def epsilon_for(self, cv: float) -> Fraction | None:
        """With respondents spread as the totals are."""
        if self.statistic.expected is None:
            return None
        allowed = cv * abs(float(self.statistic.expected.value))

        def enough(epsilon: Fraction) -> bool:
            noise = self._error(replace(self.statistic, epsilon=epsilon, bar=Fraction(0)))
            return noise is not None and noise[0] <= allowed

        return least_epsilon(enough) if self.setting.rows and allowed else None

    @property
    def scale(self) -> Fraction:
        """It speaks of the whole population as it is."""
        return Fraction(1)

    def measured(self, context: Context) -> Answer:
        if context.weighed is None:
            raise ValueError("bins are found before a statistic is weighted to them")
        return answer_weighted(
            self.shape,
            self.statistic.epsilon,
            self.statistic.bar,
            context,
            weighting=self.weighting,
            weighed=context.weighed,
        )
