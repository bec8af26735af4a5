"""Claims about the complete truth: composed before they are amplified, and refused where there is no theorem."""

from fractions import Fraction

import pytest

from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim, compose
from reticent.privacy.convert import zcdp_to_epsilon
from reticent.privacy.missingness import (
    EVERY_ROW,
    IndependentMask,
    MaskTable,
    Run,
    Use,
    amplified,
    amplified_both_ways,
    amplify_missing,
    masks_of,
    sets_of,
)
from reticent.privacy.missingness.claims import REFUSED

ADD, REPLACE = Change.ADD_REMOVE, Change.REPLACE
HALF, MILLIONTH = Fraction(1, 2), Fraction(1, 10**6)
LAW = IndependentMask({"G": HALF, "I": HALF})


def pure(epsilon: str = "1", change: Change = ADD) -> Claim:
    return Claim(measure="pure", epsilon=Fraction(epsilon), change=change, rests_on=(("THEORY 2.1", "x.md"),))


def run(claim: Claim, *names: str, too: bool = False) -> Run:
    return Run(claim=claim, sets=sets_of(set(names)), is_replaced_too=too)


NESTED = [run(pure(), "G"), run(pure(), "G", "I")]


def test_claims_are_composed_first_and_amplified_once():
    """Two nested mechanisms: 1.1075 together, and the sum of two amplified ones is below it."""
    made = amplify_missing(NESTED, observed=LAW, change=ADD)
    assert f"{float(made.epsilon):.9f}" == "1.107517348"
    assert (made.measure, made.change, made.about) == ("pure", ADD, "the complete truth behind it")
    assert str(made).endswith("about the complete truth behind it")
    assert made.rests_on[-1][1] == "proofs/privacy/missingness.md" and ("THEORY 2.1", "x.md") in made.rests_on
    apart = [amplify_missing([each], observed=LAW, change=ADD) for each in NESTED]
    assert sum(each.epsilon for each in apart) < made.epsilon - Fraction(1, 10)
    with pytest.raises(PlanError, match="one mask"):
        compose(apart)


def test_replaced_answers_cost_less_only_if_every_mechanism_hides_them_too():
    uses = [Use(sets=each.sets, epsilon=each.claim.epsilon) for each in NESTED]
    made = amplify_missing(NESTED, observed=LAW, change=REPLACE)
    assert (made.epsilon, made.change) == (amplified_both_ways(uses, LAW), REPLACE)
    one = [NESTED[0], run(pure(), "G", "I", too=True)]
    assert amplify_missing(one, observed=LAW, change=REPLACE).epsilon == made.epsilon
    every = [run(pure(), "G", too=True), one[1]]
    assert amplify_missing(every, observed=LAW, change=REPLACE).epsilon == amplified(uses, LAW)


def test_delta_falls_with_the_chance_of_being_used():
    claim = Claim(measure="approximate", epsilon=Fraction(1), delta=MILLIONTH)
    made = amplify_missing([run(claim, "G"), run(claim, "G", "I")], observed=LAW, change=ADD)
    assert (made.measure, made.delta) == ("approximate", Fraction(3, 4) * MILLIONTH)
    both = amplify_missing([run(claim, "G")], observed=LAW, change=REPLACE)
    once = amplify_missing([run(claim, "G")], observed=LAW, change=ADD)
    assert (both.epsilon, both.change) == (2 * once.epsilon, REPLACE) and both.delta > 2 * once.delta


def test_zcdp_is_carried_over_by_its_curve():
    """Less than the same rho about the data held, more than nothing, and mixed with pure promises."""
    claim = Claim(measure="zcdp", rho=Fraction(1, 20))
    made = amplify_missing([run(claim, "G", "I")], observed=LAW, change=ADD, delta=MILLIONTH)
    plain = zcdp_to_epsilon(rho=Fraction(1, 20), delta=MILLIONTH)
    assert (made.measure, made.delta, made.rho) == ("approximate", MILLIONTH, 0)
    assert plain / 4 < made.epsilon < plain
    mixed = amplify_missing(
        [run(claim, "G", "I"), run(pure("0.1"), "G")], observed=LAW, change=ADD, delta=MILLIONTH
    )
    assert mixed.epsilon > made.epsilon
    always = Run(claim=claim, sets=EVERY_ROW)
    assert amplify_missing([always], observed=LAW, change=ADD, delta=MILLIONTH).epsilon == plain
    with pytest.raises(PlanError, match="delta"):
        amplify_missing([run(claim, "G")], observed=LAW, change=ADD)


def test_only_the_model_is_amplified_where_a_model_fills():
    """THEORY 4.8: answers from completed rows use everybody."""
    fit, answers = run(pure(), "G", "I"), Run(claim=pure("0.5"), sets=EVERY_ROW)
    made = amplify_missing([fit, answers], observed=LAW, change=ADD)
    alone = amplify_missing([fit], observed=LAW, change=ADD)
    assert abs(made.epsilon - alone.epsilon - HALF) <= Fraction(2, 10**12)
    assert amplify_missing([answers], observed=LAW, change=ADD).epsilon == HALF


@pytest.mark.parametrize("name", REFUSED)
def test_where_there_is_no_theorem_it_is_refused_with_the_reason(name):
    with pytest.raises(PlanError, match="nothing is amplified"):
        amplify_missing(NESTED, observed=LAW, change=ADD, masks=name)


def test_an_unknown_state_of_masks_is_refused_with_the_nearest():
    assert masks_of("secret") == "secret"
    with pytest.raises(PlanError, match="did you mean 'estimated'"):
        masks_of("estimate")


def test_what_cannot_be_carried_over_is_refused():
    once = amplify_missing(NESTED, observed=LAW, change=ADD)
    for claim in (pure(change=REPLACE), Claim(measure="observed"), once):
        with pytest.raises(PlanError):
            run(claim, "G")
    with pytest.raises(PlanError, match="claim"):
        amplify_missing([], observed=LAW, change=ADD)
    with pytest.raises(PlanError, match="nothing says"):
        amplify_missing([run(pure(), "H")], observed=LAW, change=ADD)


def test_a_public_law_of_masks_may_be_used_instead():
    clustered = MaskTable([{frozenset("GI"): HALF, frozenset(): HALF}])
    made = amplify_missing([run(pure(), "G"), run(pure(), "I")], observed=clustered, change=ADD)
    apart = amplify_missing([run(pure(), "G"), run(pure(), "I")], observed=LAW, change=ADD)
    assert made.epsilon > apart.epsilon
