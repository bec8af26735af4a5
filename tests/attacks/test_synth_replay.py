"""Nothing escapes the noise of a synthesizer: every method with every strategy, replayed on neighbours both ways."""

from dataclasses import replace
from fractions import Fraction

import pytest

from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod, Spend, SynthesisMethod
from tests.attacks.synth_worlds import (
    DOMAIN,
    METHODS,
    SMALL,
    Forced,
    allows,
    apart,
    budget,
    faults,
    fitted,
    neighbours,
    records,
)
from tests.synth.replay import is_drawable
from tests.synth.standins import FrozenSynthNoise, spent

PURE = Spend(epsilon=Fraction(1))
SPENDS = {
    "pure": PURE,
    "zcdp replaced": Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6), change=Change.REPLACE),
}
TWO = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6), records=2)
CASES = [
    pytest.param(method, holes, spend, id=f"{method.name}-{holes.value}-{name}")
    for method in METHODS
    for holes in MissingMethod
    for name, spend in SPENDS.items()
    if allows(method, holes, spend)
]


# covers T10 T12 T20 T27
@pytest.mark.parametrize(("method", "holes", "spend"), CASES)
def test_nothing_but_noisy_answers_tells_neighbours_apart(
    method: SynthesisMethod, holes: MissingMethod, spend: Spend
) -> None:
    """Seven records, holes and unasked cells among them: five strangers come, or answer instead of others; three go."""
    here = records(DOMAIN, 7, 1, is_counted=method.name == "privbayes-printed")
    assert faults(method, here, holes, spend) == []


# covers T10 T12 T20 B068
@pytest.mark.parametrize("holes", list(MissingMethod))
@pytest.mark.parametrize(
    "method", [m for m in METHODS if m.name != "privbayes-printed"], ids=lambda m: m.name
)
def test_an_empty_table_looks_like_any_other(method: SynthesisMethod, holes: MissingMethod) -> None:
    """Nobody, and each of five strangers alone."""
    assert faults(method, records(SMALL, 0, 2), holes, PURE) == []


@pytest.mark.parametrize("holes", [MissingMethod.MEAN, MissingMethod.AVAILABLE])
@pytest.mark.parametrize(
    "method", [m for m in METHODS if m.name != "privbayes-printed"], ids=lambda m: m.name
)
def test_respondents_of_two_records_are_paid_for(method: SynthesisMethod, holes: MissingMethod) -> None:
    """And a spend that forgets the second record is caught."""
    here = records(SMALL, 6, 3)
    assert faults(method, here, holes, TWO) == []
    first = fitted(method, here, holes, replace(TWO, records=1), FrozenSynthNoise())
    seen = [
        apart(
            first, fitted(method, other, holes, replace(TWO, records=1), FrozenSynthNoise(script=first.given))
        )
        for other in neighbours(here, TWO)
    ]
    assert ["moves further than it says"] in seen


# covers T05 T18 T20
@pytest.mark.parametrize("size", [0, 40, 2**58, 10**25])
@pytest.mark.parametrize("holes", [MissingMethod.COMPLETE, MissingMethod.MODEL, MissingMethod.AVAILABLE])
@pytest.mark.parametrize(
    "method", [m for m in METHODS if m.name != "privbayes-printed"], ids=lambda m: m.name
)
def test_no_transcript_makes_a_method_overspend_raise_or_tell(
    method: SynthesisMethod, holes: MissingMethod, size: int
) -> None:
    """Choices forced by lot, counts forced to nothing, to noise, and beyond 64 bits: a promise is about all of them."""
    here = records(DOMAIN, 7, 4)
    first = fitted(method, here, holes, PURE, Forced(size=size))
    assert 0 < spent(first.met, pure=True) <= budget(PURE)
    assert is_drawable(first.network)
    for other in (here.without(0), here.plus([1, 2, 0])):
        assert apart(first, fitted(method, other, holes, PURE, Forced(size=size))) == []


# covers T05 T11 T18 T20
@pytest.mark.parametrize("size", [3, 40, 2**58])
@pytest.mark.parametrize(
    "method",
    [*METHODS[1:3], *(replace(each, merge=3.0) for each in METHODS[3:])],  # type: ignore[type-var, call-arg]
    ids=lambda method: method.name,
)
def test_no_transcript_tells_where_answers_are_replaced(method: SynthesisMethod, size: int) -> None:
    """The same in zCDP, for methods that put rare cells together on the way, and for the printed score."""
    here, spend = records(DOMAIN, 7, 4, is_counted=True), SPENDS["zcdp replaced"]
    first = fitted(method, here, MissingMethod.VALUES, spend, Forced(size=size))
    assert 0 < spent(first.met, pure=False) <= budget(spend)
    assert is_drawable(first.network)
    for other in neighbours(here, spend):
        assert apart(first, fitted(method, other, MissingMethod.VALUES, spend, Forced(size=size))) == []
