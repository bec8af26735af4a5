"""A statistic, what is public of the survey it is asked of, and what every way of answering it shares.

A route is chosen once for each statistic, from public words alone (`answer/route.py`). The routes of noise with a public scale
stand beside the answers of their kinds; those of donors, known totals and copies beside theirs. What claims of statistics
rest on is a theorem's name, and the page that proves it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot
from typing import Any, ClassVar, Generic, TypeVar

from reticent.answer.context import Context
from reticent.answer.expect import AT_SIZE, EXACT, UNKNOWN, Expected, Noises
from reticent.answer.parts import Answer, AnyMeasurement, Measurement, plan_part
from reticent.answer.weighting import Weighting
from reticent.engine.wants import Aggregate
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.claim import Unit
from reticent.query.base import CodedMean, Query
from reticent.query.domains import ByDomain
from reticent.query.filled import check as check_imputed
from reticent.query.kinds import Quantile
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global, Neighbours
from reticent.sensitivity.donors import CAPPED_PAGES

Ground = tuple[str, str]

LAPLACE = ("discrete Laplace mechanism", "proofs/noise/laplace.md")
GAUSS = ("discrete Gaussian mechanism", "proofs/noise/gaussian.md")
CHOICE = ("exponential mechanism in zCDP", "proofs/noise/selection.md")
EXPONENTIAL = ("exponential mechanism", "proofs/noise/selection.md")
FLIP = ("permute-and-flip", "proofs/noise/selection.md")
LINEAR = ("linear sensitivity", "proofs/sensitivity/linear.md")
DOMAINS = ("domains under one epsilon", "proofs/sensitivity/domains.md")
DONORS = (
    ("answer: imputed", "proofs/answer/imputed.md"),
    ("what a donor moves", "proofs/sensitivity/constants.md"),
    ("hub ladder", "proofs/sensitivity/hubs.md"),
    ("smooth bound of a ladder", "proofs/sensitivity/ladder.md"),
)
HEAVY = {
    "double Lomax": ("double Lomax mechanism", "proofs/noise/lomax.md"),
    "generalised Cauchy": ("generalised Cauchy mechanism", "proofs/noise/cauchy.md"),
    "Student": ("Student mechanism", "proofs/noise/student.md"),
}
PIVOT = ("error bar for a confidential scale", "proofs/refine/pivot.md")
WEIGHTS = (
    ("answer: weighted", "proofs/answer/weighted.md"),
    ("post-stratified answers", "proofs/answer/poststrata.md"),
    ("the largest weight within k steps", "proofs/sensitivity/poststrata.md"),
    ("smooth bound of a ladder", "proofs/sensitivity/ladder.md"),
)
CAPPED = (("answer: capped donors", "proofs/answer/capped.md"), *CAPPED_PAGES)
COPIED = ("answer: copied", "proofs/answer/copied.md")


def answered(page: str) -> Ground:
    """The page of an answer."""
    return f"answer: {page}", f"proofs/answer/{page}.md"


Q_co = TypeVar("Q_co", bound=Query, covariant=True)
NO_RHO = (
    "goes with noise of a public scale; this statistic's noise is scaled by what was read off the rows and is pure: give it "
    "epsilon, of which a ledger in rho is charged the square over two"
)
FREE = "is not needed: this estimate has noise of a public size, so its interval is free; remove it"
STEPS = 1000  # epsilon for a target is told in thousandths


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedValue:
    """What a plan expects of a statistic: its value, and of how many respondents it is, or of how much weight."""

    value: Fraction
    size: int | None = None
    weight: Fraction | None = None


TO_KNOWN_TOTALS = (
    "weights made of who answered have no sampling error here; with factors = { epsilon = ... } under [weight], and [design], "
    "they have"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic: its query, its budget, and the interval it wants; `weighted` to the plan's known totals, or not.

    **Fields**

    - `name`: its name in the release.
    - `query`: what is asked.
    - `epsilon`: its share of the privacy budget; of rho, where `in_rho`.
    - `level`: the level of its interval.
    - `bar`: what is paid for the interval, beside epsilon.
    - `variance`: the name of the variance that a mean's margin of error uses.
    - `expected`: what a preview assumes.
    - `written`: the section as it was written.
    - `weighted`: whether it is weighted to known totals.
    - `in_rho`: whether its budget is in rho (zCDP), and its noise Gaussian.
    - `by_lengths`: whether it is chosen by a value ladder, where nearest donors fill, and has no smooth noise.
    """

    name: str
    query: Query
    epsilon: Fraction
    level: Fraction = Fraction(95, 100)
    bar: Fraction = Fraction(0)
    variance: str | None = None
    expected: ExpectedValue | None = None
    written: Mapping[str, Any]
    weighted: bool = False
    in_rho: bool = False
    by_lengths: bool = False

    @property
    def asked(self) -> Query:
        """The query itself: of a statistic by domain, that in each of them."""
        return self.query.of if isinstance(self.query, ByDomain) else self.query

    @property
    def never_total(self) -> str:
        """Why no design factor would give it a total interval; empty where one would, as for the interval of a quantile."""
        if self.query.no_total and not isinstance(self.asked, Quantile):
            return self.query.no_total
        return TO_KNOWN_TOTALS if self.weighted else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is public of the survey that a statistic is asked of.

    **Fields**

    - `schema`: the codebook.
    - `neighbours`: the change that must stay hidden.
    - `repair`: edits and donor imputation.
    - `weighting`: the weights to known totals.
    - `copied`: stands for the columns that models fill several times.
    - `directions`: in how many directions the lines of those models are uncertain.
    - `rows`: how many respondents are expected.
    - `mean_weight`: what one of them weighs on average, by the base weight.
    - `share`: the share of the survey that is read, where it is a piece by lot.
    - `unit`: what the privacy budget is counted in.
    - `designed`: the statistics whose design factor, and whose size in respondents, will be known.
    - `domains`: into how many domains the rows are divided, of which this is one.
    """

    schema: Schema
    neighbours: Neighbours
    repair: Repair = NO_REPAIR
    weighting: Weighting | None = None
    copied: Repair = NO_REPAIR
    directions: int = 0
    rows: int | None = None
    mean_weight: Fraction | None = None
    share: Fraction = Fraction(1)
    unit: Unit = "epsilon"
    designed: frozenset[str] = frozenset()
    domains: int = 1

    def whole(self, weight: str | None) -> int | None:
        """How many respondents are expected, or how much weight in all; None where the plan does not say."""
        if weight is None or self.rows is None:
            return self.rows
        if self.weighting is not None and self.is_factored(weight):
            whole = sum(self.weighting.candidates.strategies[0].totals, Fraction(0))
            return max(1, int(whole / self.domains))
        return None if self.mean_weight is None else max(1, int(self.rows * self.mean_weight))

    def is_factored(self, weight: str | None) -> bool:
        """Whether this weight is made of base weights and factors that are released first."""
        made = self.weighting
        return made is not None and made.factors is not None and weight == made.name

    def weighing(self, expected: ExpectedValue | None, weight: str | None) -> Fraction | None:
        """How many respondents a statistic is expected to be about, or how much weight; None where the plan does not say."""
        if expected is None:
            return None
        if weight is None or expected.weight is not None:
            return expected.weight if weight is not None else _fraction(expected.size)
        whole = self.whole(weight)
        if expected.size is None or whole is None or not self.rows:
            known = self.mean_weight if weight in self.schema.coded else None
            return None if expected.size is None or known is None else expected.size * known
        return Fraction(expected.size * whole, self.rows)


def _fraction(number: int | None) -> Fraction | None:
    return None if number is None else Fraction(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRoute(ABC, Generic[Q_co]):
    """What routes share. A route measures exactly its `parts`, each with its share of epsilon.

    One that `goes_by_domain` loses, for each record that comes or goes, an even share of what it loses for all the
    records of its neighbours, wherever they lie.
    """

    goes_by_domain: ClassVar[bool] = False

    query: Q_co
    statistic: Statistic
    setting: Setting

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """What the engine must sum."""
        return self.query.wants(self.setting.schema)

    @property
    @abstractmethod
    def parts(self) -> tuple[AnyMeasurement, ...]:
        """Every noisy measurement, in the order in which they are made, from public numbers alone."""

    @property
    def epsilon(self) -> Fraction:
        """What all parts cost together: epsilon, or rho where the statistic is `in_rho`."""
        return self.statistic.epsilon + self.statistic.bar

    @property
    @abstractmethod
    def rests_on(self) -> tuple[Ground, ...]:
        """The theorems behind the claim of the answer."""

    @property
    def no_rho(self) -> str:
        """Why it cannot have a budget in rho; nothing where it can."""
        return NO_RHO

    @property
    def no_bar(self) -> str:
        """Why no interval can be bought; nothing where one can."""
        return FREE

    def check_query(self, field: str) -> None:
        """Refuse a query that no theorem covers, from public words."""
        check_imputed(self.query, self.setting.schema, self.setting.repair, field=field)

    def check_budget(self, field: str) -> None:
        """Refuse an epsilon with which some part cannot be carried out."""

    def unit(self, units: Mapping[str, str]) -> str:
        """The unit of the answer; `units` has those of the statistics above it."""
        return self.query.unit(self.setting.schema, units)

    @abstractmethod
    def expect(self) -> Expected:
        """How noisy the answer will be, as far as public numbers say."""

    def epsilon_for(self, cv: float) -> Fraction | None:
        """The least epsilon, to three digits, at which the noise alone has the coefficient of variation `cv`.

        None where the plan expects no answer, or nothing can be said.
        """
        return None

    def answer(self, context: Context) -> Answer:
        """The noisy answer. Counts, totals and tables of a piece are multiplied to speak of the whole survey."""
        here = replace(context, in_rho=True) if self.statistic.in_rho else context
        if here.neighbours != self.setting.neighbours:  # where households count, one brings one record
            here = replace(here, neighbours=self.setting.neighbours)
        return self.measured(here).scaled(self.scale)

    @property
    def scale(self) -> Fraction:
        """What the answer for the rows that were read is multiplied by, to speak of the whole survey."""
        return 1 / self.setting.share if self.query.adds_up else Fraction(1)

    @abstractmethod
    def measured(self, context: Context) -> Answer:
        """The noisy answer for the rows that were read."""

    @property
    def expected_value(self) -> Fraction | None:
        """The answer the plan expects: the statistic's own, or what its kind makes of the expected rows, or of their weight."""
        if self.statistic.expected is not None:
            return self.statistic.expected.value
        return self.query.expected(self.setting.whole(self.query.weight))


class PublicRoute(BaseRoute[Q_co]):
    """A route with Laplace or Gaussian noise of public scale on one sum, or one table."""

    __slots__ = ()

    goes_by_domain: ClassVar[bool] = True
    PAGES: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Measurement, ...]:
        """Every noisy measurement; the last is that of the sum, or of the table."""

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return (*map(answered, self.PAGES), LINEAR, GAUSS if self.statistic.in_rho else LAPLACE)

    @property
    def no_rho(self) -> str:
        return ""

    def planned(self, what: str, bound: Global, grid: Fraction, amount: Fraction) -> Measurement:
        """One sum, with the noise of the statistic's unit."""
        return plan_part(what, bound=bound, grid=grid, epsilon=amount, in_rho=self.statistic.in_rho)

    @property
    def divisor(self) -> Fraction | None:
        """What the sum is divided by; None where it is not known."""
        return Fraction(1)

    def error(self, parts: Noises) -> float:
        """The standard deviation of the sum's noise, not yet divided."""
        return parts[-1].sd

    def margin(self, parts: Noises) -> Fraction | None:
        """Half the width of the interval."""
        return parts[-1].half_width(self.statistic.level)

    @property
    def how(self) -> str:
        return EXACT

    def expect(self) -> Expected:
        return self.expected(self.parts, self.how)

    def expected(self, parts: Noises, how: str) -> Expected:
        """What these noises make of the answer."""
        margin = self.margin(parts)
        if margin is None:
            return Expected(margin=None, how=UNKNOWN)
        return Expected(margin=margin * self.scale, how=how)

    def allowed(self, cv: float) -> float | None:
        """The error of the undivided sum at which the answer has this coefficient of variation."""
        value, divisor = self.expected_value, self.divisor
        if not value or not divisor:
            return None
        allowed = cv * abs(float(value)) * float(divisor)
        if self.statistic.expected is not None:
            allowed *= float(1 / self.scale)  # what is expected speaks of the whole survey
        return allowed

    def epsilon_for(self, cv: float) -> Fraction | None:
        """Public noise is as good as proportional to 1 / epsilon, or to the root of 1 / rho, so one division finds it."""
        allowed = self.allowed(cv)
        if allowed is None:
            return None
        power, fine = (2, 1000 * STEPS) if self.statistic.in_rho else (1, STEPS)
        steps = self.statistic.epsilon * Fraction(self.error(self.parts) / allowed) ** power * fine
        return Fraction(-(-steps.numerator // steps.denominator), fine)


class QuotientRoute(PublicRoute[Q_co]):
    """A route to a quotient of two noisy sums, or of one and a public size."""

    __slots__ = ()

    @abstractmethod
    def centre(self) -> Fraction:
        """The point that the sum is centred on."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The public size."""

    @property
    def divisor(self) -> Fraction | None:
        """How many respondents (how much weight) it divides by, as far as the plan says."""
        found = self.setting.weighing(self.statistic.expected, self.query.weight)
        return found or _fraction(self.size or self.setting.whole(self.query.weight))

    def error(self, parts: Noises) -> float:
        """With the count's noise times the distance from the centre."""
        error = parts[-1].sd
        if parts[0].what == "count":
            error = hypot(error, parts[0].sd * self._distance(parts))
        return error

    def margin(self, parts: Noises) -> Fraction | None:
        """The sum's half-width and the count's times the distance from the centre, as variances add."""
        size, level = self.divisor, self.statistic.level
        if not size:
            return None
        top, reach = float(parts[-1].half_width(level)), 0.0
        if parts[0].what == "count":
            reach = float(parts[0].half_width(level)) * self._distance(parts)
        return Fraction(hypot(top, reach)) / size

    @property
    def how(self) -> str:
        return AT_SIZE

    def _distance(self, parts: Noises) -> float:
        """|answer - centre|: expected, or at most. No weight and no number of records enters: it is an answer's."""
        if self.statistic.expected is not None:
            return float(abs(self.statistic.expected.value - self.centre()))
        shape = self.query.shape(self.setting.schema)
        if isinstance(shape, CodedMean):
            return float(max(abs(shape.high - self.centre()), abs(shape.low - self.centre())))
        weight = self.query.weight
        known = weight is not None and weight in self.setting.schema.coded
        heaviest = self.setting.schema.weight(weight, field="weight").upper if weight and known else 1
        return float(parts[-1].bound / heaviest / self.setting.neighbours.records)
