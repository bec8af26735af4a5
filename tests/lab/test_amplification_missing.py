"""The examples of amplification by missingness: printed numbers are found again, and ours has its reason beside it."""

from fractions import Fraction

import pytest

from reticent.lab.experiments import amplification_missing as lab
from reticent.privacy.missingness import IndependentMask, Use, amplified, sets_of
from reticent.privacy.missingness.masks import use


@pytest.fixture(scope="module")
def lines():
    return {line.item: line for line in lab.run(0, 0)}


def test_every_item_has_its_reason_and_no_item_comes_twice(lines):
    assert len(lines) == len(lab.run(0, 0)) == 80
    assert all(line.query for line in lines.values())


def test_as_printed_is_what_is_printed(lines):
    """Within one unit of the last digit printed; the first example is printed as 0.421, which is 0.421875 cut off."""
    for name in lab.EXAMPLES:
        line = lines[f"Example {name}, epsilon 1"]
        digits = len(str(line.printed)) - 2
        assert 2 <= digits <= 4 and abs(line.as_printed - line.printed) < 10**-digits, name
        assert lines[f"Example {name}, epsilon 2"].as_printed == pytest.approx(2 * line.as_printed)


def test_one_row_reaches_as_many_as_the_lemma_says_and_a_coin_for_all_hides_nobody(lines):
    for item, line in lines.items():
        if item.startswith(("Lemma", "Theorem")):
            assert line.value == line.as_printed
        if item.startswith("Example 5.1,"):
            alone = "of 1 rows" in item
            assert line.value == pytest.approx(line.vector) if alone else line.value > 1.5 * line.vector


def test_ours_is_attained_and_chance_times_epsilon_is_passed(lines):
    for name in lab.EXAMPLES:
        exact, worst = lines[f"Example {name}, epsilon 1"].value, lines[f"Example {name}, worst loss"].value
        assert worst == pytest.approx(exact, abs=1e-11)
        assert (
            lines[f"Example {name}, first order"].value
            < worst
            <= lines[f"Example {name}, made sound"].value + 1e-11
        )


def test_the_reason_given_for_an_example_is_the_true_one(lines):
    """Two printed numbers are too small at every epsilon, one of the others at epsilon 2."""
    small = {item for item, line in lines.items() if line.query == lab.ABOVE}
    assert {f"Example {n}, epsilon {e}" for n in ("5.5", "5.7") for e in lab.EPSILONS} <= small
    assert "Example 5.11, epsilon 2" in small and "Example 5.11, epsilon 1" not in small
    for item in small:
        assert lines[item].value > lines[item].as_printed


def test_the_table_cannot_be_claimed_before_the_rows_are_seen(lines):
    """Ours is above every printed entry, below epsilon, and falls as more is missing."""
    for data in lab.TABLE:
        found = [lines[f"Table 1, {data}, {share} missing"] for share in lab.SHARES]
        assert all(line.printed < line.value < 1 for line in found)
        assert [line.value for line in found] == sorted((line.value for line in found), reverse=True)
    ends = [lines[f"Finding: amplified cost, {what}"] for what in ("from", "to")]
    assert [line.printed.digits for line in ends] == ["0.1", "0.65"]
    assert [line.as_printed for line in ends] == [0.31, 0.88] and 0.75 < ends[0].value < ends[1].value < 0.952


def test_the_bound_before_the_rows_covers_every_tree():
    """Four columns at two thirds: all chains and stars of tables, with choices among all pairs, cost no more."""
    names, p = [f"column {k}" for k in range(4)], Fraction(2, 3)
    law = IndependentMask(dict.fromkeys(names, p))
    pairs = [{a, b} for a in names for b in names if a < b]
    choices = Use(sets=sets_of(*pairs), epsilon=Fraction(1, 2))
    chain = [(names[k], names[max(0, k - 1)]) for k in range(4)]
    star = [(names[k], names[0]) for k in range(4)]
    bound = lab.before_the_rows(4, observed=p)
    for tree in (chain, star):
        uses = [use(*set(each), epsilon=Fraction(1, 8)) for each in tree]
        assert amplified([choices, *uses], law) < bound
