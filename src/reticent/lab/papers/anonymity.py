"""k-anonymity, l-diversity and t-closeness of a candidate table, read off its rows. Not differential privacy.

A class is the rows that agree on all quasi-identifiers. For the curator's own eyes: what these functions return was
computed from the rows without noise and must not be published.

Generalisation hierarchies: how the values of a column become coarser, step by step. Not differential privacy.

Recoding to k-anonymity: the same coarseness for all rows, or each group of rows as fine as it can be. Not
differential privacy: which recoding is chosen depends on every row, and nobody accounts for it.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
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
    """The largest k for which the table is k-anonymous: the size of its smallest class (Sweeney 2002); 0 if empty.

    **Parameters**

    - `columns`: the table, an array for each column.
    - `quasi`: the quasi-identifiers, whose values together make a class.
    """
    return min((len(rows) for rows in classes(columns, quasi).values()), default=0)


def distinct_diversity(columns: Columns, quasi: Sequence[str], sensitive: str) -> int:
    """Distinct l-diversity: the least number of distinct sensitive values in a class (Machanavajjhala and others 2007).

    **Parameters**

    - `columns`: the table, an array for each column.
    - `quasi`: the quasi-identifiers, whose values together make a class.
    - `sensitive`: the column whose values are counted. An empty table has 0.
    """
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


Value = Hashable


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Hierarchy:
    """For each value its chain of coarser ones, the value itself first; all chains are of one length and meet at the top."""

    chains: Mapping[Value, tuple[Value, ...]] = field(repr=False)
    height: int

    def __init__(self, chains: Mapping[Value, Sequence[Value]]) -> None:
        made = {value: (value, *chain) for value, chain in chains.items()}
        lengths = {len(chain) for chain in made.values()}
        if len(lengths) != 1:
            raise PlanError("every value needs a chain of the same length.", field="hierarchy")
        if len({chain[-1] for chain in made.values()}) != 1:
            raise PlanError("all chains must end in one value that stands for all.", field="hierarchy")
        object.__setattr__(self, "chains", made)
        object.__setattr__(self, "height", lengths.pop() - 1)
        self._check_nested()

    def _check_nested(self) -> None:
        """Values that are one at some height stay one at every greater height."""
        for low in range(self.height):
            above: dict[Value, Value] = {}
            for chain in self.chains.values():
                if above.setdefault(chain[low], chain[low + 1]) != chain[low + 1]:
                    raise PlanError(f"{chain[low]!r} has two coarser values.", field="hierarchy")

    def at(self, value: Value, height: int) -> Value:
        """The value, `height` steps coarser."""
        if value not in self.chains:
            raise PlanError("a value of the column is not in its hierarchy.", field="hierarchy")
        return self.chains[value][height]

    def share(self, value: Value, height: int) -> float:
        """The share of other values that this one can no longer be told from: 0 at the bottom, 1 at the top."""
        same = sum(chain[height] == self.at(value, height) for chain in self.chains.values())
        return (same - 1) / (len(self.chains) - 1) if len(self.chains) > 1 else 0.0


def intervals(low: int, high: int, widths: Sequence[int]) -> Hierarchy:
    """Whole numbers from `low` to `high`, in intervals of growing widths, each a multiple of the one before; then all.

    **Parameters**

    - `low`: the smallest number.
    - `high`: the largest.
    - `widths`: of the intervals at each height, rising.
    """
    for narrow, wide in zip((1, *widths), widths, strict=False):
        if narrow < 1 or wide % narrow:
            raise PlanError(f"{wide} is not a multiple of {narrow}.", field="widths")
    top = f"{low} to {high}"

    def chain(value: int) -> list[Value]:
        starts = [(low + (value - low) // width * width, width) for width in widths]
        return [*(f"{start} to {min(start + width - 1, high)}" for start, width in starts), top]

    return Hierarchy({value: chain(value) for value in range(low, high + 1)})


Row = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoded:
    """Recoded quasi-identifiers, and the mean share of other values that a cell can no longer be told from."""

    columns: Mapping[str, list[Hashable]] = field(repr=False)
    heights: tuple[tuple[int, ...], ...] = field(repr=False)
    loss: float


def recode_globally(columns: Columns, hierarchies: Mapping[str, Hierarchy], *, k: int) -> Recoded:
    """Global recoding: one height for each column, the same for all rows, that gives k-anonymity and loses least.

    The lattice of heights is searched from the bottom; whatever is coarser than a solution is not looked at.

    **Parameters**

    - `columns`: the table, an array for each quasi-identifier.
    - `hierarchies`: for each of them, how its values are made coarser.
    - `k`: the least size of a class.
    """
    rows = _rows(columns, hierarchies, k)
    solutions: list[tuple[int, ...]] = []
    tops = [range(h.height + 1) for h in hierarchies.values()]
    for heights in sorted(product(*tops), key=sum):
        if any(all(a <= b for a, b in zip(found, heights, strict=True)) for found in solutions):
            continue
        if _smallest(_at(rows, hierarchies, heights)) >= k:
            solutions.append(heights)
    made = [_recoded(rows, hierarchies, [heights] * len(rows)) for heights in solutions]
    return min(made, key=lambda each: each.loss)


def recode_locally(columns: Columns, hierarchies: Mapping[str, Hierarchy], *, k: int) -> Recoded:
    """Local recoding: from the top, a group of rows is split by one column if all parts keep k rows.

    Of several columns the one with most parts is split, then the first. Greedy, so seldom the best there is.

    **Parameters**

    - `columns`: the table, an array for each quasi-identifier.
    - `hierarchies`: for each of them, how its values are made coarser.
    - `k`: the least size of a class.
    """
    rows = _rows(columns, hierarchies, k)
    heights: list[tuple[int, ...]] = [()] * len(rows)
    waiting = [(tuple(h.height for h in hierarchies.values()), list(range(len(rows))))]
    while waiting:
        here, members = waiting.pop()
        parts = max(_splits(rows, hierarchies, here, members, k), key=lambda s: len(s[1]), default=None)
        if parts is None:
            for row in members:
                heights[row] = here
        else:
            waiting += [(parts[0], part) for part in parts[1]]
    return _recoded(rows, hierarchies, heights)


def _splits(
    rows: list[Row], hierarchies: Mapping[str, Hierarchy], here: tuple[int, ...], members: list[int], k: int
) -> Iterator[tuple[tuple[int, ...], list[list[int]]]]:
    """Ways to go one step down in one column without a part below k rows."""
    for place, hierarchy in enumerate(hierarchies.values()):
        if here[place] == 0:
            continue
        finer = (*here[:place], here[place] - 1, *here[place + 1 :])
        parts: dict[Hashable, list[int]] = {}
        for row in members:
            parts.setdefault(hierarchy.at(rows[row][place], finer[place]), []).append(row)
        if all(len(part) >= k for part in parts.values()):
            yield finer, list(parts.values())


def _rows(columns: Columns, hierarchies: Mapping[str, Hierarchy], k: int) -> list[Row]:
    if not hierarchies or any(name not in columns for name in hierarchies):
        raise PlanError("give hierarchies for columns that are there.", field="hierarchies")
    rows = list(zip(*(plain(columns[name]) for name in hierarchies), strict=True))
    if not 1 <= k <= len(rows):
        raise PlanError(f"it is {k}, but must be at least 1 and at most the number of rows.", field="k")
    return rows


def _at(rows: list[Row], hierarchies: Mapping[str, Hierarchy], heights: tuple[int, ...]) -> list[Row]:
    steps = list(zip(hierarchies.values(), heights, strict=True))
    return [tuple(h.at(value, n) for value, (h, n) in zip(row, steps, strict=True)) for row in rows]


def _smallest(rows: list[Row]) -> int:
    sizes: dict[Row, int] = {}
    for row in rows:
        sizes[row] = sizes.get(row, 0) + 1
    return min(sizes.values())


def _recoded(
    rows: list[Row], hierarchies: Mapping[str, Hierarchy], heights: Sequence[tuple[int, ...]]
) -> Recoded:
    cells: list[list[Hashable]] = []
    lost = 0.0
    for place, hierarchy in enumerate(hierarchies.values()):
        pairs = [(row[place], height[place]) for row, height in zip(rows, heights, strict=True)]
        cells.append([hierarchy.at(value, height) for value, height in pairs])
        shares = {pair: hierarchy.share(*pair) for pair in set(pairs)}
        lost += sum(shares[pair] for pair in pairs)
    made = dict(zip(hierarchies, cells, strict=True))
    return Recoded(columns=made, heights=tuple(heights), loss=lost / (len(rows) * len(hierarchies)))
