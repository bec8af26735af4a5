"""Promises and numbers: what the prose says follows from the claim, and is rounded against ourselves."""

from decimal import Decimal
from fractions import Fraction
from math import exp

import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers

from reticent.report import numbers, words
from reticent.report.statistics import statistics_lines
from tests.report.documents import CLAIM, answer, document, estimate, rehearsal


def test_promise_is_two_sentences():
    first, second = words.promise(document())
    assert "stayed out of the survey, or joined it" in first and "4.49 times" in first
    assert "whether a respondent took part" in second and "81.8 percent" in second


def test_promise_follows_change_and_unit():
    change = "one respondent's answers replaced"
    made = document(protects={"privacy_unit": "household", "at_most": 4, "change": change})
    first, second = words.promise(made)
    assert (
        "everything recorded under one household, at most 4 rows" in first and "given other answers" in first
    )
    assert "which of two sets of answers" in second


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"measure": "approximate", "delta": "0.000001"}, "but for an event of probability at most 0.000001"),
        ({"measure": "zcdp", "rho": "0.1"}, "rho = 0.1"),
        ({"measure": "observed"}, "no formal guarantee"),
        ({"measure": "a new one"}, "no formal guarantee"),
        ({"epsilon": None}, "no formal guarantee"),
        ({"arithmetic": "ideal reals"}, "exact reals, which they are not"),
        ({"about": "the complete truth behind it"}, "complete answers behind the missing values"),
        ({"about": "the frame it was drawn from"}, "while nobody knows who was"),
    ],
)
def test_weaker_claims_say_what_is_weaker(changed, said):
    assert said in " ".join(words.promise(document(guarantee={**CLAIM, **changed})))


def test_a_rehearsal_promises_nothing():
    assert words.promise(rehearsal().document) == [words.NOTHING]
    assert words.budget(rehearsal().document) is None


def test_spending_adds_up():
    spent = words.budget(document())
    assert spent is not None
    assert (spent["before"], spent["charged"], spent["total"], spent["left"]) == ("0.6", "1.5", "2.1", "7.9")


@given(steps=integers(1, 3000))
def test_promises_are_rounded_up(steps):
    """The factor and the certainty we print are never below those we prove."""
    epsilon = Fraction(steps, 1000)
    assert float(numbers.factor(epsilon).replace(",", "")) >= exp(epsilon)
    assert float(numbers.certainty(epsilon)) >= 100 / (1 + exp(-epsilon))


@pytest.mark.parametrize(
    ("epsilon", "factor", "certainty"),
    [("9.75", "17,155", "99.995"), ("13.9", "1,088,162", "99.99991"), ("20", "10 to the power of 9", "99.9999998"),
     ("40", "10 to the power of 18", "100"), ("900", "10 to the power of 391", "100")],
)  # fmt: skip
def test_promises_of_large_budgets_stay_bounds(epsilon, factor, certainty):
    """A factor beyond a million is told by a power of 10, and nobody is a hundred percent sure before the ninth decimal."""
    assert (numbers.factor(Fraction(epsilon)), numbers.certainty(Fraction(epsilon))) == (factor, certainty)


@given(value=floats(-1e9, 1e9), half=floats(1e-5, 1e6))
def test_a_shown_bar_covers_the_bar(value, half):
    """Rounded outward, by less than a unit of its last digit."""
    low, high, value = round(value - half, 6), round(value + half, 6), round(value, 6)
    places = numbers.places({"privacy_low": low, "privacy_high": high})
    unit = Decimal(1).scaleb(-places)
    shown = [
        Decimal(text.replace(",", ""))
        for text in (numbers.downward(low, places), numbers.upward(high, places))
    ]
    assert Decimal(str(low)) - unit < shown[0] <= Decimal(str(low))
    assert Decimal(str(high)) <= shown[1] < Decimal(str(high)) + unit
    near = Decimal(numbers.nearest(value, places).replace(",", ""))
    assert abs(near - Decimal(str(value))) <= unit / 2


@pytest.mark.parametrize(
    ("value", "places", "said"),
    [(43333.416921, 0, "43,333"), (0.5, 0, "1"), (-0.5, 0, "0"), (-1.5, 0, "-1"), (0.631087, 5, "0.63109"),
     (40000, 6, "40,000"), (1e-6, 6, "0.000001"), (2.5, 6, "2.5"), (0, 6, "0"), (None, 2, ""), (1e300, 0, None)],
)  # fmt: skip
def test_numbers_as_shown(value, places, said):
    made = numbers.nearest(value, places)
    assert made == said if said is not None else made.startswith("1,000")


def test_domains_of_one_key_are_a_table_of_their_own_on_the_terminal():
    """The key heads a column; nobody reads `area = North` forty times."""
    cells = [estimate(1.5, cell={"area": "1"}), estimate(2.5, cell={"area": "2"})]
    labels = {"area": {"label": "Area", "levels": {"1": "North", "2": "South"}}}
    told = document(statistics=[answer("all", [estimate(4)]), answer("pay", cells)], labels=labels)
    singles, table = [line for line in statistics_lines(told) if not isinstance(line, str)]
    assert singles.headings[0] == "statistic" and [row[0] for row in singles.rows] == ["all"]
    assert table.headings[0] == "Area" and [row[0] for row in table.rows] == ["North", "South"]
