"""Theorem 2.1 as a certifier: is this noise, at this scale, private for every query with a smooth bound?

The theorem reduces the question to three suprema over z >= 0 of

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

from flint import arb, ctx

from reticent.balls import ball
from reticent.noise.family import Family, Heavy, Laplace, hull

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
