"""Put bins together until each is large enough, judged by noisy counts alone. After the noise, so it costs nothing.

Which bins are empty is confidential. A bin with few members gives each of them a large weight, and at the
bottom of its ladder lies the whole of its total; with n_min members or more that no longer matters.
"""

from collections.abc import Sequence
from fractions import Fraction

from flint import ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.prepare.strata import Members, Order, Strategy

SPARE = 3
"""A noisy count is this many Laplace scales above n_min: one cell's noise exceeds that once in forty times."""


def least_members(beta: Fraction) -> int:
    """n_min: the least n > 1 with e^(-beta (n-1)) <= 1/n; from there on S is N/n where weights are equal.

    beta (n - 1) - ln n is convex and 0 at n = 1, so past its other root it stays positive.
    """
    if beta <= 0:
        raise PlanError(f"it is {beta}, but must be positive.", field="beta")
    low, high = 1, 2
    while not _is_enough(high, beta):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_enough(middle, beta) else (middle, high)
    return high


def _is_enough(n: int, beta: Fraction) -> bool:
    """e^(-beta (n-1)) is irrational, so it is never equal to 1/n."""
    with ctx.workprec(256):
        return bool(ball(beta * (n - 1)) > ball(n).log())


def least_count(*, beta: Fraction, epsilon: Fraction) -> Fraction:
    """What every noisy count should reach: n_min + 3/epsilon."""
    if epsilon <= 0:
        raise PlanError(f"it is {epsilon}, but must be positive.", field="epsilon")
    return least_members(beta) + SPARE / Fraction(epsilon)


def collapse(
    start: Strategy, order: Order, noisy: Sequence[int], *, beta: Fraction, epsilon: Fraction
) -> Strategy:
    """Walk the order until every bin's noisy count, summed over what was put together, is large enough.

    Guarantee   that of the noisy counts, and nothing more is spent.
    Adjacency   the one the counts were noised for.
    Theorem     post-processing.
    Proof       proofs/refine/collapse.md
    Assumes     `noisy` holds one count for each bin of `start`, with Laplace noise of scale 1/epsilon, released.
    Keeps back  nothing: every input is public or was released.
    """
    if len(noisy) != len(start.totals):
        raise ValueError("there is a noisy count for each bin")
    enough = least_count(beta=beta, epsilon=epsilon)

    def is_short(members: Members) -> bool:
        return sum(noisy[each] for each in members) < enough

    return order.collapse(start, is_short)
