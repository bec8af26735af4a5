"""Correlation: a co-moment over the root of two variances, about released means. With or without donors."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, hypot, isqrt, sqrt

from reticent.answer.capped import NO_BAR
from reticent.answer.context import Context, completions, rests_on_caps
from reticent.answer.donors import (
    NO_PUBLISHED,
    answer_of,
    check_budget_with_donors,
    donor_grounds,
    is_published,
    parts_with_donors,
)
from reticent.answer.expect import OPEN, Expected
from reticent.answer.parts import Answer, AnyMeasurement, Estimate, Interval
from reticent.answer.readings import Quotient, Reading, count_noise, sums_budget
from reticent.answer.shares import Tasks, planned
from reticent.answer.statistic import (
    CAPPED,
    FREE,
    GAUSS,
    LAPLACE,
    LINEAR,
    NO_RHO,
    BaseRoute,
    Ground,
    answered,
)
from reticent.engine.wants import Aggregate
from reticent.query import filled
from reticent.query.base import centre_code
from reticent.query.kinds import Correlation
from reticent.refine.pivot import quotient_interval
from reticent.schema import Number

CORRELATION_WORDS = (
    "covers the correlation that the same respondents would give without privacy noise, with at least the stated "
    "probability: it holds whenever five intervals do, of two means, two variances and a co-moment"
)
DIGITS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class CoMoments:
    """What a correlation is made of: two means, squares about each, and products about both."""

    means: tuple[Quotient, Quotient]
    squares: tuple[Reading, Reading]
    products: Reading
    columns: tuple[Number, Number]

    @property
    def readings(self) -> tuple[Reading, ...]:
        first, second = self.means
        count = (first.bottom,) if first.bottom else ()
        return (*count, first.top, second.top, *self.squares, self.products)

    @property
    def value(self) -> Fraction:
        """Products over the root of the squares, cut to [-1, 1]; 0 where the noise leaves no squares."""
        below = self.squares[0].estimate * self.squares[1].estimate
        if min(each.estimate for each in self.squares) <= 0:
            return Fraction(0)
        above = self.products.estimate
        size = Fraction(isqrt(floor(DIGITS**2 * above * above / below)), DIGITS)
        return max(Fraction(-1), min(Fraction(1), size if above > 0 else -size))

    @property
    def sd(self) -> float | None:
        """First-order standard deviation of the noise; not told where a scale is confidential."""
        found = [reading.parts[0].sd for reading in (*self.squares, self.products)]
        if any(sd is None for sd in found):
            return None
        (a, b, c), r = (float(sd or 0) for sd in found), float(self.value)
        first, second = (float(each.estimate) for each in self.squares)
        if first <= 0 or second <= 0:
            return float("nan")
        return hypot(c / sqrt(first * second), r * a / (2 * first), r * b / (2 * second))


def answer_correlation(query: Correlation, epsilon: Fraction, bar: Fraction, context: Context) -> Answer:
    """The noisy correlation.

    Guarantee   (epsilon + bar)-DP for one call; the bar is used only where donors' answers enter.
    Adjacency   context.neighbours.
    Theorem     `read_plain` and `read_smooth` for each of its sums; budgets add.
    Proof       proofs/answer/correlation.md
    Assumes     tallies of `reticent.query.filled.wants`; a public size is a constant of the plan; exact arithmetic.
    Keeps back  the exact moments, and every smooth bound.
    """
    moments = _measured(query, epsilon, bar, context)
    parts = tuple(part for reading in moments.readings for part in reading.parts)
    is_told = all(reading.told is not None for reading in moments.readings)
    interval = _interval(moments)
    if moments.sd is None or rests_on_caps(query, context.schema, context.repair):
        return answer_of(moments.value, interval, is_told, parts, moments.sd)
    estimate = Estimate(value=moments.value, interval=interval, noise_sd=moments.sd)
    return Answer(estimates=(estimate,), parts=parts, meaning=CORRELATION_WORDS)


def _measured(query: Correlation, epsilon: Fraction, bar: Fraction, context: Context) -> CoMoments:
    """Count, two centred sums, squares about either mean, and products about both, in this order."""
    schema = context.schema
    shares = planned(query, schema, context.neighbours, context.repair)
    budget, tasks = (
        sums_budget(epsilon, bar, shares),
        Tasks(query, schema, context.neighbours, context.repair),
    )
    powers = ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
    n, sy, sz, syy, szz, syz = (context.tallies.statistics[query.moment(schema, *each)] for each in powers)
    bottom = budget.read(*shares[0], n, context) if query.size is None else None
    y, z = query.numbers(schema)
    first, second = (
        _mean(
            query,
            column,
            centre,
            bottom,
            budget.read(*share, 2 * s - centre_code(column, centre) * n, context),
        )
        for column, centre, share, s in zip((y, z), query.centres, shares[-5:-3], (sy, sz), strict=True)
    )
    a, b = (floor(m.value / column.grid + Fraction(1, 2)) for m, column in ((first, y), (second, z)))
    squares = tuple(
        budget.read(tasks.squares_of(column, about), shares[-2][1], exact, context)
        for column, about, exact in (
            (y, a, syy - 2 * a * sy + a * a * n),
            (z, b, szz - 2 * b * sz + b * b * n),
        )
    )
    exact = syz - a * sz - b * sy + a * b * n
    products = budget.read(tasks.products(y, z, (a, b)), shares[-1][1], exact, context)
    return CoMoments(
        means=(first, second), squares=(squares[0], squares[1]), products=products, columns=(y, z)
    )


def _mean(
    query: Correlation, column: Number, centre: Fraction | None, bottom: Reading | None, top: Reading
) -> Quotient:
    return Quotient(
        top=top,
        bottom=bottom,
        size=query.size,
        centre=centre_code(column, centre) * column.grid / 2,
        low=column.lower,
        high=column.upper,
    )


def _interval(moments: CoMoments) -> Callable[[Fraction], Interval]:
    """From five intervals, each at a fifth of the allowed chance of error."""
    count = count_noise(moments.means[0].bottom, moments.means[0].count)
    spans = [float(column.upper - column.lower) for column in moments.columns]
    everything = Fraction(-1), Fraction(1)

    def interval(level: Fraction) -> Interval:
        tolds = [reading.told for reading in (*moments.squares, moments.products)]
        y, z, product = tolds
        if count is None or y is None or z is None or product is None:
            return everything
        if not all(mean.has_interval for mean in moments.means):
            return everything
        each = 1 - (1 - level) / 5
        # Taken about released means and not the exact ones: squares are too large by off^2, products by off off'.
        off = [
            float(mean.off(each) + column.grid / 2)
            for mean, column in zip(moments.means, moments.columns, strict=True)
        ]
        variances = [
            quotient_interval(told, count, level=float(each), low=0.0, high=span**2)
            for told, span in zip((y, z), spans, strict=True)
        ]
        most = spans[0] * spans[1]
        low, high = quotient_interval(product, count, level=float(each), low=-most, high=most)
        slack = off[0] * off[1]
        least = [max(0.0, small - far * far) for (small, _), far in zip(variances, off, strict=True)]
        below = sqrt(least[0] * least[1]), sqrt(variances[0][1] * variances[1][1])
        return Fraction(_quotient(low - slack, below, -1.0)), Fraction(_quotient(high + slack, below, 1.0))

    return interval


def _quotient(above: float, below: tuple[float, float], end: float) -> float:
    """The end of above / root, root anywhere in `below`, cut to [-1, 1]; the farther root when it turns inwards."""
    root = below[0] if above * end > 0 else below[1]
    return max(-1.0, min(1.0, above / root)) if root > 0 else end


class CorrelationRoute(BaseRoute[Correlation]):
    """A correlation, with donors' answers or without: the same sums, each with the noise that its moves need."""

    __slots__ = ()

    @property
    def is_filled(self) -> bool:
        """Whether answers of nearest donors enter it."""
        return filled.uses_smooth(self.query, self.setting.schema, self.setting.repair)

    @property
    def is_capped(self) -> bool:
        """Whether those of capped donors do."""
        return rests_on_caps(self.query, self.setting.schema, self.setting.repair)

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return filled.wants(self.query, self.setting.schema, self.setting.repair)

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        return parts_with_donors(self.query, self.statistic, self.setting)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        noise = GAUSS if self.statistic.in_rho else LAPLACE
        own = (answered("ratio"), answered("correlation"), LINEAR, noise)
        if self.is_capped:
            return (*own, *CAPPED)
        bar = self.statistic.bar
        return (*own, *donor_grounds(self.query, self.setting, bar)) if self.is_filled else own

    @property
    def no_rho(self) -> str:
        return NO_RHO if self.is_filled else ""

    @property
    def no_bar(self) -> str:
        if not self.is_filled:
            return NO_BAR if self.is_capped else FREE
        return NO_PUBLISHED if is_published(self.query, self.setting) else ""

    def check_budget(self, field: str) -> None:
        check_budget_with_donors(self.query, self.statistic, self.setting, field)

    def expect(self) -> Expected:
        """It depends on the spread of both columns, which is not known beforehand."""
        return Expected(margin=None, how=OPEN)

    def measured(self, context: Context) -> Answer:
        held = completions(self.query, context)
        return answer_correlation(self.query, self.statistic.epsilon, self.statistic.bar, held)
