"""Totals raked from a noisy table: what one respondent moves, what is left to the noise, and what happens when it fails."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from reticent.answer.weighting import Fitting, after_noise, fit_totals
from reticent.errors import PlanError
from reticent.prepare.strata import BaseWeights, separate
from reticent.refine.margins import Margin
from reticent.refine.raking import Coarsening
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.poststrata import Tally
from tests.doubles import FrozenNoise, ZeroNoise
from tests.sensitivity.binned import World, answer, largest_weight, tally

F = Fraction
SHAPE = (2, 2)
AS_IS, ALL = Coarsening(SHAPE, [None, None]), Coarsening(SHAPE, [(0, 0), (0, 0)])
MARGINS = (Margin(0, [60, 40]), Margin(1, [30, 70]))


def fitting(**changes) -> Fitting:
    given = {"shape": SHAPE, "margins": MARGINS, "ladder": (AS_IS, ALL), "epsilon": F(1), **changes}
    return Fitting(**given)


def heads(*totals: int) -> Tally:
    n = np.array(totals)
    return Tally(count=n, total=n, matching=n, largest=np.zeros((len(n), 0), np.int64))


def test_without_noise_it_is_the_textbook_s_table():
    """Margins are met, and odds ratios are those of the survey: so raking is known."""
    made = fit_totals(
        fitting(), heads(40, 10, 20, 30), base=BaseWeights(), neighbours=Neighbours(), noise=ZeroNoise()
    )
    cells = np.array([float(each) for each in made.totals]).reshape(SHAPE)
    assert made.status == "met" and made.joined == 0 and not made.is_assumed
    assert np.allclose(cells.sum(axis=1), [60, 40], atol=1e-4) and np.allclose(
        cells.sum(axis=0), [30, 70], atol=1e-4
    )
    assert cells[0, 0] * cells[1, 1] / (cells[0, 1] * cells[1, 0]) == pytest.approx(
        40 * 30 / (10 * 20), rel=1e-4
    )


@pytest.mark.parametrize(("replaced", "heaviest"), [(False, 1), (True, 1), (False, 5), (True, 5)])
def test_no_respondent_moves_the_table_further_than_the_noise_was_told(replaced, heaviest):  # covers T09
    """All surveys of up to three records in four cells and all their neighbours; the bound is reached."""
    world = World(cells=4, weights=(1, heaviest) if heaviest > 1 else (1,))
    base = BaseWeights(heaviest=heaviest, kept=int(heaviest > 1))
    neighbours, moves = Neighbours(replaced=replaced), []

    def call(data):
        found, noise = tally(data, base, cells=4), FrozenNoise()
        fit_totals(fitting(cycles=2), found, base=base, neighbours=neighbours, noise=noise)
        return noise.calls[0]

    for data in world.data_sets(2):
        near = (
            {
                tuple(sorted((*data[:i], other, *data[i + 1 :])))
                for i in range(len(data))
                for other in world.records()
            }
            if replaced
            else world.neighbours(data)
        )
        here = call(data)
        assert here.epsilon == 1 and here.sensitivity == heaviest * (2 if replaced else 1)
        moves += [here.distance(call(other)) for other in near]
    assert max(moves) == heaviest * (2 if replaced else 1)


def test_totals_read_off_the_rows_are_no_constants():  # covers T09
    """Naive twin: rake the exact table. A newcomer then moves totals too, and the answer beyond the largest weight."""
    world, worst = World(cells=4, weights=(1,), values=(0, 1)), F(0)

    def naive(data):
        counts = tally(data, BaseWeights(), cells=4).count
        return separate(after_noise(fitting(), tuple(F(int(each)) for each in counts)).totals)

    dice = Random(3)
    for _ in range(5):
        data = tuple(sorted(dice.choices(world.records(), k=8)))
        strategy = naive(data)
        for other in world.neighbours(data):
            moved, fixed = (
                abs(answer(each, other) - answer(strategy, data)) for each in (naive(other), strategy)
            )
            allowed = largest_weight(strategy, data, 1)
            assert fixed <= allowed
            worst = max(worst, moved / allowed)
    assert worst > 1


def test_a_table_that_cannot_be_raked_gives_the_margins_own_and_says_so():
    """Nothing left after noise, or nothing in a whole line that a margin knows: public totals, no error."""
    made = fitting()
    lost = after_noise(made, (F(-9), F(-1), F(-2), F(-3)))
    half = after_noise(made, (F(5), F(-4), F(-1), F(0)))
    assert lost.is_assumed and lost.totals == made.assumed == (18, 42, 12, 28) and lost.status == "no cells"
    assert half.is_assumed and half.totals == made.assumed


def test_noisy_cells_below_the_least_are_joined_first():
    made = fitting(least=5.0)
    assert after_noise(made, (F(40), F(10), F(20), F(30))).joined == 0
    assert after_noise(made, (F(40), F(3), F(20), F(30))).joined == 1


def test_structural_zeroes_stay_empty_whatever_the_noise_says():
    zeroes = np.array([[True, False], [False, False]])
    made = fitting(zeroes=zeroes)
    assert made.assumed[0] == 0 and after_noise(made, (F(80), F(10), F(20), F(30))).totals[0] == 0


def test_margins_that_no_table_meets_are_refused_before_a_row_is_read():
    blocked = np.array([[True, False], [False, True]])  # then the rows would have to equal the columns
    for wrong in (
        {"zeroes": blocked},
        {"margins": (Margin(0, [60, 40]), Margin(1, [30, 71]))},
        {"margins": (Margin(0, [2.0**60, 1]),)},
        {"margins": (Margin(0, [1e-13, 1e-13]),)},
        {"epsilon": F(0)},
    ):
        with pytest.raises(PlanError):
            fitting(**wrong)
