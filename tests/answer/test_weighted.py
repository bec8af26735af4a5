"""Answers weighted to known totals: the textbook's without noise, and no respondent moves them further than declared."""

from fractions import Fraction
from math import exp
from random import Random

import numpy as np
import pytest

from reticent.answer.choose_bins import weigh
from reticent.answer.weighting import Choice
from reticent.lab.noise import QuickNoise
from reticent.prepare.strata import Strategy
from reticent.release.document import weights_section
from reticent.release.statistics import evaluate, weigh_plan
from tests.answer.weighing import COLLAPSE, EACH, RAKE, cell_of, textbook, weighted_plan
from tests.attacks.people import ORDINARY, STRANGE, Person
from tests.attacks.replay import run
from tests.attacks.test_replay import one_exchanged, one_more_or_less
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, arrow, tally, visible

WAYS = {
    "fixed": {},
    "private": {"collapse": COLLAPSE, "epsilon": "0.5"},
    "noisy counts": {"collapse": COLLAPSE, "epsilon": "0.5", "choose": "noisy counts"},
    "student": {"noise": "student"},
    "cauchy": {"noise": "cauchy"},
    "each": {"attribute": EACH},
    "raked": {"totals": "rake", "rake": RAKE},
    "raked each": {"totals": "rake", "rake": RAKE, "attribute": EACH},
    "raked counts": {
        "totals": "rake",
        "rake": RAKE,
        "collapse": COLLAPSE,
        "epsilon": "0.5",
        "choose": "noisy counts",
    },
}


def some_people(dice: Random, count: int) -> list[Person]:
    return [
        {
            "sex": dice.choice(["f", "m", "x", None]),
            "age": dice.choice([None, *range(100)]),
            "pay": dice.choice([None, *range(-50, 150)]),
            "w": dice.choice([None, 0, 0.25, 1, 2.5, 4]),
        }
        for _ in range(count)
    ]


def plan_of(way: str, *, base: bool = True, **options):
    weight = {**WAYS[way], **({"base": "w"} if base else {})}
    bars = {} if "noise" not in WAYS[way] else {"asks": {}}
    return weighted_plan(weight=weight, **bars, **options)


@pytest.mark.parametrize("base", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_without_noise_it_is_the_textbook(way, base):
    """Each bin's share is rounded to the step, so an answer is off by at most half a step for each bin and itself."""
    plan, people = plan_of(way, base=base), some_people(Random(f"{way} {base}"), 60)
    tallies = tally(plan, arrow(people, plan.schema))
    weighed = weigh_plan(plan, tallies, ZeroNoise())
    found = [answer.estimates[0].value for answer in evaluate(plan, tallies, ZeroNoise()).values()]
    expected = textbook(people, weighed.strategy, base=base)
    steps = [answer.parts[0].unit for answer in evaluate(plan, tallies, ZeroNoise()).values()]
    for value, wanted, step in zip(found[:2], expected, steps, strict=False):
        assert abs(value - wanted) <= step * 5
    assert abs(float(found[2] - expected[2])) < 0.01 and abs(float(found[3] - expected[3])) < 1


# covers T09 R08
@pytest.mark.parametrize(
    ("way", "change"),
    [
        *[("fixed", ADD), ("private", ADD), ("noisy counts", REPLACE), ("student", REPLACE), ("cauchy", ADD)],
        *[("each", REPLACE), ("raked", REPLACE), ("raked each", ADD), ("raked counts", ADD)],
    ],
)
def test_no_respondent_moves_an_answer_further_than_declared(way, change):
    """Fourteen neighbours of 35 respondents along one transcript: what was chosen is what is compared.

    Under replacement an answer may move by the bounds of two surveys one record apart; each is within e^beta of
    the other, so by (1 + e^beta) of the one declared.
    """
    plan = plan_of(way, change=change)
    known = {}

    def release(rows, noise):
        key = repr(rows)
        if key not in known:
            known[key] = tally(plan, arrow(rows, plan.schema))
        weighed = weigh_plan(plan, known[key], noise)
        seen = visible(plan, evaluate(plan, known[key], noise, weighed=weighed))
        return seen + repr(weights_section(plan, weighed)).encode()

    neighbours = (one_more_or_less if change == ADD else one_exchanged)(ORDINARY)[::5]
    here = run(release, ORDINARY)
    for other in neighbours:
        there = run(release, other, here.outputs)
        assert there.seen == here.seen
        assert [call.parameters for call in here.calls] == [call.parameters for call in there.calls]
        for a, b in zip(here.calls, there.calls, strict=True):
            steps = 1 if change == ADD else 2
            if a.beta is None:
                allowed = a.sensitivity * (steps if a.kind == "select together" else 1)
            else:
                drift = exp(float(a.beta) * steps) * (1 + 1e-9)
                assert max(a.sensitivity / b.sensitivity, b.sensitivity / a.sensitivity) <= drift
                allowed = float(a.sensitivity) * (1 if steps == 1 else 1 + drift)
            assert a.distance(b) <= allowed


def test_the_same_check_rejects_a_bound_of_the_members_alone():
    """The naive twin: the largest weight anybody has. A heavy newcomer moves the answer further."""
    totals, light = (Fraction(100),), [(1, 0)] * 4
    strategy = Strategy(name="all", bins=(0,), totals=totals)

    def answer(records):
        base = sum(w for w, _ in records)
        return strategy.totals[0] * Fraction(sum(w * y for w, y in records), base)

    naive = strategy.totals[0] * Fraction(max(w for w, _ in light), sum(w for w, _ in light))
    moved = abs(answer([*light, (16, 1)]) - answer(light))
    assert moved > naive


def test_rows_in_another_order_give_the_same_answers():
    plan, people = plan_of("private"), some_people(Random(3), 50)
    seen = set()
    for _ in range(3):
        Random(4).shuffle(people)
        seen.add(visible(plan, evaluate(plan, tally(plan, arrow(people, plan.schema)), FrozenNoise())))
    assert len(seen) == 1


@pytest.mark.parametrize("rows", [[], ORDINARY[:1], STRANGE[-6:]])
def test_nobody_at_all_is_a_survey_like_any_other(rows):
    """Empty bins add nothing, and the calls are the same."""
    plan = plan_of("noisy counts")
    noises = [FrozenNoise(), FrozenNoise()]
    for people, noise in zip((rows, ORDINARY), noises, strict=True):
        evaluate(plan, tally(plan, arrow(people, plan.schema)), noise)
    kinds = [[(call.kind, len(call.answers)) for call in noise.calls] for noise in noises]
    assert kinds[0] == kinds[1]


def test_bars_hold_the_answer_without_noise():
    """150 seeded draws of a count and a mean at 95 %: fewer than 122 of 150 has chance below 1e-8 for each."""
    plan, people = plan_of("fixed", base=False), some_people(Random(5), 200)
    tallies = tally(plan, arrow(people, plan.schema))
    exact = [answer.estimates[0].value for answer in evaluate(plan, tallies, ZeroNoise()).values()]
    held = np.zeros(2, int)
    noise = QuickNoise(np.random.default_rng(6))
    for _ in range(150):
        answers = list(evaluate(plan, tallies, noise).values())
        for place, ask in enumerate((0, 3)):
            low, high = answers[ask].estimates[0].interval(Fraction(95, 100))
            held[place] += low <= exact[ask] <= high
    assert (held >= 122).all() and answers[1].estimates[0].has_interval is False


def test_the_choice_sees_scores_that_rise_together():
    """One respondent more: no score falls, none rises by more than declared."""
    plan = plan_of("private")
    scored = []
    for rows in ([], *([person] for person in STRANGE[4::3])):
        noise = FrozenNoise()
        table = tally(plan, arrow([*ORDINARY, *rows], plan.schema)).bins[plan.weight.wanted]
        weigh(plan.weight, table, neighbours=plan.neighbours, noise=noise)
        scored.append(noise)
    before = scored[0]
    for after in scored[1:]:
        moves = [b - a for a, b in zip(before.calls[0].answers, after.calls[0].answers, strict=True)]
        assert before.calls[0].kind == "select together" and plan.weight.choice is Choice.PRIVATE
        assert min(moves) >= 0 and max(moves) <= before.calls[0].sensitivity


def test_base_cells_are_numbered_as_the_plan_says():
    """The engine's cells are those of the textbook."""
    plan, people = plan_of("fixed", base=False), some_people(Random(9), 80)
    table = tally(plan, arrow(people, plan.schema)).bins[plan.weight.wanted]
    by_hand = np.bincount([cell_of(row) for row in people], minlength=9)
    assert table.count.tolist() == by_hand.tolist()
