"""Counts, totals, means, proportions and variances of data in which donors have answered for the silent.

Each is made of the same sums as without donors. Those that no donor's answer enters keep their noise; the
others have noise scaled by a smooth bound, which is confidential, and an error bar only where one was bought.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, hypot, inf

from reticent.answer.context import Context
from reticent.answer.expect import AT_LEAST, UNKNOWN, Assumed, Expected, Noises, least_epsilon
from reticent.answer.expect_donors import ASSUMED_HUB, HUBS, foreseen_parts
from reticent.answer.parts import UNBOUNDED, Answer, AnyMeasurement, Estimate, Interval, Measurement
from reticent.answer.readings import Quotient, Reading, count_noise, sums_budget
from reticent.answer.shares import Shares, Tasks, check_budget, planned, planned_parts
from reticent.answer.statistic import DONORS, HEAVY, PIVOT, BaseRoute, Ground, PublicRoute, Setting, Statistic
from reticent.engine.wants import Aggregate, Sum
from reticent.errors import PlanError
from reticent.prepare.repair import Bounding
from reticent.query import filled
from reticent.query.base import CodedMean, CodedSum, RowQuery, SquaresAboutMean
from reticent.refine.pivot import quotient_interval

HIDDEN_WORDS = "none: the scale of the noise is confidential; give interval an epsilon for an interval"
PIVOT_WORDS = (
    "covers the value that the same respondents, their missing values filled, would give without privacy noise, with at least "
    "the stated probability; the scale of the noise is confidential, and the uncertainty about it is included"
)


FILLED_WORDS = (
    "covers the value that the same respondents, their missing values filled, would give without privacy noise, with at least the "
    "stated probability; how far filled answers are from true ones is not in it"
)


def answer_imputed(query: RowQuery, epsilon: Fraction, bar: Fraction, context: Context) -> Answer:
    """The noisy answer to an ask that rests on filled columns.

    Guarantee   (epsilon + bar)-DP for one call.
    Adjacency   context.neighbours.
    Theorem     `read_plain` and `read_smooth` for each of its sums; budgets add.
    Proof       proofs/answer/imputed.md
    Assumes     tallies of `reticent.query.filled.wants`; a public size is a constant of the plan; exact arithmetic.
    Keeps back  the exact sums, and every smooth bound.
    """
    shares = planned(query, context.schema, context.neighbours, context.repair)
    match query.shape(context.schema):
        case CodedSum(sum=want):
            return _single(want, shares, epsilon, bar, context)
        case CodedMean() as mean:
            found = measured_quotient(mean, shares, epsilon, bar, context)
            return answer_of(found.value, found.interval, found.has_interval, found.parts, found.sd)
        case SquaresAboutMean() as squares:
            return _variance(query, squares, shares, epsilon, bar, context)
        case _:
            raise TypeError("only sums, means and variances are answered here")


def answer_of(
    value: Fraction,
    interval: Callable[[Fraction], Interval],
    is_told: bool,
    parts: Sequence[AnyMeasurement],
    sd: float | None = None,
    size: Fraction | None = None,
) -> Answer:
    """One number whose noise has a confidential scale or, with a standard deviation to tell, a public one; `size` is what it
    was divided by."""
    estimate = Estimate(value=value, interval=interval, noise_sd=sd, has_interval=is_told, size=size)
    hidden = PIVOT_WORDS if is_told else HIDDEN_WORDS
    return Answer(estimates=(estimate,), parts=tuple(parts), meaning=hidden if sd is None else FILLED_WORDS)


def _single(want: Sum, shares: Shares, epsilon: Fraction, bar: Fraction, context: Context) -> Answer:
    (task, share), exact = shares[0], context.tallies.statistics[want]
    reading = sums_budget(epsilon, bar, shares).read(task, share, exact, context)

    def interval(level: Fraction) -> Interval:
        if reading.told is None:
            return -UNBOUNDED, UNBOUNDED
        width = Fraction(reading.told.width(float(level)) + reading.told.blur)
        if isinstance(part := reading.parts[0], Measurement):
            width = part.half_width(level) + (part.blur if part.is_coarse else 0)
        return reading.estimate - width, reading.estimate + width

    return answer_of(reading.estimate, interval, reading.told is not None, reading.parts, reading.sd)


def measured_quotient(
    mean: CodedMean, shares: Shares, epsilon: Fraction, bar: Fraction, context: Context
) -> Quotient:
    """Count and centred sum, the first of the shares, measured in this order; no count where the size is public."""
    statistics, budget = context.tallies.statistics, sums_budget(epsilon, bar, shares)
    count = statistics[mean.count]
    centred = 2 * statistics[mean.total] - mean.twice * count
    bottom = budget.read(*shares[0], count, context) if mean.size is None else None
    top = budget.read(*shares[1 if bottom else 0], centred, context)
    return Quotient(top=top, bottom=bottom, size=mean.size, centre=mean.centre, low=mean.low, high=mean.high)


def _variance(
    query: RowQuery,
    shape: SquaresAboutMean,
    shares: Shares,
    epsilon: Fraction,
    bar: Fraction,
    context: Context,
) -> Answer:
    """Squares about the released mean, which is measured first."""
    statistics, column = context.tallies.statistics, shape.number
    tasks = Tasks(query, context.schema, context.neighbours, context.repair)
    mean = measured_quotient(shape.mean, shares, epsilon, bar, context)
    about = floor(mean.value / column.grid + Fraction(1, 2))
    n, s1, s2 = (statistics[want] for want in (shape.mean.count, shape.mean.total, shape.squares))
    exact = s2 - 2 * about * s1 + about * about * n
    share = shares[-1][1]
    squares = sums_budget(epsilon, bar, shares).read(tasks.squares(column, about), share, exact, context)
    less = Fraction(0 if query.among.weight else 1)
    highest = (column.upper - column.lower) ** 2 / 2
    value = min(highest, max(Fraction(0), squares.estimate / max(Fraction(1), mean.count - less)))
    interval = _variance_interval(mean, squares, less, highest, column.grid / 2)
    is_told = mean.has_interval and squares.told is not None
    below = mean.bottom.sd if mean.bottom else 0.0
    divisor, sd = float(max(Fraction(1), mean.count - less)), squares.sd
    noise = None if sd is None or below is None else hypot(sd, float(value) * below) / divisor
    return answer_of(value, interval, is_told, (*mean.parts, *squares.parts), noise, mean.count)


def _variance_interval(
    mean: Quotient, squares: Reading, less: Fraction, highest: Fraction, rounding: Fraction
) -> Callable[[Fraction], Interval]:
    """As without donors (see `reticent.answer.ratio`), from whatever is told of the three noises."""
    count = count_noise(mean.bottom, mean.count)

    def interval(level: Fraction) -> Interval:
        if count is None or squares.told is None or not mean.has_interval:
            return Fraction(0), highest
        each = 1 - (1 - level) / 2
        bottom = replace(count, value=count.value - float(less))
        widest = float(4 * highest)
        low, high = quotient_interval(squares.told, bottom, level=float(each), low=0.0, high=widest)
        off = mean.off(each) + rounding
        return max(Fraction(0), min(highest, Fraction(low)) - 2 * off * off), min(highest, Fraction(high))

    return interval


NO_PUBLISHED = "the published noise has no interval; remove it, or bound by hubs"


def is_published(query: RowQuery, setting: Setting) -> bool:
    """Whether some column that the query rests on is bounded as published."""
    used = filled.roles(query, setting.schema, setting.repair)
    return any(setting.repair.of(role.column).bounding is Bounding.PUBLISHED for role in used)


def donor_grounds(query: RowQuery, setting: Setting, bar: Fraction) -> tuple[Ground, ...]:
    """What a claim rests on beside its kind's own pages, where donors' answers enter."""
    noise = HEAVY["generalised Cauchy" if is_published(query, setting) else "double Lomax"]
    return (*DONORS, noise, *((PIVOT,) if bar else ()))


def parts_with_donors(query: RowQuery, statistic: Statistic, setting: Setting) -> tuple[AnyMeasurement, ...]:
    """The parts of a statistic that donors' answers may enter, from public numbers alone."""
    return planned_parts(
        query,
        statistic.epsilon,
        statistic.bar,
        schema=setting.schema,
        neighbours=setting.neighbours,
        repair=setting.repair,
        in_rho=statistic.in_rho,
    )


def check_budget_with_donors(query: RowQuery, statistic: Statistic, setting: Setting, field: str) -> None:
    """Refuse an epsilon that no noise for a smooth bound can run at."""
    check_budget(
        query,
        statistic.epsilon,
        statistic.bar,
        schema=setting.schema,
        neighbours=setting.neighbours,
        repair=setting.repair,
        field=field,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DonorsRoute(BaseRoute[RowQuery]):
    """A sum, mean or variance that donors' answers enter: noise scaled by a smooth bound, an interval if it is bought.

    `plain` is the route that the same query has without donors: their numbers hang together in the same way.
    """

    plain: PublicRoute[RowQuery]

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return filled.wants(self.query, self.setting.schema, self.setting.repair)

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        return parts_with_donors(self.query, self.statistic, self.setting)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return (*self.plain.rests_on, *donor_grounds(self.query, self.setting, self.statistic.bar))

    @property
    def no_bar(self) -> str:
        return NO_PUBLISHED if is_published(self.query, self.setting) else ""

    def check_budget(self, field: str) -> None:
        check_budget_with_donors(self.query, self.statistic, self.setting, field)

    def foreseen(self, hub: int, *, epsilon: Fraction | None = None) -> Noises:
        """The noise of every sum if the busiest donor served `hub` recipients; at another epsilon without an interval."""
        return foreseen_parts(
            self.query,
            self.statistic.epsilon if epsilon is None else epsilon,
            self.statistic.bar if epsilon is None else Fraction(0),
            hub=hub,
            schema=self.setting.schema,
            neighbours=self.setting.neighbours,
            repair=self.setting.repair,
        )

    def expect(self) -> Expected:
        """The floor, with nobody missing, and what busier donors would make of it."""
        assumed = tuple(found for hub in HUBS if (found := self._assume(hub)) is not None)
        if not assumed:
            return Expected(margin=None, how=UNKNOWN)
        return Expected(margin=Fraction(assumed[0].margin), how=AT_LEAST, assumed=assumed)

    def _assume(self, hub: int) -> Assumed | None:
        """The error under an assumption; None where a quotient's size is not known."""
        parts, divisor = self.foreseen(hub), self.plain.divisor
        margin = self.plain.expected(parts, AT_LEAST).margin
        if margin is None or not divisor:
            return None
        sd = float(self.scale) * self.plain.error(parts) / divisor
        return Assumed(hub=hub, sd=sd, margin=float(margin))

    def epsilon_for(self, cv: float) -> Fraction | None:
        """If the busiest donor served `ASSUMED_HUB` recipients."""
        allowed = self.plain.allowed(cv)
        return None if allowed is None else least_epsilon(lambda epsilon: self._error(epsilon) <= allowed)

    def _error(self, epsilon: Fraction) -> float:
        """The error at another epsilon; without end where no noise can run at it."""
        try:
            return self.plain.error(self.foreseen(ASSUMED_HUB, epsilon=epsilon))
        except PlanError:
            return inf

    def measured(self, context: Context) -> Answer:
        return answer_imputed(self.query, self.statistic.epsilon, self.statistic.bar, context)
