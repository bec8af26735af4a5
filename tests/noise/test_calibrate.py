"""Scales are those of THEORY 2.5 and 9, rounded down, certified, and not certified a hair above."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.noise import calibrate
from reticent.noise.calibrate import certify
from reticent.noise.families import Cauchy, Lomax, Student

FOUR = Fraction(4)

# THEORY 9: epsilon, m -> Lomax a, sd/S; Student a, sd/S; Cauchy closed a; Cauchy exact a
TABLE_9 = """
1 6    0.149351785 2.117335035 0.418557264 2.389159345 0.259126290 0.299075289
1 8    0.115700416 1.886059687 0.450160937 2.221427756 0.310689007 0.342969740
1 10   0.094225184 1.768812325 0.465336813 2.148981066 0.339380236 0.366609584
0.5 8  0.053024610 4.115407750 0.216752469 4.613557589 0.145932656 0.164427250
2 8    0.248848869 0.876909311 0.983238021 1.017047732 0.704113535 0.761261416
4 6    0.770794952 0.410261854 2.350402387 0.425459064 1.708908104 1.866460078
"""
# THEORY 2.5: epsilon, m -> epsilon sd/S of Cauchy closed, Cauchy exact, Student, Lomax
TABLE_2_5 = """
0.1 6  4.483660 3.657567 2.596666 2.596889
0.5 6  4.194495 3.524941 2.506487 2.371912
1 6    3.859122 3.343640 2.389159 2.117335
1 8    3.218653 2.915709 2.221428 1.886060
1 10   2.946548 2.727697 2.148981 1.768812
2 8    2.840451 2.627218 2.034095 1.753819
4 6    2.340676 2.143094 1.701836 1.641047
8 6    2.279507 1.142864 1.102882 1.184532
"""


def rows(table):
    return [line.split() for line in table.strip().splitlines()]


def scales(epsilon, m):
    e, b = Fraction(epsilon), Fraction(epsilon) / int(m)
    return {
        "lomax": calibrate.lomax(epsilon=e, beta=b),
        "student": calibrate.student4(epsilon=e, beta=b),
        "closed": calibrate.cauchy_closed(epsilon=e, beta=b, gamma=FOUR),
        "exact": calibrate.cauchy(epsilon=e, beta=b, gamma=FOUR),
    }


@pytest.mark.parametrize("row", rows(TABLE_9), ids=lambda r: f"{r[0]}-{r[1]}")
def test_table_9_to_the_last_digit(row):
    a = scales(row[0], row[1])
    m = int(row[1])
    got = [a["lomax"], math.sqrt(2 / ((m - 1) * (m - 2))) / a["lomax"], a["student"], 1 / a["student"]]
    assert [f"{float(x):.9f}" for x in [*got, a["closed"], a["exact"]]] == row[2:]


@pytest.mark.parametrize("row", rows(TABLE_2_5), ids=lambda r: f"{r[0]}-{r[1]}")
def test_table_2_5_to_the_last_digit(row):
    a = scales(row[0], row[1])
    sd = {
        "lomax": math.sqrt(float(Lomax(int(row[1])).variance())),
        "student": math.sqrt(float(Student().variance())),
        "closed": math.sqrt(float(Cauchy().variance())),
        "exact": math.sqrt(float(Cauchy().variance())),
    }
    got = [f"{float(row[0]) * sd[k] / float(a[k]):.6f}" for k in ("closed", "exact", "student", "lomax")]
    assert got == row[2:]


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "4", "8"])
def test_published_calibration_costs_six_times_the_bound(epsilon):
    e = Fraction(epsilon)
    a = calibrate.cauchy_as_published(epsilon=e, beta=e / 6, gamma=FOUR)
    assert f"{float(e / a):.6f}" == "6.000000"


@settings(max_examples=40, deadline=None)
@given(epsilon=st.fractions("0.001", 20, max_denominator=1000), m=st.integers(4, 40))
def test_closed_forms_are_certified_and_a_millionth_more_is_not(epsilon, m):
    """Rounded down, never up; and tight: 2.2 and 2.3 attain epsilon."""
    beta = epsilon / m
    for family, a in (
        (Lomax(m), calibrate.lomax(epsilon=epsilon, beta=beta)),
        (Student(), calibrate.student4(epsilon=epsilon, beta=beta)),
    ):
        assert certify(family, a=a, beta=beta, epsilon=epsilon)
        assert not certify(family, a=a * (1 + Fraction(1, 10**6)), beta=beta, epsilon=epsilon)
        assert (2**60) % a.denominator == 0


@pytest.mark.parametrize("gamma", ["1.5", "2", "2.5", "4"])
def test_exact_cauchy_lies_above_the_closed_form_and_is_tight(gamma):
    e, b, g = Fraction(1), Fraction(1, 8), Fraction(gamma)
    a = calibrate.cauchy(epsilon=e, beta=b, gamma=g)
    assert a > calibrate.cauchy_closed(epsilon=e, beta=b, gamma=g)
    assert certify(Cauchy(g), a=a, beta=b, epsilon=e)
    assert not certify(Cauchy(g), a=a * (1 + Fraction(1, 10**11)), beta=b, epsilon=e)


def test_as_m_grows_lomax_noise_becomes_laplace_noise():
    """sd tends to sqrt(2) S/epsilon (THEORY 2.2)."""
    a = calibrate.lomax(epsilon=Fraction(1), beta=Fraction(1, 10**4))
    sd = math.sqrt(float(Lomax(10**4).variance())) / float(a)
    assert math.isclose(sd, math.sqrt(2), rel_tol=1e-3) and sd > math.sqrt(2)


def test_published_calibration_is_refused_below_two_with_the_reason():
    with pytest.raises(PlanError, match="at least 2 only"):
        calibrate.cauchy_as_published(epsilon=Fraction(1), beta=Fraction(1), gamma=Fraction(3, 2))
    with pytest.raises(PlanError, match="epsilon/2"):
        calibrate.cauchy_as_published(epsilon=Fraction(1), beta=Fraction(3, 5), gamma=Fraction(2))
    with pytest.raises(PlanError, match="ties it to gamma"):
        calibrate.cauchy_as_published(epsilon=Fraction(1), beta=Fraction(1, 7), gamma=FOUR)


@pytest.mark.parametrize("epsilon", ["0.25", "0.5", "0.75", "0.85", "1", "1.38"])
def test_the_doubling_ladder_is_refused_below_two_ln_two(epsilon):
    """beta = ln 2 with gamma = 1 + epsilon/(2 ln 2), the published donor mechanism, has gamma < 2 there."""
    ln2 = Fraction(math.log(2)).limit_denominator(10**9)
    e = Fraction(epsilon)
    with pytest.raises(PlanError, match=r"ln 2"):
        calibrate.cauchy_as_published(epsilon=e, beta=ln2, gamma=1 + e / (2 * ln2))


@pytest.mark.parametrize(
    ("call", "epsilon", "beta"),
    [
        (calibrate.lomax, "1", "0.3"),
        (calibrate.lomax, "1", "0.5"),
        (calibrate.lomax, "1", "0"),
        (calibrate.lomax, "-1", "-0.1"),
        (calibrate.student4, "1", "0.34"),
        (calibrate.student4, "0.75", "0.25"),
        (lambda **k: calibrate.cauchy(gamma=FOUR, **k), "0.75", "0.25"),
        (lambda **k: calibrate.cauchy_closed(gamma=FOUR, **k), "0.5", "0.25"),
    ],
)
def test_a_beta_no_noise_can_carry_is_refused(call, epsilon, beta):
    with pytest.raises(PlanError):
        call(epsilon=Fraction(epsilon), beta=Fraction(beta))


def test_floats_are_refused():
    with pytest.raises(PlanError):
        calibrate.lomax(epsilon=1.0, beta=0.125)


def test_every_calibration_asks_the_certifier(monkeypatch):
    """With a certifier that always says no, nothing leaves this module."""
    monkeypatch.setattr(calibrate, "certify", lambda *_, **__: False)
    e, b = Fraction(97, 89), Fraction(97, 89 * 6)  # not in the cache
    for call in (calibrate.lomax, calibrate.student4):
        with pytest.raises(PlanError):
            call(epsilon=e, beta=b)
    for call in (calibrate.cauchy, calibrate.cauchy_closed, calibrate.cauchy_as_published):
        with pytest.raises(PlanError):
            call(epsilon=e, beta=b, gamma=FOUR)
