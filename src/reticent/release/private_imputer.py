"""Gaps of an array filled from private lines, one column after the other, in scikit-learn's manner."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.centred import Centred
from reticent.models.design import Bounded, Design
from reticent.models.fit import Estimator, Fit
from reticent.models.imputing import draws, predictions
from reticent.models.records import floats, records
from reticent.models.sources import ModelNoise, SystemModelNoise
from reticent.noise.bits import Bits, SystemBits
from reticent.privacy.claim import Claim, amount, compose
from reticent.sensitivity.neighbours import Neighbours

STEPS = 2048
Floats = NDArray[np.float64]


class PrivateImputer:
    """Fill gaps from private lines: `PrivateImputer(epsilon="1", bounds=[(0, 99), (0, 500)], columns=[1]).fit(x)`.

    `columns` are filled in the order given, each from the columns that are not in the list and from those before it in
    the list, as filled. `shares` splits epsilon among them, evenly if it is not said. Bounds are public facts, one pair
    for each column, named before any row is seen: what lies outside is clamped, and nothing is refused because
    of a value. With `draws` gaps are drawn about the line, and each call of `transform` draws anew.

    The lines are private and cost epsilon at every `fit`; no ledger is charged. CONFIDENTIAL: what `transform` gives
    back are the rows you gave it. To publish from filled rows, write `[[repair]] kind = "model"` in a plan.
    """

    _NAMES = ("epsilon", "bounds", "columns", "shares", "draws", "replaced", "estimator")

    def __init__(
        self,
        *,
        epsilon: str,
        bounds: Sequence[tuple[float, float]],
        columns: Sequence[int],
        shares: Sequence[str] | None = None,
        draws: bool = False,
        replaced: bool = False,
        estimator: Estimator | None = None,
    ) -> None:
        self.epsilon, self.bounds, self.columns, self.shares = epsilon, bounds, columns, shares
        self.draws, self.replaced, self.estimator = draws, replaced, estimator
        self._noise: ModelNoise = SystemModelNoise()
        self._bits: Bits = SystemBits()

    def fit(self, x: Any, y: None = None) -> "PrivateImputer":
        """Fit a line for each column of `columns`, on rows that the lines before it have filled.

        Guarantee   epsilon-DP for one call.
        Adjacency   one row added or removed, or with `replaced` one row replaced.
        Theorem     THEORY 7.1, line by line: adaptive composition.
        Proof       proofs/release/private_imputer.md
        Assumes     each estimator keeps its promise; arguments do not depend on the rows.
        Keeps back  the rows; of them only the lines may be told.
        """
        filled, fits = self._checked(x), list[Fit]()
        estimator = self.estimator or Centred()
        for step, share in enumerate(self._split()):
            data = records(self._design(step), filled[:, self._from(step)], filled[:, self.columns[step]])
            fit = estimator.fit(
                data if estimator.requires == "rows" else data.sums(),
                epsilon=share,
                neighbours=Neighbours(replaced=self.replaced),
                noise=self._noise,
            )
            filled, fits = self._filled(filled, step, fit), [*fits, fit]
        self.lines_: tuple[Fit, ...] = tuple(fits)
        self.n_features_in_ = len(self.bounds)
        return self

    def transform(self, x: Any) -> Floats:
        """The rows with gaps in `columns` filled and everything within its bounds. Other gaps stay."""
        filled = self._checked(x)
        for step, fit in enumerate(self._fitted):
            filled = self._filled(filled, step, fit)
        return filled

    def fit_transform(self, x: Any, y: None = None) -> Floats:
        """Both at once."""
        return self.fit(x).transform(x)

    @property
    def claim_(self) -> Claim:
        """What the lines promise together."""
        return compose([fit.claim for fit in self._fitted])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in self._NAMES}

    def set_params(self, **params: Any) -> "PrivateImputer":
        """Change arguments by name."""
        for name, value in params.items():
            if name not in self._NAMES:
                raise PlanError(f"PrivateImputer has no argument {name[:80]!r}", field="set_params")
            setattr(self, name, value)
        return self

    @property
    def _fitted(self) -> tuple[Fit, ...]:
        if not hasattr(self, "lines_"):
            raise PlanError("there are no lines yet; call fit first.", field="fit")
        return self.lines_

    def _checked(self, x: Any) -> Floats:
        """An array of doubles within the bounds; what is no number is a gap."""
        self._check_arguments()
        values = np.asarray(x)
        if values.ndim != 2 or values.shape[1] != len(self.bounds):
            raise PlanError("needs a pair for each column of x, and x two dimensions.", field="bounds")
        low, high = (np.array([float(pair[side]) for pair in self.bounds]) for side in (0, 1))
        return np.asarray(np.clip(floats(values), low, high))

    def _check_arguments(self) -> None:
        places = list(self.columns)
        if not places or len(set(places)) < len(places) or not set(places) <= set(range(len(self.bounds))):
            raise PlanError("names columns of x by number, each once.", field="columns")
        if len(places) == len(self.bounds):
            raise PlanError("leaves nothing to predict the first from; leave one out.", field="columns")
        if any(not -1e300 < float(low) < float(high) < 1e300 for low, high in self.bounds):
            raise PlanError("are finite, the lower one first.", field="bounds")

    def _split(self) -> list[Fraction]:
        whole = amount(self.epsilon)
        if self.shares is None:
            return [whole / len(self.columns)] * len(self.columns)
        shares = [amount(share, field="shares") for share in self.shares]
        if len(shares) != len(self.columns) or sum(shares) != 1 or min(shares) <= 0:
            raise PlanError("are decimals above 0 that add up to 1, one for each column.", field="shares")
        return [share * whole for share in shares]

    def _from(self, step: int) -> list[int]:
        later = set(self.columns[step:])
        return [place for place in range(len(self.bounds)) if place not in later]

    def _design(self, step: int) -> Design:
        predictors = tuple(self._column(place) for place in self._from(step))
        return Design(predictors=predictors, response=self._column(self.columns[step]))

    def _column(self, place: int) -> Bounded:
        low, high = (Fraction(float(bound)) for bound in self.bounds[place])
        return Bounded.between(f"x{place}", low, high, steps=STEPS)

    def _filled(self, rows: Floats, step: int, fit: Fit) -> Floats:
        design, place = self._design(step), self.columns[step]
        at = rows[:, self._from(step)]
        said = draws(fit, design, at, bits=self._bits) if self.draws else predictions(fit, design, at)
        column = design.response
        values = float(column.origin) + said * float(column.grid)
        made = rows.copy()
        made[:, place] = np.where(np.isnan(rows[:, place]), values, rows[:, place])
        return made
