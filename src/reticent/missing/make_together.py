"""Masks in which answers of one respondent go missing together, as they do in real surveys. For trials."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.missing.chances import Flags
from reticent.missing.make_driven import DrivenMask, Rng
from reticent.missing.reluctance import latent_share, normal_quantile


def clustered(
    rows: int, rates: Sequence[float], rng: Rng, *, correlation: float = 0.6, asked: Flags | None = None
) -> DrivenMask:
    """Reluctant people skip many questions: a column for each rate, and losses that go together.

    A respondent has one latent reluctance, shared by all questions. Its weight is set such that the mean
    correlation of the flags over pairs of columns is `correlation`; real surveys show 0.4 to 0.8.
    """
    weight = latent_share(rates, correlation)
    reluctance = np.sqrt(weight) * rng.normal(size=(rows, 1))
    whims = np.sqrt(1 - weight) * rng.normal(size=(rows, len(rates)))
    mask = reluctance + whims > np.array([normal_quantile(1 - rate) for rate in rates])
    return DrivenMask(mask=mask if asked is None else mask & asked)


def like(
    real: Flags,
    rows: int,
    rng: Rng,
    *,
    classes: NDArray[np.integer] | None = None,
    wanted: NDArray[np.integer] | None = None,
) -> DrivenMask:
    """Like this real mask: each row gets the whole pattern of a real row, drawn with replacement.

    With `classes` (a number for each real row) and `wanted` (one for each row to be made) a row draws among real rows
    of its own class, and among all where there is none.
    """
    if len(real) == 0 or (classes is None) != (wanted is None):
        raise PlanError("has rows, and either both `classes` and `wanted` or neither.", field="real")
    drawn = rng.integers(len(real), size=rows)
    if classes is not None and wanted is not None:
        for each in np.unique(wanted):
            pool, places = np.flatnonzero(classes == each), np.flatnonzero(wanted == each)
            if len(pool):
                drawn[places] = pool[rng.integers(len(pool), size=len(places))]
    mask = np.asarray(real, dtype=bool)[drawn]
    return DrivenMask(mask=mask, complete=tuple(np.flatnonzero(~mask.any(axis=0)).tolist()))
