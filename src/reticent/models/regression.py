"""Private regression with `fit` and `predict`, for people who live in notebooks."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.centred import Centred
from reticent.models.design import Bounded, Design
from reticent.models.fit import Estimator, Fit
from reticent.models.records import floats, records
from reticent.models.sources import ModelNoise, SystemModelNoise
from reticent.privacy.claim import Claim, amount
from reticent.sensitivity.neighbours import Neighbours

Bounds = tuple[float, float]
STEPS = 2048
"""Steps between the bounds of a column."""


class PrivateRegression:
    """Linear regression at a price: `PrivateRegression(epsilon="0.5", bounds_x=[(0, 1)], bounds_y=(0, 1)).fit(x, y)`.

    Bounds are public facts, named before any row is seen. Values outside are clamped, rows with a gap do not count,
    and nothing is refused because of a value. `public_size` says how many rows there are, where everybody may know.
    """

    def __init__(
        self,
        *,
        epsilon: str,
        delta: str | None = None,
        bounds_x: Sequence[Bounds],
        bounds_y: Bounds,
        fit_intercept: bool = True,
        replaced: bool = False,
        public_size: int | None = None,
        estimator: Estimator | None = None,
    ) -> None:
        self.epsilon, self.delta = amount(epsilon), None if delta is None else amount(delta, field="delta")
        self.estimator: Estimator = Centred() if estimator is None else estimator
        self.neighbours = Neighbours(replaced=replaced)
        columns = [_column(f"x{i}", each, fit_intercept) for i, each in enumerate(bounds_x)]
        self.design = Design(
            predictors=tuple(columns),
            response=_column("y", bounds_y, fit_intercept),
            intercept=fit_intercept,
            size=public_size,
        )
        self.result_: Fit | None = None
        self._noise: ModelNoise = SystemModelNoise()

    def fit(self, x: NDArray[Any], y: NDArray[Any]) -> "PrivateRegression":
        """Clamp, sum, add noise, solve. Each call costs the whole of epsilon again."""
        data = records(self.design, np.asarray(x), np.asarray(y))
        given = data if self.estimator.requires == "rows" else data.sums()
        self.result_ = self.estimator.fit(
            given,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=self.neighbours,
            noise=self._noise,
        )
        return self

    def predict(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """What the line says; `x` is taken as it is, for it is the caller's own."""
        return np.asarray(floats(np.asarray(x)) @ self.coef_ + self.intercept_)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The slopes."""
        return np.array([float(slope) for slope in self._fitted.slopes])

    @property
    def intercept_(self) -> float:
        """The height of the line at zero."""
        return float(self._fitted.intercept)

    @property
    def variance_(self) -> float:
        """The spread about the line."""
        return float(self._fitted.variance)

    @property
    def claim_(self) -> Claim:
        """What the fit promises."""
        return self._fitted.claim

    @property
    def _fitted(self) -> Fit:
        if self.result_ is None:
            raise PlanError("there is no line yet; call fit first.", field="fit")
        return self.result_


def _column(name: str, bounds: Bounds, intercept: bool) -> Bounded:
    low, high = (float(bound) for bound in bounds)
    if not -1e300 < low < high < 1e300:
        raise PlanError("its bounds must be finite, the lower one first.", field=name)
    lower, upper = Fraction(low), Fraction(high)
    if intercept:
        return Bounded.between(name, lower, upper, steps=STEPS)
    grid = max(abs(lower), abs(upper)) / STEPS
    return Bounded(name=name, low=int(lower // grid), high=-int(-upper // grid), grid=grid)
