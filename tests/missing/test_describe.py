"""Descriptions: every number counted again from the mask, cell by cell."""

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.masks import clustered
from reticent.missing.describe import describe, patterns_of

NAMES = ("a", "b", "c", "d")
MASK = clustered(3_000, [0.1, 0.2, 0.2, 0.3], np.random.default_rng(1), correlation=0.5).mask


def test_rates_patterns_and_correlations_are_those_of_the_mask():
    found = describe(patterns_of(MASK, NAMES))
    assert np.allclose(found.rates, MASK.mean(axis=0))
    assert np.allclose(found.correlations, np.corrcoef(MASK.T))
    assert found.per_row == tuple(np.bincount(MASK.sum(axis=1), minlength=5))
    assert found.patterns.rows == sum(found.per_row) == 3_000
    for missing, count in found.patterns.counts:
        flags = np.array([name in missing for name in NAMES])
        assert count == (flags == MASK).all(axis=1).sum()
    assert found.complete == (~MASK.any(axis=1)).mean()
    assert abs(found.independent - np.prod(1 - MASK.mean(axis=0))) < 1e-12
    assert abs(found.together - np.corrcoef(MASK.T)[np.triu_indices(4, 1)].mean()) < 1e-12


def test_answers_that_go_together_leave_more_rows_complete():
    """What clustering is: more complete rows than independent flags at the same rates would leave."""
    found = describe(patterns_of(MASK, NAMES))
    assert found.complete > found.independent + 0.05
    shuffled = np.column_stack([np.random.default_rng(k).permutation(MASK[:, k]) for k in range(4)])
    apart = describe(patterns_of(shuffled, NAMES))
    # 3,000 rows: a share has a standard error below 0.0092; 6.5 of them, 1e-9
    assert abs(apart.complete - apart.independent) < 0.06


def test_extremes_have_descriptions_too():
    """Nobody, nothing missing, everything missing: shares are shares, correlations 0."""
    for mask in (np.zeros((0, 2), dtype=bool), np.zeros((5, 2), dtype=bool), np.ones((5, 2), dtype=bool)):
        found = describe(patterns_of(mask, ("a", "b")))
        assert all(0 <= rate <= 1 for rate in (*found.rates, found.complete, found.independent))
        assert found.together == 0 and np.array_equal(found.correlations, np.eye(2))
        assert found.text()


def test_the_tidy_form_holds_every_number_once():
    found = describe(patterns_of(MASK, NAMES))
    lines = found.tidy()
    assert len({(what, of) for what, of, _ in lines}) == len(lines)
    assert len(lines) == 4 + 5 + len(found.patterns.counts) + 6 + 3
    told = {(what, of): value for what, of, value in lines}
    assert told["rate", "b"] == found.rates[1]
    assert told["correlation", "a & c"] == found.correlations[0, 2]
    assert told["pattern", "nothing"] == (~MASK.any(axis=1)).sum()


def test_a_description_keeps_silent_when_printed():
    assert repr(describe(patterns_of(MASK, NAMES))) == "Description()"


def test_names_must_fit_the_mask():
    with pytest.raises(PlanError):
        patterns_of(MASK, ("a", "b"))
