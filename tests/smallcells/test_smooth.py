"""The smooth cell mechanism: what its tables say, and that its intervals and variances are right."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.noise import calibrate
from reticent.smallcells.estimators import CellMean, Predict, Slope
from reticent.smallcells.ladder import smooth_bounds
from reticent.smallcells.points import GridPoints
from reticent.smallcells.smooth import SmoothCells, even_cell
from reticent.smallcells.table import Estimand, noisy_counts, steps_of
from tests.audit import ALARM, chi_square
from tests.noise.laws import laplace
from tests.noise.seeded import SeededBits, chosen_bits
from tests.smallcells.tiny import points_of

AIM = Estimand(estimator=Predict(at=Fraction(1, 4)))
CELL = [(i, 7 * i % 20) for i in range(20)] * 2
MANY = 20_000


def _copies(count: int) -> GridPoints:
    one = points_of([CELL], x_steps=19, y_steps=20)
    starts = np.arange(count + 1) * len(CELL)
    return GridPoints(starts=starts, x=np.tile(one.x, count), y=np.tile(one.y, count), x_steps=19, y_steps=20)


ASKED = SmoothCells(aim=AIM, epsilon=Fraction(1), noise_epsilon=Fraction(1))
TABLE = ASKED.measure(_copies(MANY), bits=chosen_bits(1))
TRUTH = float(AIM.value(steps_of(_copies(1), AIM)[0]))
SPREAD = float(
    smooth_bounds(_copies(1), AIM, beta=ASKED.beta)[0] / calibrate.lomax(epsilon=Fraction(1), beta=ASKED.beta)
)


def test_intervals_cover_as_stated_and_not_much_more():
    """20,000 copies of one cell: between 95 and 95.1 percent, six standard errors (0.92 points) allowed: 2e-9."""
    missed = np.abs(np.array([float(each) for each in TABLE.estimates()]) - TRUTH) > TABLE.half_widths()
    assert abs(missed.mean() - 0.05) < 0.0093
    plain = (
        np.abs(np.array(TABLE.steps) - AIM.steps * TRUTH) > 1.4 * SPREAD
    )  # the scale itself tells no interval
    assert not abs(plain.mean() - 0.05) < 0.0093


def test_the_variance_of_the_noise_is_unbiased():
    """Mean of 20,000 estimates within six standard errors of the true variance; without the factor it is 6 percent off."""
    told = TABLE.noise_variance()
    true = (SPREAD * float(AIM.step)) ** 2 / 21
    error = 6 * told.std() / np.sqrt(MANY)
    assert abs(told.mean() - true) < error
    assert not abs(told.mean() / (1 - 4 / 64) - true) < error


def test_a_noise_level_bought_too_cheaply_tells_no_variance():
    """t = beta / noise_epsilon must be below 1/2; intervals stay."""
    cheap = replace(ASKED, noise_epsilon=Fraction(1, 4)).measure(_copies(3), bits=SeededBits(2))
    assert np.isnan(cheap.noise_variance()).all() and np.isfinite(cheap.half_widths()).all()


def test_costs_and_what_is_not_bought():
    """The noise level costs once for the whole table; without it there are neither intervals nor variances."""
    assert ASKED.cost == 2 and replace(ASKED, noise_epsilon=None).cost == 1
    bare = replace(ASKED, noise_epsilon=None).measure(_copies(2), bits=SeededBits(3))
    assert bare.levels is None
    for ask in (bare.half_widths, bare.noise_variance):
        with pytest.raises(PlanError, match="noise_epsilon"):
            ask()


def test_empty_cells_and_empty_tables_get_noise_like_the_others():  # covers T10
    """Every declared cell has a number, whoever is in it."""
    for cells in ([[], [], CELL], [[], [], []]):
        table = ASKED.measure(points_of(cells, x_steps=19, y_steps=20), bits=SeededBits(4))
        assert len(table.steps) == len(table.levels or []) == 3


def test_a_preview_foresees_less_noise_in_larger_cells():
    """No row is read; the noise of an evenly spread cell falls with its size, for every estimator."""
    for estimator in (Predict(at=Fraction(1, 3)), Slope(), CellMean()):
        spreads = [
            replace(ASKED, aim=Estimand(estimator=estimator)).sd_of(size) for size in (0, 20, 100, 500)
        ]
        assert spreads == sorted(spreads, reverse=True) and spreads[-1] < spreads[0] / 10
    bound = float(smooth_bounds(even_cell(100), AIM, beta=ASKED.beta)[0])
    a = float(calibrate.lomax(epsilon=Fraction(1), beta=ASKED.beta))
    assert ASKED.sd_of(100) == pytest.approx(bound * 1e-6 / a / np.sqrt(21))


def test_nothing_shows_rows():
    """A repr of what leaves holds public numbers only; of what is asked, too."""
    assert "steps=[" not in repr(TABLE) and "levels" not in repr(TABLE)


def test_counts_have_laplace_noise():  # covers T26
    """30,000 empty cells and cells of three: the stated law at 1e-9, and not one of half the scale."""
    points = points_of([[], [(0, 0)] * 3] * 30_000, x_steps=1, y_steps=1)
    drawn = noisy_counts(points.sizes, epsilon=Fraction(1, 5), bits=chosen_bits(6))
    for share, size in ((0, 0), (1, 3)):
        noise = [count - size for count in drawn[share::2]]
        assert chi_square(noise, laplace(5)) > ALARM > chi_square(noise, laplace(2.5))
    with pytest.raises(PlanError, match="count_epsilon"):
        noisy_counts(points.sizes, epsilon=Fraction(0), bits=SeededBits(0))


def test_refuses_noise_that_nothing_certifies():
    """m below 3; a range that does not rise; a fallback outside it."""
    with pytest.raises(PlanError):
        SmoothCells(aim=AIM, epsilon=Fraction(1), m=2)
    for wrong in ({"low": Fraction(1)}, {"steps": 0}, {"fallback": 11, "steps": 10}, {"fallback": -1}):
        with pytest.raises(PlanError):
            replace(AIM, **wrong)
    with pytest.raises(PlanError, match="predict"):
        Estimand(estimator=Predict(at=Fraction(1, 2**21)))
