"""What one ask's smooth bound says of another's, over the same rings."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.engine.wants import Ring, Rows
from reticent.sensitivity import bounds as lad
from reticent.sensitivity.bounds import Ladder, LadderLine
from reticent.sensitivity.donors import Moves
from reticent.sensitivity.hubs import LN2, published_beta

RINGS = tuple(Ring(column=name, rows=Rows()) for name in "ab")
amounts = st.fractions(Fraction(1, 10), 20, max_denominator=10)


def bound(moves: Moves, serves: dict[Ring, list[int]], beta: Fraction) -> Fraction:
    """The smooth bound for the V_k listed; beyond the list V_k goes on growing by one."""
    whole = lad.constant(moves.c0)
    for ring, c1 in moves.c1:
        listed = serves[ring]

        def rung(k: int, c1: Fraction = c1, listed: list[int] = listed) -> Fraction:
            return c1 * (listed[k] if k < len(listed) else listed[-1] + k)

        whole = lad.total(whole, Ladder(rung=rung, lines=(LadderLine(base=c1 * listed[-1], slope=c1),)))
    return lad.smooth_bound(whole, beta).bound


@settings(max_examples=60, deadline=None)
@given(
    mine=st.tuples(amounts, amounts, amounts),
    theirs=st.tuples(amounts, amounts, amounts),
    steps=st.lists(st.integers(0, 4), min_size=4, max_size=12),
    betas=st.tuples(st.sampled_from([4, 8, 16]), st.sampled_from([4, 8, 16])),
    both=st.booleans(),
)
def test_the_larger_ratio_of_constants_bounds_one_by_the_other(mine, theirs, steps, betas, both):
    """For every V, every pair of betas in order; and one ring fewer is no harm."""
    serves = {ring: [sum(steps[: k + 1]) for k in range(len(steps))] for ring in RINGS}
    asked = Moves(c0=mine[0], c1=tuple(zip(RINGS[: 1 + both], mine[1:], strict=False)))
    known = Moves(c0=theirs[0], c1=tuple(zip(RINGS, theirs[1:], strict=True)))
    small, large = sorted(Fraction(1, beta) for beta in betas)
    times = asked.times(known)
    assert times is not None
    assert bound(asked, serves, large) <= times * bound(known, serves, small) * (1 + Fraction(1, 2**30))


def test_nothing_follows_from_fewer_rings():
    one = Moves(c0=Fraction(1), c1=((RINGS[0], Fraction(1)),))
    two = Moves(c0=Fraction(1), c1=((RINGS[0], Fraction(1)), (RINGS[1], Fraction(1))))
    assert two.times(one) is None and one.times(two) == 1


@given(st.fractions(Fraction(1387, 1000), 40, max_denominator=1000) | st.just(2 * LN2))
def test_published_noise_keeps_its_pair_at_a_gamma_that_can_be_drawn(epsilon):
    """beta = epsilon/(2(gamma - 1)) from ln 2 on, gamma at least 2 and in sixteenths, little below the printed one."""
    beta = published_beta(epsilon)
    gamma = 1 + epsilon / (2 * beta)
    assert LN2 <= beta <= epsilon / 2 and gamma >= 2 and (16 * gamma).denominator == 1
    assert 1 + epsilon / (2 * LN2) - gamma < Fraction(1, 16)
