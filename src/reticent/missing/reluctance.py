"""How strongly a shared reluctance must weigh for skipped questions to have a stated correlation.

One factor: question j is skipped when sqrt(w) u + sqrt(1 - w) e_j passes the quantile of its rate, u and e_j
standard normal. Given u the questions are independent, so the chance of skipping two is one integral.
"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError

Floats = NDArray[np.float64]

_NORMAL = NormalDist()
_GRID = np.linspace(-8, 8, 641)
_DENSITY = np.exp(-_GRID * _GRID / 2) / np.exp(-_GRID * _GRID / 2).sum()
_CDF_AT = np.linspace(-9, 9, 18001)
_CDF = np.array([_NORMAL.cdf(x) for x in _CDF_AT])


def normal_quantile(p: float) -> float:
    """The standard normal quantile, with its limits at 0 and 1."""
    if 0 < p < 1:
        return _NORMAL.inv_cdf(p)
    return np.inf if p >= 1 else -np.inf


def flag_correlations(rates: Sequence[float], weight: float) -> Floats:
    """Correlations of the skip flags, a square matrix, when the shared reluctance has this weight."""
    edge = np.array([normal_quantile(1 - rate) for rate in rates])
    given = np.interp((np.sqrt(weight) * _GRID[:, None] - edge) / np.sqrt(1 - weight), _CDF_AT, _CDF)
    mean = _DENSITY @ given
    joint = (given * _DENSITY[:, None]).T @ given
    spread = np.sqrt(mean * (1 - mean))
    flags = (joint - np.outer(mean, mean)) / np.outer(spread, spread)
    np.fill_diagonal(flags, 1.0)
    return np.asarray(flags)


def latent_share(rates: Sequence[float], correlation: float) -> float:
    """The weight of the shared reluctance at which the mean correlation over pairs is `correlation`."""
    if len(rates) < 2 or not all(0 < rate < 1 for rate in rates):
        raise PlanError(
            "clustering needs two columns or more, with rates above 0 and below 1.", field="rates"
        )
    pairs = np.triu_indices(len(rates), 1)
    low, high = 0.0, 0.99
    most = flag_correlations(rates, high)[pairs].mean()
    if not 0 <= correlation <= most:
        raise PlanError(
            f"the mean correlation is {correlation}, but with these rates it lies between 0 and {most:.2f}; "
            "bring the rates closer together or ask for less.",
            field="correlation",
        )
    for _ in range(50):
        weight = (low + high) / 2
        too_weak = flag_correlations(rates, weight)[pairs].mean() < correlation
        low, high = (weight, high) if too_weak else (low, weight)
    return weight
