"""k-anonymity, l-diversity and t-closeness of a candidate table, read off its rows. Not differential privacy.

A class is the rows that agree on all quasi-identifiers. For the curator's own eyes: what these functions return was
computed from the rows without noise and must not be published.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import PlanError

Ground = Literal["equal", "ordered"]
Shares = NDArray[np.float64]
Columns = Mapping[str, ArrayLike]


def classes(columns: Columns, quasi: Sequence[str]) -> dict[tuple[Hashable, ...], list[int]]:
    """The rows of every class, by the values they share. Columns may be lists, arrays, or columns of Arrow or pandas."""
    if not quasi or any(name not in columns for name in quasi):
        raise PlanError("name columns that are there.", field="quasi")
    lists = [plain(columns[name]) for name in quasi]
    if len({len(values) for values in lists}) != 1:
        raise PlanError("the columns differ in length.", field="columns")
    found: dict[tuple[Hashable, ...], list[int]] = {}
    for row, key in enumerate(zip(*lists, strict=True)):
        found.setdefault(key, []).append(row)
    return found


def k_anonymity(columns: Columns, quasi: Sequence[str]) -> int:
    """The largest k for which the table is k-anonymous: the size of its smallest class (Sweeney 2002); 0 if empty."""
    return min((len(rows) for rows in classes(columns, quasi).values()), default=0)


def distinct_diversity(columns: Columns, quasi: Sequence[str], sensitive: str) -> int:
    """The least number of distinct sensitive values in a class (Machanavajjhala and others 2007); 0 if empty."""
    return min((len(counts) for counts in _within(columns, quasi, sensitive)), default=0)


def entropy_diversity(columns: Columns, quasi: Sequence[str], sensitive: str) -> float:
    """The largest l with entropy at least log l in every class: e to the least entropy; 0 if empty."""
    return min((math.exp(_entropy(counts)) for counts in _within(columns, quasi, sensitive)), default=0.0)


def t_closeness(
    columns: Columns, quasi: Sequence[str], sensitive: str, *, ground: Ground, levels: Sequence[Hashable]
) -> float:
    """The least t for which the table is t-close: the earth mover's distance of its farthest class (Li and others 2007).

    `levels` are all values of the sensitive column, in order where `ground` is ordered. 0 if empty.
    """
    place = {level: number for number, level in enumerate(levels)}
    values = plain(columns[sensitive])
    if any(value not in place for value in values) or len(place) != len(levels):
        raise PlanError("give every value of the sensitive column once.", field="levels")
    whole = _shares(Counter(values), place)
    within = _within(columns, quasi, sensitive)
    return max((earth_movers(_shares(counts, place), whole, ground=ground) for counts in within), default=0.0)


def earth_movers(one: Shares, other: Shares, *, ground: Ground) -> float:
    """How much must be moved how far, as a share of the farthest; every step as far as any other where `equal`."""
    if ground == "equal" or len(one) == 1:
        return float(np.abs(one - other).sum() / 2)
    if ground != "ordered":
        raise PlanError("is equal or ordered.", field="ground")
    return float(np.abs(np.cumsum(one - other)).sum() / (len(one) - 1))


def _within(columns: Columns, quasi: Sequence[str], sensitive: str) -> list[Counter[Hashable]]:
    if sensitive not in columns:
        raise PlanError("name a column that is there.", field="sensitive")
    values = plain(columns[sensitive])
    return [Counter(values[row] for row in rows) for rows in classes(columns, quasi).values()]


def _entropy(counts: Counter[Hashable]) -> float:
    total = counts.total()
    return -sum(n / total * math.log(n / total) for n in counts.values())


def _shares(counts: Counter[Hashable], place: Mapping[Hashable, int]) -> Shares:
    shares = np.zeros(len(place))
    for value, n in counts.items():
        shares[place[value]] = n
    return shares / max(counts.total(), 1)


def plain(column: ArrayLike) -> list[Hashable]:
    """A list of Python values: Arrow columns, pandas series and arrays have a way each."""
    for way in ("to_pylist", "tolist"):
        if hasattr(column, way):
            return list(getattr(column, way)())
    return list(column)  # type: ignore[arg-type]
