"""Claims check themselves by every door, print as they are, and compose without losing anything."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim, amount, compose, decimal

HALF = Claim(measure="pure", epsilon=amount("0.5"), rests_on=(("THEORY 2.2", "proofs/noise/lomax.md"),))
ZCDP = Claim(measure="zcdp", rho=amount("0.125"))
LOOSE = Claim(measure="approximate", epsilon=amount("1"), delta=amount("0.000001"))
SEEN = Claim(measure="observed")

REFUSED = [
    "0",
    "0.0",
    "-1",
    "+1",
    "1e-1",
    "1_0",
    "",
    " 1",
    "1 ",
    "1\n",
    ".5",
    "5.",
    "１",
    "٣",
    "0x1",
    "1/2",
    "nan",
]
REFUSED += ["inf", "1,5", "1" * 400, "0." + "1" * 13, "1" * 13, 0.5, 1, True, None, b"1", Fraction(1, 2)]


@pytest.mark.parametrize("text", REFUSED)
def test_amount_refuses_all_but_plain_positive_decimals_and_names_the_field(text):
    with pytest.raises(PlanError) as refusal:
        amount(text, field="rho")
    assert refusal.value.field == "rho"


def test_amount_refuses_the_longest_plain_number_by_one_digit_only():
    assert amount("9" * 12 + "." + "9" * 12) == Fraction(10**24 - 1, 10**12)


@given(st.integers(1, 10**24 - 1))
def test_decimals_go_out_and_come_back_unchanged(units):
    value = Fraction(units, 10**12)
    assert amount(decimal(value)) == value


def test_decimal_is_exact_or_refuses():
    assert (
        decimal(Fraction(1, 8)) == "0.125"
        and decimal(Fraction(30)) == "30"
        and decimal(Fraction(-1, 4)) == "-0.25"
    )
    with pytest.raises(PlanError):
        decimal(Fraction(1, 3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"measure": "pure"},
        {"measure": "pure", "epsilon": Fraction(-1)},
        {"measure": "pure", "epsilon": 0.5},
        {"measure": "pure", "epsilon": Fraction(1), "delta": Fraction(1, 2)},
        {"measure": "approximate", "epsilon": Fraction(1)},
        {"measure": "approximate", "epsilon": Fraction(1), "delta": Fraction(1)},
        {"measure": "zcdp", "epsilon": Fraction(1)},
        {"measure": "observed", "epsilon": Fraction(1)},
        {"measure": "exact", "epsilon": Fraction(1)},
        {"measure": "pure", "epsilon": Fraction(1), "change": "one respondent added or removed"},
        {"measure": "pure", "epsilon": Fraction(1), "arithmetic": "floats"},
        {"measure": "pure", "epsilon": Fraction(1), "about": "nothing"},
    ],
)
def test_a_claim_refuses_what_its_measure_cannot_mean(wrong):
    with pytest.raises(PlanError):
        Claim(**wrong)


def test_replace_is_no_way_around_the_rules():
    with pytest.raises(PlanError):
        replace(HALF, epsilon=Fraction(0))
    with pytest.raises(AttributeError):
        HALF.epsilon = Fraction(1, 100)


def test_claims_print_as_the_design_says():
    assert str(HALF) == "0.5-DP, one respondent added or removed, exact"
    assert (
        str(replace(ZCDP, arithmetic="ideal reals"))
        == "0.125-zCDP, one respondent added or removed, ideal reals"
    )
    assert str(LOOSE) == "(1, 0.000001)-DP, one respondent added or removed, exact"
    assert str(SEEN).startswith("not differentially private")
    assert str(replace(HALF, about="the complete truth behind it")).endswith(
        "about the complete truth behind it"
    )


def test_json_holds_strings_and_only_what_the_measure_carries():
    assert HALF.as_dict() == {
        "measure": "pure",
        "epsilon": "0.5",
        "change": "one respondent added or removed",
        "rests_on": [{"theorem": "THEORY 2.2", "proof": "proofs/noise/lomax.md"}],
        "arithmetic": "exact",
        "about": "the incomplete data held",
    }
    assert "epsilon" not in SEEN.as_dict() and LOOSE.as_dict()["delta"] == "0.000001"


def test_replacing_costs_twice_epsilon_and_four_times_rho_and_never_comes_back():
    assert HALF.under(Change.REPLACE).epsilon == 1 and ZCDP.under(Change.REPLACE).rho == Fraction(1, 2)
    assert HALF.under(Change.ADD_REMOVE) is HALF
    assert LOOSE.under(Change.REPLACE).delta == amount("0.000003718282")  # 1e-6 (1 + e), rounded up
    with pytest.raises(PlanError):
        HALF.under(Change.REPLACE).under(Change.ADD_REMOVE)


def test_a_group_pays_k_epsilon_and_k_squared_rho():
    assert HALF.times(3).epsilon == Fraction(3, 2) and ZCDP.times(3).rho == Fraction(9, 8)
    assert (LOOSE.times(3).epsilon, LOOSE.times(3).delta) == (3, amount("0.000011107338"))
    with pytest.raises(PlanError):
        HALF.times(0)


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=30))
def test_charging_n_at_once_equals_charging_n_times(units):
    claims = [Claim(measure="pure", epsilon=Fraction(u, 10**12)) for u in units]
    one_by_one = claims[0]
    for claim in claims[1:]:
        one_by_one = compose([one_by_one, claim])
    assert compose(claims) == one_by_one and one_by_one.epsilon == Fraction(sum(units), 10**12)


def test_composition_keeps_the_weakest_of_each_kind():
    assert compose([HALF, ZCDP]).rho == Fraction(1, 4) and compose([HALF, ZCDP]).measure == "zcdp"
    assert str(compose([HALF, LOOSE])) == "(1.5, 0.000001)-DP, one respondent added or removed, exact"
    assert compose([HALF, SEEN, ZCDP]).measure == "observed"
    assert compose([HALF, replace(HALF, arithmetic="ideal reals")]).arithmetic == "ideal reals"
    assert compose([HALF, HALF]).rests_on == HALF.rests_on


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [HALF, HALF.under(Change.REPLACE)],
        [ZCDP, LOOSE],
        [HALF, replace(HALF, about="the complete truth behind it")],
        [replace(LOOSE, delta=Fraction(1, 2))] * 2,
    ],
)
def test_claims_that_do_not_add_are_refused(parts):
    with pytest.raises(PlanError):
        compose(parts)
