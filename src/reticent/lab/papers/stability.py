"""Imputation and masks that carry one respondent's answer to the rows of others: counted by brute force on small tables.

Answers are 0 or 1, and a gap is filled with the answer that most who answered gave, the larger one where two are
as common. Where several columns are imputed one after another, each is filled from the column before it.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]
GAP = -1


def filled(table: Table) -> Table:
    """Every gap of every column by the commonest answer among rows alike in the column before it."""
    made = table.copy()
    for place in range(table.shape[1]):
        before = made[:, place - 1] if place else np.zeros(len(table), np.int64)
        for level in np.unique(before):
            here = before == level
            told = made[here, place]
            told = told[told != GAP]
            common = int(2 * told.sum() >= len(told)) if len(told) else int(level)
            made[here & (made[:, place] == GAP), place] = common
    return made


def moved_by_one(*, rows: int, gaps: int, columns: int) -> int:
    """The most rows that differ after imputation between two tables in which one row differs.

    The last `gaps` rows say nothing in the first column, and nothing in the further ones; the first row is replaced.
    """
    others = list(product((0, 1), repeat=rows - gaps - 1))
    most = 0
    for told in others:
        made = [filled(_table(own, told, gaps, columns)) for own in ((0,) * columns, (1,) * columns)]
        most = max(most, int((made[0] != made[1]).any(axis=1).sum()))
    return most


def _table(own: tuple[int, ...], told: tuple[int, ...], gaps: int, columns: int) -> Table:
    silent = [[GAP] * columns] * gaps
    return np.array([list(own), *([answer] * columns for answer in told), *silent], dtype=np.int64)


def one_coin(*, rows: int, observed: float, epsilon: float) -> float:
    """The worst loss of a geometric count of `rows` ones against one row fewer, where one coin hides all rows or none."""
    ratio = math.exp(-epsilon)
    laws = [
        [observed * ratio ** abs(o - held) + (1 - observed) * ratio ** abs(o) for o in _outputs(rows)]
        for held in (rows, rows - 1)
    ]
    return max(abs(math.log(a / b)) for a, b in zip(*laws, strict=True))


def _outputs(rows: int) -> Iterator[int]:
    return iter(range(-1, rows + 2))
