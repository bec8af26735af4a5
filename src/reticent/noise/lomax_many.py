"""Double Lomax noise for a long list of answers, each with a bound of its own."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.noise import calibrate
from reticent.noise.bits import Bits, words
from reticent.noise.laplace import check_whole
from reticent.noise.lazy import Largest, line
from reticent.noise.lomax import settle_lomax
from reticent.noise.many import BATCH

Floats = NDArray[np.float64]


def add_lomax_many(
    answers: Sequence[int], *, bounds: Floats, beta: Fraction, epsilon: Fraction, bits: Bits
) -> list[int]:
    """Add double Lomax noise to each answer, a whole number of grid steps, scaled to its own smooth bound in steps.

    Guarantee   epsilon-DP for the whole list, one call.
    Adjacency   the one the bounds were made for, if it touches one answer and its bound and leaves all others alone.
    Theorem     THEORY 2.1, 2.2 and 2.6; parallel composition.
    Proof       proofs/noise/lomax_many.md
    Assumes     beta = epsilon / m for an integer m >= 3; every bound is a positive double, beta-smooth.
    Keeps back  the bounds and the scales: both were read off the rows.
    """
    check_whole(answers)
    if len(answers) != len(bounds) or not (np.isfinite(bounds) & (bounds > 0)).all():
        raise ValueError("every answer has a bound, finite and positive")
    a = calibrate.lomax(epsilon=epsilon, beta=beta)
    m = int(epsilon / beta)  # a whole number, or the calibration has refused it
    drawn: list[int] = []
    for first in range(0, len(answers), BATCH):
        drawn += _batch(bounds[first : first + BATCH], a, m, bits)
    return [answer + noise for answer, noise in zip(answers, drawn, strict=True)]


def _batch(bounds: Floats, a: Fraction, m: int, bits: Bits) -> list[int]:
    """floor((S/a)|x| + 1/2) with a sign: w in [p, p+1] / 2**64, c = 2**64 - 1 - p, |x| in [c / (p+1), (c+1) / p]."""
    n = len(bounds)
    each = words(m * n, bits).reshape(m, n)
    negative = words(n, bits) >> np.uint64(63) != 0
    p = each.max(axis=0)
    c = (~p).astype(np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        size = bounds / float(a)
        low = (size * c / (p + 1.0) + 0.5) * (1.0 - 2.0**-46)
        high = (size * (c + 1.0) / p + 0.5) * (1.0 + 2.0**-46)
        is_settled = (np.floor(low) == np.floor(high)) & (high < 2.0**50)
    floor = np.where(is_settled, np.floor(low), 0.0).astype(np.int64)
    drawn: list[int] = np.where(negative, -floor, floor).tolist()
    for i in np.flatnonzero(~is_settled):
        w = Largest(bits, int((each[:, i] == p[i]).sum()), int(p[i]), 64)
        where = line(0, scale=Fraction(float(bounds[i])) / a, grid=Fraction(1))
        drawn[i] = settle_lomax(where, -1 if negative[i] else 1, w)
    return drawn
