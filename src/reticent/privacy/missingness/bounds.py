"""Amplification by missingness: how much all mechanisms together promise about the complete truth, rounded up to 12 places.

In Rényi's measure it goes order by order, and from there to (epsilon, delta). zCDP itself is not amplified: no single rho
holds at every order. Its curve is, and so is every other curve.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.privacy.convert import ball_up, rounded_up
from reticent.privacy.missingness.masks import IndependentMask, Law, Sets, Use, check_known, use

BITS = 256


def amplified(uses: Sequence[Use], law: Law) -> Fraction:
    """log E e^s, s the sum of epsilon over the mechanisms that use a row; rounded up.

    Guarantee   pure DP for the complete truth, of all mechanisms together. No smaller number holds for all mechanisms.
    Adjacency   add/remove, for the mechanisms and for the truth.
    Theorem     THEORY 4.1, and 4.3 for a choice among sets.
    Proof       proofs/privacy/missingness.md
    Assumes     rows are masked independently of each other, by `law`; masks are secret; a mechanism that does not use a
                row does not look at it; sets and epsilons are fixed before the first output.
    Keeps back  which answers are missing.
    """
    check_uses(uses, law)
    with ctx.workprec(BITS):
        found = max(ball_up(each.log()) for each in _means(uses, law, sign=1))
    return min(found, _total(uses), _by_holder(uses, law))


def amplified_both_ways(uses: Sequence[Use], law: Law) -> Fraction:
    """log E e^s - log E e^-s, rounded up.

    Guarantee   pure DP for the complete truth, of all mechanisms together. No smaller number holds for all mechanisms.
    Adjacency   replace, for the truth; the mechanisms are proved for add/remove.
    Theorem     THEORY 4.6.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`.
    Keeps back  which answers are missing.
    """
    check_uses(uses, law)
    with ctx.workprec(BITS):
        more, less = _means(uses, law, sign=1), _means(uses, law, sign=-1)
        # The row before and the row after may be in different classes.
        found = max(ball_up((up / down).log()) for up in more for down in less)
    return min(found, 2 * _total(uses))


def amplified_replaced(uses: Sequence[Use], law: Law) -> Fraction:
    """The same number as `amplified`, for replaced answers, where the mechanisms are proved for both changes.

    Guarantee   pure DP for the complete truth, of all mechanisms together.
    Adjacency   replace, for the truth; the mechanisms have one epsilon for add/remove and for any used row replaced.
    Theorem     THEORY 4.6, by Harris' inequality.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`. Without independent bits there is no such inequality, and the sum is the limit.
    Keeps back  which answers are missing.
    """
    if isinstance(law, IndependentMask):
        return amplified(uses, law)
    return min(amplified_both_ways(uses, law), _total(uses))


def amplified_delta(uses: Sequence[Use], law: Law) -> Fraction:
    """The mean of delta over the mechanisms that use a row, rounded up; it goes with `amplified`.

    Guarantee   with epsilon from `amplified`: (epsilon, delta)-DP for the complete truth, of all mechanisms together.
    Adjacency   add/remove, for the mechanisms and for the truth.
    Theorem     THEORY 4.4.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`.
    Keeps back  which answers are missing.
    """
    check_uses(uses, law)
    sets, deltas = [each.sets for each in uses], [each.delta for each in uses]
    if not any(deltas):
        return Fraction(0)
    if isinstance(law, IndependentMask):
        return rounded_up(sum((law.used(each.sets) * each.delta for each in uses), Fraction(0)))
    with ctx.workprec(BITS):
        factors = [ball(-each.epsilon).exp() for each in uses]
        return max(ball_up(each) for each in law.deltas(sets, deltas, factors))


def columnwise(epsilons: Mapping[str, Fraction], law: Law) -> Fraction:
    """sum of log(1 + p_a (e^epsilon_a - 1)): one model for each column, trained on the rows that hold it.

    Guarantee   pure DP for the complete truth, of all models together. Every column is amplified.
    Adjacency   add/remove, for the models and for the truth.
    Theorem     THEORY 4.2.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`; other cells of a row are filled by earlier models, from that row alone.
    Keeps back  which answers are missing.
    """
    return amplified([use(name, epsilon=epsilon) for name, epsilon in epsilons.items()], law)


def first_order(uses: Sequence[Use], law: Law) -> Fraction:
    """sum of chance times epsilon: for comparison, not a guarantee. It is never above `amplified`."""
    check_uses(uses, law)
    return sum((law.used(each.sets) * each.epsilon for each in uses), Fraction(0))


def check_uses(uses: Sequence[Use], law: Law) -> None:
    """There is something to amplify, and the law knows its attributes."""
    if not uses:
        raise PlanError("no mechanism, so nothing is guaranteed.", field="mechanisms")
    check_known([each.sets for each in uses], law)


def _means(uses: Sequence[Use], law: Law, *, sign: int) -> list[arb]:
    return law.mean([each.sets for each in uses], [ball(sign * each.epsilon).exp() for each in uses])


def _total(uses: Sequence[Use]) -> Fraction:
    return sum((each.epsilon for each in uses), Fraction(0))


def _by_holder(uses: Sequence[Use], law: Law) -> Fraction:
    """sum of (epsilon_i / epsilon) log(1 + p_i (e^epsilon - 1)): where the sum was too long to be exact, this may be less."""
    total = _total(uses)
    if not law.taken([each.sets for each in uses]):
        return total
    with ctx.workprec(BITS):
        gain = ball(total).expm1()
        parts = [ball(each.epsilon / total) * (ball(law.used(each.sets)) * gain).log1p() for each in uses]
        return ball_up(sum(parts, arb(0)))


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
        raise PlanError("no mechanism, so nothing is guaranteed.", field="mechanisms")
    if not order > 1:
        raise PlanError(f"it is {order}, but must be above 1.", field="order")
    check_known([each.sets for each in uses], law)
