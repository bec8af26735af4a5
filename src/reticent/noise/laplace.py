"""Laplace noise, discrete, for whole numbers with a global bound, and double Lomax noise for a smooth bound.

Double Lomax noise is Laplace noise whose rate is drawn from a gamma law: density (m/2) (1 + |x|)**-(m+1), on a public grid.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace
from opendp.metrics import absolute_distance, l1_distance
from opendp.mod import enable_features

from reticent.errors import PlanError
from reticent.exact import check_whole, float_up
from reticent.noise import calibrate
from reticent.noise.bits import Bits, Largest, RoundedLine, line
from reticent.sensitivity.bounds import Global, Smooth

enable_features("contrib")  # OpenDP's integer samplers are behind this door


def add_laplace(answer: int, *, sensitivity: Global, epsilon: Fraction) -> int:
    """Add discrete Laplace noise, P(x) ~ exp(-|x| / scale), with scale at least sensitivity / epsilon.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the Laplace mechanism on the integers.
    Proof       proofs/noise/laplace.md
    Assumes     |answer - answer'| <= sensitivity.bound; OpenDP's integer sampler is exact.
    Keeps back  nothing: the scale is public.
    """
    check_whole([answer])
    return int(_scalar(laplace_scale(sensitivity, epsilon))(answer))


def add_laplace_many(answers: Sequence[int], *, sensitivity: Global, epsilon: Fraction) -> list[int]:
    """Add discrete Laplace noise to each answer; `sensitivity` bounds the sum of all their moves.

    Guarantee   epsilon-DP for the whole list, one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the Laplace mechanism on the integers, in the L1 norm.
    Proof       proofs/noise/laplace.md
    Assumes     sum |answer - answer'| <= sensitivity.bound, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    return [int(x) for x in _vector(laplace_scale(sensitivity, epsilon))(list(answers))]


def laplace_scale(sensitivity: Global, epsilon: Fraction) -> float:
    """The least double that is at least sensitivity / epsilon, for a whole bound."""
    if sensitivity.bound.denominator != 1:
        raise PlanError("the bound of a count or a sum on its grid is a whole number of grid steps")
    if epsilon <= 0:
        raise PlanError("epsilon is positive")
    return float_up(sensitivity.bound / epsilon)


@lru_cache(maxsize=64)
def _scalar(scale: float) -> Any:
    return make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _vector(scale: float) -> Any:
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


def add_lomax(
    answer: Fraction | int, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction, bits: Bits
) -> int:
    """Add double Lomax noise scaled to a smooth bound; the result counts steps of the public `grid`.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     THEORY 2.1, 2.2 and 2.6.
    Proof       proofs/noise/lomax.md
    Assumes     sensitivity.beta = epsilon / m for an integer m >= 3; the answer and the bound are exact.
    Keeps back  the bound and the scale: both were read off the rows.
    """
    scale = sensitivity.bound / calibrate.lomax(epsilon=epsilon, beta=sensitivity.beta)
    m = epsilon / sensitivity.beta  # a whole number, or the calibration has refused it
    return draw_steps(line(answer, scale=scale, grid=grid), m=int(m), bits=bits)


def draw_steps(where: RoundedLine, *, m: int, bits: Bits) -> int:
    """The grid step that `where` gives at x = +-(1/w - 1), w the largest of m uniform numbers."""
    sign = 1 - 2 * bits.take(1)
    w = Largest(bits, m)
    w.refine(24)
    return settle_lomax(where, sign, w)


def settle_lomax(where: RoundedLine, sign: int, w: Largest) -> int:
    """The grid step of x = sign * (1/w - 1), from as many digits of w as it takes."""
    while (step := _settled(where, sign, w)) is None:
        w.refine(16)
    return step


def _settled(where: RoundedLine, sign: int, w: Largest) -> int | None:
    """The grid step, if both ends of what is known of w lie on the same one."""
    p, one = w.prefix, 1 << w.known
    if p == 0:
        return None
    near, far = where.steps(sign * (one - p - 1), p + 1), where.steps(sign * (one - p), p)
    return near if near == far else None
