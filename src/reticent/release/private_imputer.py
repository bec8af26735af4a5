"""Gaps of an array filled from private lines, one column after the other, in scikit-learn's manner."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from reticent.errors import PlanError
from reticent.models.centred import Centred
from reticent.models.fit import Estimator, Fit
from reticent.models.sources import ModelNoise, SystemModelNoise
from reticent.noise.bits import Bits, SystemBits
from reticent.privacy.claim import Claim
from reticent.release.array_fit import claim_of, fit_lines, shape_of
from reticent.release.chain import Chain, Floats, prices
from reticent.release.charging import Account
from reticent.release.params import Params
from reticent.sensitivity.neighbours import Neighbours


class PrivateImputer(Params):
    """Fill gaps from private lines: `PrivateImputer(epsilon="1", bounds=[(0, 99), (0, 500)], columns=[1]).fit(x)`.

    `columns` are filled in the order given, each from the columns that are not in the list and from those before it in
    the list, as filled. `shares` splits epsilon among them, evenly if it is not said. Bounds are public facts, one pair
    for each column, named before any row is seen: what lies outside is clamped, and nothing is refused because
    of a value. With `draws` gaps are drawn about the line, and each call of `transform` draws anew.

    The lines are private and cost epsilon at every `fit`. Give the `ledger` of the survey, a `Ledger` or its path, and each
    fit is charged to it before a row is read; each row is then one respondent of that survey. Without one nobody counts.

    CONFIDENTIAL: what `transform` gives back are the rows you gave it. To publish from filled rows, write
    `[[impute]] method = "regression"` in a plan.
    """

    _NAMES = ("epsilon", "bounds", "columns", "shares", "draws", "replaced", "estimator", "ledger")

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
        ledger: Account | None = None,
    ) -> None:
        self.epsilon, self.bounds, self.columns, self.shares = epsilon, bounds, columns, shares
        self.draws, self.replaced, self.estimator, self.ledger = draws, replaced, estimator, ledger
        self._noise: ModelNoise = SystemModelNoise()
        self._bits: Bits = SystemBits()

    def fit(self, x: Any, y: None = None) -> "PrivateImputer":
        """Fit a line for each column of `columns`, on rows that the lines before it have filled.

        With a ledger: charged before a row is read, and the lines are noted there before they are handed out. A fit that
        fails in between keeps its charge.

        Guarantee   epsilon-DP for one call.
        Adjacency   one row added or removed, or with `replaced` one row replaced.
        Theorem     THEORY 7.1, line by line: adaptive composition.
        Proof       proofs/release/private_imputer.md
        Assumes     each estimator keeps its promise; arguments do not depend on the rows.
        Keeps back  the rows; of them only the lines may be told. With a ledger, why a fit failed.
        """
        chain = self._chain()
        fitted = partial(
            chain.fit,
            estimator=self.estimator or Centred(),
            prices=prices(self.epsilon, self.shares, lines=len(self.columns)),
            neighbours=Neighbours(replaced=self.replaced),
        )
        if self.ledger is not None:
            chain.check_shape(shape_of(x, field="x"))
        self.lines_, self.receipt_ = fit_lines(
            self.ledger,
            "imputer",
            words=self._words(),
            sources=(self._noise, self._bits),
            nobody=lambda: fitted(chain.nobody, noise=SystemModelNoise()),
            read=lambda: fitted(chain.within(x), noise=self._noise),
        )
        self.n_features_in_ = len(self.bounds)
        return self

    def transform(self, x: Any) -> Floats:
        """The rows with gaps in `columns` filled and everything within its bounds. Other gaps stay."""
        chain = self._chain()
        return chain.fill(chain.within(x), self._fitted)

    def fit_transform(self, x: Any, y: None = None) -> Floats:
        """Both at once."""
        return self.fit(x).transform(x)

    @property
    def claim_(self) -> Claim:
        """What the lines promise together."""
        return claim_of(self._fitted)

    lines_: tuple[Fit, ...]
    receipt_: dict[str, Any] | None
    """What the ledger says of the last fit, where one was charged."""

    @property
    def _fitted(self) -> tuple[Fit, ...]:
        if not hasattr(self, "lines_"):
            raise PlanError("there are no lines yet; call fit first.", field="fit")
        return self.lines_

    def _chain(self) -> Chain:
        return Chain(bounds=self.bounds, columns=self.columns, bits=self._bits if self.draws else None)

    def _words(self) -> dict[str, Any]:
        """The arguments as the ledger's digest takes them."""
        return {
            "epsilon": self.epsilon,
            "bounds": [[float(bound) for bound in pair] for pair in self.bounds],
            "columns": [int(place) for place in self.columns],
            "shares": None if self.shares is None else list(self.shares),
            "draws": bool(self.draws),
            "replaced": bool(self.replaced),
            "estimator": repr(self.estimator or Centred()),
        }
