"""Classifiers that learn from synthetic rows and are tried on people whom whoever made the rows has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.lab.judge import classify
from reticent.lab.trials import tables
from reticent.lab.trials.tables import Codes, Kept

Maker = Callable[[Kept], Codes]
"""Rows learned from those of the table that are kept."""
HELD_OUT = 5  # one row in so many is kept for the classifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSize:
    """What a trial can be made smaller in, for a test: the rows, who judges, and how many rows teach.

    Parameters
    ----------
    rows : the first so many of the table, all where not said
    judges : the classifiers
    most : rows to learn from where one column is the target
    most_every : rows to learn from where every column is, in turn
    """

    rows: int | None = None
    judges: tuple[str, ...] = classify.NINE
    most: int = classify.MOST
    most_every: int = 5_000


def taught(table: tables.Trial, make: Maker, rng: np.random.Generator, setting: TrialSize) -> float:
    """The mean F1 where `make` gives rows learned from those of the table that it is told to keep, four fifths of them."""
    return _mean_f1(table, make, rng, [tables.TARGETS[table.name]], setting.judges, setting.most)


def taught_every(table: tables.Trial, make: Maker, rng: np.random.Generator, setting: TrialSize) -> float:
    """The same with every column as the target in turn, from one set of synthetic rows: the document's measure."""
    return _mean_f1(table, make, rng, table.columns, setting.judges, setting.most_every)


def _mean_f1(
    table: tables.Trial,
    make: Maker,
    rng: np.random.Generator,
    targets: Sequence[str],
    judges: Sequence[str],
    most: int,
) -> float:
    kept = np.random.default_rng(0).permutation(len(table.codes)) % HELD_OUT > 0
    return classify.mean_f1(
        rng.permutation(make(kept)),
        table.codes[~kept],
        table.schema,
        table.columns,
        targets=targets,
        using=judges,
        most=most,
    )
