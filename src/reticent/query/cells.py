"""Shares, ratios and differences of cells of one released table: rates by state from one table. They cost nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from reticent.errors import PlanError, nearest
from reticent.query.base import Query
from reticent.query.domains import ByDomain
from reticent.query.sides import MISSING, NOT_ASKED, Cell
from reticent.query.written import WrittenQuery, text_of
from reticent.schema import Schema

SHARE, RATIO, DIFFERENCE = "share", "cell_ratio", "cell_difference"
Chosen = tuple[tuple[str, tuple[str, ...]], ...]
"""For some columns of the table, the names of the cells that are meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromCells(Query):
    """A share, ratio or difference of sums of cells of a table above, for each cell of its other columns.

    For a share, `of` are the cells counted and `to` those they are counted among; otherwise `to` are the cells that `of` is
    divided by, or that are taken away.
    """

    KEYS: ClassVar[Mapping[str, frozenset[str]]] = {
        SHARE: frozenset({"of", "among"}),
        RATIO: frozenset({"of", "to"}),
        DIFFERENCE: frozenset({"of", "to"}),
    }
    has_one_estimate: ClassVar[bool] = False
    uses_cells: ClassVar[bool] = True

    kind: str
    table: str
    of: Chosen
    to: Chosen

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        at, second = written.field, "among" if written.key == SHARE else "to"
        of = _chosen(written.raw.get("of"), written.schema, f"{at}.of")
        to = written.raw.get(second)
        if to is None and written.key != SHARE:
            raise PlanError('says which cells: to = { sex = "m" }', field=f"{at}.{second}")
        chosen = _chosen(to, written.schema, f"{at}.{second}") if to is not None else ()
        return cls(kind=written.key, table=text_of(written.value, at), of=of, to=chosen)

    @property
    def uses(self) -> tuple[str, ...]:
        return (self.table,)

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return {SHARE: "share", RATIO: "", DIFFERENCE: units[self.table]}[self.kind]

    def words(self, schema: Schema) -> str:
        joined = {SHARE: "among", RATIO: "divided by", DIFFERENCE: "minus"}[self.kind]
        second = _words(self.to) or "everybody who answered"
        return f"{_words(self.of)} {joined} {second}, from {self.table!r}"

    def check_uses(self, used: Mapping[str, Query], schema: Schema, field: str) -> None:
        """Refuse cells that the table does not have, and cells on both sides where they may not be."""
        sides = used[self.table].sides
        for name, cells in (*self.of, *self.to):
            if name not in sides.columns:
                raise PlanError(
                    f"{self.table!r} has no column {name!r}{nearest(name, sides.columns)}", field=field
                )
            known = sides.labels(schema, name)
            for cell in cells:
                if cell not in known:
                    hint = nearest(cell, known) or f"; its cells are {', '.join(known[:20])}"
                    raise PlanError(f"{name} has no cell {cell!r}{hint}", field=field)
        self._check_shown(used[self.table], schema, field)
        both = any(self.is_in(self.of, cell) and self.is_to(cell) for cell in sides.cells(schema))
        if self.kind == SHARE and not all(
            self.is_to(cell) for cell in sides.cells(schema) if self.is_in(self.of, cell)
        ):
            raise PlanError(
                "counts cells that are not among those it is a share of; name them in both", field=field
            )
        if self.kind != SHARE and both:
            raise PlanError(
                "has cells on both sides; their noise is the same, so name each once", field=field
            )

    def _check_shown(self, table: Query, schema: Schema, field: str) -> None:
        """Cells that are not shown are not there to be counted, and a share without them would be another one."""
        is_shown = table.is_shown if isinstance(table, ByDomain) else lambda _: True
        for cell in table.sides.cells(schema):
            chosen = tuple(each for each in cell if each[0] in self.fixed)
            if (self.is_in(self.of, cell) or self.is_to(cell)) and not is_shown(chosen):
                raise PlanError(
                    f"counts cells that {self.table!r} does not show; say show_missing = true there",
                    field=field,
                )

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns whose cells are chosen; the answer is told for each cell of the others."""
        return tuple(dict.fromkeys(name for name, _ in (*self.of, *self.to)))

    def groups(self, cells: Sequence[Cell]) -> dict[Cell, tuple[list[int], list[int]]]:
        """For each cell of the other columns: the places of the cells counted, and of the others that count."""
        found: dict[Cell, tuple[list[int], list[int]]] = {}
        for place, cell in enumerate(cells):
            rest = tuple((name, level) for name, level in cell if name not in self.fixed)
            first, second = found.setdefault(rest, ([], []))
            if self.is_in(self.of, cell):
                first.append(place)
            elif self.is_to(cell):
                second.append(place)
        return found

    def is_to(self, cell: Cell) -> bool:
        """Whether a cell is divided by or taken away: where a share says nothing, those with an answer."""
        if self.to:
            return self.is_in(self.to, cell)
        return all(level not in (MISSING, NOT_ASKED) for name, level in cell if name in self.fixed)

    def is_in(self, chosen: Chosen, cell: Cell) -> bool:
        """Whether a cell is among those chosen."""
        return all(dict(cell)[name] in cells for name, cells in chosen)


def _chosen(raw: Any, schema: Schema, field: str) -> Chosen:
    if not isinstance(raw, Mapping) or not raw:
        raise PlanError('says which cells: of = { employment = ["unemployed"] }', field=field)
    found = []
    for name, cells in raw.items():
        schema.column(str(name), field=field)
        listed = cells if isinstance(cells, list) else [cells]
        if not listed or not all(isinstance(cell, str) for cell in listed):
            raise PlanError(f"lists cells of {name} by their names, in quotes", field=field)
        found.append((str(name), tuple(listed)))
    return tuple(found)


def _words(chosen: Chosen) -> str:
    return " and ".join(f"{name} {' or '.join(cells)}" for name, cells in chosen)
