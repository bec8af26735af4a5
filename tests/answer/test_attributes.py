"""Bins chosen attribute by attribute: the exact loss over all small surveys, and twins that lose more."""

from fractions import Fraction
from functools import cache
from itertools import permutations

import pytest
from flint import arb, ctx

from reticent.answer.choose_bins import alphas, choose_each
from reticent.answer.weighting import STEPS, Selection
from reticent.errors import PlanError
from reticent.exact import ball
from reticent.prepare.strata import BaseCells, BaseWeights, Crossing, Stratifier, StratifierGroup, Way
from tests.doubles import FrozenNoise
from tests.sensitivity.binned import World, tally

F = Fraction
CELLS = BaseCells(
    stratifiers=(Stratifier(name="age", bins=2, missing=0), Stratifier(name="sex", bins=2, missing=0))
)
PRICES, ONES = (F(1), F(2)), (F(1),) * 4


def ways(name: str) -> tuple[Way, ...]:
    return (
        Way(name=f"{name} apart", groups=CELLS.by({name: None})),
        Way(name=f"no {name}", groups=CELLS.by({})),
    )


def crossing(*, totals=ONES, prices=PRICES) -> Crossing:
    named = zip(("age", "sex"), prices, strict=True)
    return Crossing(
        attributes=tuple(StratifierGroup(by=(n,), ways=ways(n), epsilon=e) for n, e in named), totals=totals
    )


WORLDS = {1: World(cells=4, weights=(1,)), 3: World(cells=4, weights=(1, 3))}


def flips(scores, rate):
    """The law of permute-and-flip, over all orders: whoever falls heads first; the best always does."""
    heads = [ball(rate * (each - max(scores))).exp() for each in scores]
    law, orders = [arb(0)] * len(scores), list(permutations(range(len(scores))))
    for order in orders:
        left = arb(1)
        for each in order:
            law[each] += left * heads[each] / len(orders)
            left *= 1 - heads[each]
    return law


def joint(found: Crossing, delta_of=None):
    """The law of all choices together, for every survey; `delta_of` takes another Delta for the later one."""

    def chances(data, heaviest):
        base = BaseWeights(heaviest=heaviest, kept=int(heaviest > 1))
        seen, law = tally(data, base, cells=4), {}
        for first, one in enumerate(step(found, (), seen, base, delta_of)):
            for second, other in enumerate(step(found, (first,), seen, base, delta_of)):
                law[first, second] = one * other
        return law

    return cache(chances)


def step(found, chosen, seen, base, delta_of):
    candidates, price = found.candidates(chosen), found.attributes[len(chosen)].epsilon
    scores = Selection(candidates=candidates, epsilon=price, base=base).scores(seen)
    delta = delta_of(len(chosen)) if delta_of else candidates.delta
    return flips(scores, price / STEPS * candidates.delta / delta)


def worst(law, heaviest, *, most=4):
    world, losses = WORLDS[heaviest], []
    with ctx.workprec(128):
        for data in world.data_sets(most):
            for near in world.neighbours(data):
                here, there = law(data, heaviest), law(near, heaviest)
                losses += [abs((here[each] / there[each]).log()) for each in here]
    return max(losses, key=float)


@pytest.mark.parametrize(("heaviest", "most"), [(1, 5), (3, 2)])
def test_exact_loss_is_within_the_sum_of_prices(heaviest, most):  # covers T07 T18
    """All surveys of up to `most` records in four cells, every neighbour, and every pair of choices."""
    loss = worst(joint(crossing()), heaviest, most=most)
    assert not loss > ball(sum(PRICES)) and loss > ball(F(1, 2))


def test_charging_the_larger_price_alone_would_be_false():  # covers T07
    """Naive twin: attributes taken for pieces, of which the most counts. With equal prices more is lost than one."""
    even = joint(crossing(prices=(F(2), F(2))))
    assert worst(even, 1, most=6) > ball(F(2))


def test_the_delta_of_an_attribute_alone_loses_more_than_the_price():  # covers T07
    """Naive twin: the second choice scaled by the Delta of its own margin, not of the crossing."""
    free = crossing(prices=(F(1, 10**6), F(2)))
    alone = [free.candidates(()).delta, F(2, 2)]  # two bins, each with a total of two
    naive = joint(free, delta_of=lambda place: alone[place])
    assert free.candidates((0,)).delta == 4
    assert worst(naive, 1, most=7) > ball(free.epsilon)
    assert not worst(joint(free), 1, most=7) > ball(free.epsilon)


@pytest.mark.parametrize("heaviest", WORLDS)
def test_later_scores_rise_together_whatever_was_chosen_before(heaviest):
    """6.4 for every crossing: no score falls with a newcomer, none rises by more than its Delta."""
    base = BaseWeights(heaviest=heaviest, kept=int(heaviest > 1))
    found, world, rises = crossing(totals=(F(3), F(1), F(2), F(0))), WORLDS[heaviest], []
    for data in world.data_sets(3 if heaviest == 1 else 2):
        for record in world.records():
            after = tuple(sorted((*data, record)))
            for chosen in ((), (0,), (1,)):
                pick = Selection(candidates=found.candidates(chosen), epsilon=F(1), base=base)
                a, b = (pick.scores(tally(each, base, cells=4)) for each in (data, after))
                rises += [y - x for x, y in zip(a, b, strict=True)]
    assert min(rises) == 0 and 0 < max(rises) <= STEPS


def test_every_choice_is_asked_at_its_own_price_and_alpha():
    """Each call has its own epsilon, shared out over the records that come or go; alpha is epsilon over Delta."""
    found, noise, base = crossing(totals=(F(8), F(8), F(2), F(4))), FrozenNoise(), BaseWeights()
    data = ((0, 1, 0),) * 6 + ((1, 1, 0),) * 5 + ((2, 1, 0),) * 2 + ((3, 1, 0),) * 3
    chosen = choose_each(found, tally(data, base, cells=4), base=base, steps=2, noise=noise)
    assert [call.epsilon for call in noise.calls] == [F(1, 2), F(1)]
    assert all(call.kind == "select together" and call.sensitivity == STEPS for call in noise.calls)
    deltas = [found.candidates(chosen[:place]).delta for place in (0, 1)]
    assert alphas(found, chosen, steps=2) == (F(1, 2) / deltas[0], 1 / deltas[1])
    assert found.delta(0) == found.candidates(()).delta == 2 / F(6)
    assert found.delta(1) == max(found.candidates((way,)).delta for way in (0, 1)) == 4 / F(2)


def test_crossed_bins_are_pairs_of_groups_with_the_totals_of_their_cells():
    found = crossing(totals=(F(1), F(2), F(3), F(4)))
    by_name = {each.name: each for each in found.everything().strategies}
    assert by_name["age apart; sex apart"].totals == (1, 2, 3, 4)
    assert by_name["age apart; no sex"].totals == (3, 7)
    assert by_name["no age; sex apart"].totals == (4, 6)
    assert by_name["no age; no sex"].totals == (10,)


def test_what_contradicts_itself_is_refused():
    age = StratifierGroup(by=("age",), ways=ways("age"), epsilon=F(1))
    for wrong in (
        lambda: Crossing(attributes=(age, age), totals=ONES),
        lambda: StratifierGroup(by=("age",), ways=ways("age")),
        lambda: StratifierGroup(by=("age",), ways=ways("age")[:1], epsilon=F(1)),
        lambda: StratifierGroup(by=("age",), ways=ways("age")[:1] * 2, epsilon=F(1)),
    ):
        with pytest.raises(PlanError):
            wrong()
