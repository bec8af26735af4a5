"""`PrivateRegression` in the manner of scikit-learn: it clamps, never refuses a value, and says what it promises."""

import numpy as np
import pandas as pd
import pytest

from reticent.errors import PlanError
from reticent.lab.papers.robust import Robust
from reticent.models.sums import AdaSSP
from reticent.python.private_regression import PrivateRegression
from tests.models.doubles import ZeroModelNoise
from tests.models.worlds import least_squares


def quiet(**settings) -> PrivateRegression:
    made = PrivateRegression(epsilon="1", bounds_x=[(0, 1), (-2, 2)], bounds_y=(0, 4), **settings)
    made._noise = ZeroModelNoise()
    return made


def rows(n: int = 3000):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 2049, n) / 2048, rng.integers(-1024, 1025, n) / 512])
    return x, np.floor(512 * np.clip(1.5 + x @ [1.0, 0.4] + rng.normal(0, 0.1, n), 0, 4)) / 512


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("estimator", [None, AdaSSP(), Robust()])
def test_without_noise_it_is_least_squares(estimator, fit_intercept):
    """Rows on the grid of the bounds."""
    x, y = rows()
    made = quiet(estimator=estimator, fit_intercept=fit_intercept).fit(x, y)
    wanted = least_squares(x, y, intercept=fit_intercept)
    assert np.allclose([made.intercept_, *made.coef_], wanted, atol=5e-3)
    assert np.allclose(made.predict(x), x @ made.coef_ + made.intercept_)
    assert 0 <= made.variance_ < 4


def test_frames_are_taken_and_values_outside_are_clamped():
    x, y = rows(50)
    clamped = quiet().fit(np.vstack([x, [1.0, 2.0]]), np.append(y, 4.0))
    frame = pd.DataFrame(np.vstack([x, [9e9, np.inf]]))
    wild = quiet().fit(frame, pd.Series(np.append(y, 1e300)))
    assert wild.result_ == clamped.result_
    holed = quiet().fit(np.vstack([x, [np.nan, 0.0]]), np.append(y, 1.0))
    assert holed.result_ == quiet().fit(x, y).result_


def test_the_claim_is_the_amount_asked_for():
    x, y = rows(50)
    made = PrivateRegression(epsilon="0.5", bounds_x=[(0, 1), (-2, 2)], bounds_y=(0, 4)).fit(x, y)
    assert str(made.claim_) == "0.5-DP, one respondent added or removed, exact"
    assert (
        made.fit(x, y).coef_.tolist()
        != PrivateRegression(epsilon="0.5", bounds_x=[(0, 1), (-2, 2)], bounds_y=(0, 4))
        .fit(x, y)
        .coef_.tolist()
    )
    known = PrivateRegression(
        epsilon="0.5", delta="0.000001", bounds_x=[(0, 1), (-2, 2)], bounds_y=(0, 4), replaced=True,
        public_size=50, estimator=AdaSSP(),
    ).fit(x, y)  # fmt: skip
    assert str(known.claim_) == "(0.5, 0.000001)-DP, one respondent's answers replaced, exact"


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_bounds_that_bound_nothing_are_refused(bounds):  # covers B088
    with pytest.raises(PlanError):
        PrivateRegression(epsilon="1", bounds_x=[bounds], bounds_y=(0, 1))


def test_there_is_no_line_before_a_fit():
    with pytest.raises(PlanError):
        quiet().predict(np.zeros((1, 2)))
    with pytest.raises(PlanError):
        PrivateRegression(epsilon="0", bounds_x=[(0, 1)], bounds_y=(0, 1))
