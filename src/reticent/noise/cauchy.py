"""Heavy-tailed noise: generalised Cauchy, and Student with three degrees of freedom over the root of 3.

Densities are in proportion to 1 / (1 + |x|**gamma), for any rational gamma above 1, and (2/pi) (1 + x*x)**-2.
"""

from fractions import Fraction

from reticent.noise import calibrate
from reticent.noise.bits import Bits, Largest, RoundedLine, Uniform, below, line, settle
from reticent.sensitivity.bounds import Smooth


def add_cauchy(
    answer: Fraction | int,
    *,
    sensitivity: Smooth,
    epsilon: Fraction,
    gamma: Fraction = Fraction(4),
    grid: Fraction,
    bits: Bits,
) -> int:
    """Add generalised Cauchy noise scaled to a smooth bound; the result counts steps of the public `grid`.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     THEORY 2.1, 2.4 and 2.6.
    Proof       proofs/noise/cauchy.md
    Assumes     max(gamma - 1, 1) * sensitivity.beta < epsilon; the answer and the bound are exact.
    Keeps back  the bound and the scale: both were read off the rows.
    """
    scale = sensitivity.bound / calibrate.cauchy(epsilon=epsilon, beta=sensitivity.beta, gamma=gamma)
    return draw_steps(line(answer, scale=scale, grid=grid), gamma=gamma, bits=bits)


def add_published(
    answer: Fraction | int, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction, bits: Bits
) -> int:
    """Add generalised Cauchy noise as published: gamma = 1 + epsilon/(2 beta), scale S/beta, for comparison.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     THEORY 2.1, 2.4 and 2.6.
    Proof       proofs/noise/cauchy.md
    Assumes     sensitivity.beta <= epsilon / 2, refused otherwise; the answer and the bound are exact.
    Keeps back  the bound and the scale: both were read off the rows.
    """
    gamma = 1 + epsilon / (2 * sensitivity.beta)
    a = calibrate.cauchy_as_published(epsilon=epsilon, beta=sensitivity.beta, gamma=gamma)
    return draw_steps(line(answer, scale=sensitivity.bound / a, grid=grid), gamma=gamma, bits=bits)


def draw_steps(where: RoundedLine, *, gamma: Fraction, bits: Bits) -> int:
    """The grid step that `where` gives at a generalised Cauchy number, by rejection from min(1, |x|**-gamma).

    The envelope has mass 1 within [0, 1] and 1/(gamma - 1) = b/(a - b) beyond, so the inner part is taken a - b times
    in a. Beyond 1, x = v**(-b/(a-b)) for a uniform v; for b = 1 that is 1 over the largest of a - 1 uniform numbers.
    """
    a, b = gamma.numerator, gamma.denominator
    sign = 1 - 2 * bits.take(1)
    while True:
        if below(a, bits) < a - b:
            w = Largest(bits, 1)
            if accepts(w, a, b, bits):
                return settle(where, sign, w, is_inner=True)
        elif b == 1:
            w = Largest(bits, a - 1)
            if accepts(w, a, 1, bits):
                return settle(where, sign, w, is_inner=False)
        else:
            w = Largest(bits, 1)
            if accepts(w, a, a - b, bits):
                return settle(where, sign, w, is_inner=False, power=Fraction(b, a - b))


def accepts(w: Largest, a: int, k: int, bits: Bits) -> bool:
    """True with probability 1 / (1 + w**(a/k)): whether V**k * w**a <= (1 - V)**k for a uniform V."""
    v = Uniform(bits)
    while True:
        w.refine(16)
        v.refine(16)
        if _holds(v.prefix + 1, v.known, w.prefix + 1, w.known, a, k):
            return True
        if not _holds(v.prefix, v.known, w.prefix, w.known, a, k):
            return False


def _holds(v: int, i: int, w: int, j: int, a: int, k: int) -> bool:
    """Whether V**k * W**a <= (1 - V)**k at V = v / 2**i and W = w / 2**j."""
    return bool(v**k * w**a <= ((1 << i) - v) ** k << (j * a))


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
    return draw_student_steps(line(answer, scale=scale, grid=grid), bits=bits)


def draw_student_steps(where: RoundedLine, *, bits: Bits) -> int:
    """The grid step that `where` gives at a Student number, by rejection from min(1, |x|**-4)."""
    sign = 1 - 2 * bits.take(1)
    while True:
        is_inner = bits.take(2) > 0
        w = Largest(bits, 1 if is_inner else 3)
        if accepts_student(w, bits):
            return settle(where, sign, w, is_inner=is_inner)


def accepts_student(w: Largest, bits: Bits) -> bool:
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
