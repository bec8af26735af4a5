"""Post-stratified answers: the textbook's number, moves within the bound for weights of every kind, and the noise."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from reticent.answer.poststrata import Law, Released, Weighted
from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.cauchy import add_cauchy, add_student
from reticent.noise.laplace import add_lomax
from reticent.prepare.strata import EQUAL, BaseWeights, Strategy, separate
from tests.noise.seeded import SeededBits, chosen_bits
from tests.sensitivity.binned import World, answer, largest_weight, tally

F = Fraction
BASE = BaseWeights(heaviest=40, kept=30)
CELLS = separate([F(1000), F(400), F(2500), F(30)])
STRATEGIES = (CELLS, CELLS.joined([[0, 1], [2, 3]], name="two"), CELLS.joined([range(4)], name="one"))
ASKS = [
    Weighted(strategy=strategy, epsilon=F(1), base=BASE, grid=F(grid), low=F(low), high=F(high))
    for strategy in STRATEGIES
    for grid, low, high in (("1/100", 0, 1), ("25", 0, 1), ("1/8", -3, 2), ("1/8", 1, 3))
]


def held(ask, data):
    """The records of a survey, their values clamped as the ask declares."""
    return tuple((c, w, max(int(ask.low), min(int(ask.high), y))) for c, w, y in data)


def moved(ask, data, other):
    one, two = (ask.exact(tally(held(ask, each), BASE, cells=4)) for each in (data, other))
    return abs(one - two) * ask.grid


def declared(ask, data):
    return ask.bound(tally(held(ask, data), BASE, cells=4)).bound


# ---- T09: pairs made by hand, ten surveys times five changes ----

LONE = ((3, 1, 1),)
SURVEYS = {
    "empty": (),
    "lone member": LONE,
    "lone and heavy": ((0, 40, 1), (1, 1, 0), (1, 1, 0)),
    "one heavy among many light": ((0, 40, 1), *((0, 1, 0),) * 20, *((2, 2, 1),) * 4),
    "all light": tuple((cell, 1, 0) for cell in range(4) for _ in range(5)),
    "all heavy": tuple((cell, 40, 1) for cell in range(4) for _ in range(5)),
    "nobody matches": tuple((cell, 7, 0) for cell in (0, 0, 1, 2, 3)),
    "everybody matches": tuple((cell, 7, 1) for cell in (0, 0, 1, 2, 3)),
    "steep": tuple((1, 40 // (k + 1), k % 2) for k in range(12)),
    "crowded": (*((2, 3, 1),) * 60, *((0, 5, 0),) * 35, *LONE),
}


def without(data, record):
    place = data.index(record)
    return data[:place] + data[place + 1 :]


def leaves(pick):
    return lambda data: (data, without(data, pick(data))) if data else (data, (*data, (3, 1, 1)))


CHANGES = {
    "heavy weight comes": lambda data: (data, (*data, (0, 40, 1))),
    "heavy weight leaves": leaves(lambda data: max(data, key=lambda r: r[1])),
    "lone member comes": lambda data: (data, (*data, (3, 1, 1))),
    "smallest cell loses one": leaves(lambda d: min(d, key=lambda r: (sum(x[0] == r[0] for x in d), r))),
    "row changes cell": lambda data: ((*data, (0, 9, 1)), (*data, (1, 9, 1))),
}
PAIRS = [(name, change) for name in SURVEYS for change in CHANGES]


def steps(change, data):
    """The surveys on the way: a row that changes its cell leaves one and comes to another."""
    one, other = CHANGES[change](data)
    return [one, data, other] if change == "row changes cell" else [one, other]


@pytest.mark.parametrize("pair", PAIRS, ids=", ".join)
def test_what_is_declared_covers_what_moves(pair):  # covers T09
    """50 pairs, twelve asks each, in exact arithmetic; from either end of every step, and drifting by at most e^beta."""
    name, change = pair
    way = steps(change, SURVEYS[name])
    for ask in ASKS:
        bounds = [declared(ask, data) for data in way]
        for here, there, one, other in zip(way, way[1:], bounds, bounds[1:], strict=False):
            assert moved(ask, here, there) <= min(one, other)
            assert is_near(one, other, ask.beta)
        assert moved(ask, way[0], way[-1]) <= sum(bounds[:-1])


def is_near(one, other, beta):
    with ctx.workprec(100):
        return bool(ball(max(one / other, other / one)) <= ball(beta).exp())


def own_weight(ask, data):
    """Naive twin: weights taken for facts, so one respondent moves no more than the largest there is."""
    return largest_weight(ask.strategy, data, 40, newcomer=False)


def base_weight(ask, data):
    """Naive twin: the base weight bounds it, as if nobody's weight depended on the others."""
    return F(40)


def unrounded(ask, data):
    """Naive twin: the ladder without the grid's step."""
    return largest_weight(ask.strategy, data, 40)


@pytest.mark.parametrize("naive", [own_weight, base_weight, unrounded])
def test_naive_declarations_are_exceeded_by_some_pair(naive):  # covers T09
    asks = [ask for ask in ASKS if (ask.low, ask.high) == (0, 1)]
    ways = [steps(change, SURVEYS[name]) for name, change in PAIRS if change != "row changes cell"]
    assert any(moved(ask, *way) > min(naive(ask, each) for each in way) for ask in asks for way in ways)


def test_a_thousand_random_pairs_stay_within_what_is_declared():  # covers T09
    """Random surveys of up to 60 records, weights, cells, ask and change; exact arithmetic."""
    draw = random.Random(8)

    def record():
        return draw.randrange(4), draw.choice((1, 1, 2, 5, 40)), draw.randrange(-3, 4)

    for number in range(1000):
        ask = ASKS[number % len(ASKS)]
        data = tuple(record() for _ in range(draw.choice((0, 1, 2, 5, 20, 60))))
        other = without(data, draw.choice(data)) if data and number % 2 else (*data, record())
        assert moved(ask, data, other) <= min(declared(ask, data), declared(ask, other))


def test_bound_is_smooth_and_covers_all_neighbours_of_small_surveys():  # covers T19
    """Two bins, weights 1 and 3, values 0 and 1, up to three records; a coarse grid, and one weight kept."""
    world = World(cells=2, weights=(1, 3), values=(0, 1))
    base = BaseWeights(heaviest=3, kept=1)
    strategy = Strategy(name="s", bins=(0, 1), totals=(F(7), F(5, 2)))
    ask = Weighted(strategy=strategy, epsilon=F(2), base=base, grid=F(1, 2))
    tallies = {data: tally(data, base, cells=2) for data in world.data_sets(4)}
    exact = {data: ask.exact(each) * ask.grid for data, each in tallies.items()}
    bound = {data: ask.bound(each).bound for data, each in tallies.items()}
    for data in world.data_sets(3):
        for other in world.neighbours(data):
            assert abs(exact[data] - exact[other]) <= min(bound[data], bound[other])
            assert is_near(bound[data], bound[other], ask.beta)


# ---- the answer itself ----


def test_answer_is_the_textbook_s_to_half_a_step_for_each_bin():
    """100 random surveys; and a single bin's share is rounded by floor(x + 1/2)."""
    draw = random.Random(3)
    for number in range(100):
        ask = ASKS[number % len(ASKS)]
        data = held(
            ask, [(draw.randrange(4), draw.randrange(1, 41), draw.randrange(-4, 5)) for _ in range(30)]
        )
        off = ask.exact(tally(data, BASE, cells=4)) * ask.grid - answer(ask.strategy, data)
        assert abs(off) <= ask.strategy.size * ask.grid / 2
    half = Weighted(strategy=separate([F(1)]), epsilon=F(1))
    assert half.exact(tally(((0, 1, 1), (0, 1, 0)), EQUAL, cells=1)) == 1
    minus = replace(half, low=F(-1))
    assert minus.exact(tally(((0, 1, -1), (0, 1, 0)), EQUAL, cells=1)) == 0


def test_values_told_in_a_unit_are_worth_it():
    """Cents: y counts hundredths, the bounds are in the answer's own unit."""
    ask = Weighted(strategy=separate([F(10)]), epsilon=F(1), unit=F(1, 100), high=F(5), grid=F(1, 100))
    assert ask.exact(tally(((0, 1, 250), (0, 1, 150)), EQUAL, cells=1)) == 2000


def test_an_empty_bin_and_a_bin_of_total_zero_add_nothing():  # covers B095
    """And a total of 0 does not raise the bound, whoever is in it."""
    strategy = Strategy(name="s", bins=(0, 1, 2), totals=(F(6), F(0), F(9)))
    ask = Weighted(strategy=strategy, epsilon=F(1), grid=F(1, 1000))
    data = ((0, 1, 1),) * 200
    assert ask.exact(tally(data, EQUAL, cells=3)) * ask.grid == 6
    crowded = (*data, *((2, 1, 0),) * 200)
    assert ask.bound(tally((*crowded, (1, 1, 1)), EQUAL, cells=3)).bound < F(1, 20)


ADD = {Law.LOMAX: add_lomax, Law.STUDENT: add_student, Law.CAUCHY: add_cauchy}


@pytest.mark.parametrize("law", Law)
def test_each_noise_is_the_one_that_is_named(law):
    """The same bits give the same steps as the mechanism called by hand with the exact answer and the bound."""
    ask = replace(ASKS[0], law=law)
    made = tally(held(ask, SURVEYS["crowded"]), BASE, cells=4)
    sensitivity = ask.bound(made)
    by_hand = ADD[law](
        ask.exact(made) * ask.grid, sensitivity=sensitivity, epsilon=F(1), grid=ask.grid, bits=SeededBits(4)
    )
    assert ask.release(made, bits=SeededBits(4)) == Released(steps=by_hand)


def test_error_bar_is_the_pivot_s_with_room_for_every_rounding():
    """Half a step for each of the three bins that count, and for the answer."""
    strategy = Strategy(name="s", bins=(0, 1, 2, 3), totals=(F(6), F(0), F(9), F(5)))
    ask = Weighted(strategy=strategy, epsilon=F(1), grid=F(2), bar=F(1, 4))
    low, high = ask.interval(Released(steps=50, height=700))
    assert (low + high) / 2 == 100 and ask.cost == F(5, 4)
    assert (high - low) / 2 == F(ask.pivot.half_width(700)) + 4


def test_error_bar_covers_what_it_says():
    """2,000 answers and heights by their laws: a miss rate above 0.05 + 0.028 has chance below 1e-7 at 0.05.

    Half of the bar misses more often than that. The half-widths are the pivot's, its factor computed once.
    """
    ask = replace(ASKS[0], bar=F(1, 4))
    made = tally(held(ask, SURVEYS["crowded"]), BASE, cells=4)
    truth, smooth, bits = answer(CELLS, SURVEYS["crowded"]), ask.bound(made), chosen_bits(9)
    exact, height, p = (
        ask.exact(made) * ask.grid,
        ask.pivot.height(smooth),
        -np.expm1(-1 / float(ask.pivot.scale)),
    )
    steps = [
        add_lomax(exact, sensitivity=smooth, epsilon=F(1), grid=ask.grid, bits=bits) for _ in range(2000)
    ]
    rng = np.random.default_rng(9)
    heights = height + rng.geometric(p, 2000) - rng.geometric(p, 2000)
    off = np.abs(np.array(steps) * float(ask.grid) - float(truth))
    half = ask.pivot.factor() * np.exp(float(ask.pivot.grid) * heights) + float(ask.grid) * 5 / 2
    assert (off > half).mean() <= 0.078 < (off > half / 2).mean()
    low, high = ask.interval(ask.release(made, bits=bits))
    assert low < high


REFUSED = {
    "epsilon": {"epsilon": F(0)},
    "grid": {"grid": F(0)},
    "unit": {"unit": F(-1)},
    "bounds": {"low": F(2), "high": F(1)},
    "beta for Lomax": {"beta": F(2, 7)},
    "beta for Student": {"law": Law.STUDENT, "beta": F(1, 3)},
    "beta for Cauchy": {"law": Law.CAUCHY, "beta": F(1, 3)},
    "bar of Student noise": {"law": Law.STUDENT, "bar": F(1)},
    "bar of nothing": {"bar": F(0)},
    "level": {"bar": F(1), "level": F(1)},
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_does_not_fit_is_refused_before_a_row_is_read(how):
    with pytest.raises(PlanError):
        replace(ASKS[0], **REFUSED[how])


def test_no_bar_without_its_price():
    with pytest.raises(PlanError):
        ASKS[0].interval(Released(steps=1))
