"""What an analyst would compute from synthetic rows: means, lines and correlations, beside the truth's.

Intervals are those that the analyst would write: of 95 %, from the synthetic rows as if they were a sample. How many of them
hold the truth's own number says what is lost by believing that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.lab.judge.classify import answered, has_order
from reticent.lab.trials.tables import Codes
from reticent.schema import Schema

Floats = NDArray[np.float64]
NORMAL = 1.959963985  # half of the usual interval of 95 %, in standard errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """`errors` are in standard deviations of the truth; `covered` is the share of intervals that hold the truth."""

    names: tuple[str, ...]
    errors: tuple[float, ...]
    covered: float

    @property
    def error(self) -> float:
        """The mean absolute error."""
        return float(np.mean(np.abs(self.errors)))


def ordered(schema: Schema, columns: Sequence[str]) -> list[int]:
    """Places of the columns of which a mean can be taken."""
    return [place for place, name in enumerate(columns) if has_order(schema, name)]


def means(truth: Codes, made: Codes, schema: Schema, columns: tuple[str, ...]) -> Estimates:
    """The mean code of every column with an order, over those who answered."""
    places = ordered(schema, columns)
    errors, held = [], []
    for place in places:
        true, drawn = (codes[answered(codes[:, place]), place].astype(float) for codes in (truth, made))
        gap = (drawn.mean() if len(drawn) else np.inf) - true.mean()
        errors.append(float(gap / (true.std() or 1.0)))
        held.append(abs(gap) <= NORMAL * (drawn.std() if len(drawn) else 0.0) / max(len(drawn), 1) ** 0.5)
    names = tuple(columns[place] for place in places)
    return Estimates(names=names, errors=tuple(errors), covered=float(np.mean(held)))


def line(
    truth: Codes, made: Codes, schema: Schema, columns: tuple[str, ...], *, target: str, given: Sequence[str]
) -> Estimates:
    """Least squares of `target` on the columns `given`, all in standard deviations of the truth; the constant is left out."""
    places = [list(columns).index(name) for name in (target, *given)]
    true, drawn = (
        codes[answered(codes[:, places]).all(axis=1)][:, places].astype(float) for codes in (truth, made)
    )
    middle, scale = true.mean(axis=0), np.where(true.std(axis=0) > 0, true.std(axis=0), 1.0)
    wanted, _ = _fitted((true - middle) / scale)
    found, spread = _fitted((drawn - middle) / scale)
    gaps = (found - wanted)[1:]
    held = np.abs(gaps) <= NORMAL * spread[1:]
    return Estimates(names=tuple(given), errors=tuple(gaps.tolist()), covered=float(held.mean()))


def _fitted(rows: Floats) -> tuple[Floats, Floats]:
    """Coefficients of the first column on a constant and the others, with their standard errors."""
    x, y = np.column_stack([np.ones(len(rows)), rows[:, 1:]]), rows[:, 0]
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ (x.T @ y)
    variance = ((y - x @ beta) ** 2).sum() / max(len(y) - x.shape[1], 1)
    return beta, np.sqrt(np.diag(inverse) * variance)


def correlation_error(truth: Codes, made: Codes, schema: Schema, columns: tuple[str, ...]) -> float:
    """The mean absolute difference of the correlations of all pairs of columns with an order, over who answered both."""
    places = ordered(schema, columns)
    pairs = [(a, b) for i, a in enumerate(places) for b in places[i + 1 :]]
    gaps = [abs(_correlation(truth, pair) - _correlation(made, pair)) for pair in pairs]
    return float(np.mean(gaps)) if gaps else 0.0


def _correlation(codes: Codes, pair: tuple[int, int]) -> float:
    both = codes[answered(codes[:, pair]).all(axis=1)][:, pair].astype(float)
    spread = both.std(axis=0) if len(both) else np.zeros(2)
    if not spread.all():
        return 0.0
    return float(((both - both.mean(axis=0)) / spread).prod(axis=1).mean())
