"""Recoding to k-anonymity: the same coarseness for all rows, or each group of rows as fine as it can be. Not
differential privacy: which recoding is chosen depends on every row, and nobody accounts for it.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from reticent.errors import PlanError
from reticent.lab.older.checks import Columns, plain
from reticent.lab.older.hierarchy import Hierarchy

Row = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoded:
    """Recoded quasi-identifiers, and the mean share of other values that a cell can no longer be told from."""

    columns: Mapping[str, list[Hashable]] = field(repr=False)
    heights: tuple[tuple[int, ...], ...] = field(repr=False)
    loss: float


def recode_globally(columns: Columns, hierarchies: Mapping[str, Hierarchy], *, k: int) -> Recoded:
    """One height for each column, the same for all rows: of all heights that give k-anonymity, those that lose least.

    The lattice of heights is searched from the bottom; whatever is coarser than a solution is not looked at.
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
    """Each group of rows as fine as it can be: from the top, a group is split by one column if all parts keep k rows.

    Of several columns the one with most parts is split, then the first. Greedy, so seldom the best there is.
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
