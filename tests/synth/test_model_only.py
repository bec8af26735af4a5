"""Numbers that synthetic rows alone tell: none where the rows leave it open, and never one that an algorithm stopped at."""

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.refine.combine import combine
from reticent.synth.model_only import _least_squares, _logistic

ROWS = np.stack([np.ones(100), np.arange(100) % 2], axis=1)


def test_a_predictor_that_tells_the_answer_has_no_logistic_coefficient():
    """Its likelihood grows without end; a step limit would tell how many steps there were."""
    assert np.isnan(_logistic(ROWS, ROWS[:, 1])).all()
    assert np.isfinite(_logistic(ROWS, (np.arange(100) % 3 == 0).astype(float))).all()


def test_predictors_that_add_up_have_no_coefficients():
    """Of women and of men beside a constant: the shortest of all solutions is an answer to nothing."""
    both = np.column_stack([ROWS, 1 - ROWS[:, 1]])
    assert np.isnan(_least_squares(both, np.arange(100.0))).all()
    assert _least_squares(ROWS, 2 * ROWS[:, 1]) == pytest.approx([0, 2])
    assert np.isnan(_least_squares(np.zeros((0, 2)), np.zeros(0))).all()


def test_a_level_that_is_no_number_is_refused_in_words():
    with pytest.raises(PlanError, match="lies between 0 and 1"):
        combine(0.3, [0.1, 0.2, 0.3, 0.4, 0.5], level="0.95")
