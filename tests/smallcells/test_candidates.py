"""Any function can be judged by its neighbours; a lone estimate by placebos."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.papers.placebo import at_cutoffs, estimate, largest_chi, largest_move, release_placebo
from reticent.smallcells.local import UP, local_sensitivity
from reticent.smallcells.observed import LABEL
from tests.noise.seeded import SeededBits
from tests.smallcells.squares import COMB, PLAIN, QUARTER, points, refit, spots

ONE = Fraction(1)
CORNERS = [(Fraction(x), Fraction(y)) for x in (0, 1) for y in (0, 1)]


def prediction(rows):
    return refit(QUARTER, rows)


def median(rows):
    return float(np.median([float(y) for _, y in rows]))


def test_with_corners_it_is_the_closed_form():
    """The same number as the vectorised local sensitivity with corners only, rounded up there."""
    for cell, steps in ((PLAIN, 10), (COMB, 20)):
        slow = largest_move(prediction, spots(cell, steps, steps), CORNERS)
        fast = Fraction(float(local_sensitivity(points([cell], steps, steps), QUARTER, corners_only=True)[0]))
        assert slow <= fast <= slow * Fraction(UP) ** 2


def test_any_function_will_do():
    """A median, by every removal and the two candidate additions; chi is the largest over cells."""
    cells = [spots(PLAIN, 10, 10), spots(COMB, 20, 20)]
    for rows in cells:
        others = [rows[:i] + rows[i + 1 :] for i in range(len(rows))] + [[*rows, new] for new in CORNERS[:2]]
        moved = max(abs(median(other) - median(rows)) for other in others)
        assert largest_move(median, rows, CORNERS[:2]) == pytest.approx(moved, rel=1e-12)
    chi = largest_chi(median, cells, CORNERS[:2])
    assert chi == max(len(rows) * largest_move(median, rows, CORNERS[:2]) for rows in cells)


def test_a_function_that_fails_gives_no_estimate_and_no_words():  # covers T13 T14
    """An error, a missing number and infinity are all alike; the text of the error is forgotten."""

    def loud(rows):
        raise ValueError(f"respondent {rows}")

    for function in (loud, lambda _: None, lambda _: float("inf"), lambda _: np.float64("nan")):
        assert estimate(function, [(1, 2)]) is None
        assert largest_move(function, [(1, 2)], []) is None
        with pytest.raises(PlanError, match="no cell") as refused:
            largest_chi(function, [[(1, 2)]], [])
        assert "respondent" not in str(refused.value) and refused.value.__cause__ is None
    assert estimate(lambda _: np.float32(0.5), []) == Fraction(1, 2)
    assert largest_move(lambda rows: len(rows), [(1, 2)], []) == 1


def jump(rows):
    """The difference of means across a cutoff."""
    right = [y for d, (_, y) in rows if d >= 0]
    left = [y for d, (_, y) in rows if d < 0]
    return sum(right) / len(right) - sum(left) / len(left) if left and right else None


PEOPLE = [(Fraction(i, 60), Fraction(37 * i % 61, 61)) for i in range(61)]
WIDTH = Fraction(1, 10)
EXTREMES = [(d, (ONE, Fraction(y))) for d in (-WIDTH, WIDTH) for y in (0, 1)]


def cells(*cutoffs: str):
    return at_cutoffs(PEOPLE, lambda row: row[0], [Fraction(c) for c in cutoffs], width=WIDTH)


def test_a_lone_estimate_takes_its_scale_from_placebos():
    """chi is the largest over placebos and the real cell; the noise is scaled to chi over the real cell's size."""
    real, placebos = cells("0.5")[0], cells("0.2", "0.35", "0.65", "0.85")
    alone = len(real) * largest_move(jump, real, EXTREMES)
    made = [
        release_placebo(
            jump, real, placebos, EXTREMES, epsilon=Fraction(2), grid=Fraction(1, 1000), bits=SeededBits(s)
        )
        for s in (1, 2)
    ]
    assert made[0].label == LABEL and made[0].placebos == 4
    assert made[0].chi == max(len(c) * largest_move(jump, c, EXTREMES) for c in [real, *placebos]) >= alone
    assert made[0].noise_variance == pytest.approx(2 * float(made[0].chi / (2 * len(real))) ** 2)
    assert made[0].estimate != made[1].estimate and (made[0].estimate * 1000).denominator == 1


def test_the_real_cell_counts_too():
    """The naive twin, placebos alone, gives too small a scale where the real cell is the roughest."""
    real = [(-WIDTH, (ONE, Fraction(0))), (WIDTH, (ONE, ONE))] * 2
    calm = [[(-WIDTH, (ONE, Fraction(1, 2))), (WIDTH, (ONE, Fraction(1, 2)))] * 2]
    made = release_placebo(jump, real, calm, EXTREMES, epsilon=ONE, grid=ONE, bits=SeededBits(1))
    assert largest_chi(jump, calm, EXTREMES) < made.chi == largest_chi(jump, [real], EXTREMES)


def test_what_cannot_be_is_refused():
    real = cells("0.5")[0]
    for placebos, epsilon, cell in (([], ONE, real), ([real], Fraction(0), real), ([real], ONE, [])):
        with pytest.raises(PlanError):
            release_placebo(jump, cell, placebos, EXTREMES, epsilon=epsilon, grid=ONE, bits=SeededBits(1))
