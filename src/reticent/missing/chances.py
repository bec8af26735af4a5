"""Chances of not answering: logistic in a pull with a stated mean rate, or for the tail of a column alone."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

HALVINGS = 64  # of an interval about 130 wide: as fine as doubles get


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), which never overflows."""
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def logistic(pull: Floats, asked: Flags, rate: float) -> Floats:
    """sigmoid(pull + b), with b by bisection such that the mean over the asked cells is `rate`."""
    if rate in (0, 1) or not asked.any():
        return np.full(len(pull), float(rate))
    low, high = -60.0 - np.abs(pull).max(), 60.0 + np.abs(pull).max()
    for _ in range(HALVINGS):
        b = (low + high) / 2
        too_many = np.mean(sigmoid(pull[asked] + b)) > rate
        low, high = (low, b) if too_many else (b, high)
    return sigmoid(pull + b)


def in_tail(values: Floats, asked: Flags, share: float) -> Floats:
    """1 for the largest `share` of the asked cells, 0 for the rest, between for those at the threshold."""
    if not asked.any() or share == 0:
        return np.zeros(len(values))
    edge = np.quantile(values[asked], 1 - share, method="higher")
    above, at = values > edge, values == edge
    part = (share * asked.sum() - above[asked].sum()) / max(at[asked].sum(), 1)
    return np.where(above, 1.0, np.where(at, np.clip(part, 0, 1), 0.0))


def standard(values: Floats, asked: Flags) -> Floats:
    """Mean 0 and variance 1 over the asked cells, in the sample at hand; 0 where nothing varies or nobody was asked."""
    if not asked.any():
        return np.zeros(len(values))
    spread = float(values[asked].std())
    return np.where(asked, values - values[asked].mean(), 0.0) / spread if spread else np.zeros(len(values))
