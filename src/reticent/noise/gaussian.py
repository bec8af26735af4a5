"""Discrete Gaussian noise for whole numbers with a global bound."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from opendp.domains import atom_domain
from opendp.measurements import make_gaussian
from opendp.metrics import absolute_distance
from opendp.mod import enable_features

from reticent.errors import PlanError
from reticent.noise.laplace import LIMIT, float_up
from reticent.sensitivity.bounds import Global

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
    if type(answer) is not int:
        raise TypeError("an answer is a whole number of grid steps")
    if not -LIMIT <= answer <= LIMIT:
        raise ValueError("an answer lies beyond 2**62 grid steps")
    return int(_measurement(gaussian_scale(sensitivity, rho))(answer))


def gaussian_scale(sensitivity: Global, rho: Fraction) -> float:
    """A double sigma with sensitivity**2 / (2 sigma**2) <= rho, near the least one."""
    if sensitivity.bound.denominator != 1:
        raise PlanError("the bound of a count or a sum on its grid is a whole number of grid steps")
    if rho <= 0:
        raise PlanError("rho is positive")
    square = sensitivity.bound**2 / (2 * Fraction(rho))
    # One digit more than a double holds: isqrt(4**k * square) + 1 over 2**k is above the root.
    k = max(0, 64 - (math.floor(square).bit_length() - math.floor(1 / square).bit_length()) // 2)
    return float_up(Fraction(math.isqrt(math.floor(square * 4**k)) + 1, 2**k))


@lru_cache(maxsize=64)
def _measurement(scale: float) -> Any:
    return make_gaussian(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)
