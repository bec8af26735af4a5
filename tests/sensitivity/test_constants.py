"""Constants: the table of THEORY 3.3, and by brute force that nothing smaller would do."""

from fractions import Fraction
from itertools import product

import pytest

from reticent.errors import PlanError
from reticent.sensitivity import donors as con
from reticent.sensitivity.donors import MEMBERSHIP, VALUE, Constants, FilledPart, Span

F = Fraction
BOTH = FilledPart(membership=True)
SPANS = [(-2, 5), (2, 5), (-5, -2), (0, 1), (-3, 3), (0, 0)]


def span(low, high, centre=0):
    return Span(low=F(low), high=F(high), centre=F(centre))


def test_the_table():
    """Row by row, numbers worked by hand."""
    assert con.count() == Constants(c0=F(1), c1=F(1))
    assert con.total(span(-2, 5)) == Constants(c0=F(5), c1=F(7))
    assert con.total(span(-2, 5), FilledPart(averaged=2)) == Constants(c0=F(5), c1=F(7, 2))
    assert con.total(span(2, 5), BOTH) == Constants(c0=F(5), c1=F(5))
    assert con.total(span(-5, -2), BOTH) == Constants(c0=F(5), c1=F(5))
    assert con.total(span(2, 5, F(7, 2))) == Constants(c0=F(3, 2), c1=F(3))
    assert con.total(span(2, 5, F(7, 2)), BOTH) == Constants(c0=F(3, 2), c1=F(3))
    assert con.total(span(2, 5, 3)).over(10) == Constants(c0=F(1, 5), c1=F(3, 10))
    assert con.variance(span(0, 4, 1), size=10) == Constants(c0=F(1), c1=F(1))
    moment = con.co_moment(span(0, 4, 1), span(-1, 1), size=4)
    assert moment == Constants(c0=F(1), c1=F(4, 3))
    assert con.total(span(0, 4)).weighted(5) == Constants(c0=F(20), c1=F(4))


@pytest.mark.parametrize("bounds", SPANS, ids=str)
def test_with_one_donor_the_sum_has_the_printed_constants(bounds):
    """max(b,0) - min(a,0) where membership is imputed, b - a where not, for every centre."""
    a, b = bounds
    for centre in (0, F(a + b, 2), a, b, a - 1, b + 3):
        low, high = a - F(centre), b - F(centre)
        assert con.total(span(a, b, centre), BOTH).c1 == max(high, 0) - min(low, 0)
        assert con.total(span(a, b, centre)).c1 == b - a


def values(low, high, k, grain):
    """What a mean of k donors can be, and after one of them was exchanged for another."""
    ends = [*range(low, high + 1)]

    def mean(given):
        m = F(sum(given), k)
        return m if grain is None else (m / grain + F(1, 2)) // 1 * grain

    for given in product(ends, repeat=k):
        for other in ends:
            yield mean(given), mean((other, *given[1:]))


def worst(low, high, part, term):
    """The largest change of a member's or non-member's term, over all that an imputed column can do."""
    pairs = (
        set(values(low, high, part.averaged, part.grain))
        if part.value
        else {(y, y) for y in range(low, high + 1)}
    )
    member = product((0, 1), repeat=2) if part.membership else [(1, 1)]
    return max(abs(p * term(y) - q * term(z)) for (y, z), (p, q) in product(pairs, member))


PARTS = [
    FilledPart(value=value, membership=membership, averaged=k, grain=grain)
    for value, membership in ((True, False), (True, True), (False, True), (False, False))
    for k in (1, 2, 3)
    for grain in (None, F(1))
]


@pytest.mark.parametrize("bounds", [(-2, 3), (1, 4), (-4, -1), (0, 1)], ids=str)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_constants_cover_and_nothing_smaller_does(part, bounds):
    """Every tuple of up to three donors with integer answers; c1 of sums is attained, of variances covered."""
    low, high = bounds
    for centre in (F(0), F(low + high, 2), F(low)):
        about = span(low, high, centre)
        moved = worst(low, high, part, lambda y, c=centre: y - c)
        c = con.total(about, part)
        assert c.c1 == moved and c.c0 == max(abs(low - centre), abs(high - centre))
        if low <= centre <= high:
            assert con.variance(about, size=2, part=part).c1 >= worst(
                low, high, part, lambda y, c=centre: (y - c) ** 2
            )


def test_variance_is_attained_at_an_end():
    """Two donors, centre at the low end: u^2 falls from 4^2 to 2^2."""
    assert con.variance(span(0, 4), size=2, part=FilledPart(averaged=2)).c1 == 12
    assert worst(0, 4, FilledPart(averaged=2), lambda y: y**2) == 12
    assert con.variance(span(0, 4), size=2).c1 == 16


@pytest.mark.parametrize("y_part", [None, VALUE, BOTH, MEMBERSHIP, FilledPart(averaged=2)], ids=str)
@pytest.mark.parametrize("z_part", [None, VALUE, FilledPart(averaged=2)], ids=str)
def test_co_moment_covers_both_columns(y_part, z_part):
    """All pairs of integer answers in [-1, 2] and [0, 2], about 0 and 1."""
    y, z = span(-1, 2), span(0, 2, 1)
    nothing = FilledPart(value=False)
    py, pz = y_part or nothing, z_part or nothing
    ys = set(values(-1, 2, py.averaged, None)) if py.value else {(v, v) for v in range(-1, 3)}
    zs = set(values(0, 2, pz.averaged, None)) if pz.value else {(v, v) for v in range(3)}
    member = list(product((0, 1), repeat=2)) if py.membership or pz.membership else [(1, 1)]
    moved = max(abs(p * u * (v - 1) - q * s * (t - 1)) for (u, s), (v, t), (p, q) in product(ys, zs, member))
    assert con.co_moment(y, z, size=2, y_part=y_part, z_part=z_part).c1 >= moved


def test_a_rounded_mean_can_move_a_whole_step():
    """1/3 and 2/3 of a step apart, yet rounded to different multiples: dividing by K0 alone would be too small."""
    rounded = FilledPart(averaged=3, grain=F(1))
    assert con.total(span(0, 1), rounded).c1 == 1 == worst(0, 1, rounded, lambda y: y)
    assert con.total(span(0, 1), FilledPart(averaged=3)).c1 == F(1, 3)


def test_one_scale_serves_every_ask():
    """c0 + c1 V <= max(c0, c1)(1 + V)."""
    both = [con.total(span(-2, 5)), con.count()]
    assert con.largest(both) == 7
    assert all(c.c0 + c.c1 * v <= 7 * (1 + v) for c in both for v in range(20))


def test_what_cannot_be_is_refused():
    for make in (
        lambda: con.count().over(F(1, 2)),
        lambda: con.variance(span(0, 1), size=1),
        lambda: con.variance(span(0, 1, 2), size=9),
        lambda: con.count().weighted(0),
        lambda: span(2, 1),
        lambda: FilledPart(averaged=0),
        lambda: FilledPart(grain=F(0)),
    ):
        with pytest.raises(PlanError):
            make()
    with pytest.raises(ValueError, match="negative"):
        Constants(c0=F(-1), c1=F(0))
