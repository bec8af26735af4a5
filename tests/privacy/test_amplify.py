"""Amplification by sampling: attained by some data set, passed by none, and rounded against us."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim, compose
from reticent.privacy.sampling import (
    REFUSED,
    SamplingDesign,
    allowed,
    allowed_both_ways,
    amplified,
    amplified_both_ways,
    amplify,
    design_of,
    thesis_bound,
    thesis_largest_rate,
)
from tests.privacy.lots import added, histogram, loss, mixture, ones, poisson, replaced, simple

ULP = Fraction(1, 10**12)
ADD, REPLACE = Change.ADD_REMOVE, Change.REPLACE
TENTH = Fraction(1, 10)


def pure(epsilon: str, change: Change = ADD) -> Claim:
    return Claim(measure="pure", epsilon=Fraction(epsilon), change=change)


# The printed numbers.

PRINTED = {
    "0.1": ("0.086893566", "0.115822688", "0.010462172"),
    "0.5": ("0.282366701", "0.168215239", "0.062854723"),
    "1": ("0.387300163", "0.263925594", "0.158565079"),
    "2": ("0.463710558", "0.599389224", "0.494028708"),
    "5": ("0.498309819", "2.861649358", "2.756288842"),
    "10": ("0.499988650", "7.803183939", "7.697823423"),
}


@pytest.mark.parametrize("epsilon", PRINTED)
def test_every_printed_number(epsilon):
    """THEORY 5.3, to the last digit."""
    e = Fraction(epsilon)
    found = (
        thesis_largest_rate(epsilon=e),
        thesis_bound(epsilon=e, rate=TENTH),
        amplified(epsilon=e, rate=TENTH),
    )
    assert tuple(f"{float(x):.9f}" for x in found) == PRINTED[epsilon]


def test_the_thesis_bound_is_no_gain_from_its_largest_rate_on():
    for epsilon in map(Fraction, PRINTED):
        rate = thesis_largest_rate(epsilon=epsilon)
        assert thesis_bound(epsilon=epsilon, rate=rate) <= epsilon + ULP
        assert thesis_bound(epsilon=epsilon, rate=rate + 2 * ULP) > epsilon


def test_ours_is_below_the_thesis_bound_by_minus_log_of_the_rest():
    for epsilon in map(Fraction, PRINTED):
        for rate in (Fraction(1, 100), TENTH, Fraction(1, 2), Fraction(9, 10)):
            gap = thesis_bound(epsilon=epsilon, rate=rate) - amplified(epsilon=epsilon, rate=rate)
            assert abs(float(gap) + math.log(1 - rate)) < 3e-12


# Brute force: every data set, every neighbour, every sample.


@pytest.mark.parametrize(("n", "size", "epsilon", "said"), [(3, 1, 1.0, "0.452832"), (5, 2, 1.5, "0.872412")])
def test_simple_sampling_is_attained_exactly(n, size, epsilon, said):
    """Geometric counts of ones, all data sets of n records: the worst loss is the formula, and is printed in 5.3."""
    worst = max(
        loss(*(simple(data, size, lambda s: ones(s, epsilon)) for data in pair)) for pair in replaced(n)
    )
    ours = amplified(epsilon=Fraction(str(epsilon)), rate=Fraction(size, n))
    assert f"{worst:.6f}" == f"{float(ours):.6f}" == said
    assert abs(worst - float(ours)) < 1e-11


def random_mechanism(rng: np.random.Generator, epsilon: float):
    """A table of laws on three outputs, each tilted at will; its own epsilon is measured, not promised."""
    known: dict[object, dict[object, float]] = {}

    def law(sample):
        key = tuple(sorted(sample))
        if key not in known:
            tilt = np.exp(rng.choice([-epsilon / 4, epsilon / 4], 3))
            known[key] = dict(enumerate(tilt / tilt.sum()))
        return known[key]

    return law


def mutual_loss(mechanism, n: int, levels: tuple[int, ...]) -> float:
    return max(loss(mechanism(a), mechanism(b)) for a, b in replaced(n, levels))


def test_simple_sampling_is_never_passed():
    """300 random mechanisms of three outputs on samples from {0, 1, 2}^4; each one's own epsilon goes into the formula."""
    rng = np.random.default_rng(1)
    twin_passed = 0
    for _ in range(300):
        size = int(rng.integers(1, 4))
        mechanism = random_mechanism(rng, float(rng.uniform(0.2, 4)))
        epsilon = mutual_loss(mechanism, size, (0, 1, 2))
        if epsilon < 1e-9:
            continue
        worst = max(
            loss(*(simple(data, size, mechanism) for data in pair)) for pair in replaced(4, (0, 1, 2))
        )
        bound = math.log1p(size / 4 * math.expm1(epsilon))
        assert worst <= bound + 1e-12
        twin_passed += worst > size / 4 * epsilon  # the naive twin: rate times epsilon
    assert twin_passed > 0


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_poisson_sampling_is_attained_for_both_changes_and_never_passed(rate, epsilon):
    """Histograms of up to three records out of {0, 1}."""
    e, p = Fraction(str(epsilon)), Fraction(str(rate))

    def law(data):
        return poisson(data, rate, lambda s: histogram(s, epsilon))

    one_way = max(loss(law(a), law(b)) for a, b in added(3))
    both = max(loss(law(a), law(b)) for a, b in replaced(3))
    assert abs(one_way - float(amplified(epsilon=e, rate=p))) < 1e-11
    assert abs(both - float(amplified_both_ways(epsilon=e, rate=p))) < 1e-11
    # The naive twin, the formula for the other sampler: too small here.  # covers T25
    assert both > float(amplified(epsilon=e, rate=p)) + 0.01


def test_a_promise_against_replacing_is_not_amplified_by_poisson_sampling():
    """Why it is refused: this mechanism is 1-DP for replace, and tells the size of its sample; the loss stays 1."""

    def law(sample):
        return {(len(sample), o): mass for o, mass in ones(sample, 1.0).items()}

    def whole(data):
        return poisson(data, 0.1, law)

    assert loss(whole((0, 0, 0)), whole((1, 0, 0))) == pytest.approx(1)
    with pytest.raises(PlanError, match="random"):
        amplify([pure("1", REPLACE)], rate=TENTH, design=SamplingDesign.POISSON, change=REPLACE)


def test_mechanisms_on_one_sample_are_composed_first():
    """Two counts on one sample: the joint loss is what we claim, and the sum of two amplified ones is below it."""

    def twice(sample):
        return {(a, b): x * y for a, x in ones(sample, 1.0).items() for b, y in ones(sample, 1.0).items()}

    joint = max(loss(*(simple(data, 1, twice) for data in pair)) for pair in replaced(3))
    half = pure("1", REPLACE)
    claim = amplify([half, half], rate=Fraction(1, 3), design=SamplingDesign.SIMPLE, change=REPLACE)
    naive = 2 * amplified(epsilon=Fraction(1), rate=Fraction(1, 3))
    assert float(naive) + 0.1 < joint == pytest.approx(float(claim.epsilon), abs=1e-11)
    with pytest.raises(PlanError, match="one sample"):
        compose([claim, claim])


def test_an_allocation_that_looks_at_the_rows_can_be_worse_than_no_sampling():
    """Why other designs are refused: all respondents are asked where two say yes, else one of four."""

    def law(data):
        return ones(data, 1.0) if sum(data) >= 2 else simple(data, 1, lambda s: ones(s, 1.0))

    assert loss(law((1, 1, 0, 0)), law((1, 0, 0, 0))) > 1.4  # the count alone is 1-DP


@pytest.mark.parametrize("name", REFUSED)
def test_other_designs_are_refused_with_the_reason(name):
    with pytest.raises(PlanError, match="is not amplified: "):
        design_of(name)


def test_an_unknown_design_is_refused_with_the_nearest():
    assert design_of("poisson") is SamplingDesign.POISSON
    with pytest.raises(PlanError, match="did you mean 'stratified'"):
        design_of("stratfied")


# Claims.


def test_what_each_design_promises_against_each_change():
    claim, e = pure("0.5"), Fraction(1, 2)
    simple_ = amplify([claim], rate=TENTH, design=SamplingDesign.SIMPLE, change=REPLACE)
    assert simple_.epsilon == amplified(epsilon=2 * e, rate=TENTH)  # a replacement is two changes
    one = amplify([claim], rate=TENTH, design=SamplingDesign.POISSON, change=ADD)
    assert (one.epsilon, one.change) == (amplified(epsilon=e, rate=TENTH), ADD)
    both = amplify([claim], rate=TENTH, design=SamplingDesign.POISSON, change=REPLACE)
    assert (both.epsilon, both.change) == (amplified_both_ways(epsilon=e, rate=TENTH), REPLACE)
    assert both.epsilon <= one.under(REPLACE).epsilon
    assert str(one).endswith("about the frame it was drawn from")
    with pytest.raises(PlanError, match="hides"):
        amplify([claim], rate=TENTH, design=SamplingDesign.SIMPLE, change=ADD)


def test_delta_falls_with_the_rate():
    """Worst case by hand: a mechanism that tells all with probability delta tells only of those drawn."""
    claim = Claim(measure="approximate", epsilon=Fraction(1), delta=Fraction(1, 10**6), change=REPLACE)
    made = amplify([claim], rate=TENTH, design=SamplingDesign.SIMPLE, change=REPLACE)
    assert (made.epsilon, made.delta) == (amplified(epsilon=Fraction(1), rate=TENTH), Fraction(1, 10**7))


def test_what_has_no_theorem_is_refused():
    zcdp = Claim(measure="zcdp", rho=Fraction(1, 2))
    amplified_once = amplify([pure("1")], rate=TENTH, design=SamplingDesign.POISSON, change=ADD)
    for claim in (zcdp, Claim(measure="observed"), amplified_once):
        with pytest.raises(PlanError):
            amplify([claim], rate=TENTH, design=SamplingDesign.POISSON, change=ADD)
    for rate in (Fraction(0), Fraction(-1), Fraction(11, 10)):
        with pytest.raises(PlanError):
            amplified(epsilon=Fraction(1), rate=rate)
    with pytest.raises(PlanError):
        thesis_bound(epsilon=Fraction(1), rate=Fraction(1))
    with pytest.raises(PlanError):
        replace(amplified_once, about="the frame next door")


def test_the_whole_frame_is_not_amplified():
    one = Fraction(1)
    assert amplified(epsilon=one, rate=one) == allowed(epsilon=one, rate=one) == one
    assert (
        amplified_both_ways(epsilon=one, rate=one) == 2
        and allowed_both_ways(epsilon=one, rate=one) == one / 2
    )


# Rounding.

EPSILONS = [Fraction(n, 10**6) for n in (1, 7, 50, 333, 5000, 31416, 70000)]
EPSILONS += [
    Fraction(n, 100) for n in (10, 15, 20, 25, 33, 50, 71, 100, 150, 200, 271, 314, 500, 700, 1000, 2000)
]
RATES = [Fraction(n, 10**k) for k in range(1, 8) for n in (1, 2, 3, 5, 7, 9)] + [
    Fraction(1, 3),
    Fraction(2, 7),
]
GRID = [(e, r) for e in EPSILONS for r in RATES]


def exactly(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def mean_exp(epsilon: Decimal, rate: Decimal) -> Decimal:
    return 1 + rate * (epsilon.exp() - 1)


# covers T24
def test_never_below_a_hundred_digits_and_the_float_twin_is():
    """1,012 points, each to 100 digits; the thesis's bound, the one for replacing and the inverses too."""
    assert len(GRID) >= 1000
    twin_below, last = 0, Decimal("1.001e-12")
    with localcontext() as arithmetic:
        arithmetic.prec = 100
        for e, r in GRID:
            epsilon, rate = exactly(e), exactly(r)
            truth = mean_exp(epsilon, rate).ln()
            both = truth - mean_exp(-epsilon, rate).ln()
            theirs = (1 + rate * epsilon.exp() / (1 - rate)).ln()
            largest = (epsilon.exp() - 1) / (2 * epsilon.exp() - 1)
            back = (1 + (epsilon.exp() - 1) / rate).ln()
            assert 0 <= exactly(amplified(epsilon=e, rate=r)) - truth <= last
            assert 0 <= exactly(amplified_both_ways(epsilon=e, rate=r)) - both <= last
            assert 0 <= exactly(thesis_bound(epsilon=e, rate=r)) - theirs <= last
            assert 0 <= largest - exactly(thesis_largest_rate(epsilon=e)) <= last
            assert 0 <= back - exactly(allowed(epsilon=e, rate=r)) <= last
            twin_below += Decimal(round(math.log(1 + float(r) * (math.exp(float(e)) - 1)), 12)) < truth
    assert twin_below > 300


def test_what_may_be_spent_never_promises_more_than_was_wanted():
    """The inverse, rounded down, then amplified, rounded up, is within the target; one step more is not."""
    for e, r in GRID[::7]:
        for there, back in ((allowed, amplified), (allowed_both_ways, amplified_both_ways)):
            spent = there(epsilon=e, rate=r)
            assert back(epsilon=spent, rate=r) <= e
            assert back(epsilon=spent + max(ULP, 3 * ULP / r), rate=r) > e


def test_extreme_amounts_are_answered_or_refused_at_once():
    huge, tiny = Fraction(10**12), ULP
    assert (
        huge - 30 < amplified(epsilon=huge, rate=tiny) < huge < allowed(epsilon=huge, rate=tiny) < huge + 30
    )
    assert amplified(epsilon=tiny, rate=tiny) == tiny
    assert allowed(epsilon=tiny, rate=tiny) > Fraction(1, 2)
    assert allowed_both_ways(epsilon=Fraction(10**6), rate=Fraction(1, 2)) > 10**6 - 1
    with pytest.raises(PlanError, match="nothing"):
        allowed_both_ways(epsilon=tiny, rate=Fraction(9, 10))


def test_a_mixture_of_laws_is_a_law():
    """The enumeration itself: masses add up."""
    law = mixture([(0.25, {"a": 1.0}), (0.75, {"a": 0.5, "b": 0.5})])
    assert law == {"a": 0.625, "b": 0.375}
