"""Three ways to a private mean of a column with gaps, on plain arrays, for trials.

Rows are replaced, and their number is public. (i) those who answered; (ii) fill from a line without noise and protect the
mean alone; (iii) a private line first, then a private mean.

Multiple imputation: one private line, several completed data sets, one answer with an interval.

What the copies cost is plain. The line is paid for once, however many copies are made from it: they are drawn from what
was released. The answer is the mean over all copies, asked once. A respondent is in every copy, but in their mean
with one share: it moves as far as a single copy's answer, and has its noise. So copies cost nothing, and buy no privacy.
The spread between copies is not read off them, which would be dear: it follows from the line, and from private sums
over those who have gaps.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.design import Records, RegressionDesign, Whole, codes, records
from reticent.models.fit import Estimator, Fit, ModelNoise, claim_of, tell
from reticent.models.imputing import FINE, draws, mean_of, means, normal, predictions
from reticent.models.moments import UNIT, uncertain
from reticent.models.sums import Centred
from reticent.noise.bits import Bits
from reticent.refine.rubin import Combined, combine
from reticent.sensitivity.bounds import Neighbours, Smooth, smooth_bound, straight

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


def query_only_published(
    design: RegressionDesign, x: NDArray[Any], y: NDArray[Any], *, epsilon: Fraction, noise: ModelNoise
) -> Filled:
    """Strategy (ii) as published: the same filled mean, Laplace noise for (missing + 1) times its sensitivity.

    For comparison, not a guarantee: the number missing is data, and the scale of the noise tells it (THEORY 7.2).
    """
    filled, missing = fill_exactly(design, x, y)
    column = design.response
    moved = (missing + 1) * (column.high - column.low)
    noisy = noise.laplace(int(filled.sum()), sensitivity=moved, epsilon=epsilon)
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


PAGE = "proofs/models/multiple.md"
SQUARES = GAPS = Fraction(1, 10)
"""Of what the answer gets, for the spread of the completed answers, and for the sums over those with gaps."""

MOST_COPIES = 100
FITS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiple:
    """A mean of completed data sets with its total variance, and the line it rests on."""

    combined: Combined
    fit: Fit


def multiple_mean(
    design: RegressionDesign,
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
    sums = records(design, np.asarray(x), np.asarray(y)).sums()
    line = uncertain(Centred().moments(sums, epsilon=first, neighbours=REPLACED, noise=noise))
    claim = claim_of(PAGE, "THEORY 7.3", epsilon=first, neighbours=REPLACED)
    root = line.root
    fits = [
        tell(design, (line.theta + root @ normal(len(root), bits)).tolist(), line.variance, claim)
        for _ in range(copies)
    ]
    filled = [complete(fit, design, x, y, bits=bits) for fit in fits]
    rest = epsilon - first
    gaps = gap_sums(design, x, y, epsilon=GAPS * rest, noise=noise)
    value, spread, scale = told(design, filled, epsilon=(1 - GAPS) * rest, noise=noise)
    half, size = float(design.response.grid) * _width(design) / 2, max(1, len(np.asarray(y)))
    at = gaps if design.intercept else gaps[1:]
    # Of the mean: the line moves it by half x at'(its error) / size, the draws by their variance in every gap.
    sampled, heavy = (float(at @ part @ at) * (half / size) ** 2 for part in (line.sampling, line.noise))
    drawn = max(0.0, float(gaps[0])) * line.variance * (half / size) ** 2
    made = combine(
        value, within=spread / size, between=sampled + drawn, heavy=heavy, copies=copies, noise=2 * scale**2
    )
    return Multiple(combined=made, fit=tell(design, line.theta.tolist(), line.variance, claim))


def complete(fit: Fit, design: RegressionDesign, x: NDArray[Any], y: NDArray[Any], *, bits: Bits) -> Whole:
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


def gap_sums(
    design: RegressionDesign, x: NDArray[Any], y: NDArray[Any], *, epsilon: Fraction, noise: ModelNoise
) -> NDArray[np.float64]:
    """How many rows have a gap, and the sum of each of their predictors in unit columns; noisy.

    Guarantee   epsilon-DP for one call.
    Adjacency   one row replaced.
    Theorem     a row with a gap adds (1, u), u in [-1, 1]^d; then the Laplace mechanism on the integers.
    Proof       proofs/models/multiple.md
    Assumes     a row's u depends on that row alone; exact arithmetic.
    Keeps back  who answered, and the exact sums.
    """
    found = [codes(each, c) for each, c in zip(np.asarray(x).T, design.predictors, strict=True)]
    held = [
        2 * np.where(answered, code, (c.low + c.high) // 2) - design.centre(c)
        for (code, answered), c in zip(found, design.predictors, strict=True)
    ]
    is_gap = ~codes(np.asarray(y), design.response)[1]
    z = np.column_stack([*held, np.zeros(len(is_gap), dtype=np.int64)])[is_gap]
    exact = Records(design=design, z=z).scaled(UNIT)[:, :-1].sum(axis=0).tolist()
    # Both rows have gaps: u may turn about, by 2 in each predictor. Or one has: 1 in each, and 1 in the count.
    reach = max(2 * len(held), len(held) + 1)
    return np.array(noise.laplace_many(exact, sensitivity=reach * UNIT, epsilon=epsilon)) / UNIT


def told(
    design: RegressionDesign, filled: list[Whole], *, epsilon: Fraction, noise: ModelNoise
) -> tuple[float, float, float]:
    """The noisy mean over all copies, the spread of the rows about it, and the scale of the noise; in the response's units.

    Guarantee   epsilon-DP for one call, given the lines that filled the copies.
    Adjacency   one row replaced, the number of rows public.
    Theorem     a row is in every copy: the sum over all of them moves by copies x width; then the Laplace mechanism twice.
    Proof       proofs/models/multiple.md
    Assumes     a row's codes depend on that row, released lines and its own draws; exact arithmetic.
    Keeps back  the exact sums.
    """
    column, width, copies = design.response, _width(design), len(filled)
    size = max(1, len(filled[0]))
    squared = SQUARES / (1 - GAPS) * epsilon
    total = sum(_added(each, max(abs(column.low), abs(column.high))) for each in filled)
    noisy = noise.laplace(total, sensitivity=copies * width, epsilon=epsilon - squared)
    middle = column.low + column.high
    exact = sum(_added(2 * each - middle, width, squared=True) for each in filled)
    squares = noise.laplace(exact, sensitivity=copies * width**2, epsilon=squared)
    grid, mean = float(column.grid), noisy / (copies * size)
    spread = min(max(squares / (4 * copies * size) - (mean - middle / 2) ** 2, 0.0), width**2 / 4)
    scale = width / float(epsilon - squared) / size
    return float(column.origin) + grid * mean, spread * grid**2, scale * grid


def _added(numbers: Whole, largest: int, *, squared: bool = False) -> int:
    """The exact sum of numbers, or of their squares, none larger than `largest`."""
    each = largest**2 if squared else largest
    whole: NDArray[Any] = numbers if len(numbers) * each < FITS else numbers.astype(object)
    return int(np.sum(whole * whole if squared else whole))


def _width(design: RegressionDesign) -> int:
    return design.response.high - design.response.low
