"""Linear algebra after the noise. It reads released numbers alone, so it costs nothing and may fail at nothing."""

import numpy as np
from numpy.typing import NDArray

from reticent.models.moments import NoisyMoments

Floats = NDArray[np.float64]


def lifted(gram: Floats, floor: float) -> Floats:
    """The nearest symmetric matrix with no eigenvalue below `floor`."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def ridge(gram: Floats, cross: Floats, penalty: float) -> Floats:
    """The minimiser of b'Gb/2 - c'b + penalty |b|^2/2, of least length where there are several."""
    return np.asarray(np.linalg.lstsq(gram + penalty * np.eye(len(gram)), cross, rcond=None)[0])


def leftover(moments: NoisyMoments, theta: Floats) -> float:
    """The mean squared residual of a line, from noisy sums; not below 0."""
    total = float(moments.square - 2 * theta @ moments.cross + theta @ moments.gram @ theta)
    return max(0.0, total) / max(1.0, moments.count - len(theta))
