"""The total error of an estimate: sampling under the design, and privacy noise. Costs nothing: all of it is released or public.

A simple random sample of n would give an estimate the variance v. The survey's design multiplies the standard error by
the design factor deft, the root of the design effect. Sampling and noise are independent, so half-widths add as the
root of their squares: h = sqrt((t deft sqrt(v))^2 + (half-width of the privacy interval)^2), on either side by itself.
The quantile t has the degrees of freedom with which deft is known; a declared deft is taken at its word. THEORY 13.2, 13.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, floor, inf, isfinite, pi, sqrt
from statistics import NormalDist
from typing import Any

from flint import arb, ctx

from reticent.errors import PlanError

RELIABLE, CAUTION = 0.166, 0.333
"""Coefficients of variation: up to the first an estimate is reliable, up to the second it is used with caution."""

LEAST_DF = 2.0
PLENTY = 1e6
"""From so many degrees of freedom on Student's law is taken for the normal one."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignFactor:
    """How many times the standard error of a simple random sample a design has, and how well that is known.

    `df` are the degrees of freedom: infinite where the factor was declared. `source` says where it comes from and
    `cautions` when it may be wrong.
    """

    deft: float
    df: float = inf
    source: str = "declared"
    cautions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (isfinite(self.deft) and self.deft > 0 and self.df >= LEAST_DF):
            raise PlanError("a design factor is positive, with at least 2 degrees of freedom", field="design")

    @property
    def effect(self) -> float:
        """The design effect: variance over that of a simple random sample."""
        return self.deft * self.deft

    def quantile(self, level: float) -> float:
        """How many standard errors an interval of `level` reaches."""
        return student_half_width(self.df, level)


def released_design_factor(released: Mapping[str, Any]) -> DesignFactor | None:
    """The design factor that a release tells, bought or declared; None where it tells none.

    `released` is the document of a release. Synthetic tables and whatever else is computed from a release later, at no
    cost, take the survey's factor from here: it was paid for, so using it again is post-processing (THEORY 13.3).
    """
    told = released.get("sampling", {})
    if "design_effect" not in told:
        declared = released.get("planning", {}).get(
            "design_effect"
        )  # a plan without statistics tells it there alone
        return None if declared is None else DesignFactor(deft=sqrt(float(declared)))
    return DesignFactor(
        deft=sqrt(float(told["design_effect"])),
        df=max(LEAST_DF, float(told.get("degrees_of_freedom", inf))),
        source=str(told.get("source", "declared")),
        cautions=tuple(told.get("cautions", ())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """How many respondents a sample has, and what they weigh in all, by the name of a weight. Public, or released.

    `effects` says of a weight what its inequality multiplies variances with, where no design factor holds it (Kish).
    """

    respondents: float
    weights: Mapping[str, float] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)

    def whole(self, weight: str | None) -> float | None:
        """All respondents, or all of their weight; None where that is not known."""
        return self.respondents if weight is None else self.weights.get(weight)

    def effective(self, weight: str | None) -> float:
        """As many respondents of equal weight as say what these do."""
        return self.respondents / (self.effects.get(weight, 1.0) if weight else 1.0)

    def heads(self, among: float, weight: str | None) -> float | None:
        """How many respondents so much weight stands for; a number of respondents stands for itself."""
        if weight is None:
            return among
        whole = self.weights.get(weight)
        return None if not whole else among * self.effective(weight) / whole


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalError:
    """The total interval of an estimate, its margin (the longer side), and the coefficient of variation if there is one.

    An estimate of 0 has no coefficient of variation, and neither has one that no population can have, such as a negative count:
    it `is_unreliable`.
    """

    low: float
    high: float
    margin: float
    cv: float | None
    is_unreliable: bool = False

    @property
    def has_end(self) -> bool:
        """Whether one of its ends is somewhere."""
        return isfinite(self.low) or isfinite(self.high)

    def whole(self) -> "TotalError":
        """The same with ends that are whole numbers, rounded away: of a number of respondents."""
        return replace(
            self, low=float(floor(self.low)), high=float(ceil(self.high)), margin=float(ceil(self.margin))
        )

    @property
    def reliability(self) -> str | None:
        """In the words offices use."""
        return "unreliable" if self.is_unreliable else reliability(self.cv)


def total_interval(
    value: float,
    *,
    privacy: Span,
    noise_sd: float | None,
    variance: float,
    factor: DesignFactor,
    level: float,
    limits: tuple[float | None, float | None] = (None, None),
) -> TotalError:
    """Sampling and noise together.

    `privacy` is the interval for the noise at the same level, `variance` that of a simple random sample. `noise_sd` is None
    or no number where it is not known; the coefficient of variation then takes the interval's half for two standard
    deviations or what belongs to the level. Outside `limits` no population value lies.
    """
    se = factor.deft * sqrt(max(0.0, variance))
    reach = factor.quantile(level) * se
    below, above = (sqrt(reach**2 + max(0.0, side) ** 2) for side in (value - privacy[0], privacy[1] - value))
    noise = noise_sd
    if noise is None or not isfinite(noise):
        noise = (privacy[1] - privacy[0]) / 2 / student_half_width(inf, level)
    low, high = (_within(end, limits) for end in (value - below, value + above))
    if (
        low == high
    ):  # wholly outside: an end alone would read as certain, so the same is taken around the nearest possible value
        near = _within(value, limits)
        low, high = _within(near - below, limits), _within(near + above, limits)
    is_unreliable = value != _within(value, limits) or (not value and below + above > 0)
    cv = sqrt(noise**2 + se**2) / abs(value) if value and not is_unreliable else None
    return TotalError(low=low, high=high, margin=max(below, above), cv=cv, is_unreliable=is_unreliable)


def _within(value: float, limits: tuple[float | None, float | None]) -> float:
    low, high = limits
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


def reliability(cv: float | None) -> str | None:
    """What a coefficient of variation is called; None where there is none."""
    if cv is None:
        return None
    return "reliable" if cv <= RELIABLE else "use with caution" if cv <= CAUTION else "unreliable"


def share_variance(share: float, size: float) -> float:
    """Of a share among `size` respondents; two more of each answer keep it above 0 at the ends (Agresti and Coull)."""
    size = max(1.0, size)
    held = (min(1.0, max(0.0, share)) * size + 2) / (size + 4)
    return held * (1 - held) / size


def count_variance(count: float, size: float) -> float:
    """Of a count among `size` sampled respondents."""
    return max(1.0, size) ** 2 * share_variance(count / max(1.0, size), size)


def mean_variance(variance: float, size: float) -> float:
    """Of a mean over `size` respondents, from the variance of its column."""
    return max(0.0, variance) / max(1.0, size)


def filled_factor(silent: float) -> float:
    """How many times the variance grows where donors drawn within cells fill a share `silent` of the column.

    (1 + f)/(1 - f), for rows counted after filling (THEORY 13.5a).
    """
    held = min(0.95, max(0.0, silent))
    return (1 + held) / (1 - held)


def rank_reach(at: float, size: float, *, factor: DesignFactor, level: float) -> float:
    """Woodruff's way for a quantile: by how many of `size` respondents the ends of a total interval miss its rank."""
    size = max(1.0, size)
    return size * factor.quantile(level) * factor.deft * sqrt(at * (1 - at) / size)


def paired_error(total: float, *, scale: float, groups: int) -> tuple[float, float]:
    """The standard error that A stands for, and its degrees of freedom; 0 and 2 where the noise left nothing.

    A is the noisy sum over R groups of absolute paired differences, `scale` that of its Laplace noise, in the same unit:
    se = sqrt(pi/2) A/sqrt(R), r^2 = (pi/2 - 1)/R + 2 (scale/A)^2, df = max(2, 1/(2 r^2)).
    """
    if total <= 0:
        return 0.0, LEAST_DF
    spread = (pi / 2 - 1) / groups + 2 * (scale / total) ** 2
    return sqrt(pi / 2) * total / sqrt(groups), max(LEAST_DF, 1 / (2 * spread))


def replicated_error(total: float, *, scale: float, df: float) -> tuple[float, float]:
    """The same from the noisy root of a replicate variance, of a design with `df` degrees of freedom."""
    if total <= 0:
        return 0.0, LEAST_DF
    spread = 1 / (2 * df) + 2 * (scale / total) ** 2
    return total, max(LEAST_DF, 1 / (2 * spread))


@lru_cache(maxsize=1024)
def student_half_width(df: float, level: float) -> float:
    """The t with P(|T| <= t) = level for Student's law, to nine digits: P(|T| > t) = I_x(df/2, 1/2), x = df/(df + t^2)."""
    if not 0 < level < 1:
        raise PlanError("lies between 0 and 1.", field="level")
    if df > PLENTY:
        return NormalDist().inv_cdf((1 + level) / 2)
    with ctx.workprec(128):

        def beyond(t: float) -> float:
            x = arb(df) / (arb(df) + arb(t) ** 2)
            return float(x.beta_lower(arb(df) / 2, arb(1) / 2, regularized=True).mid())

        low, high = 0.0, 1.0
        while beyond(high) > 1 - level:
            low, high = high, 2 * high
        while high - low > 1e-11 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if beyond(middle) > 1 - level else (low, middle)
    return high
