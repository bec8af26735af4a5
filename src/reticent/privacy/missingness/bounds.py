"""How much all mechanisms together promise about the complete truth. Results are rounded up to 12 places."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from flint import arb, ctx

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.privacy.convert import ball_up, rounded_up
from reticent.privacy.missingness.laws import IndependentMask, Law, check_known
from reticent.privacy.missingness.uses import Use, use

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
        raise PlanError("no mechanism, so nothing is promised.", field="mechanisms")
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
