"""Made-up codes with dependent columns, for trials of masks."""

import numpy as np


def codes(rows: int, columns: int, seed: int) -> np.ndarray:
    """Whole numbers that share a factor, so that every column says something about every other."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(rows, 1))
    return np.floor(10 + 3 * (shared + rng.normal(size=(rows, columns)))).astype(np.int64)
