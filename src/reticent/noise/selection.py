"""Choose the best of several candidates, or of all whole numbers, almost: permute-and-flip and the exponential mechanism, exactly."""

from collections.abc import Sequence
from fractions import Fraction
from operator import index

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import LARGEST, Bits, Floats, Uniform, below, flip_many, is_below_exp
from reticent.sensitivity.value_ladder import CountLengths


def permute_and_flip(
    scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False, bits: Bits
) -> int:
    """The index of a candidate whose score is near the best one.

    Each candidate's coin falls heads with probability exp(-rate * (best - score)); one of the heads is taken, evenly.
    That is McKenna and Sheldon's mechanism: the first head in a random order is an even choice among the heads.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     McKenna and Sheldon 2020; Ding et al. 2021.
    Proof       proofs/noise/selection.md
    Assumes     each score moves by at most `sensitivity`; with `monotone`, all of them up or all of them down.
    Keeps back  the scores, and how many coins fell heads.
    """
    rate = _rate(sensitivity, epsilon, monotone)
    gaps, gamma = _gaps(scores, rate)
    heads = np.flatnonzero(flip_many(gamma, lambda i: rate * gaps[i], bits))
    return int(heads[below(len(heads), bits)])


def exponential(
    scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False, bits: Bits
) -> int:
    """The index of a candidate, with probability in proportion to exp(rate * score).

    Guarantee   epsilon-DP for one call; also (epsilon^2/8)-zCDP.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     McSherry and Talwar 2007; Dong et al. 2020; Cesar and Rogers 2021.
    Proof       proofs/noise/selection.md
    Assumes     each score moves by at most `sensitivity`; with `monotone`, all of them up or all of them down.
    Keeps back  the scores, and the number of tries.
    """
    rate = _rate(sensitivity, epsilon, monotone)
    gaps, gamma = _gaps(scores, rate)
    while True:
        tried = _evenly(len(gaps), bits)
        heads = flip_many(gamma[tried], lambda i, tried=tried: rate * gaps[tried[i]], bits)  # type: ignore[misc]
        if heads.any():
            return int(tried[np.argmax(heads)])


def exponential_around(lengths: CountLengths, *, sensitivity: int, epsilon: Fraction, bits: Bits) -> int:
    """A whole number, with probability in proportion to exp(-rate * steps), its steps those from the count.

    One try takes a number of steps k with probability in proportion to exp(-rate * k), and keeps it in proportion to how many
    numbers lie k steps away. At one step there are most.

    Guarantee   epsilon-DP for one call; also (epsilon^2/8)-zCDP.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     McSherry and Talwar 2007; Dong et al. 2020; Cesar and Rogers 2021.
    Proof       proofs/noise/selection.md
    Assumes     the steps of each number move by at most `sensitivity`; at no number of steps lie more than at one.
    Keeps back  the lengths, and the number of tries.
    """
    rate = _rate(sensitivity, epsilon, monotone=False)
    count, up, down = lengths.count, lengths.up, lengths.down
    most = up.upto(1) + down.upto(1)
    while True:
        k = _geometric(rate, bits)
        place = below(most, bits)
        if k == 0:
            if place == 0:
                return count
            continue
        rising = up.upto(k) - up.upto(k - 1)
        if place < rising:
            return count + up.upto(k) - place
        if place - rising < down.upto(k) - down.upto(k - 1):
            return count - down.upto(k) + place - rising


def _geometric(rate: Fraction, bits: Bits) -> int:
    """k >= 0 with probability in proportion to exp(-rate * k).

    u + t v has probabilities in proportion to exp(-x/t) for u < t; of s such x in a row, rate = s/t, one k is made.
    """
    s, t = rate.numerator, rate.denominator
    while not is_below_exp(Uniform(bits), Fraction(u := below(t, bits), t)):
        pass
    v = 0
    while is_below_exp(Uniform(bits), Fraction(1)):
        v += 1
    return (u + t * v) // s


def _rate(sensitivity: int, epsilon: Fraction, monotone: bool) -> Fraction:
    if sensitivity < 1:
        raise PlanError("the sensitivity of a score is a positive whole number")
    if epsilon <= 0:
        raise PlanError("epsilon is positive")
    return Fraction(epsilon) / (sensitivity if monotone else 2 * sensitivity)


def _gaps(scores: Sequence[int], rate: Fraction) -> tuple[list[int], Floats]:
    """How far each score lies below the best, and min(rate * gap, 60) as doubles within 2**-46."""
    if not scores:
        raise PlanError("there is nothing to choose from")
    whole = list(map(index, scores))
    best = max(whole)
    gaps = [best - score for score in whole]
    up, down, top = rate.numerator << 48, rate.denominator, int(LARGEST) << 48
    fixed = np.array([min(gap * up // down, top) for gap in gaps], dtype=np.int64)
    return gaps, fixed.astype(np.float64) * 2.0**-48


def _evenly(n: int, bits: Bits) -> NDArray[np.int64]:
    """A batch of independent indices, each uniform on 0 .. n-1."""
    width = max(1, (n - 1).bit_length())
    count = max(16, min(n, 1 << 14))
    raw = np.frombuffer(bits.take(32 * count).to_bytes(4 * count), dtype=np.uint32) >> (32 - width)
    return raw[raw < n].astype(np.int64)
