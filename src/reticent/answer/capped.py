"""Statistics of columns that capped donors fill: one respondent changes a public number of rows, so noise is of public size.

Each is made of the same sums, scores or cells as without donors, with what donees add to its bound. A recipient with
several donors counts as so many fractions of a record: sums are taken over the completions of all rings and divided by
how many there are. Intervals cost nothing.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from reticent.answer.context import Context, times
from reticent.answer.count import binomial, covering, spread_of_total, widened, widening
from reticent.answer.donors import (
    FILLED_WORDS,
    answer_imputed,
    answer_of,
    measured_quotient,
    parts_with_donors,
)
from reticent.answer.expect import Expected, Noises
from reticent.answer.parts import Answer, AnyMeasurement, Estimate, Measurement, Sampling
from reticent.answer.shares import planned
from reticent.answer.statistic import CAPPED, GAUSS, LAPLACE, STEPS, BaseRoute, Ground, PublicRoute
from reticent.engine.wants import Aggregate, Unserved
from reticent.errors import PlanError
from reticent.prepare.repair import CappedDonors
from reticent.query.base import CodedMean, CodedSum, RowQuery, Shape
from reticent.query.kinds import UnservedRecipients
from reticent.refine.total import SampleSize
from reticent.sensitivity.bounds import Global

NO_BAR = (
    "is not needed: donors are capped, so this estimate has noise of a public size and its interval is free; remove it, or "
    "write bound = 'hubs' under [[impute]] for donors as they were before"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedRoute(BaseRoute[RowQuery]):
    """A sum, mean or variance of columns that capped donors fill: noise of public size.

    `plain` is the route that the same query has without donors: their numbers hang together in the same way.
    """

    goes_by_domain: ClassVar[bool] = True

    plain: PublicRoute[RowQuery]

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        return parts_with_donors(self.query, self.statistic, self.setting)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return (*self.plain.rests_on, *CAPPED)

    @property
    def no_bar(self) -> str:
        return NO_BAR

    @property
    def no_rho(self) -> str:
        return ""

    @property
    def noises(self) -> Noises:
        """The parts with the bound of one's own row, which says how far an answer can be from its centre."""
        here = self.setting
        own = planned(self.query, here.schema, here.neighbours, replace(here.repair, capped=(), rings=1))
        return [
            replace(part, bound=task.bound.bound * task.grid)
            for part, (task, _) in zip(self.parts, own, strict=True)
            if isinstance(part, Measurement)
        ]

    def expect(self) -> Expected:
        return self.plain.expected(self.noises, self.plain.how)

    def epsilon_for(self, cv: float) -> Fraction | None:
        """Public noise is as good as proportional to 1 / epsilon, so one division finds it."""
        allowed = self.plain.allowed(cv)
        if allowed is None:
            return None
        steps = self.statistic.epsilon * Fraction(self.plain.error(self.noises) / allowed) * STEPS
        return Fraction(-(-steps.numerator // steps.denominator), STEPS)

    def measured(self, context: Context) -> Answer:
        """From the completions of all rings; with the sampling error where the plan says what it needs.

        Guarantee   epsilon-DP for one call.
        Adjacency   context.neighbours.
        Theorem     THEORY 11.3 (a) and 11.8; `Context.measure` for each sum; budgets add.
        Proof       proofs/answer/capped.md
        Assumes     tallies of the query's wants over all rings; exact arithmetic.
        Keeps back  the exact sums.
        """
        held, shape = context.fractional, self.query.shape(context.schema)
        if not isinstance(shape, CodedMean):
            made = answer_imputed(self.query, self.statistic.epsilon, Fraction(0), held)
            return self._with_sampling(made, shape, 1.0, context)
        shares = planned(self.query, context.schema, context.neighbours, context.repair)
        found = measured_quotient(shape, shares, self.statistic.epsilon, Fraction(0), held)
        made = answer_of(found.value, found.interval, found.has_interval, found.parts, found.sd, found.count)
        return self._with_sampling(made, shape, float(found.count), context)

    def _with_sampling(self, made: Answer, shape: Shape | None, count: float, context: Context) -> Answer:
        """Between its public limits, with the sampling variance as without donors, widened by what is missing.

        With base weights too: one's own weight varies the answer as it does without donors, that of recipients less, so
        the factor is then at least large enough (docs/theory/donors.md).
        """
        (estimate,) = made.estimates
        own = self._complete(estimate.value, shape, count, context)
        wider = widening(self.query, context.schema, context.repair)
        held = replace(estimate, sampling=widened(own, wider), limits=_limits(shape))
        counted = made.counted and replace(made.counted, wider=wider)
        return replace(made, estimates=(held,), counted=counted)

    def _complete(
        self, value: Fraction, shape: Shape | None, count: float, context: Context
    ) -> Sampling | None:
        """The variance that a simple random sample would give if nothing were missing."""
        weight, released = self.query.weight, context.released(self.statistic.variance)
        if isinstance(shape, CodedSum) and shape.number is None:
            return binomial(value, context.rows, weight)
        if isinstance(shape, CodedSum):
            return spread_of_total(value, released, context.rows, weight)
        if not isinstance(shape, CodedMean) or (shape.number is not None and released is None):
            return None
        spread = (
            float(value * (1 - value)) if shape.number is None or released is None else float(released.value)
        )

        def among(size: SampleSize | None) -> float | None:
            heads = (size or SampleSize(respondents=count)).heads(count, weight)
            return None if not heads else spread / heads

        return among


def _limits(shape: Shape | None) -> tuple[Fraction | None, Fraction | None]:
    """Outside of which no answer lies: of counts, shares and means."""
    if isinstance(shape, CodedMean):
        return shape.low, shape.high
    return (Fraction(0) if isinstance(shape, CodedSum) and shape.number is None else None), None


class UnservedRoute(PublicRoute[UnservedRecipients]):
    """How many recipients are left to the default, by one noisy count."""

    __slots__ = ()
    PAGES = ("capped",)
    goes_by_domain: ClassVar[bool] = False

    @property
    def _group(self) -> CappedDonors:
        group = self.setting.repair.group(self.query.column)
        if group is None:
            raise PlanError(
                f"capped donors do not fill {self.query.column}; name a column that they fill",
                field="query.unserved",
            )
        return group

    @property
    def bound(self) -> Global:
        """THEORY 11.3 (f): tau for every record that comes or goes."""
        return Global(bound=Fraction(self.setting.neighbours.steps * self._group.serve))

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return (Unserved(column=self.query.column),)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        rings = self.setting.repair.rings
        return (
            self.planned("unserved", times(self.bound, rings), Fraction(1, rings), self.statistic.epsilon),
        )

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return (*CAPPED, GAUSS if self.statistic.in_rho else LAPLACE)

    def check_query(self, field: str) -> None:
        try:
            _ = self._group
        except PlanError as problem:
            raise PlanError(str(problem.args[0]), field=field) from None

    def measured(self, context: Context) -> Answer:
        """The noisy count, a mean over rings.

        Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
        Adjacency   context.neighbours.
        Theorem     THEORY 11.3 (f) and `Context.measure`.
        Proof       proofs/answer/capped.md
        Assumes     tallies of `Unserved` over all rings; exact arithmetic.
        Keeps back  the exact count.
        """
        found = replace(context, copies=context.repair.rings).measure(
            context.tallies.unserved[self.query.column],
            "unserved",
            bound=self.bound,
            grid=Fraction(1),
            epsilon=self.statistic.epsilon,
        )
        estimate = Estimate(
            value=found.estimate,
            interval=covering(found),
            noise_sd=found.part.sd,
            limits=(Fraction(0), None),
        )
        return Answer(estimates=(estimate,), parts=(found.part,), meaning=FILLED_WORDS)
