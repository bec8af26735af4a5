"""Classifiers that learn from synthetic rows and are tried on people whom whoever made the rows has not seen."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.lab.judge import classify
from reticent.lab.trials import tables
from reticent.lab.trials.tables import Codes

HELD_OUT = 5  # one row in so many is kept for the classifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSize:
    """What a trial can be made smaller in, for a test: the rows, who judges, and how many rows teach."""

    rows: int | None = None
    judges: tuple[str, ...] = classify.NINE
    most: int = classify.MOST


def taught(
    table: tables.Trial,
    make: Callable[[NDArray[np.bool_]], Codes],
    rng: np.random.Generator,
    setting: TrialSize,
) -> float:
    """The mean F1 where `make` gives rows learned from those of the table that it is told to keep, four fifths of them."""
    kept = np.random.default_rng(0).permutation(len(table.codes)) % HELD_OUT > 0
    return classify.mean_f1(
        rng.permutation(make(kept)),
        table.codes[~kept],
        table.schema,
        table.columns,
        targets=[tables.TARGETS[table.name]],
        using=setting.judges,
        most=setting.most,
    )
