"""Amplification order by order, in Rényi's measure, and from there to (epsilon, delta).

zCDP itself is not amplified: no single rho holds at every order. Its curve is, and so is every other curve.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, ctx

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.privacy.convert import ball_up
from reticent.privacy.missingness.bounds import BITS
from reticent.privacy.missingness.laws import Law, check_known
from reticent.privacy.missingness.uses import Sets

Curve = Callable[[Fraction], Fraction]
ORDERS = tuple(
    1 + Fraction(step, 16) * Fraction(2) ** double for double in range(-6, 11) for step in range(8, 16)
)  # from 1.0078 to 961, each at most an eighth further from 1 than the last


def gaussian(*, sigma: Fraction) -> Curve:
    """The curve of Gaussian noise on what one row moves by at most 1: order/(2 sigma^2)."""
    if not sigma > 0:
        raise PlanError(f"it is {sigma}, but must be positive.", field="sigma")
    return zcdp(rho=1 / (2 * sigma * sigma))


def zcdp(*, rho: Fraction) -> Curve:
    """The curve that rho-zCDP promises: rho times the order."""
    return lambda order: rho * order


def pure(*, epsilon: Fraction) -> Curve:
    """A curve that epsilon-DP promises: the least of epsilon and order epsilon^2/2 (Bun and Steinke 2016)."""
    return lambda order: min(epsilon, order * epsilon * epsilon / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A mechanism with its curve, one row added or removed, in the rows it uses."""

    sets: Sets
    curve: Curve = field(repr=False)


def amplified_at(uses: Sequence[Rated], law: Law, *, order: Fraction) -> Fraction:
    """log E exp((order - 1) sum of rho_i over those that use the row) / (order - 1), rounded up.

    Guarantee   (order, result)-RDP for the complete truth, of all mechanisms together.
    Adjacency   add/remove, for the mechanisms and for the truth.
    Theorem     THEORY 4.5.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`: rows masked independently, masks secret, sets and curves fixed in advance.
    Keeps back  which answers are missing.
    """
    _check(uses, law, order)
    with ctx.workprec(BITS):
        return ball_up(_at(uses, law, order))


def amplified_epsilon(uses: Sequence[Rated], law: Law, *, delta: Fraction) -> Fraction:
    """An epsilon that goes with `delta`: the least over a grid of orders, rounded up.

    Guarantee   (epsilon, delta)-DP for the complete truth, of all mechanisms together.
    Adjacency   add/remove, for the mechanisms and for the truth.
    Theorem     THEORY 4.5; Canonne, Kamath and Steinke 2020, proposition 12; any order above 1 is valid.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified_at`; 0 < delta < 1.
    Keeps back  which answers are missing.
    """
    if not 0 < delta < 1:
        raise PlanError(f"it is {delta}, but must lie between 0 and 1.", field="delta")
    _check(uses, law, ORDERS[0])
    with ctx.workprec(BITS):
        return _least(lambda order: ball_up(_epsilon_at(_at(uses, law, order), order, delta)))


def _at(uses: Sequence[Rated], law: Law, order: Fraction) -> arb:
    factors = [ball((order - 1) * each.curve(order)).exp() for each in uses]
    means = law.mean([each.sets for each in uses], factors)
    largest = means[0]
    for mean in means[1:]:
        largest = largest.max(mean)
    return largest.log() / ball(order - 1)


def _epsilon_at(rho: arb, order: Fraction, delta: Fraction) -> arb:
    alpha, x = ball(order), ball(order - 1)
    return rho - (alpha * ball(delta)).log() / x + (x / alpha).log()


def _least(cost: Callable[[Fraction], Fraction]) -> Fraction:
    """The cost at a good order. It falls and then rises along the grid, as a rule; any order is sound."""
    known: dict[int, Fraction] = {}

    def at(place: int) -> Fraction:
        if place not in known:
            known[place] = cost(ORDERS[place])
        return known[place]

    low, high = 0, len(ORDERS) - 1
    while high - low > 2:
        near, far = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, far) if at(near) <= at(far) else (near, high)
    return min([at(place) for place in range(low, high + 1)] + list(known.values()))


def _check(uses: Sequence[Rated], law: Law, order: Fraction) -> None:
    if not uses:
        raise PlanError("no mechanism, so nothing is promised.", field="mechanisms")
    if not order > 1:
        raise PlanError(f"it is {order}, but must be above 1.", field="order")
    check_known([each.sets for each in uses], law)
