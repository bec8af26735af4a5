"""Double Lomax noise, the default for a smooth bound: density (m/2) (1 + |x|)**-(m+1)."""

from fractions import Fraction

from reticent.noise import calibrate
from reticent.noise.bits import Bits, Largest, RoundedLine, line
from reticent.sensitivity.bounds import Smooth


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
