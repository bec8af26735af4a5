"""How large the noise must be: the `a` of q + (S/a) X, rounded down, never out of here uncertified.

Closed forms where there is one (THEORY 2.2 to 2.4), bisection on the certifier where there is none. Every
value returned is a multiple of 2^-60 for which `certify` has said yes.

`certify` is Theorem 2.1 as a certifier: is this noise, at this scale, private for every query with a smooth bound? The theorem reduces the question to three suprema over z >= 0 of

    offset + phi(r z + s) - phi(z),      (r, s, offset) = (1, a, 0), (e^b, a, -b), (e^-b, a e^-b, b),  b = beta.

z from 0 to 1 is searched as it is; z from 1 to infinity is folded onto w = 1/z in [0, 1], where
phi(x) = p ln x + phi(1/x) turns the same function into

    offset + p ln(r + s w) + phi(w/(r + s w)) - phi(w).

Both pieces are cut into boxes. A box passes when the function provably has a slope of one sign and is at
most epsilon at its higher end, or when the mean value form is. The value at w = 0 is offset + p ln r, a
rational number, and is compared exactly: for Lomax noise it equals epsilon.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.families import Cauchy, Family, Heavy, Laplace, Lomax, Student, hull

_PRECISION = 320
_DEPTH = 120
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class _Shift:
    """One of the three comparisons: the neighbour's scale is e^-turn times ours, its centre a step away."""

    turn: Fraction  # ln r, exactly
    step: arb  # s

    @property
    def factor(self) -> arb:
        return ball(self.turn).exp()

    @property
    def gain(self) -> arb:
        """r - 1, without cancellation."""
        return ball(self.turn).expm1()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A function on [0, 1] with its slope; `start` is its value at 0 where that is known exactly."""

    value: Callable[[arb], arb]
    slope: Callable[[arb], arb]
    start: Fraction | None


def certify(family: Family, *, a: Fraction, beta: Fraction, epsilon: Fraction) -> bool:
    """Whether releasing q + (S/a) X is proved epsilon-DP for every query q with a beta-smooth bound S.

    Guarantee   when True, epsilon-DP of that mechanism in exact arithmetic. False promises nothing.
    Adjacency   the one S was bounded for.
    Theorem     THEORY 2.1.
    Proof       proofs/noise/certify.md
    Assumes     a and beta fixed before any row is read; beta = 0 stands for a global bound.
    Keeps back  nothing: no row is read.
    """
    if not (a > 0 and beta >= 0 and epsilon > 0):
        return False
    if isinstance(family, Laplace):
        return beta == 0 and a <= epsilon  # phi(z+a) - phi(z) = a; with beta > 0 the loss has no bound
    with ctx.workprec(_PRECISION):
        return all(_within(family, shift, epsilon=epsilon) for shift in _shifts(a, beta))


def _shifts(a: Fraction, beta: Fraction) -> list[_Shift]:
    drift = _Shift(beta, ball(a)), _Shift(-beta, ball(a) * ball(-beta).exp())
    return [_Shift(Fraction(0), ball(a)), *(drift if beta else ())]


def _within(family: Heavy, shift: _Shift, *, epsilon: Fraction) -> bool:
    # The densities are multiplied by their scales, so the offset is minus the turn.
    room = epsilon + shift.turn
    return all(_below(piece, room) for piece in (_near(family, shift), _far(family, shift)))


def _near(family: Heavy, shift: _Shift) -> _Piece:
    r, s, gain = shift.factor, shift.step, shift.gain

    def value(z: arb) -> arb:
        return family.phi(r * z + s) - family.phi(z)

    def slope(z: arb) -> arb:
        y = r * z + s
        plain = r * family.slope(y) - family.slope(z)
        # phi'(y) - phi'(z) = phi''(x)(y - z) for some x between them: small when a and beta are.
        return _finer(plain, gain * family.slope(y) + family.bend(hull(y, z)) * (gain * z + s))

    return _Piece(value, slope, None)


def _far(family: Heavy, shift: _Shift) -> _Piece:
    r, s, gain, p = shift.factor, shift.step, shift.gain, ball(family.exponent)

    def value(w: arb) -> arb:
        q = r + s * w
        return p * q.log() + family.phi(w / q) - family.phi(w)

    def slope(w: arb) -> arb:
        q = r + s * w
        u = w / q
        plain = p * s / q + family.slope(u) * r / q**2 - family.slope(w)
        # r - q^2 = -(r(r-1) + 2 r s w + (s w)^2) and u - w = -w(r-1 + s w)/q, both free of cancellation.
        turned = family.slope(u) * (r * gain + 2 * r * s * w + (s * w) ** 2) / q**2
        moved = family.bend(hull(u, w)) * w * (gain + s * w) / q
        return _finer(plain, p * s / q - turned - moved)

    return _Piece(value, slope, family.exponent * shift.turn)


def _finer(one: arb, other: arb) -> arb:
    """Both hold the truth; so does their intersection. The second may not be finite near 0."""
    return one.intersection(other) if other.is_finite() else one


def _below(piece: _Piece, room: Fraction) -> bool:
    """Whether the piece is proved to stay at or below `room` on all of [0, 1]."""
    boxes = [(Fraction(0), _ONE, 0)]
    while boxes:
        low, high, depth = boxes.pop()
        middle = (low + high) / 2
        at_middle = piece.value(ball(middle))
        if depth == _DEPTH or at_middle > ball(room):
            return False
        if not _box_passes(piece, room, low, high, at_middle):
            boxes += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return True


def _box_passes(piece: _Piece, room: Fraction, low: Fraction, high: Fraction, at_middle: arb) -> bool:
    box = hull(ball(low), ball(high)).nonnegative_part()
    slope = piece.slope(box)
    if slope <= 0 and _end_passes(piece, room, low):
        return True
    if slope >= 0 and _end_passes(piece, room, high):
        return True
    return bool(at_middle + slope * (box - ball((low + high) / 2)) <= ball(room))


def _end_passes(piece: _Piece, room: Fraction, end: Fraction) -> bool:
    if end == 0 and piece.start is not None:
        return piece.start <= room
    return bool(piece.value(ball(end)) <= ball(room))


GRID = Fraction(1, 2**60)


def lomax(*, epsilon: Fraction, beta: Fraction) -> Fraction:
    """`a` for double Lomax noise with m = epsilon/beta, an integer from 3 on.

    Guarantee   epsilon-DP of q + (S/a) X for every beta-smooth bound S.
    Adjacency   the one S was bounded for.
    Theorem     THEORY 2.1 and 2.2.
    Proof       proofs/noise/calibrate.md
    Assumes     epsilon and beta fixed before any row is read.
    Keeps back  nothing: no row is read.
    """
    return _certified(Lomax(_ratio(epsilon, beta)), beta=beta, epsilon=epsilon)


def _ratio(epsilon: Fraction, beta: Fraction) -> int:
    _check(epsilon, beta)
    m = Fraction(epsilon) / beta
    if m.denominator != 1 or m < 3:
        raise PlanError(
            f"beta is {beta}, so epsilon/beta is {m}, but Lomax noise needs an integer of at least 3; "
            f"use beta = epsilon/8 = {Fraction(epsilon) / 8}.",
            field="beta",
        )
    return m.numerator


def student(*, epsilon: Fraction, beta: Fraction, g: Fraction = Fraction(4)) -> Fraction:
    """`a` for Student noise of tail exponent g; the guarantee reads as for `lomax`, by THEORY 2.3."""
    _check(epsilon, beta)
    if (g - 1) * beta >= epsilon:
        raise PlanError(
            f"beta is {beta}, but Student noise at epsilon {epsilon} needs less than {epsilon / (g - 1)}; "
            "smooth the bound with a smaller beta.",
            field="beta",
        )
    return _certified(Student(g), beta=beta, epsilon=epsilon)


def student4(*, epsilon: Fraction, beta: Fraction) -> Fraction:
    """`a` for the Student noise whose sampler we have, g = 4."""
    return student(epsilon=epsilon, beta=beta)


def cauchy(*, epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """The largest certified `a`, to one part in 2^40, for generalized Cauchy noise; reads as for `lomax`, by THEORY 2.1."""
    _check(epsilon, beta)
    family = Cauchy(gamma)
    _check_cauchy(epsilon, beta, gamma)
    return _largest(family, beta, epsilon)


def cauchy_closed(*, epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """The smaller `a` of the closed form, valid for any gamma > 1: min(eps, e^b (eps - max(g-1, 1) b))/kappa."""
    _check(epsilon, beta)
    family = Cauchy(gamma)
    _check_cauchy(epsilon, beta, gamma)
    return _certified(family, beta=beta, epsilon=epsilon)


def cauchy_as_published(*, epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """a = beta = epsilon/(2(gamma-1)), as printed; refused where that is not private (THEORY 3.6, 10.1)."""
    _check(epsilon, beta)
    family = Cauchy(gamma)
    if gamma < 2:
        raise PlanError(
            f"it is {gamma}; the published calibration a = beta = epsilon/(2(gamma-1)) is proved for gamma of at "
            "least 2 only, and with the doubling ladder (beta = ln 2) it loses up to 0.94 where it claims 0.25; "
            "use the exact calibration.",
            field="gamma",
        )
    if beta > epsilon / 2:
        raise PlanError(
            f"it is {beta}; the published calibration needs at most epsilon/2 = {epsilon / 2}, and with the "
            "doubling ladder (beta = ln 2) epsilon of at least 2 ln 2; smooth the bound with a smaller beta.",
            field="beta",
        )
    if beta != epsilon / (2 * (gamma - 1)):
        raise PlanError(
            f"it is {beta}; the published calibration ties it to gamma: epsilon/(2(gamma-1)) is "
            f"{epsilon / (2 * (gamma - 1))}.",
            field="beta",
        )
    a = beta // GRID * GRID
    return _sure(family, a, beta=beta, epsilon=epsilon)


def _check(epsilon: Fraction, beta: Fraction) -> None:
    for name, value in (("epsilon", epsilon), ("beta", beta)):
        if not isinstance(value, Fraction | int) or value <= 0:
            raise PlanError(f"it is {value!r}, but must be a positive rational.", field=name)


def _check_cauchy(epsilon: Fraction, beta: Fraction, gamma: Fraction) -> None:
    limit = epsilon / max(gamma - 1, Fraction(1))
    if beta >= limit:
        raise PlanError(
            f"beta is {beta}, but Cauchy noise at epsilon {epsilon} needs less than {limit}; "
            "smooth the bound with a smaller beta.",
            field="beta",
        )


@lru_cache(maxsize=1024)
def _certified(family: Heavy, *, beta: Fraction, epsilon: Fraction) -> Fraction:
    with ctx.workprec(_PRECISION):
        a = _floor(_closed(family, epsilon=ball(epsilon), beta=ball(beta)))
    return _sure(family, a, beta=beta, epsilon=epsilon)


def _closed(family: Heavy, *, epsilon: arb, beta: arb) -> arb:
    """The closed forms of THEORY 2.2, 2.3 and 2.4."""
    match family:
        case Lomax(m=m):
            slide = (epsilon / (m + 1)).expm1()
            return slide.min(beta.exp() * ((epsilon - beta) / (m + 1)).expm1())
        case Student(g=g):
            slide = 2 * (epsilon / ball(g)).sinh()
            turn = (2 * epsilon - (ball(g) - 2) * beta) / ball(g)
            # cosh T - cosh b = 2 sinh((T+b)/2) sinh((T-b)/2), without cancellation.
            product = 4 * beta.exp() * ((turn + beta) / 2).sinh() * ((turn - beta) / 2).sinh()
            return slide.min(product.sqrt())
        case Cauchy(gamma=gamma):
            stretch = ball(max(gamma - 1, Fraction(1)))
            return epsilon.min(beta.exp() * (epsilon - stretch * beta)) / family.steepest()


@lru_cache(maxsize=1024)
def _largest(family: Cauchy, beta: Fraction, epsilon: Fraction) -> Fraction:
    with ctx.workprec(_PRECISION):
        low = _floor(_closed(family, epsilon=ball(epsilon), beta=ball(beta)))
    low = _sure(family, low, beta=beta, epsilon=epsilon)
    high = 2 * low
    while certify(family, a=high, beta=beta, epsilon=epsilon):
        low, high = high, 2 * high
    while high - low > max(GRID, low / 2**40):
        middle = (low + high) / 2 // GRID * GRID
        is_private = certify(family, a=middle, beta=beta, epsilon=epsilon)
        low, high = (middle, high) if is_private else (low, middle)
    return low


def _floor(value: arb) -> Fraction:
    """The largest multiple of 2^-60 proved not to exceed `value`."""
    mantissa, exponent = value.lower().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent) // GRID * GRID


def _sure(family: Heavy, a: Fraction, *, beta: Fraction, epsilon: Fraction) -> Fraction:
    if a > 0 and certify(family, a=a, beta=beta, epsilon=epsilon):
        return a
    raise PlanError(
        f"no noise of this family is certified at epsilon {epsilon} and beta {beta}; choose another beta.",
        field="beta",
    )


def falling_root(tail: Callable[[float], float], miss: float, *, start: float) -> float:
    """Where a falling `tail` reaches `miss`, to neighbouring doubles; the outer of the two."""
    low, high = 0.0, start
    while tail(high) > miss:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if tail(middle) > miss else (low, middle)
    return high
