"""The private choice of a strategy: printed chances, its exact loss over all small surveys, and twins that lose more."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import chi2

from reticent.answer.weighting import STEPS, Selection, score, tolerating
from reticent.errors import PlanError
from reticent.exact import ball
from reticent.prepare.strata import EQUAL, BaseWeights, Candidates, separate
from reticent.sensitivity.poststrata import Tally
from tests.audit import ALARM
from tests.noise.seeded import chosen_bits
from tests.sensitivity.binned import World, tally

F = Fraction
AGES = separate([F(100_000)] * 5)
EXAMPLE = Candidates(
    strategies=(
        AGES,
        AGES.joined([[0, 1]], name="minors"),
        AGES.joined([[2, 3, 4]], name="adults"),
        AGES.joined([[0, 1], [2, 3, 4]], name="minors-adults"),
        AGES.joined([range(5)], name="all"),
    )
)


def heads(*counts):
    n = np.array(counts)
    return Tally(count=n, total=n, matching=n, largest=np.zeros((len(n), 0), np.int64))


A, B = heads(1300, 100, 1200, 1200, 1200), heads(1600, 100, 1600, 1600, 100)
# Which survey, epsilon: chances. The printed alpha of 100 is bought by epsilon = 100 Delta.
CHANCES = {
    ("A", "0.005"): "0.062888187 0.627258249 0.051488493 0.154679980 0.103685091",
    ("B", "0.005"): "0.129998332 0.117627355 0.106433633 0.431609664 0.214331016",
    ("A", "0.01"): "0.009097313 0.905039977 0.006098111 0.055035538 0.024729061",
    ("B", "0.01"): "0.061612362 0.050443936 0.041300001 0.679163936 0.167479765",
}


@pytest.mark.parametrize("case", CHANCES, ids=str)
def test_chances_of_the_running_example(case):
    """THEORY 6.6, to the last digit."""
    survey, epsilon = case
    chances = Selection(candidates=EXAMPLE, epsilon=F(epsilon)).chances({"A": A, "B": B}[survey])
    assert " ".join(f"{float(chance):.9f}" for chance in chances) == CHANCES[case]


def test_scores_and_chances_of_the_best():
    assert [float(score(each, A, base=EQUAL)) for each in EXAMPLE.strategies] == [
        0.005,
        0.028,
        0.003,
        0.014,
        0.01,
    ]
    assert [float(score(each, B, base=EQUAL)) for each in EXAMPLE.strategies] == [
        0.005,
        0.004,
        0.003,
        0.017,
        0.01,
    ]
    dear = Selection(candidates=EXAMPLE, epsilon=F("0.05"))
    assert dear.alpha == 1000
    assert [f"{max(map(float, dear.chances(each))):.9f}" for each in (A, B)] == ["0.999999153", "0.999079730"]


def test_choices_have_the_stated_chances():  # covers T18
    """600 choices on B at alpha 200; the law at alpha 100 is rejected. False alarm: ALARM."""
    selection, bits = Selection(candidates=EXAMPLE, epsilon=F("0.01")), chosen_bits(61)
    names = [each.name for each in EXAMPLE.strategies]
    seen = np.bincount([names.index(selection.choose(B, bits=bits).name) for _ in range(600)], minlength=5)

    def fit(epsilon):
        law = np.array([float(each) for each in Selection(candidates=EXAMPLE, epsilon=epsilon).chances(B)])
        return chi2.sf(((seen - 600 * law) ** 2 / (600 * law)).sum(), 4)

    assert fit(F("0.01")) > ALARM > fit(F("0.005"))


# ---- the exact loss, over all neighbours of small surveys ----

HALVES = separate([F(1), F(1)])
SMALL = Candidates(strategies=(HALVES, *(HALVES.joined([[0, 1]], name=f"all {i}") for i in range(8))))
WORLDS = {1: World(cells=2, weights=(1,)), 4: World(cells=2, weights=(1, 4))}
EPSILON = F(2)


def law(scores, rate):
    with ctx.workprec(128):
        weights = [ball(rate * (each - max(scores))).exp() for each in scores]
        whole = sum(weights, arb(0))
        return [each / whole for each in weights]


def worst(scores_of, heaviest, *, rate=EPSILON / STEPS, most=5):
    """The largest log ratio of chances between neighbours, as a ball; surveys of up to `most` records and one more."""
    chances = cache(lambda data: law(scores_of(data), rate))
    world = WORLDS[heaviest]
    with ctx.workprec(128):
        losses = [
            abs((one / other).log())
            for data in world.data_sets(most)
            for near in world.neighbours(data)
            for one, other in zip(chances(data), chances(near), strict=True)
        ]
    return max(losses, key=float)


def ours(heaviest):
    base = BaseWeights(heaviest=heaviest, kept=int(heaviest > 1))
    selection = Selection(candidates=SMALL, epsilon=EPSILON, base=base)
    return cache(lambda data: selection.scores(tally(data, base, cells=2)))


@pytest.mark.parametrize("heaviest", WORLDS)
def test_scores_rise_together_and_by_no_more_than_one_delta(heaviest):
    """6.4, on the integers that the mechanism gets: all surveys of up to five records, every newcomer."""
    scores, world = ours(heaviest), WORLDS[heaviest]
    rises = []
    for data in world.data_sets(5):
        for record in world.records():
            before, after = scores(data), scores(tuple(sorted((*data, record))))
            rises += [b - a for a, b in zip(before, after, strict=True)]
    assert min(rises) == 0 and max(rises) == STEPS


@pytest.mark.parametrize("heaviest", WORLDS)
def test_exact_loss_is_within_alpha_delta_and_half_of_it_would_not_do(heaviest):  # covers T07 T18
    """So a claim of 2 alpha Delta gives half the budget away, and one of alpha Delta/2 would be false."""
    loss = worst(ours(heaviest), heaviest)
    assert not loss > ball(EPSILON) and loss > ball(EPSILON / 2)


def only_members(data):
    """Naive twin: a score from the weights there are, without those who might come. A heavy newcomer lowers it."""
    scores = []
    for each in SMALL.strategies:
        ratios = []
        for number, total in enumerate(each.totals):
            inside = [w for cell, w, _ in data if each.bins[cell] == number]
            ratios.append((F(sum(inside), max(inside)) if inside else F(1)) / total)
        scores.append(int(each.size * min(ratios) / SMALL.delta * STEPS))
    return scores


def opposed(data):
    """Naive twin: one score turned round, so that it falls while others rise, none by more than Delta."""
    first, *others = ours(1)(data)
    return [-first, *others]


def test_scores_that_do_not_rise_together_lose_more():  # covers T07
    """At the monotone rate; at half of it `opposed`, which keeps to Delta, is private again."""
    assert worst(only_members, 4, most=8) > ball(EPSILON)
    assert worst(opposed, 1, most=5) > ball(EPSILON)
    assert not worst(opposed, 1, rate=EPSILON / STEPS / 2) > ball(EPSILON)


# ---- alpha from a tolerated chance ----


def test_a_poor_choice_has_at_most_the_tolerated_chance():
    """Four equal strategies exactly the gap below the best: the chance is reached, and with a little less epsilon missed."""
    base = separate([F(100)] * 2)
    rivals = tuple(base.joined([[0, 1]], name=f"rival {i}") for i in range(4))
    candidates = Candidates(strategies=(base, *rivals))
    survey = heads(60, 60)  # scores 2/(100/60) and 1/(200/120)
    gap, chance = F(6, 5) - F(3, 5), F(1, 50)
    selection = tolerating(candidates, chance=chance, gap=gap)
    poor = [
        sum(map(float, s.chances(survey)[1:]))
        for s in (selection, Selection(candidates=candidates, epsilon=selection.epsilon * F("0.999")))
    ]
    assert poor[0] <= 0.02 < poor[1]
    assert selection.epsilon.denominator <= 10**12
    naive = Selection(
        candidates=candidates, epsilon=F(np.log(50)) / gap * candidates.delta
    )  # one rival counted
    assert sum(map(float, naive.chances(survey)[1:])) > 0.02


@pytest.mark.parametrize(
    "asked", [("0.9", "1"), ("0", "1"), ("1", "1"), ("0.1", "0"), ("0.1", "-1")], ids=str
)
def test_a_tolerance_that_asks_for_nothing_is_refused(asked):
    with pytest.raises(PlanError):
        tolerating(EXAMPLE, chance=F(asked[0]), gap=F(asked[1]))


def test_a_choice_has_a_price():
    with pytest.raises(PlanError):
        Selection(candidates=EXAMPLE, epsilon=F(0))
