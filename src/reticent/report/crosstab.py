"""Cross-tabulations: the cells of a table as they are printed, one key across and the others down the side.

One value for the page, the workbook, the terminal and a notebook. Everything in it is a released number or public text;
texts are plain, and whoever draws them escapes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reticent.release.labels import Labels
from reticent.release.product import Grid

MOST_ACROSS = 12
MOST_DOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossCell:
    """One cell: `value` as a reader sees it, its interval, a mark for its reliability, and the released number itself."""

    value: str
    interval: str = ""
    mark: str = ""
    number: float | None = None
    is_total: bool = False


NO_CELL = CrossCell(value="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crosstab:
    """A table of cells.

    **Fields**

    - `name`: of the statistic or margin.
    - `unit`: of the numbers.
    - `down`: the keys down the side, as readers see them.
    - `across`: the key across.
    - `heads`: its levels.
    - `rows`: for each combination down the side, its levels and its cells.
    - `note`: what the intervals in the cells cover, and at which level.
    """

    name: str
    unit: str
    down: tuple[str, ...]
    across: str
    heads: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[CrossCell, ...]], ...]
    note: str = ""

    def grid(self) -> Grid:
        """For a terminal: a line of numbers with their intervals under them."""
        return Grid(
            headings=(" / ".join((*self.down, self.across)), *self.heads),
            rows=[(" · ".join(side), *map(_lines, cells)) for side, cells in self.rows],
        )


def _lines(cell: CrossCell) -> str:
    value = f"{cell.value} {cell.mark}".strip()
    return f"{value}\n{cell.interval}" if cell.interval else value


def crosstab(
    cells: Sequence[tuple[Mapping[str, str], CrossCell]],
    keys: Sequence[str],
    labels: Labels,
    *,
    name: str,
    unit: str,
    note: str = "",
) -> Crosstab | None:
    """The cells crossed, the last key across if it has few levels, else the one with the fewest.

    None where there are fewer than two keys, or no key is short enough to be printed across.
    """
    levels = {key: tuple(dict.fromkeys(cell.get(key, "") for cell, _ in cells)) for key in keys}
    across = _across(keys, levels)
    if across is None:
        return None
    down = [key for key in keys if key != across]
    found = {tuple(cell.get(key, "") for key in (*down, across)): shown for cell, shown in cells}
    sides = list(dict.fromkeys(tuple(cell.get(key, "") for key in down) for cell, _ in cells))
    if len(sides) > MOST_DOWN:
        return None
    return Crosstab(
        name=name,
        unit=unit,
        note=note,
        down=tuple(labels.column(key) for key in down),
        across=labels.column(across),
        heads=tuple(labels.level(across, level) for level in levels[across]),
        rows=tuple(
            (
                tuple(labels.level(key, level) for key, level in zip(down, side, strict=True)),
                tuple(found.get((*side, level), NO_CELL) for level in levels[across]),
            )
            for side in sides
        ),
    )


def _across(keys: Sequence[str], levels: Mapping[str, Sequence[str]]) -> str | None:
    if len(keys) < 2:
        return None
    short = [key for key in keys if len(levels[key]) <= MOST_ACROSS]
    if keys[-1] in short:
        return keys[-1]
    return min(short, key=lambda key: len(levels[key]), default=None)
