"""A fitted regression, what every estimator has in common, and the noise that estimators call.

To the noise of every answer comes spherical noise on a lattice, whose density falls with the Euclidean distance, drawn
exactly.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, isqrt
from typing import ClassVar, Literal, Protocol

from reticent.errors import PlanError
from reticent.exact import check_whole
from reticent.models.design import Records, RegressionDesign, Sums, root_up
from reticent.noise.bits import Bits, SystemBits, Uniform, exp_bracket
from reticent.noise.source import Noise, SystemNoise
from reticent.noise.vector import draw_laplace, round_up
from reticent.privacy.claim import Arithmetic, Change, Claim
from reticent.sensitivity.bounds import Global, Neighbours

MOST = 32
"""Beyond so many numbers hardly a try is kept."""


def add_spherical(answers: Sequence[int], *, sensitivity: Global, epsilon: Fraction, bits: Bits) -> list[int]:
    """Add noise to a whole vector, P(x) ~ exp(-|x| epsilon / sensitivity), |x| the Euclidean length.

    Guarantee   epsilon-DP for the whole list, one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the exponential mechanism with the score -|x - answers|, on whole vectors.
    Proof       proofs/models/spherical.md
    Assumes     the answers move by at most sensitivity.bound in Euclidean length, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    if epsilon <= 0:
        raise PlanError("epsilon is positive")
    if not 1 <= len(answers) <= MOST:
        raise PlanError(f"there are {len(answers)} coefficients, but at most {MOST} can be drawn together.")
    noise = draw_spherical(len(answers), scale=sensitivity.bound / epsilon, bits=bits)
    return [answer + step for answer, step in zip(answers, noise, strict=True)]


def draw_spherical(n: int, *, scale: Fraction, bits: Bits) -> list[int]:
    """One whole vector with P(x) ~ exp(-|x| / scale), exactly: kept from n Laplace numbers of scale t.

    t >= sqrt(n) scale, so |x|_1 / t <= |x| / scale, and a try is kept with probability exp of the difference.
    """
    t = round_up(scale * root_up(Fraction(n)))
    while True:
        tried = draw_laplace(16 * n, scale=t, bits=bits)
        for start in range(0, len(tried), n):
            x = tried[start : start + n]
            if _keeps(x, scale, t, Uniform(bits)):
                return x


def _keeps(x: Sequence[int], scale: Fraction, t: Fraction, u: Uniform) -> bool:
    """Whether U < exp(|x|_1 / t - |x| / scale), from as many digits of U and of the length as it takes."""
    square, reach = sum(step * step for step in x), sum(map(abs, x)) / t
    while True:
        u.refine(64)
        root = isqrt(square << 2 * u.known)
        near = max(Fraction(0), Fraction(root, 1 << u.known) / scale - reach)
        far = max(Fraction(0), Fraction(root + 1, 1 << u.known) / scale - reach)
        if u.prefix + 1 <= exp_bracket(far, u.known)[0]:
            return True
        if u.prefix >= exp_bracket(near, u.known)[1]:
            return False


class ModelNoise(Noise, Protocol):
    """Whatever can stand between sums and a model."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """The answers with noise that falls with the Euclidean distance; `sensitivity` bounds that of their move."""
        ...


@dataclass(frozen=True, slots=True)
class SystemModelNoise(SystemNoise):
    """Noise from the operating system's generator."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """See `add_spherical`."""
        bound = Global(bound=Fraction(sensitivity))
        return add_spherical(answers, sensitivity=bound, epsilon=epsilon, bits=SystemBits())


GRID = Fraction(1, 2**30)
"""Coefficients of unit columns are told in these steps."""

LARGEST = Fraction(2**10)
"""And none is larger than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A line through the noise: response = intercept + slopes x predictors, its spread, and the claim."""

    intercept: Fraction
    slopes: tuple[Fraction, ...]
    variance: Fraction
    claim: Claim

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        """The intercept, then the slopes."""
        return (self.intercept, *self.slopes)


Line = tuple[Sequence[float | Fraction], float | Fraction]
"""Coefficients of unit columns, and the variance that they leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitTerms:
    """What a fit may spend, the change it hides, and where its noise comes from."""

    epsilon: Fraction
    delta: Fraction | None
    neighbours: Neighbours
    noise: ModelNoise


class Estimator(ABC):
    """Fits a line at a price. `requires` says whether sums are enough or rows must be seen.

    An estimator has its theorem with the page that proves it, and `_fit`, which is given checked amounts; `has_delta` says
    whether its noise has a use for one.
    """

    __slots__ = ()
    requires: ClassVar[Literal["sums", "rows"]] = "sums"
    has_delta: ClassVar[bool] = False
    arithmetic: ClassVar[Arithmetic] = "exact"
    proof: ClassVar[tuple[str, str]]

    def fit(
        self,
        data: Sums | Records,
        *,
        epsilon: Fraction,
        delta: Fraction | None = None,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> Fit:
        """The fitted line in the units of the codebook, with its claim; refused from public numbers alone."""
        if not self.has_delta:
            no_delta(delta)
        if self.requires == "rows" and not isinstance(data, Records):
            raise PlanError("this estimator must see rows; sums are not enough.", field="estimator")
        check(data.design, epsilon=epsilon, delta=delta, neighbours=neighbours)
        terms = FitTerms(epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise)
        theta, variance = self._fit(data, terms)
        return tell(data.design, theta, variance, self.claim(terms))

    def claim(self, terms: FitTerms) -> Claim:
        """What a fit guarantees."""
        theorem, page = self.proof
        return claim_of(
            page,
            theorem,
            epsilon=terms.epsilon,
            delta=terms.delta,
            neighbours=terms.neighbours,
            arithmetic=self.arithmetic,
        )

    @abstractmethod
    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """The line and what it leaves, of which every number was released."""


def sums_of(data: Sums | Records) -> Sums:
    """The sums of products, whichever was given."""
    return data.sums() if isinstance(data, Records) else data


def check(
    design: RegressionDesign, *, epsilon: Fraction, delta: Fraction | None, neighbours: Neighbours
) -> None:
    """Refuse amounts and designs that no estimator takes; from public numbers alone."""
    if epsilon <= 0:
        raise PlanError(f"it is {epsilon}, but must be positive.", field="epsilon")
    if delta is not None and not 0 < delta < 1:
        raise PlanError(f"it is {delta}, but must lie between 0 and 1.", field="delta")
    if design.size is not None and not neighbours.replaced:
        raise PlanError(
            "it is public, but adding or removing a respondent would change it; protect replaced answers.",
            field="size",
        )


def no_delta(delta: Fraction | None) -> None:
    """Refuse a delta that the noise has no use for (B085)."""
    if delta is not None:
        raise PlanError("this estimator guarantees epsilon alone; leave it out.", field="delta")


def claim_of(
    page: str,
    theorem: str,
    *,
    epsilon: Fraction,
    delta: Fraction | None = None,
    neighbours: Neighbours,
    arithmetic: Arithmetic = "exact",
) -> Claim:
    """What a fit promises."""
    return Claim(
        measure="pure" if delta is None else "approximate",
        epsilon=Fraction(epsilon),
        delta=Fraction(delta or 0),
        change=Change.REPLACE if neighbours.replaced else Change.ADD_REMOVE,
        rests_on=((theorem, page),),
        arithmetic=arithmetic,
    )


def tell(
    design: RegressionDesign, theta: Sequence[float | Fraction], variance: float | Fraction, claim: Claim
) -> Fit:
    """Coefficients of unit columns, brought to the units of the codebook. Post-processing: reads no row."""
    told = [on_grid(value) for value in theta]
    first, rest = (told[0], told[1:]) if design.intercept else (Fraction(0), told)
    response = design.response
    half = response.grid * design.width(response) / 2
    slopes = tuple(
        2 * half * value / (column.grid * design.width(column))
        for value, column in zip(rest, design.predictors, strict=True)
    )
    middle = response.origin + response.grid * Fraction(design.centre(response), 2)
    centres = [c.origin + c.grid * Fraction(design.centre(c), 2) for c in design.predictors]
    shift = sum((slope * centre for slope, centre in zip(slopes, centres, strict=True)), Fraction(0))
    spread = min(max(on_grid(variance), Fraction(0)), Fraction(1))  # no law on [-1, 1] has a larger variance
    return Fit(intercept=middle + half * first - shift, slopes=slopes, variance=spread * half**2, claim=claim)


def on_grid(value: float | Fraction) -> Fraction:
    """The nearest step, within the largest coefficient; zero for what is no number."""
    if isinstance(value, float) and not isfinite(value):
        return Fraction(0)
    exact = min(max(Fraction(value), -LARGEST), LARGEST)
    return (2 * exact + GRID) // (2 * GRID) * GRID
