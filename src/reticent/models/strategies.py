"""Three ways to a private mean of a column with gaps, on plain arrays, for trials.

Rows are replaced, and their number is public. (i) those who answered; (ii) fill from a line without noise and protect the
mean alone; (iii) a private line first, then a private mean.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.centred import Centred
from reticent.models.design import RegressionDesign
from reticent.models.fit import Estimator, Fit
from reticent.models.imputing import draws, mean_of, predictions
from reticent.models.records import Whole, codes, records
from reticent.models.sources import ModelNoise
from reticent.noise.bits import Bits
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.ladder import smooth_bound, straight
from reticent.sensitivity.neighbours import Neighbours

REPLACED = Neighbours(replaced=True)
TAIL = 8
"""epsilon/beta of Lomax noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A noisy mean, and the line it rests on where that was released."""

    mean: Fraction
    fit: Fit | None = None


def available_cases(
    design: RegressionDesign, y: NDArray[Any], *, epsilon: Fraction, noise: ModelNoise
) -> Filled:
    """The mean of those who answered: a noisy sum from the middle over a noisy count.

    Guarantee   epsilon-DP for one call.
    Adjacency   one row replaced, the number of rows public.
    Theorem     a row adds (2 code - low - high, width) or nothing; exchanged, both move by 2 width together at most.
    Proof       proofs/models/strategies.md
    Assumes     exact arithmetic.
    Keeps back  who answered.
    """
    column = design.response
    code, answered = codes(y, column)
    width, middle = column.high - column.low, column.low + column.high
    total = int((2 * code[answered] - middle).sum())
    count = int(answered.sum())
    noisy = noise.laplace_many([total, width * count], sensitivity=2 * width, epsilon=epsilon)
    size = max(Fraction(1), Fraction(noisy[1], width))
    return Filled(mean=mean_of((noisy[0] + size * middle) / 2, size, column))


def query_only(
    design: RegressionDesign, x: NDArray[Any], y: NDArray[Any], *, epsilon: Fraction, noise: ModelNoise
) -> Filled:
    """The mean after filling from ordinary least squares, protected at the end alone.

    Guarantee   epsilon-DP for one call.
    Adjacency   one row replaced, the number of rows public.
    Theorem     THEORY 7.2: the ladder (missing + 1 + k) x width, then Lomax noise.
    Proof       proofs/models/strategies.md
    Assumes     epsilon public; the filled codes lie within the bounds.
    Keeps back  how many answers are missing, the bound and the scale.
    """
    filled, missing = fill_exactly(design, x, y)
    column = design.response
    bound = missing_bound(missing, width=column.high - column.low, beta=epsilon / TAIL)
    noisy = noise.lomax(Fraction(int(filled.sum())), sensitivity=bound, epsilon=epsilon, grid=Fraction(1))
    return Filled(mean=mean_of(noisy, len(filled), column))


def missing_bound(missing: int, *, width: int, beta: Fraction) -> Smooth:
    """The smooth bound of a sum after deterministic filling, with `missing` gaps of at most `width` each.

    Guarantee   `beta`-smooth, and at least what one replaced row can move.
    Adjacency   one row replaced.
    Theorem     THEORY 7.2.
    Proof       proofs/models/strategies.md
    Assumes     one row moves its own code and every filled code by at most `width`.
    Keeps back  the bound.
    """
    ladder = straight(base=Fraction((missing + 1) * width), slope=Fraction(width))
    return smooth_bound(ladder, beta)


def fill_exactly(design: RegressionDesign, x: NDArray[Any], y: NDArray[Any]) -> tuple[Whole, int]:
    """Codes with gaps filled by least squares on the rows that answered, and how many gaps there were. No privacy."""
    code, answered = codes(y, design.response)
    seen = [codes(each, c)[0] for each, c in zip(np.asarray(x).T, design.predictors, strict=True)]
    full = np.column_stack([np.ones(len(code)), *seen]).astype(np.float64)
    line = np.linalg.lstsq(full[answered], code[answered].astype(np.float64), rcond=None)[0]
    said = np.clip(np.floor(full @ line + 0.5), design.response.low, design.response.high)
    return np.where(answered, code, said.astype(np.int64)), int((~answered).sum())


def both_stages(
    design: RegressionDesign,
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    epsilon: Fraction,
    delta: Fraction | None = None,
    share: Fraction = Fraction(1, 2),
    estimator: Estimator | None = None,
    bits: Bits | None = None,
    noise: ModelNoise,
) -> Filled:
    """The mean after filling from a private line; with `bits`, draws about the line instead of points on it.

    Guarantee   epsilon-DP for one call; (epsilon, delta)-DP where the estimator takes delta.
    Adjacency   one row replaced, the number of rows public.
    Theorem     THEORY 7.1: the line costs share x epsilon, the mean the rest.
    Proof       proofs/models/strategies.md
    Assumes     the design declares no public size: how many rows answered is not public.
    Keeps back  who answered, and the exact sum.
    """
    if design.size is not None:
        raise PlanError("not every row answered; leave it out of the design.", field="size")
    data, used = records(design, x, y), estimator or Centred()
    given = data if used.requires == "rows" else data.sums()
    first = share * epsilon
    fit = used.fit(given, epsilon=first, delta=delta, neighbours=REPLACED, noise=noise)
    code, answered = codes(y, design.response)
    said = predictions(fit, design, x) if bits is None else draws(fit, design, x, bits=bits)
    total = int(np.where(answered, code, said).sum())
    width = design.response.high - design.response.low
    noisy = noise.laplace(total, sensitivity=width, epsilon=epsilon - first)
    return Filled(mean=mean_of(noisy, len(code), design.response), fit=fit)
