"""Student noise with three degrees of freedom, over the root of 3: density (2/pi) (1 + x*x)**-2."""

from fractions import Fraction

from reticent.noise import calibrate
from reticent.noise.bits import Bits
from reticent.noise.lazy import Largest, RoundedLine, Uniform, line, settle
from reticent.sensitivity.bounds import Smooth


def add_student(
    answer: Fraction | int, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction, bits: Bits
) -> int:
    """Add Student noise scaled to a smooth bound; the result counts steps of the public `grid`.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     THEORY 2.1, 2.3 and 2.6.
    Proof       proofs/noise/student.md
    Assumes     3 * sensitivity.beta < epsilon; the answer and the bound are exact.
    Keeps back  the bound and the scale: both were read off the rows.
    """
    scale = sensitivity.bound / calibrate.student4(epsilon=epsilon, beta=sensitivity.beta)
    return draw_steps(line(answer, scale=scale, grid=grid), bits=bits)


def draw_steps(where: RoundedLine, *, bits: Bits) -> int:
    """The grid step that `where` gives at a Student number, by rejection from min(1, |x|**-4)."""
    sign = 1 - 2 * bits.take(1)
    while True:
        is_inner = bits.take(2) > 0
        w = Largest(bits, 1 if is_inner else 3)
        if accepts(w, bits):
            return settle(where, sign, w, is_inner=is_inner)


def accepts(w: Largest, bits: Bits) -> bool:
    """True with probability 1 / (1 + w*w)**2: whether V (1 + w*w)**2 <= 1 for a uniform V."""
    v = Uniform(bits)
    while True:
        w.refine(16)
        v.refine(16)
        if _side(v.prefix + 1, v.known, w.prefix + 1, w.known) <= 0:
            return True
        if _side(v.prefix, v.known, w.prefix, w.known) > 0:
            return False


def _side(v: int, i: int, w: int, j: int) -> int:
    """The sign of V (1 + W*W)**2 - 1 at V = v / 2**i and W = w / 2**j."""
    return v * ((1 << 2 * j) + w * w) ** 2 - (1 << (i + 4 * j))
