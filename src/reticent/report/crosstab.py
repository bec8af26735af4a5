"""Cross-tabulations: the cells of a table as they are printed, one key across and the others down the side.

One value for the page, the workbook, the terminal and a notebook. Everything in it is a released number or public text;
texts are plain, and whoever draws them escapes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
MARKS = {"reliable": "●", "use with caution": "◆", "unreliable": "▲"}


def doubt_mark(estimate: Mapping[str, Any]) -> str:
    """The mark beside a cell that is not reliable; nothing beside others."""
    rating = estimate.get("reliability") or ""
    return "" if rating == "reliable" else MARKS.get(rating, "")


def mark_legend(cells: Sequence[tuple[Mapping[str, str], CrossCell]]) -> str:
    """What the marks beside these cells mean, in a sentence; nothing where there are none."""
    shown = {cell.mark for _, cell in cells}
    legend = ", ".join(f"{mark} {word}" for word, mark in MARKS.items() if mark in shown)
    return f"{legend}." if legend else ""


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
    - `covers`: what the intervals of the cells cover, and at which level.
    - `legend`: what the marks beside them mean.
    """

    name: str
    unit: str
    down: tuple[str, ...]
    across: str
    heads: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[CrossCell, ...]], ...]
    covers: str = ""
    legend: str = ""

    @property
    def note(self) -> str:
        """Where intervals are written under the numbers: what they are."""
        return f"Under each estimate its {self.covers}. {self.legend}".strip() if self.covers else ""

    def grid(self) -> Grid:
        """For a terminal: a line of numbers with their intervals under them."""
        return Grid(
            headings=(" / ".join((*self.down, self.across)), *self.heads),
            rows=[(" · ".join(side), *map(_lines, cells)) for side, cells in self.rows],
        )


def _lines(cell: CrossCell) -> str:
    value = f"{cell.value} {cell.mark}".strip()
    return f"{value}\n{cell.interval}" if cell.interval else value


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCells:
    """The cells of a table as a reader sees them, with their keys and what is said of them; to be crossed, or listed."""

    cells: Sequence[tuple[Mapping[str, str], CrossCell]]
    keys: Sequence[str]
    labels: Labels
    name: str
    unit: str
    covers: str = ""
    legend: str = ""

    def crossed(self) -> Crosstab | None:
        """The last key across if it has few levels, else the one with the fewest.

        None where there are fewer than two keys, or no key is short enough to be printed across.
        """
        cells, labels = self.cells, self.labels
        levels = {key: tuple(dict.fromkeys(cell.get(key, "") for cell, _ in cells)) for key in self.keys}
        across = _across(self.keys, levels)
        if across is None:
            return None
        down = [key for key in self.keys if key != across]
        found = {tuple(cell.get(key, "") for key in (*down, across)): shown for cell, shown in cells}
        sides = list(dict.fromkeys(tuple(cell.get(key, "") for key in down) for cell, _ in cells))
        if len(sides) > MOST_DOWN:
            return None
        rows = [
            (self._levels(down, side), tuple(found.get((*side, level), NO_CELL) for level in levels[across]))
            for side in sides
        ]
        heads = tuple(labels.level(across, level) for level in levels[across])
        return self._made(down, labels.column(across), heads, rows)

    def listed(self) -> Crosstab:
        """Line by line, every key down the side: for tables of one key, or too long to be crossed."""
        rows = [
            (self._levels(self.keys, [cell.get(key, "") for key in self.keys]), (shown,))
            for cell, shown in self.cells
        ]
        return self._made(self.keys, "", ("estimate",), rows)

    def _levels(self, keys: Sequence[str], levels: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.labels.level(key, level) for key, level in zip(keys, levels, strict=True))

    def _made(
        self,
        down: Sequence[str],
        across: str,
        heads: tuple[str, ...],
        rows: Sequence[tuple[tuple[str, ...], tuple[CrossCell, ...]]],
    ) -> Crosstab:
        return Crosstab(
            name=self.name,
            unit=self.unit,
            covers=self.covers,
            legend=self.legend,
            down=tuple(self.labels.column(key) for key in down),
            across=across,
            heads=heads,
            rows=tuple(rows),
        )


def _across(keys: Sequence[str], levels: Mapping[str, Sequence[str]]) -> str | None:
    if len(keys) < 2:
        return None
    short = [key for key in keys if len(levels[key]) <= MOST_ACROSS]
    if keys[-1] in short:
        return keys[-1]
    return min(short, key=lambda key: len(levels[key]), default=None)
