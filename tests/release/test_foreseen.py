"""What a preview says of noise with a confidential scale follows from the assumption and closed forms."""

from fractions import Fraction
from math import exp, hypot, inf, log, sqrt

import pytest

from reticent.answer.expect import AT_LEAST, UNKNOWN
from reticent.answer.expect_donors import ASSUMED_HUB, HUBS, highest
from reticent.preview.preview import expectations
from reticent.sensitivity.bounds import smooth_bound, straight
from tests.tables import ADD, REPLACE, book, make_plan

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "pay": {"kind": "integer", "bounds": [0, 200]},
    "debt": {"kind": "integer", "bounds": [0, 50]},
    "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.5", "role": "weight"},
}
DONORS = {"method": "donors", "bound": "hubs", "column": "pay", "match": ["age"]}
BOTH = {"method": "donors", "bound": "hubs", "columns": ["pay", "debt"], "match": ["age"]}
COUNT = {"count": "*", "where": "pay > 20"}


def made(query, *, repair=DONORS, ask=None, **options):
    return make_plan([query], book(COLUMNS), repair=[repair], asks={0: ask or {}}, **options)


def parts(query, hub=0, **options):
    plan = made(query, **options)
    return plan.routes[0].foreseen(hub)


def lomax_a(epsilon: float, m: int) -> float:
    """THEORY 2.2, in floating point."""
    beta, c = epsilon / m, m + 1
    return min(exp(epsilon / c) - 1, exp(beta) * (exp((epsilon - beta) / c) - 1))


@pytest.mark.parametrize(("m", "floor"), [(6, 2.607589251), (8, 3.334896157), (10, 4.065696597)])
def test_the_floor_is_the_bound_with_nobody_missing(m, floor):
    """The vectors of THEORY 3.5 at epsilon 1, and the spread and tail of Lomax noise around them."""
    (part,) = parts(COUNT, repair={**DONORS, "smoothness": m})
    scale = floor / lomax_a(1.0, m)
    assert float(part.scale) == pytest.approx(scale, rel=1e-8)
    assert part.sd == pytest.approx(scale * sqrt(2 / ((m - 1) * (m - 2))), rel=1e-8)
    half = scale * (0.05 ** (-1 / m) - 1)
    assert float(part.half_width(Fraction(95, 100))) == pytest.approx(half, rel=1e-8)


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("beta", [Fraction(1, 80), Fraction(1, 3), Fraction(5)])
def test_the_highest_rung_is_found_without_climbing(hub, beta):
    """The same as the search that a release makes, on the line that the assumption gives."""
    base, slope = Fraction(7 + 8 * hub), Fraction(8)
    searched = smooth_bound(straight(base=base, slope=slope), beta).bound
    assert float(highest(base, slope, beta)) == pytest.approx(float(searched), rel=1e-7)


# The ask, what one's own row adds (c0), and what each donee adds (c1), all in the answer's own unit; THEORY 3.3.
CASES = {
    "count": ({"count": "*", "where": "pay > 20"}, DONORS, 1, 1),
    "total": ({"total": "pay"}, DONORS, 200, 200),
    "total, mean of five": ({"total": "pay"}, {**DONORS, "k": 5}, 200, 40),
    "total, membership": ({"total": "age", "where": "pay > 20"}, DONORS, 99, 99),
    "two columns": ({"total": "pay", "where": "debt > 3"}, BOTH, 200, 400),
    "weights": ({"count": "*", "where": "pay > 20", "weight": "w"}, DONORS, 4, 4),
}


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("name", CASES)
def test_noise_is_that_of_the_assumed_ladder(name, hub):
    """U_k = c0 + c1 (hub + k), all rungs by brute force."""
    query, repair, c0, c1 = CASES[name]
    (part,) = parts(query, hub, repair=repair)
    bound = max(exp(-k / 8) * (c0 + c1 * (hub + k)) for k in range(2000))
    assert float(part.smooth) == pytest.approx(bound, rel=1e-9)
    assert float(part.scale) == pytest.approx(bound / lomax_a(1.0, 8), rel=1e-8)


def test_a_mean_adds_its_two_noises_and_divides():
    """Count public and a quarter of epsilon, centred sum smooth and the rest; a public size leaves one noise."""
    query = {"mean": "pay", "centre": "100"}
    count, top = parts(query, 5)
    size, off = 400, 20
    plan = made(query, ask={"expect": {"value": "120", "size": size}})
    (expected,) = expectations(plan)
    assert expected.how == AT_LEAST and [each.hub for each in expected.assumed] == list(HUBS)
    assert expected.assumed[1].sd == pytest.approx(hypot(top.sd, off * count.sd) / size)
    bound = max(exp(-k * 0.75 / 8) * (100 + 200 * (5 + k)) for k in range(2000))
    assert float(top.smooth) == pytest.approx(bound, rel=1e-9)
    (alone,) = expectations(made(query, ask={"size": size}))
    assert alone.assumed[1].sd == pytest.approx(parts(query, 5, ask={"size": size})[0].sd / size)
    assert alone.margin == Fraction(alone.assumed[0].margin)  # the floor


def test_without_a_size_nothing_is_said_of_a_mean():
    (expected,) = expectations(made({"mean": "pay"}))
    assert expected.how == UNKNOWN and expected.margin is None and expected.assumed == ()


def test_a_bought_bar_is_wider_than_what_an_oracle_would_draw():
    """At epsilon 1 and 0.25 for the scale about 1.44 times (THEORY 3.5a); the noise itself is the same."""
    (bare,), (bought,) = (
        parts({"total": "pay"}, 5),
        parts({"total": "pay"}, 5, ask={"interval": {"epsilon": "0.25"}}),
    )
    level = Fraction(95, 100)
    assert bare.sd == bought.sd
    assert float(bought.half_width(level) / bare.half_width(level)) == pytest.approx(1.44, abs=0.01)


def test_replacement_costs_as_much_as_half_the_epsilon():
    """And four records a respondent as a quarter of it: epsilon is divided, the bound is not multiplied."""
    (half,) = parts(COUNT, 5, epsilon="0.5")
    (replaced,) = parts(COUNT, 5, change=REPLACE)
    assert replaced.scale == half.scale
    (quarter,) = parts(COUNT, 5, epsilon="0.25")
    plan = make_plan([COUNT], book(COLUMNS, unit="who", at_most=4), repair=[DONORS], change=ADD, epsilon="1")
    assert plan.routes[0].foreseen(5)[0].scale == quarter.scale


def test_busier_donors_and_smaller_budgets_need_more_noise():
    spread = [parts({"total": "pay"}, hub)[0].sd for hub in HUBS]
    assert spread == sorted(spread) and len(set(spread)) == len(HUBS)
    assert parts({"total": "pay"}, epsilon="0.5")[0].sd > 2 * spread[0]


def test_the_published_noise_has_no_spread_below_four_ln_two():
    """Its scale is (c0 + c1 max(1, hub)) / beta, beta just above ln 2; its variance starts at gamma = 3."""
    published = {**DONORS, "bound": "published"}
    (part,) = parts(COUNT, 5, repair=published, epsilon="3")
    assert float(part.scale) == pytest.approx(6 / log(2), rel=0.05) and part.sd < inf
    assert parts(COUNT, 5, repair=published, epsilon="2")[0].sd == inf
    assert parts(COUNT, 0, repair=published, epsilon="3")[0].scale * 3 == part.scale


@pytest.mark.parametrize("query", [{"total": "pay"}, {"mean": "pay", "centre": "0"}, COUNT])
def test_the_epsilon_for_a_target_is_the_least_thousandth_that_reaches_it(query):
    """For an assumed hub; a thousandth less does not do."""
    plan = made(query, ask={"expect": {"value": "3000", "size": 4000}})
    wanted = plan.routes[0].epsilon_for(0.1)

    def cv(epsilon: Fraction) -> float:
        again = made(query, epsilon=str(float(epsilon)), ask={"expect": {"value": "3000", "size": 4000}})
        found = expectations(again)[0].assumed
        return next(each.sd for each in found if each.hub == ASSUMED_HUB) / 3000

    assert (wanted * 1000).denominator == 1
    assert cv(wanted) <= 0.1 < cv(wanted - Fraction(1, 1000))
