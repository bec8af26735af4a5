"""Regression imputation of an array from private lines, one column after the other, in scikit-learn's manner.

Each line is fitted to rows that the lines before it have filled. Where a ledger is given: check, charge, read, keep, and
only then hand out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.errors import PlanError, ResourceError
from reticent.models.design import Bounded, RegressionDesign, floats, records
from reticent.models.fit import Estimator, Fit, ModelNoise, SystemModelNoise
from reticent.models.imputing import draws, predictions
from reticent.models.sums import Centred
from reticent.noise.bits import Bits, SystemBits
from reticent.privacy.claim import Claim, amount, check_exact, compose
from reticent.python.charging import Account, Params, Source, open_account, refuse_replayed, reserve_arrays
from reticent.python.frames import FrameOutput, headers_of, places_of
from reticent.sensitivity.bounds import Neighbours

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


Lines = tuple[Fit, ...]
FAILED = "could not be fitted as it was charged; nothing is handed out, and the charge stays"


def shape_of(x: Any, *, field: str) -> tuple[int, ...]:
    """The shape that `x` tells of itself, so that no row is read for it."""
    shape = getattr(x, "shape", None)
    if not isinstance(shape, tuple):
        raise PlanError("with a ledger, give an array or a frame, which tells its shape unread.", field=field)
    return shape


def claim_of(lines: Lines) -> Claim:
    """What the lines promise together."""
    return compose([fit.claim for fit in lines])


def fit_lines(
    account: Account | None,
    what: str,
    *,
    words: Mapping[str, Any],
    sources: Sequence[Source],
    nobody: Callable[[], Lines],
    read: Callable[[], Lines],
) -> tuple[Lines, dict[str, Any] | None]:
    """The lines that `read` finds, and the receipt of their charge, where there is a ledger.

    `nobody` fits the same lines to no rows: that tries the arguments and gives the claim, before a row is read. An
    estimator that is proved for ideal reals alone is refused here, ledger or not.
    """
    ledger = open_account(account)
    if ledger is not None:
        refuse_replayed(*sources)
    claim = check_exact(claim_of(nobody()), field="estimator")
    if ledger is None:
        return read(), None
    held = reserve_arrays(ledger, what, words=words, claim=claim)
    lines = _fenced(read, claim)
    if lines is None:
        raise ResourceError(FAILED, field="fit")
    ledger.commit(held, _kept(lines, claim))
    return lines, held.receipt.as_dict()


def _fenced(read: Callable[[], Lines], claim: Claim) -> Lines | None:
    """The lines, if they are what was charged. Whatever a fit says when it fails may hold something read from a row."""
    with suppress(Exception):
        lines = read()
        return lines if claim_of(lines) == claim else None
    return None


def _kept(lines: Lines, claim: Claim) -> bytes:
    """The lines as they were handed out, number for number."""
    told = [
        {
            "intercept": str(fit.intercept),
            "slopes": [str(slope) for slope in fit.slopes],
            "variance": str(fit.variance),
        }
        for fit in lines
    ]
    return json.dumps({"lines": told, "claim": claim.as_dict()}, sort_keys=True).encode()


def _whole(values: Floats) -> pa.Array:
    """Whole numbers as integers, where all that are there are whole; else doubles, a gap as nothing."""
    told = values[~np.isnan(values)]
    is_whole = bool(len(told)) and bool((told == np.floor(told)).all()) and float(np.abs(told).max()) <= 2**53
    kept = np.where(np.isnan(values), 0, values)
    return pa.array(kept.astype(np.int64) if is_whole else kept, mask=np.isnan(values))


class PrivateImputer(FrameOutput, Params):
    """Fill gaps from private lines: `PrivateImputer(epsilon="1", bounds=[(0, 99), (0, 500)], columns=[1]).fit(x)`.

    `columns` are filled in the order given, each from the columns that are not in the list and from those before it in
    the list, as filled. `shares` splits epsilon among them, evenly if it is not said. Bounds are public facts, one pair
    for each column, named before any row is seen: what lies outside is clamped, and nothing is refused because
    of a value. With `draws` gaps are drawn about the line, and each call of `transform` draws anew.

    The lines are private and cost epsilon at every `fit`. Give the `ledger` of the survey, a `Ledger` or its path, and each
    fit is charged to it before a row is read; each row is then one respondent of that survey. Without one nobody counts.

    CONFIDENTIAL: what `transform` gives back are the rows you gave it. To publish from filled rows, write
    `[[impute]] method = "regression"` in a plan.

    **Parameters**

    - `epsilon`: the privacy budget of one `fit`, a decimal as text.
    - `bounds`: a public pair, lowest and highest, for every column; or for columns by their header.
    - `columns`: the columns to fill, in order, by their places or headers.
    - `shares`: how epsilon is split among them, decimals that add up to 1.
    - `draws`: draw about the line (stochastic regression imputation), and not the prediction itself.
    - `replaced`: protect one row replaced, and not one added or removed.
    - `estimator`: how a line is fitted; noisy centred sums where not said.
    - `ledger`: a `Ledger` or its path, charged before a row is read.
    """

    _NAMES = ("epsilon", "bounds", "columns", "shares", "draws", "replaced", "estimator", "ledger")

    def __init__(
        self,
        *,
        epsilon: str,
        bounds: Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]],
        columns: Sequence[int | str],
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
        chain = self._chain(headers_of(x))
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
            words=self._words(chain),
            sources=(self._noise, self._bits),
            nobody=lambda: fitted(chain.nobody, noise=SystemModelNoise()),
            read=lambda: fitted(chain.within(x), noise=self._noise),
        )
        self.n_features_in_ = len(self.bounds)
        if (headers := headers_of(x)) is not None:
            self.feature_names_in_ = np.asarray(headers, dtype=object)
        return self

    def transform(self, x: Any) -> Any:
        """The rows with gaps in `columns` filled and everything within its bounds. Other gaps stay.

        A frame gives a frame of its kind back, with its headers, index and whole numbers; an array gives an array, unless
        `set_output` asks for a frame.
        """
        headers = headers_of(x)
        chain = self._chain(headers)
        filled = chain.fill(chain.within(x), self._fitted)
        if headers is None and self._output == "default":
            return filled
        names = headers or [f"x{place}" for place in range(filled.shape[1])]
        return self._as_given(x, pa.table({name: _whole(filled[:, i]) for i, name in enumerate(names)}))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The headers of what `transform` gives back: those that were given."""
        known = getattr(self, "feature_names_in_", None)
        return (
            known
            if known is not None
            else np.asarray([f"x{i}" for i in range(len(self.bounds))], dtype=object)
        )

    def fit_transform(self, x: Any, y: None = None) -> Any:
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

    def _chain(self, headers: Sequence[str] | None = None) -> Chain:
        """The columns by their places. Headers are those of the frame, or of the one that was fitted."""
        known = headers if headers is not None else getattr(self, "feature_names_in_", None)
        known = None if known is None else [str(name) for name in known]
        bounds = self.bounds
        if isinstance(bounds, Mapping):
            if known is None or set(bounds) != set(known):
                raise PlanError("by header need a frame with exactly these headers.", field="bounds")
            bounds = [bounds[name] for name in known]
        places = places_of(self.columns, known)
        return Chain(bounds=bounds, columns=places, bits=self._bits if self.draws else None)

    def _words(self, chain: Chain) -> dict[str, Any]:
        """The arguments as the ledger's digest takes them."""
        return {
            "epsilon": self.epsilon,
            "bounds": [[float(bound) for bound in pair] for pair in chain.bounds],
            "columns": [int(place) for place in chain.columns],
            "shares": None if self.shares is None else list(self.shares),
            "draws": bool(self.draws),
            "replaced": bool(self.replaced),
            "estimator": repr(self.estimator or Centred()),
        }
