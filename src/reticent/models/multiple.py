"""Multiple imputation: one private line, several completed data sets, one answer with an interval.

What the copies cost is plain. The line is paid for once, however many copies are made from it: they are drawn from what
was released. The answers are not free: one respondent is in every copy, so the noise of each answer is `copies`
times as wide, and that of their mean still the square root of `copies` times.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.centred import Centred
from reticent.models.design import Design
from reticent.models.fit import Fit, check, claim_of, tell
from reticent.models.imputing import FINE, means, normal
from reticent.models.moments import Moments, laplace_moments
from reticent.models.records import Whole, codes, records
from reticent.models.solve import leftover, lifted, ridge
from reticent.models.sources import ModelNoise
from reticent.models.strategies import REPLACED
from reticent.noise.bits import Bits
from reticent.refine.rubin import Combined, combine

Floats = NDArray[np.float64]
PAGE = "proofs/models/multiple.md"
SQUARES = Fraction(1, 10)
"""Of what the answers get, for the spread that their sampling variance needs."""

MOST_COPIES = 100
FITS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiple:
    """A mean of completed data sets with its total variance, each noisy answer, and the line they rest on."""

    combined: Combined
    answers: tuple[float, ...]
    fit: Fit


def multiple_mean(
    design: Design,
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    epsilon: Fraction,
    share: Fraction = Fraction(1, 2),
    copies: int = 5,
    bits: Bits,
    noise: ModelNoise,
) -> Multiple:
    """The mean of a column with gaps, from `copies` completed data sets.

    Guarantee   epsilon-DP for one call.
    Adjacency   one row replaced, the number of rows public.
    Theorem     THEORY 7.1: the line costs share x epsilon, all answers together the rest.
    Proof       proofs/models/multiple.md
    Assumes     share and copies are public; the design declares no public size, since who answered is private.
    Keeps back  who answered, the exact sums, and every draw.
    """
    if design.size is not None or not 2 <= copies <= MOST_COPIES or not 0 < share < 1:
        raise PlanError(
            f"takes 2 to {MOST_COPIES} copies, a share inside (0, 1), no public size.", field="copies"
        )
    first = share * epsilon
    moments = line_sums(design, x, y, epsilon=first, noise=noise)
    theta, spread = drawn_from(moments)
    claim = claim_of(PAGE, "THEORY 7.3", epsilon=first, neighbours=REPLACED)
    fits = [
        tell(design, (theta + spread @ normal(len(theta), bits)).tolist(), leftover(moments, theta), claim)
        for _ in range(copies)
    ]
    filled = [complete(fit, design, x, y, bits=bits) for fit in fits]
    answers, within = told(design, filled, epsilon=epsilon - first, noise=noise)
    width, size = float(design.response.grid) * _width(design), max(1, len(np.asarray(y)))
    scale = copies * width / float((1 - SQUARES) * (epsilon - first)) / size
    made = combine(answers, within=within, noise=2 * scale**2)
    return Multiple(
        combined=made,
        answers=tuple(answers),
        fit=tell(design, theta.tolist(), leftover(moments, theta), claim),
    )


def line_sums(
    design: Design, x: NDArray[Any], y: NDArray[Any], *, epsilon: Fraction, noise: ModelNoise
) -> Moments:
    """The noisy sums of `Centred`, which say how uncertain the line is, too.

    Guarantee   epsilon-DP for one call.
    Adjacency   one row replaced.
    Theorem     THEORY 7.3 with a scale for each column.
    Proof       proofs/models/multiple.md
    Assumes     as `laplace_moments`.
    Keeps back  the exact sums.
    """
    check(design, epsilon=epsilon, delta=None, neighbours=REPLACED)
    sums = records(design, np.asarray(x), np.asarray(y)).sums()
    scales = [Centred().level] + [Fraction(1)] * (len(sums.products) - 1)
    return laplace_moments(sums, scales=scales, epsilon=epsilon, neighbours=REPLACED, noise=noise)


def drawn_from(moments: Moments) -> tuple[Floats, Floats]:
    """The line in unit columns, and a matrix whose product with standard normal numbers is its uncertainty.

    With G = X'X, c = X'y and residual variance s^2, the line has covariance s^2 / G from sampling and G^-1 N G^-1 from
    the noise, N that of c - G b. Released numbers alone.
    """
    gram = lifted(moments.gram, max(moments.blur, 1e-9))
    theta = ridge(gram, moments.cross, 0.0)
    inverse = np.linalg.inv(gram)
    start = len(moments.table) - 1 - len(theta)
    noise = moments.spread[start:-1, start:-1] ** 2
    # (dG b)_i = sum_j dG_ij b_j with dG symmetric: off the diagonal the one number dG_ij is shared by i and j.
    shared = np.outer(theta, theta) * noise
    np.fill_diagonal(shared, noise @ theta**2 + moments.spread[start:-1, -1] ** 2)
    total = leftover(moments, theta) * inverse + inverse @ shared @ inverse
    values, vectors = np.linalg.eigh((total + total.T) / 2)
    return theta, np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def complete(fit: Fit, design: Design, x: NDArray[Any], y: NDArray[Any], *, bits: Bits) -> Whole:
    """Codes with every gap drawn about the line; a draw goes no farther than the nearer bound on either side.

    Clamping alone would pull draws away from the nearer bound; held alike on both sides they keep the line's mean.
    """
    code, answered = codes(np.asarray(y), design.response)
    low, high = design.response.low, design.response.high
    mean = np.clip(means(fit, design, np.asarray(x)), low, high)
    spread = isqrt(int(fit.variance / design.response.grid**2 * FINE**2)) / FINE
    room = np.minimum(mean - low, high - mean)
    off = np.clip(spread * normal(len(mean), bits), -room, room)
    said = np.clip(np.floor(mean + off + 0.5), low, high).astype(np.int64)
    return np.where(answered, code, said)


def told(
    design: Design, filled: list[Whole], *, epsilon: Fraction, noise: ModelNoise
) -> tuple[list[float], float]:
    """The noisy mean of every copy, and the sampling variance of one, in the units of the response.

    Guarantee   epsilon-DP for one call, given the lines that filled the copies.
    Adjacency   one row replaced, the number of rows public.
    Theorem     a row is in every copy: all sums together move by copies x width; then the Laplace mechanism twice.
    Proof       proofs/models/multiple.md
    Assumes     a row's codes depend on that row, released lines and its own draws; exact arithmetic.
    Keeps back  the exact sums.
    """
    column, width, copies = design.response, _width(design), len(filled)
    size = max(1, len(filled[0]))
    totals = [_added(each, max(abs(column.low), abs(column.high))) for each in filled]
    noisy = noise.laplace_many(totals, sensitivity=copies * width, epsilon=(1 - SQUARES) * epsilon)
    middle = column.low + column.high
    exact = sum(_added(2 * each - middle, width, squared=True) for each in filled)
    squares = noise.laplace(exact, sensitivity=copies * width**2, epsilon=SQUARES * epsilon)
    grid, origin = float(column.grid), float(column.origin)
    about = float(np.mean(noisy)) / size - middle / 2
    spread = min(max(squares / (4 * copies * size) - about**2, 0.0), width**2 / 4)
    return [origin + grid * total / size for total in noisy], spread * grid**2 / size


def _added(numbers: Whole, largest: int, *, squared: bool = False) -> int:
    """The exact sum of numbers, or of their squares, none larger than `largest`."""
    each = largest**2 if squared else largest
    whole: NDArray[Any] = numbers if len(numbers) * each < FITS else numbers.astype(object)
    return int(np.sum(whole * whole if squared else whole))


def _width(design: Design) -> int:
    return design.response.high - design.response.low
