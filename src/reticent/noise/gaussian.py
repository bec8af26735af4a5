"""Discrete Gaussian noise for whole numbers with a global bound."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import absolute_distance, l2_distance
from opendp.mod import enable_features

from reticent.errors import PlanError
from reticent.noise.bits import SystemBits
from reticent.noise.laplace import check_whole, float_up
from reticent.noise.tabled import LARGEST, Whole, discrete_table, rounded_table
from reticent.noise.vector import draw_gaussian
from reticent.sensitivity.bounds import Global

MANY, FARTHEST = 32, float(1 << 48)
"""Lists from this length on are drawn by our own samplers, where sigma fits them; shorter ones, and single answers, by OpenDP."""

enable_features("contrib")  # OpenDP's integer samplers are behind this door


def add_gaussian(answer: int, *, sensitivity: Global, rho: Fraction) -> int:
    """Add discrete Gaussian noise, P(x) ~ exp(-x*x / (2 sigma*sigma)), with sigma at least sensitivity / sqrt(2 rho).

    Guarantee   rho-zCDP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     Canonne, Kamath and Steinke 2020, Theorem 4.
    Proof       proofs/noise/gaussian.md
    Assumes     |answer - answer'| <= sensitivity.bound; OpenDP's integer sampler is exact.
    Keeps back  nothing: the scale is public.
    """
    check_whole([answer])
    if sensitivity.bound.denominator != 1:
        raise PlanError("the bound of a count or a sum on its grid is a whole number of grid steps")
    return int(_scalar(gaussian_scale(sensitivity, rho))(answer))


def add_gaussian_many(answers: Sequence[int], *, sensitivity: Global, rho: Fraction) -> list[int]:
    """Add discrete Gaussian noise to each answer; `sensitivity` bounds the Euclidean length of all their moves.

    Guarantee   rho-zCDP for the whole list, one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     Canonne, Kamath and Steinke 2020, Theorem 4, coordinate by coordinate.
    Proof       proofs/noise/gaussian.md
    Assumes     the sum of (answer - answer')**2 is at most sensitivity.bound**2, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    sigma = gaussian_scale(sensitivity, rho)
    # A table takes about as long to make as OpenDP takes for one and a half sigmas of draws.
    if sigma <= min(len(answers), LARGEST):
        return _moved(answers, discrete_table(sigma).draw(len(answers), SystemBits()))
    if len(answers) >= MANY and sigma < FARTHEST:
        return _moved(answers, np.array(draw_gaussian(len(answers), sigma=sigma, bits=SystemBits())))
    return [int(x) for x in _vector(sigma)(list(answers))]


def add_rounded_many(answers: Sequence[int], *, sensitivity: Global, rho: Fraction) -> list[int]:
    """Add the rounded normal, floor(sigma Z + 1/2), to each; `sensitivity` bounds the Euclidean length of their moves.

    Guarantee   rho-zCDP for the whole list, one call, and whatever holds of the Gaussian mechanism on the real line.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the Gaussian mechanism, and post-processing by rounding.
    Proof       proofs/noise/tabled.md
    Assumes     the sum of (answer - answer')**2 is at most sensitivity.bound**2, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    sigma = gaussian_scale(sensitivity, rho)
    if sigma > LARGEST:
        raise PlanError("the noise is too large for a table of it; use a larger epsilon, or a coarser grid")
    return _moved(answers, rounded_table(sigma).draw(len(answers), SystemBits()))


def _moved(answers: Sequence[int], noise: Whole) -> list[int]:
    """Their sums. Answers lie within 2**62 of zero, so that 64 bits hold them."""
    moved: list[int] = (np.array(answers, dtype=np.int64) + noise).tolist()
    return moved


def gaussian_scale(sensitivity: Global, rho: Fraction) -> float:
    """A double sigma with sensitivity**2 / (2 sigma**2) <= rho, near the least one."""
    if rho <= 0:
        raise PlanError("rho is positive")
    square = sensitivity.bound**2 / (2 * Fraction(rho))
    # One digit more than a double holds: isqrt(4**k * square) + 1 over 2**k is above the root.
    k = max(0, 64 - (math.floor(square).bit_length() - math.floor(1 / square).bit_length()) // 2)
    return float_up(Fraction(math.isqrt(math.floor(square * 4**k)) + 1, 2**k))


@lru_cache(maxsize=64)
def _scalar(scale: float) -> Any:
    return make_gaussian(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _vector(scale: float) -> Any:
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="i64"), scale=scale)
