"""A small simulated census for all judges."""

import numpy as np
import pytest

from reticent.lab.trials.tables import CENSUS, Codes, Trial, trial


@pytest.fixture(scope="session")
def census() -> Trial:
    return trial(CENSUS, rows=2_000)


@pytest.fixture(scope="session")
def shuffled(census: Trial) -> Codes:
    """Every column by itself in another order: all 1-way tables are the truth's, and nothing else is."""
    rng = np.random.default_rng(5)
    return np.stack([rng.permutation(column) for column in census.codes.T], axis=1)
