"""Choosing what to ask next by what was answered: the filter keeps the budget, and without it the budget is passed."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import BudgetError, PlanError
from reticent.privacy.claim import Change
from reticent.privacy.missingness import Filter, IndependentMask, Use, amplified, sets_of
from tests.privacy.masked import Masked, both, count, independent, rows

HALF, ONE = Fraction(1, 2), Fraction(1)
LAW = IndependentMask({"a": HALF, "b": HALF})
Transcript = tuple[tuple[str, int], ...]
Policy = Callable[[Transcript], str | None]
OUTPUTS = 4


def stubborn(transcript: Transcript) -> str | None:
    """Ask about a; ask again about a if the answer was high, and about b if it was low."""
    if len(transcript) == 2:
        return None
    return "a" if not transcript or transcript[0][1] >= 2 else "b"


def kept(policy: Policy, budget: Fraction) -> Policy:
    """The same, with a filter: what it does not admit is not asked."""

    def filtered(transcript: Transcript) -> str | None:
        book = Filter(budget=budget, observed=LAW)
        for asked, _ in transcript:
            book.spend({asked}, epsilon=ONE)
        wanted = policy(transcript)
        return wanted if wanted is not None and book.admits({wanted}, epsilon=ONE) else None

    return filtered


def transcripts(table: Masked, policy: Policy, mechanism, so_far: Transcript = ()) -> dict[Transcript, float]:
    """The law of everything that is said, step after step."""
    wanted = policy(so_far)
    if wanted is None:
        return {so_far: 1.0}
    law = mechanism(wanted)(table).ravel()
    found: dict[Transcript, float] = {}
    for output, chance in enumerate(law):
        for told, rest in transcripts(table, policy, mechanism, (*so_far, (wanted, output))).items():
            found[told] = found.get(told, 0.0) + chance * rest
    return found


def of_table(table, policy: Policy, mechanism) -> dict[Transcript, float]:
    """Averaged over the mask of the one row, if there is one."""
    if not table:
        return transcripts((), policy, mechanism)
    total: dict[Transcript, float] = {}
    for mask, chance in independent({"a": 0.5, "b": 0.5})(table[0]):
        for told, mass in transcripts(((table[0], mask),), policy, mechanism).items():
            total[told] = total.get(told, 0.0) + chance * mass
    return total


def worst(policy: Policy, pairs, mechanism) -> float:
    found = 0.0
    for one, other in pairs:
        here, there = of_table(one, policy, mechanism), of_table(other, policy, mechanism)
        assert here.keys() == there.keys()  # what is asked is a function of what was said
        found = max(found, *(abs(float(np.log(here[t] / there[t]))) for t in here))
    return found


def counts(name: str):
    return count(name, epsilon=1.0, top=1)


ADDED = [([row], []) for row in rows("ab")]


def cost(*asked: str) -> Fraction:
    return amplified([Use(sets=sets_of({name}), epsilon=ONE) for name in asked], LAW)


def test_with_the_filter_the_budget_is_never_passed_and_without_it_it_is():
    """Every transcript of an asker who repeats what paid off. a then b costs 1.24, a then a 1.43; 1.3 is there."""
    budget = Fraction("1.3")
    assert cost("a", "b") < budget < cost("a", "a")
    assert worst(kept(stubborn, budget), ADDED, counts) <= budget
    assert worst(stubborn, ADDED, counts) > budget  # the naive twin: no filter


def test_the_cost_of_the_transcript_that_came_up_is_no_promise():
    """A low answer leads to b, whose transcript costs 1.24; the loss of the whole is that of the dearest transcript."""
    assert worst(stubborn, ADDED, counts) == pytest.approx(float(cost("a", "a")), abs=1e-9)
    assert float(cost("a", "a")) > float(cost("a", "b")) + 0.1


def test_a_filter_for_replaced_answers_counts_both_ways():
    """Counts of each answer, a row against another; the filter for adding would admit too much."""

    def tables(name: str):
        return both(name, epsilon=1.0, top=1)

    pairs = [([a], [b]) for a in rows("ab") for b in rows("ab")]
    once: Policy = lambda transcript: None if transcript else "a"
    lost = worst(once, pairs, tables)
    budget = Fraction("0.9")
    assert Filter(budget=budget, observed=LAW).admits({"a"}, epsilon=ONE)
    assert lost > budget
    assert not Filter(budget=budget, observed=LAW, change=Change.REPLACE).admits({"a"}, epsilon=ONE)
    assert Filter(budget=Fraction("1.01"), observed=LAW, change=Change.REPLACE).admits({"a"}, epsilon=ONE)
    assert lost <= 1.01


def test_what_is_refused_costs_nothing_and_what_fits_still_fits():
    book = Filter(budget=Fraction("1.3"), observed=LAW)
    assert book.spent == 0
    book.spend({"a"}, epsilon=ONE)
    before = book.spent
    with pytest.raises(BudgetError, match="smaller epsilon"):
        book.spend({"a"}, epsilon=ONE)
    assert book.spent == before == cost("a")
    book.spend({"b"}, epsilon=ONE)
    assert book.spent == cost("a", "b")


def test_a_choice_is_charged_for_all_its_candidates():
    book = Filter(budget=Fraction(2), observed=LAW)
    book.spend({"a"}, {"b"}, epsilon=ONE)
    choice = Use(sets=sets_of({"a"}, {"b"}), epsilon=ONE)
    assert book.spent == amplified([choice], LAW) > cost("a")


def test_a_filter_without_a_budget_is_refused():
    with pytest.raises(PlanError):
        Filter(budget=Fraction(0), observed=LAW)
    with pytest.raises(PlanError):
        Filter(budget=ONE, observed=LAW).admits(epsilon=ONE)
