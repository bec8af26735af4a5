"""Lines on an array, one column after the other: each is fitted to rows that the lines before it have filled."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.design import Bounded, RegressionDesign
from reticent.models.fit import Estimator, Fit
from reticent.models.imputing import draws, predictions
from reticent.models.records import floats, records
from reticent.models.sources import ModelNoise
from reticent.noise.bits import Bits
from reticent.privacy.claim import amount
from reticent.sensitivity.neighbours import Neighbours

STEPS = 2048
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Which columns of an array are filled, in which order, between which bounds; with `bits`, about the lines. All public."""

    bounds: Sequence[tuple[float, float]]
    columns: Sequence[int]
    bits: Bits | None = None

    def __post_init__(self) -> None:
        places = list(self.columns)
        if not places or len(set(places)) < len(places) or not set(places) <= set(range(len(self.bounds))):
            raise PlanError("names columns of x by number, each once.", field="columns")
        if len(places) == len(self.bounds):
            raise PlanError("leaves nothing to predict the first from; leave one out.", field="columns")
        if any(not -1e300 < float(low) < float(high) < 1e300 for low, high in self.bounds):
            raise PlanError("are finite, the lower one first.", field="bounds")

    @property
    def nobody(self) -> Floats:
        """An array without a row."""
        return np.empty((0, len(self.bounds)))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse an array that the bounds are not for."""
        if len(shape) != 2 or shape[1] != len(self.bounds):
            raise PlanError("needs a pair for each column of x, and x two dimensions.", field="bounds")

    def within(self, x: Any) -> Floats:
        """An array of doubles within the bounds; what is no number is a gap."""
        values = np.asarray(x)
        self.check_shape(values.shape)
        low, high = (np.array([float(pair[side]) for pair in self.bounds]) for side in (0, 1))
        return np.asarray(np.clip(floats(values), low, high))

    def fit(
        self,
        filled: Floats,
        *,
        estimator: Estimator,
        prices: Sequence[Fraction],
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> tuple[Fit, ...]:
        """A line for each column, at its price, on rows that the lines before it have filled."""
        fits: list[Fit] = []
        for step, price in enumerate(prices):
            data = records(self._design(step), filled[:, self._from(step)], filled[:, self.columns[step]])
            given = data if estimator.requires == "rows" else data.sums()
            fits.append(estimator.fit(given, epsilon=price, neighbours=neighbours, noise=noise))
            filled = self._filled(filled, step, fits[step])
        return tuple(fits)

    def fill(self, rows: Floats, fits: Sequence[Fit]) -> Floats:
        """The rows with the gaps of the columns filled; each row from itself and the lines."""
        for step, fit in enumerate(fits):
            rows = self._filled(rows, step, fit)
        return rows

    def _from(self, step: int) -> list[int]:
        later = set(self.columns[step:])
        return [place for place in range(len(self.bounds)) if place not in later]

    def _design(self, step: int) -> RegressionDesign:
        predictors = tuple(self._column(place) for place in self._from(step))
        return RegressionDesign(predictors=predictors, response=self._column(self.columns[step]))

    def _column(self, place: int) -> Bounded:
        low, high = (Fraction(float(bound)) for bound in self.bounds[place])
        return Bounded.between(f"x{place}", low, high, steps=STEPS)

    def _filled(self, rows: Floats, step: int, fit: Fit) -> Floats:
        design, place = self._design(step), self.columns[step]
        at = rows[:, self._from(step)]
        said = predictions(fit, design, at) if self.bits is None else draws(fit, design, at, bits=self.bits)
        column = design.response
        values = float(column.origin) + said * float(column.grid)
        made = rows.copy()
        made[:, place] = np.where(np.isnan(rows[:, place]), values, rows[:, place])
        return made


def prices(epsilon: str, shares: Sequence[str] | None, *, lines: int) -> list[Fraction]:
    """What each line may cost: equal parts of epsilon, or the shares that were said."""
    whole = amount(epsilon)
    if shares is None:
        return [whole / lines] * lines
    parts = [amount(share, field="shares") for share in shares]
    if len(parts) != lines or sum(parts) != 1 or min(parts) <= 0:
        raise PlanError("are decimals above 0 that add up to 1, one for each column.", field="shares")
    return [part * whole for part in parts]
