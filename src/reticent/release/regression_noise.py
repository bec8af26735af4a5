"""How noisy the coefficients of a regression will be, from public numbers: for the preview, and to refuse what would drown.

The noise of the sums is public, but the sums are not. In their place stand those of the expected number of respondents,
spread evenly and independently over the declared ranges and levels.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10

import numpy as np

from reticent.errors import PlanError
from reticent.exact import show
from reticent.models.design import Sums
from reticent.models.fit import SystemModelNoise
from reticent.models.intervals import CLEAR, in_units, reach
from reticent.models.moments import Floats, NoisyMoments, gaussian_moments, laplace_moments
from reticent.models.sums import SHARE, Centred, rho_for
from reticent.plan.models import Feature
from reticent.plan.plan import Plan
from reticent.plan.regression import AskedRegression
from reticent.release.models import design_of
from reticent.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForeseenLine:
    """Margins of noise at the level of the line, had the respondents been spread evenly.

    `ranges` are those of the slopes in ranges of the response, as a predictor goes from its lowest to its highest value;
    `margins` those of the intercept and the slopes in units of the codebook. `least` is the share of the evenly spread
    respondents' sums of squares that real ones must have, in every direction, for intervals to be told.
    """

    ranges: tuple[float, ...]
    margins: tuple[float, ...]
    least: float

    @property
    def is_clear(self) -> bool:
        """Whether there would be intervals."""
        return self.least <= 1


def nobody(asked: AskedRegression, schema: Schema) -> Sums:
    """The sums of a survey without rows."""
    design = design_of(asked.model, schema)
    size = len(design.widths)
    return Sums(design=design, products=((0,) * size,) * size)


def foresee_line(asked: AskedRegression, plan: Plan) -> ForeseenLine | None:
    """What to expect; None where nobody said how many respondents there are, or the noise is not that of sums."""
    noisy = _noise(asked, plan)
    if plan.rows is None or noisy is None:
        return None
    rows = max(1, plan.rows // asked.sides.size(plan.schema)) * asked.model.rings
    gram = rows * evenly(asked.model.features, plan.schema)
    inverse = np.linalg.inv(gram)
    noise = inverse @ np.diag(noisy.spread[:-1, -1] ** 2) @ inverse
    by, times = in_units(noisy.design), reach(float(asked.level))
    return ForeseenLine(
        ranges=tuple((times * np.sqrt(np.diagonal(noise))[1:]).tolist()),
        margins=tuple((times * np.sqrt(np.diagonal(by @ noise @ by.T))).tolist()),
        least=float(CLEAR * noisy.blur / np.linalg.eigvalsh(gram)[0]),
    )


def _noise(asked: AskedRegression, plan: Plan) -> NoisyMoments | None:
    """Noise on nobody, of which the spread is public and used; None where an estimator has no noisy sums."""
    sums, epsilon = nobody(asked, plan.schema), asked.model.epsilon
    neighbours, noise = asked.neighbours(plan.neighbours), SystemModelNoise()
    if asked.model.estimator == "centred":
        return Centred().moments(sums, epsilon=epsilon, neighbours=neighbours, noise=noise)
    if asked.delta is not None:
        rho = (1 - SHARE) * rho_for(epsilon, asked.delta)
        return gaussian_moments(sums, rho=rho, neighbours=neighbours, noise=noise)
    if asked.model.estimator in ("functional", "adassp"):
        own = epsilon if asked.model.estimator == "functional" else (1 - SHARE) * epsilon
        ones = [Fraction(1)] * len(sums.products)
        return laplace_moments(sums, scales=ones, epsilon=own, neighbours=neighbours, noise=noise)
    return None


def evenly(features: tuple[Feature, ...], schema: Schema) -> Floats:
    """Mean products of the unit columns, the count first, of respondents spread evenly and independently."""
    means = np.array([1.0, *(_mean(each, schema) for each in features)])
    found = np.outer(means, means)
    for i, a in enumerate(features, start=1):
        for j, b in enumerate(features, start=1):
            if a.column == b.column:
                found[i, j] = _square(a) if i == j else 1 - 4 / _levels(a, schema)
    return np.asarray(found)


def _levels(feature: Feature, schema: Schema) -> int:
    column = schema.coded[feature.column]
    return column.high - column.low + 1


def _mean(feature: Feature, schema: Schema) -> float:
    """Zero along a range; of one level among L, which is 1 there and -1 elsewhere, 2/L - 1."""
    return 0.0 if feature.level is None else 2 / _levels(feature, schema) - 1


def _square(feature: Feature) -> float:
    """Of m + 1 equal steps from -1 to 1, (m + 2)/(3m); of a level 1."""
    m = feature.high - feature.low
    return 1.0 if feature.level is not None else (m + 2) / (3 * m)


def check_drowned(asked: AskedRegression, plan: Plan, field: str) -> None:
    """Refuse a line of which no coefficient could be told from noise, at the number of respondents that is expected."""
    foreseen = foresee_line(asked, plan)
    if foreseen is None or min(foreseen.ranges) < 1:
        return
    needed = _two_digits_up(float(asked.model.epsilon) * min(foreseen.ranges))
    raise PlanError(
        f"with {plan.rows:,} respondents expected, noise alone could move every coefficient by more than the whole range "
        f"of {asked.model.column}; take an epsilon of {show(needed)} at the least, fewer predictors, or closer bounds, or "
        "correct [expect] rows",
        field=field,
    )


def _two_digits_up(value: float) -> Fraction:
    step = Fraction(10) ** (floor(log10(value)) - 1)
    return ceil(Fraction(value) / step) * step
