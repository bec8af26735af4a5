"""Private regression with `fit` and `predict`, for people who live in notebooks."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from math import hypot
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import BARE, level_words, places_for, read_decimal, rounded, rounded_down, rounded_up
from reticent.models.design import Bounded, RegressionDesign, floats, records
from reticent.models.fit import Estimator, Fit, ModelNoise, SystemModelNoise
from reticent.models.intervals import MEANING, ReleasedLine, fit_line, reach
from reticent.models.sums import Centred
from reticent.privacy.claim import Claim, amount
from reticent.python.charging import Account, Params
from reticent.python.frames import headers_of
from reticent.python.private_imputer import fit_lines, shape_of
from reticent.refine.total import DesignFactor
from reticent.sensitivity.bounds import Neighbours

Bounds = tuple[float, float]
STEPS = 2048
"""Steps between the bounds of a column."""


class PrivateRegression(Params):
    """Linear regression at a price: `PrivateRegression(epsilon="0.5", bounds_x=[(0, 1)], bounds_y=(0, 1)).fit(x, y)`.

    Bounds are public facts, named before any row is seen. Values outside are clamped, rows with a gap do not count,
    and nothing is refused because of a value. `public_size` says how many rows there are, where everybody may know.

    Each `fit` costs epsilon. Give the `ledger` of the survey, a `Ledger` or its path, and it is charged before a row is
    read; each row is then one respondent of that survey. Without one nobody counts.

    **Parameters**

    - `epsilon`: the privacy budget of one `fit`, a decimal as text.
    - `delta`: for estimators that need one.
    - `bounds`: public pairs, lowest and highest: one for every predictor, then one for the response; or a dictionary of
      them, by the headers of a frame, the response last.
    - `bounds_x`: the same in two arguments: for the predictors.
    - `bounds_y`: for the response.
    - `fit_intercept`: whether the line has an intercept.
    - `replaced`: protect one row replaced, and not one added or removed.
    - `public_size`: the number of rows, where everybody may know it.
    - `estimator`: how the line is fitted; noisy centred sums where not said.
    - `ledger`: a `Ledger` or its path, charged before a row is read.
    """

    _NAMES = (
        *("epsilon", "delta", "bounds", "bounds_x", "bounds_y", "fit_intercept", "replaced", "public_size"),
        *("estimator", "ledger"),
    )

    def __init__(
        self,
        *,
        epsilon: str,
        delta: str | None = None,
        bounds: Sequence[Bounds] | Mapping[str, Bounds] | None = None,
        bounds_x: Sequence[Bounds] | None = None,
        bounds_y: Bounds | None = None,
        fit_intercept: bool = True,
        replaced: bool = False,
        public_size: int | None = None,
        estimator: Estimator | None = None,
        ledger: Account | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.bounds_x, self.bounds_y = bounds_x, bounds_y
        self.fit_intercept, self.replaced, self.public_size = fit_intercept, replaced, public_size
        self.estimator, self.ledger = estimator, ledger
        self._noise: ModelNoise = SystemModelNoise()
        self._asked()

    def fit(self, x: Any, y: Any) -> "PrivateRegression":
        """Clamp, sum, add noise, solve. Each call costs the whole of epsilon again.

        With a ledger: charged before a row is read, and the line is noted there before it is handed out. A fit that fails
        in between keeps its charge.
        """
        (epsilon, delta), design = self._asked()
        self._check_headers(headers_of(x))
        estimator, neighbours = self.estimator or Centred(), Neighbours(replaced=self.replaced)

        released: list[ReleasedLine] = []

        def fitted(x: Any, y: Any, noise: ModelNoise) -> tuple[Fit]:
            data = records(design, np.asarray(x), np.asarray(y))
            if estimator.requires == "rows":
                fit = estimator.fit(data, epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise)
                released.append(ReleasedLine(fit=fit))
            else:
                line = fit_line(
                    estimator, data.sums(), epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise
                )
                released.append(line)
            return (released[-1].fit,)

        if self.ledger is not None:
            _check_shape(shape_of(x, field="x"), shape_of(y, field="y"), len(design.predictors))
        (self.result_,), self.receipt_ = fit_lines(
            self.ledger,
            "regression",
            words=self._words(),
            sources=[self._noise],
            nobody=lambda: fitted(np.empty((0, len(design.predictors))), np.empty(0), SystemModelNoise()),
            read=lambda: fitted(x, y, self._noise),
        )
        self._line = released[-1]
        self.n_features_in_ = len(design.predictors)
        if (headers := headers_of(x)) is not None:
            self.feature_names_in_ = np.asarray(headers, dtype=object)
        return self

    def predict(self, x: Any) -> NDArray[np.float64]:
        """What the line says; `x` is taken as it is, for it is the caller's own."""
        return np.asarray(floats(np.asarray(x)) @ self.coef_ + self.intercept_)

    def summary(self, *, level: str = "0.95", design_effect: str | None = None) -> str:
        """The coefficients with intervals for privacy noise, as text: from what was released, so it costs nothing.

        **Parameters**

        - `level`: of the intervals, a decimal as text.
        - `design_effect`: of the sample that the rows are, `"1"` where it is simple random; then total intervals, for
          sampling and noise together, stand beside them.
        """
        share = read_decimal(level)
        if share is None or not Fraction(1, 2) <= share <= Fraction(9999, 10000):
            raise PlanError("is a decimal from 0.5 to 0.9999", field="level")
        fit = self._fitted
        values, sds = map(float, fit.coefficients), self._line.noise_sds
        plain = [f"x{place}" for place in range(len(fit.slopes))]
        names = ("(intercept)", *map(str, getattr(self, "feature_names_in_", plain)))
        wide = max(12, *(len(name) + 1 for name in names))
        factor = _declared(design_effect)
        errors = self._line.sampling_sds if factor is not None else None
        told = "; total interval" if errors else ""
        stated = level_words([float(share)])
        lines = [f"{'':<{wide}}{'value':>14}{'noise sd':>14}   {stated}interval for privacy noise{told}"]
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            if place or self.fit_intercept:
                line = _summed_up(f"{name:<{wide}}", value, sds[place] if sds else None, reach(float(share)))
                lines.append(
                    line + (_total(value, sds, errors, place, factor, float(share)) if errors else "")
                )
        said = self._line.why_none
        lines.append(f"No intervals: {said}." if said else f"An interval {MEANING}.")
        sampling = "A total interval holds sampling, too" if errors else "No sampling error is in it"
        return "\n".join([*lines, f"Residual sd {_bare(self.variance_**0.5)}. {fit.claim}. {sampling}."])

    @property
    def stderr_(self) -> NDArray[np.float64]:
        """The standard deviation of the privacy noise in the intercept and in each slope; not a number where it is not known.

        Of sampling nothing is in it: that would have to be bought, in a plan with `[[regression]]`.
        """
        fit, sds = self._fitted, self._line.noise_sds
        return np.array(
            [float("nan") if sd is None else float(sd) for sd in sds or [None] * (len(fit.slopes) + 1)]
        )

    def score(self, x: Any, y: Any) -> float:
        """R squared of the line on rows that are the caller's own, such as public or synthetic ones.

        It is exact: on the rows that were fitted it would be a statistic of them that nobody has paid for, and is CONFIDENTIAL.
        What was paid for is in `variance_`.
        """
        told, said = floats(np.asarray(y)), self.predict(x)
        known = ~np.isnan(told) & ~np.isnan(said)
        spread = float(((told[known] - told[known].mean()) ** 2).sum()) if known.any() else 0.0
        return 1 - float(((told[known] - said[known]) ** 2).sum()) / spread if spread else float("nan")

    result_: Fit
    _line: ReleasedLine
    receipt_: dict[str, Any] | None
    """What the ledger says of the last fit, where one was charged."""

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
        if not hasattr(self, "result_"):
            raise PlanError("there is no line yet; call fit first.", field="fit")
        return self.result_

    def _words(self) -> dict[str, Any]:
        """The arguments as the ledger's digest takes them."""
        plain = ("epsilon", "delta", "fit_intercept", "replaced", "public_size")
        return {
            **{name: getattr(self, name) for name in plain},
            "bounds": [[float(bound) for bound in pair] for pair in self._bounds],
            "estimator": repr(self.estimator or Centred()),
        }

    @property
    def _bounds(self) -> list[Bounds]:
        """The bounds of all predictors, and last of the response, however they were said."""
        if self.bounds is not None and self.bounds_x is None and self.bounds_y is None:
            found = list(self.bounds.values() if isinstance(self.bounds, Mapping) else self.bounds)
        elif self.bounds is None and self.bounds_x is not None and self.bounds_y is not None:
            found = [*self.bounds_x, self.bounds_y]
        else:
            raise PlanError("are a pair for each predictor and, last, one for the response", field="bounds")
        if len(found) < 2:
            raise PlanError("are a pair for each predictor and, last, one for the response", field="bounds")
        return found

    def _check_headers(self, headers: Sequence[str] | None) -> None:
        """Bounds by header are for a frame with these columns in this order."""
        if isinstance(self.bounds, Mapping) and (headers is None or list(self.bounds)[:-1] != list(headers)):
            raise PlanError(
                "by header need a frame with exactly these headers, in this order.", field="bounds"
            )

    def _repr_html_(self) -> str:
        shown = Params._repr_html_(self)
        return f"{shown}<pre>{escape(self.summary())}</pre>" if hasattr(self, "result_") else shown

    def _asked(self) -> tuple[tuple[Fraction, Fraction | None], RegressionDesign]:
        """The arguments, read: what may be spent, and on which line."""
        delta = None if self.delta is None else amount(self.delta, field="delta")
        *predictors, response = self._bounds
        columns = [_column(f"x{i}", each, self.fit_intercept) for i, each in enumerate(predictors)]
        design = RegressionDesign(
            predictors=tuple(columns),
            response=_column("y", response, self.fit_intercept),
            intercept=self.fit_intercept,
            size=self.public_size,
        )
        return (amount(self.epsilon), delta), design


def _summed_up(name: str, value: float, sd: float | None, times: float) -> str:
    if sd is None:
        return f"{name}{_bare(value):>14}"
    shown = rounded(value, places_for(times * sd))
    return f"{name}{shown:>14}{rounded_up(sd, places_for(sd)):>14}   {_between(value, times * sd)}"


def _bare(value: float) -> str:
    return rounded(value, places_for(value, BARE))


def _between(value: float, half: float) -> str:
    """The ends of an interval, rounded outward, with the decimals that two digits of its half need."""
    digits = places_for(half)
    return f"{rounded_down(value - half, digits)} to {rounded_up(value + half, digits)}"


def _declared(effect: str | None) -> DesignFactor | None:
    """The design factor of a declared design effect; None where none is."""
    if effect is None:
        return None
    held = read_decimal(effect)
    if held is None or not Fraction(1, 100) <= held <= 1000:
        raise PlanError(
            "is a decimal from 0.01 to 1000, such as '1' for a simple random sample", field="design_effect"
        )
    return DesignFactor(deft=float(held) ** 0.5)


def _total(
    value: float,
    sds: Sequence[float] | None,
    errors: Sequence[float],
    place: int,
    factor: DesignFactor | None,
    level: float,
) -> str:
    """The total interval of a coefficient, for the end of its line."""
    if sds is None or factor is None:
        return ""
    half = hypot(reach(level) * sds[place], factor.quantile(level) * factor.deft * errors[place])
    return f"; {_between(value, half)}"


def _check_shape(x: tuple[int, ...], y: tuple[int, ...], columns: int) -> None:
    if len(x) != 2 or x[1] != columns or y != x[:1]:
        raise PlanError("x needs a column for each predictor, and y a value for each row.", field="x")


def _column(name: str, bounds: Bounds, intercept: bool) -> Bounded:
    low, high = (float(bound) for bound in bounds)
    if not -1e300 < low < high < 1e300:
        raise PlanError("its bounds must be finite, the lower one first.", field=name)
    lower, upper = Fraction(low), Fraction(high)
    if intercept:
        return Bounded.between(name, lower, upper, steps=STEPS)
    grid = max(abs(lower), abs(upper)) / STEPS
    return Bounded(name=name, low=int(lower // grid), high=-int(-upper // grid), grid=grid)
