"""Noise on a lattice whose density falls with the Euclidean distance, drawn exactly."""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from reticent.errors import PlanError
from reticent.models.moves import root_up
from reticent.noise.bits import Bits
from reticent.noise.coins import exp_bracket
from reticent.noise.each import round_up
from reticent.noise.laplace import check_whole
from reticent.noise.lazy import Uniform
from reticent.noise.many import draw_laplace
from reticent.sensitivity.bounds import Global

MOST = 32
"""Beyond so many numbers hardly a try is kept."""


def add_spherical(answers: Sequence[int], *, sensitivity: Global, epsilon: Fraction, bits: Bits) -> list[int]:
    """Add noise to a whole vector, P(x) ~ exp(-|x| epsilon / sensitivity), |x| the Euclidean length.

    Guarantee   epsilon-DP for the whole list, one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the exponential mechanism with the score -|x - answers|, on whole vectors.
    Proof       proofs/models/spherical.md
    Assumes     the answers move by at most sensitivity.bound in Euclidean length, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    if epsilon <= 0:
        raise PlanError("epsilon is positive")
    if not 1 <= len(answers) <= MOST:
        raise PlanError(f"there are {len(answers)} coefficients, but at most {MOST} can be drawn together.")
    noise = draw_spherical(len(answers), scale=sensitivity.bound / epsilon, bits=bits)
    return [answer + step for answer, step in zip(answers, noise, strict=True)]


def draw_spherical(n: int, *, scale: Fraction, bits: Bits) -> list[int]:
    """One whole vector with P(x) ~ exp(-|x| / scale), exactly: kept from n Laplace numbers of scale t.

    t >= sqrt(n) scale, so |x|_1 / t <= |x| / scale, and a try is kept with probability exp of the difference.
    """
    t = round_up(scale * root_up(Fraction(n)))
    while True:
        tried = draw_laplace(16 * n, scale=t, bits=bits)
        for start in range(0, len(tried), n):
            x = tried[start : start + n]
            if _keeps(x, scale, t, Uniform(bits)):
                return x


def _keeps(x: Sequence[int], scale: Fraction, t: Fraction, u: Uniform) -> bool:
    """Whether U < exp(|x|_1 / t - |x| / scale), from as many digits of U and of the length as it takes."""
    square, reach = sum(step * step for step in x), sum(map(abs, x)) / t
    while True:
        u.refine(64)
        root = isqrt(square << 2 * u.known)
        near = max(Fraction(0), Fraction(root, 1 << u.known) / scale - reach)
        far = max(Fraction(0), Fraction(root + 1, 1 << u.known) / scale - reach)
        if u.prefix + 1 <= exp_bracket(far, u.known)[0]:
            return True
        if u.prefix >= exp_bracket(near, u.known)[1]:
            return False
