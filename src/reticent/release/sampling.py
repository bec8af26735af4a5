"""The sampling error of a release: what is declared, what was bought, and the total interval of every estimate.

A statistic's own standard error comes first, then a design effect declared for it, then the survey's design factor, bought or
declared. Where none is known, or the estimate does not say how it varies from sample to sample, the total stays empty, and
the release says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from reticent.answer.count import widening
from reticent.answer.design import BoughtDesign, SamplingError
from reticent.answer.design_domains import DomainErrors, DomainSampling
from reticent.answer.factors import Factors
from reticent.answer.parts import UNBOUNDED, Answer, Estimate, Interval, Measurement
from reticent.answer.statistic import Statistic
from reticent.answer.unit_sums import ReleasedValue
from reticent.engine.wants import Tallies
from reticent.exact import show
from reticent.noise.source import Noise
from reticent.plan.design import claims_of
from reticent.plan.plan import Plan
from reticent.plan.words import predicted
from reticent.privacy.claim import Claim
from reticent.query.base import CodedMean, CodedSum, RowQuery
from reticent.query.filled import roles
from reticent.query.kinds import UnservedRecipients
from reticent.refine.total import DesignFactor, SampleSize, TotalError, total_interval
from reticent.schema import Levels

TOTAL_WORDS = (
    "sampling under the design and privacy noise together; it does not cover nonresponse bias, clamped values or a frame "
    "that misses people"
)
FILLED_TOTAL = (
    "; it is widened for the share of answers that the plan expects to be missing, and holds if, among those whom donors agree "
    "with, who does not answer has nothing to do with the answer"
)
FACTOR = "the survey's design factor"
OF_A_VARIANCE = "; it takes the released variance as it is, noise and all, and is empty where that is 0"
FIXED_SIZE = "; the number of respondents, and what they weigh, is taken as fixed by the design"

NO_FACTOR = "no sampling error is known: add [design] to the plan, or sampling to the statistic"
NO_INTERVAL = "the estimate has no interval for privacy noise, so there is none for both"
NOTHING_LEFT = "noise left nothing of the sampling error that was bought; give sampling more epsilon"
NO_SPREAD_LEFT = "noise left nothing of the variance that it names; give that one more epsilon"
NO_HOUSEHOLDS = (
    "how many households were drawn is not released, so a number of them has a total interval only where the statistic buys "
    "its own: sampling = { epsilon = ... }; a share of households has one"
)
NO_SPREAD = 'how much its column varies was not released: release a variance of it above, and name it with variance = "its name"'
OR_OWN = "; or give the statistic sampling = { epsilon = ... }"
NO_SHARE = "donors fill a column that it uses: say under [expect] which share of its answers is missing, missing = { ... }"
NO_SIZE = "how many respondents were drawn is not known: write rows under [expect], or buy the design factor with [design]"
NO_WEIGHT = "what its weight stands for in respondents is not known: buy the design factor with [design], from items with this weight"
NO_MEAN_WEIGHT = (
    "what its weight stands for in respondents is not known: write rows and mean_weight under [expect], or buy the design "
    "factor with [design], from items with this weight"
)
OF_THE_FILLING = "it tells of this filling of this sample, not of a population"
OF_ITS_PARTS = "a statistic that it is made of has none"
BY_ZERO = "what it is divided by may be 0, so the ratio may be anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What is known of the sampling error of a plan's statistics. All of it is public or was paid for.

    `factors` are those of weights to known totals, where they are released.
    """

    plan: Plan
    bought: BoughtDesign | None = None
    own: Mapping[str, SamplingError | DomainSampling] = field(default_factory=dict)
    factors: Factors | None = None

    @property
    def measured(self) -> dict[str, tuple[Measurement, ...]]:
        """What was measured for each purchase: for the design factor, and for statistics by their names."""
        pooled = {FACTOR: self.bought.parts} if self.bought else {}
        return {**pooled, **{name: each.parts for name, each in self.own.items()}}

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """Everything that was measured for it."""
        return tuple(part for parts in self.measured.values() for part in parts)

    @property
    def epsilon(self) -> Fraction:
        """What was spent on it."""
        return sum((part.epsilon for part in self.parts), Fraction(0))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """One for each purchase that was made, asked of its measurements."""
        bought = [self.bought.parts] if self.bought else []
        runs = [*bought, *(each.parts for each in self.own.values())]
        return claims_of(
            [sum((part.epsilon for part in parts), Fraction(0)) for parts in runs],
            self.plan.change,
            by_domain=(
                *(False for _ in bought),
                *(isinstance(each, DomainSampling) for each in self.own.values()),
            ),
        )

    def size(self, name: str) -> SampleSize | None:
        """How large the sample is, for the sampling error of a statistic: as bought, or as expected.

        What base weights stand for in respondents is bought with the factor. A declared design effect holds what unequal
        weights do, so beside it the mean weight that the plan expects will do.
        """
        heads = self.bought.size.respondents if self.bought is not None else self.plan.rows
        if heads is None:
            return None
        weights = dict(self.bought.size.weights) if self.bought is not None else {}
        if self.is_declared(name) and self.plan.mean_weight is not None:
            whole = float(heads * self.plan.mean_weight)
            based = [each for each, column in self.plan.schema.coded.items() if column.role == "weight"]
            weights = dict.fromkeys(based, whole) | weights
        if self.plan.weight is None or not self._knows_the_base:
            return SampleSize(respondents=float(heads), weights=weights)
        name, totals = self.plan.weight.name, self.plan.weight.candidates.strategies[0].totals
        weights[name] = float(sum(totals))
        return SampleSize(respondents=float(heads), weights=weights, effects=self.unequal)

    @property
    def _knows_the_base(self) -> bool:
        """Whether the design factor holds what base weights do that factors are multiplied with; a declared one does."""
        base = None if self.factors is None else self.factors.bought.column
        return base is None or self.bought is None or base in self.bought.size.weights

    @property
    def unequal(self) -> dict[str, float]:
        """What unequal factors multiply variances with, beside a design factor that was bought from items without them."""
        if self.factors is None or self.bought is None:
            return {}
        return {self.factors.bought.name: self.factors.effect}

    def is_declared(self, name: str) -> bool:
        """Whether the design effect of a statistic is one that the plan declares, for it or for all."""
        return name in self.plan.design.effects or self.bought is None

    def factor(self, name: str) -> DesignFactor | None:
        """The design factor of a statistic; None where none is known."""
        if self.bought is None or self.is_declared(name):
            return self.plan.design.factor(name)
        return self.bought.factor

    def total(self, ask: Statistic, answers: Mapping[str, Answer], place: int) -> TotalError | None:
        """Sampling and noise of one estimate of a statistic; None where that is not known."""
        return self._at(ask, answers[ask.name].estimates[place], answers, ask.level)

    def _at(
        self, ask: Statistic, estimate: Estimate, answers: Mapping[str, Answer], level: Fraction
    ) -> TotalError | None:
        if estimate.total is not None:
            return _of_interval(estimate, estimate.total(level), level)
        if estimate.carried is not None:
            return self._carried(ask, estimate, answers, level)
        if estimate.combine is not None:
            return self._derived(ask, estimate, answers, level)
        is_unknown = self.is_unsized(ask) or self.is_drowned(ask, estimate, answers)
        found = None if is_unknown else self._spread(ask.name, estimate)
        if found is None or not estimate.has_interval:
            return None
        variance, factor = found
        low, high = estimate.interval(level)
        made = total_interval(
            float(estimate.value),
            privacy=(float(low), float(high)),
            noise_sd=estimate.noise_sd,
            variance=variance,
            factor=factor,
            level=float(level),
            limits=_limits(estimate),
        )
        is_count = ask.asked.counts_respondents and ask.query.weight is None and not ask.weighted
        return made.whole() if is_count and estimate.value.denominator == 1 else made

    def is_unsized(self, ask: Statistic) -> bool:
        """A number of households: of how many it is a part is not released, and respondents are another number."""
        query = ask.asked
        per = isinstance(query, RowQuery) and bool(query.among.per)
        return per and query.adds_up and ask.name not in self.own

    def is_drowned(self, ask: Statistic, estimate: Estimate, answers: Mapping[str, Answer]) -> bool:
        """Of the variance that it names noise left 0 or less: everybody alike is what that would say, and no interval of it."""
        if not ask.variance or ask.name in self.own:
            return False
        named = {each.cell: each.value for each in answers[ask.variance].estimates}
        return named.get(estimate.cell, Fraction(1)) <= 0

    def _carried(
        self, ask: Statistic, estimate: Estimate, answers: Mapping[str, Answer], level: Fraction
    ) -> TotalError | None:
        """That of the same in another form, whose ends are carried over."""
        if estimate.carried is None:
            return None
        other, rising = estimate.carried
        held = self._at(ask, other, answers, level)
        return None if held is None else _of_ends(estimate, (rising(held.low), rising(held.high)), level)

    def _derived(
        self, ask: Statistic, estimate: Estimate, answers: Mapping[str, Answer], level: Fraction
    ) -> TotalError | None:
        """From the totals of both parts, each at half the allowed chance of error, whatever they have to do with each other."""
        by_name, each = {one.name: one for one in self.plan.asks}, 1 - (1 - level) / 2
        parts = [
            self._at(by_name[name], answers[name].estimates[0], answers, each) for name in ask.query.uses
        ]
        held = [part for part in parts if part is not None]
        if len(held) < len(parts) or estimate.combine is None:
            return None
        if not all(isfinite(part.high - part.low) for part in held):
            return _of_ends(estimate, (-inf, inf), level)
        left, right = ((Fraction(part.low), Fraction(part.high)) for part in held)
        low, high = estimate.combine(left, right)
        is_open = max(abs(low), abs(high)) >= UNBOUNDED
        return _of_ends(estimate, (-inf, inf) if is_open else (float(low), float(high)), level)

    def _spread(self, name: str, estimate: Estimate) -> tuple[float, DesignFactor] | None:
        """The variance of sampling and the factor to take with it: the statistic's own, or the survey's."""
        plain = estimate.sampling(self.size(name)) if estimate.sampling is not None else None
        own = self._own(name, estimate)
        if own is not None:
            # Where noise left nothing of the differences, a simple random sample's error has to do; without it there is none.
            return (max(own.se**2, plain or 0.0), own.factor) if own.se or plain else None
        factor = self.factor(name)
        return None if factor is None or plain is None else (plain, factor)

    def _own(self, name: str, estimate: Estimate) -> SamplingError | None:
        """What a statistic has bought for itself, or for the domain of this estimate."""
        found = self.own.get(name)
        return found.errors.get(estimate.cell) if isinstance(found, DomainSampling) else found

    def section(self) -> dict[str, Any]:
        """The `sampling` section of a release: how much of it has total intervals is said by the statistics themselves."""
        design, told = self.plan.design, dict[str, Any]()
        if self.bought is not None:
            told = {
                "source": "bought",
                "items": list(self.bought.items),
                "design_effect": round(self.bought.factor.effect, 4),
                "degrees_of_freedom": round(self.bought.factor.df, 1),
                **self.bought.basis,
                "respondents": round(self.bought.size.respondents, 1),
                "weights": {name: round(each, 3) for name, each in self.bought.size.weights.items()},
                **({"unequal_factors": _rounded(self.unequal)} if self.unequal else {}),
                "cautions": list(self.bought.factor.cautions),
            }
        elif design.declared is not None:
            mean = self.plan.mean_weight
            told = {
                "source": "declared",
                "design_effect": show(design.declared),
                **({"mean_weight": show(mean)} if mean is not None else {}),
            }
        if not told and not self.own and not design.effects:
            return {}
        claims = [{"words": self.plan.worded(claim), **claim.as_dict()} for claim in self.claims]
        own = {name: _own_error_section(each) for name, each in self.own.items()}
        return {
            "sampling": {
                **told,
                **({"guarantees": claims} if claims else {}),
                **({"own": own} if own else {}),
            }
        }


def _rounded(effects: Mapping[str, float]) -> dict[str, float]:
    return {name: round(each, 4) for name, each in effects.items()}


def _own_error_section(each: SamplingError | DomainSampling) -> dict[str, Any]:
    if isinstance(each, DomainSampling):
        told = ({"cell": dict(cell), **_own_error_section(one)} for cell, one in each.errors.items())
        return {"domains": list(told)}
    return {"se": each.se, "degrees_of_freedom": round(each.df, 1)}


def _limits(estimate: Estimate) -> tuple[float | None, float | None]:
    low, high = estimate.limits
    return (None if low is None else float(low)), (None if high is None else float(high))


def _of_interval(estimate: Estimate, ends: Interval, level: Fraction) -> TotalError:
    """A total interval that is there already."""
    return _of_ends(estimate, (float(ends[0]), float(ends[1])), level)


def _of_ends(estimate: Estimate, ends: tuple[float, float], level: Fraction) -> TotalError:
    """With the coefficient of variation that a normal law of its width has; none where an end is nowhere, or of an estimate
    of 0. Of candidates half of what lies between them counts on either side, so one alone has no variation of 0."""
    value, (low, high) = float(estimate.value), ends
    spread = (high - low + float(estimate.grain)) / 2 / DesignFactor(deft=1).quantile(float(level))
    is_unreliable = not isfinite(spread) or (not value and high > low)
    cv = spread / abs(value) if value and not is_unreliable else None
    margin = max(high - value, value - low)
    return TotalError(low=low, high=high, margin=margin, cv=cv, is_unreliable=is_unreliable)


def buy_design(
    plan: Plan, answers: Mapping[str, Answer], tallies: Tallies, noise: Noise
) -> BoughtDesign | None:
    """The plan's design factor, after its items were answered; None where it buys none."""
    pooled = plan.design.pooled
    if pooled is None:
        return None
    released = {name: _released(answers[name]) for name in pooled.items}
    return pooled.run(tallies, released, schema=plan.schema, neighbours=plan.neighbours, noise=noise)


def buy_errors(
    plan: Plan, answers: Mapping[str, Answer], tallies: Tallies, noise: Noise
) -> dict[str, SamplingError | DomainSampling]:
    """The standard errors that statistics buy for themselves, after they were answered."""
    found: dict[str, SamplingError | DomainSampling] = {}
    given: Any = {"schema": plan.schema, "neighbours": plan.neighbours, "noise": noise}
    for name, own in plan.design.own.items():
        if isinstance(own, DomainErrors):
            found[name] = own.run(tallies, _by_cell(answers[name]), **given)
        else:
            found[name] = own.run(tallies, _released(answers[name]), **given)
    return found


def _released(answer: Answer) -> ReleasedValue:
    (estimate,) = answer.estimates
    return ReleasedValue(value=estimate.value, size=estimate.size)


def _by_cell(answer: Answer) -> dict[tuple[tuple[str, str], ...], ReleasedValue]:
    return {each.cell: ReleasedValue(value=each.value, size=each.size) for each in answer.estimates}


def why_empty(sampled: Sampled, ask: Statistic, answers: Mapping[str, Answer]) -> str:
    """Why a statistic has no total interval: first what no design factor would mend."""
    if ask.never_total:
        return ask.never_total
    if sampled.factor(ask.name) is None and ask.name not in sampled.own:
        return NO_FACTOR
    if ask.query.no_total:
        return ask.query.no_total
    if sampled.is_unsized(ask):
        return NO_HOUSEHOLDS
    if ask.name in sampled.own:
        return NOTHING_LEFT
    if not answers[ask.name].estimates[0].has_interval:
        return NO_INTERVAL
    if all(sampled.is_drowned(ask, each, answers) for each in answers[ask.name].estimates):
        return NO_SPREAD_LEFT
    return _unknown(sampled, ask, answers)


def _of_cells(ask: Statistic, answers: Mapping[str, Answer], sampled: Sampled) -> str:
    """What is made of cells needs what a share or a count of them needs."""
    counted = answers[ask.query.uses[0]].counted
    if counted is None or counted.wider is None:
        return NO_SHARE if counted is not None else OF_ITS_PARTS
    return _size_unknown(ask, sampled)


def _size_unknown(ask: Statistic, sampled: Sampled) -> str:
    """How many respondents were drawn, or what their weight stands for, and what to write."""
    if sampled.size(ask.name) is None:
        return NO_SIZE
    return NO_MEAN_WEIGHT if sampled.is_declared(ask.name) else NO_WEIGHT


def _unknown(sampled: Sampled, ask: Statistic, answers: Mapping[str, Answer]) -> str:
    """What is not known of its sampling error, although there is a design factor."""
    query, plan = ask.asked, sampled.plan
    if query.uses_cells:
        return _of_cells(ask, answers, sampled)
    if query.uses:
        parts = [ask for ask in plan.asks if ask.name in query.uses]
        return BY_ZERO if all(sampled.total(each, answers, 0) for each in parts) else OF_ITS_PARTS
    if isinstance(query, UnservedRecipients):
        return OF_THE_FILLING
    if widening(ask.query, plan.schema, plan.repair) is None:
        return NO_SHARE
    if _is_of_a_number(ask, sampled) and ask.variance is None:
        return NO_SPREAD + (OR_OWN if _can_buy_its_own(ask, sampled) else "")
    return _size_unknown(ask, sampled)


def _is_of_a_number(ask: Statistic, sampled: Sampled) -> bool:
    shape = ask.asked.shape(sampled.plan.setting.schema)
    return isinstance(shape, CodedMean | CodedSum) and shape.number is not None


def _can_buy_its_own(ask: Statistic, sampled: Sampled) -> bool:
    """Whether a plan would let it: not of a column that donors or lines fill, nor of levels, nor without sampling units."""
    plan, held = sampled.plan, sampled.plan.schema.coded
    if plan.schema.replicates is None and all(
        column.role != "psu" for column in plan.schema.columns.values()
    ):
        return False
    is_filled = roles(ask.query, plan.schema, plan.repair) or predicted(ask.query, plan.schema, plan.models)
    return not is_filled and not any(isinstance(held.get(name), Levels) for name in ask.asked.values)
