"""The tables of small cells of a release: what they want of the rows, what is refused, what they give, and their CSV."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from reticent.engine.wants import PointsByCell as Want
from reticent.engine.wants import Tallies
from reticent.errors import ResourceError
from reticent.files import Tidy
from reticent.noise.bits import Bits, SystemBits
from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan
from reticent.privacy.claim import Claim
from reticent.release.labels import Labels
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.schema.predicate import columns_used
from reticent.smallcells.cells import SmallCells
from reticent.smallcells.points import GridPoints
from reticent.smallcells.table import COLUMNS, LINE, CellTable, described, lines, rows

CSV = ".cells.csv"
NUMBERS = frozenset((*COLUMNS, "level")) - {"cell"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsResult(Result):
    """The tables of small cells by name."""

    asked: CellTables
    plan: Plan
    tables: Mapping[str, CellTable] = field(repr=False)

    @property
    def epsilon(self) -> Fraction:
        return sum((table.epsilon for table in self.tables.values()), start=Fraction(0))

    @property
    def claims(self) -> Sequence[Claim]:
        return self.asked.claims(self.plan)

    @property
    def keys(self) -> Sequence[str]:
        asked = self.asked.tables
        return [name for each in asked for name in (each.cell, each.y, each.x) if name is not None]

    def document(self) -> dict[str, Any]:
        plan = self.plan
        told = [
            described(cells, self.tables[cells.name], plan.schema, plan.change) for cells in self.asked.tables
        ]
        words = (cells.words(_filled(cells, plan)) for cells in self.asked.tables)
        return {"cells": [{**each, "words": said} for each, said in zip(told, words, strict=True)]}


def _filled(cells: SmallCells, plan: Plan) -> str:
    """Of a table some of whose values were filled: those who did not answer are in it, too."""
    used = {cells.cell, cells.y, *([cells.x] if cells.x else []), *columns_used(cells.among.where)}
    by = {model.column: "a private model" for model in plan.models}
    by |= {name: "donors" for group in plan.repair.capped for name in group.columns}
    filled = [f"{name} from {by[name]}" for name in sorted(used & set(by))]
    return f", or had it filled ({', '.join(filled)})" if filled else ""


class CellsProducer(Producer[CellTables]):
    """Makes every table of small cells, in order."""

    __slots__ = ()

    is_tried_whole: ClassVar[bool] = False

    @property
    def endings(self) -> tuple[str, ...]:
        return (CSV,)

    def check(self) -> None:
        """Tried on one cell that nobody is in."""
        from reticent.smallcells.run import try_cells  # compiles, so loaded only where a plan has cells

        for cells in self.asked.tables:
            try_cells(cells, _nobody(cells, self.plan), self.plan.schema, self.plan.neighbours)

    def small(self) -> None:
        """`check` has tried them."""

    def wants(self) -> Sequence[Want]:
        return cell_wants(self.asked, self.plan)

    def run(self, on: PlanRun) -> CellsResult:
        tables = run_cells(self.asked, on.plan, on.tallies, on.bits, step=on.step)
        return CellsResult(asked=self.asked, plan=on.plan, tables=tables)


def _nobody(cells: SmallCells, plan: Plan) -> GridPoints:
    want = cells.want(plan.schema)
    return GridPoints(
        starts=np.zeros(2, dtype=np.int64),
        x=np.zeros(0, dtype=np.int64),
        y=np.zeros(0, dtype=np.int64),
        x_steps=1 if cells.x is None else want.steps(plan.schema, cells.x),
        y_steps=want.steps(plan.schema, cells.y),
    )


def cell_wants(asked: CellTables, plan: Plan) -> list[Want]:
    """What the tables need of the rows, in order: each reads off the points of a cell what it needs, and they are forgotten."""
    from reticent.smallcells.run import want_of  # compiles, so loaded only where a plan has cells

    return [want_of(cells, plan.schema, plan.neighbours, SystemBits()) for cells in asked.tables]


def run_cells(
    asked: CellTables,
    plan: Plan,
    tallies: Tallies,
    bits: Bits,
    *,
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, CellTable]:
    """Every table of the plan, in order; each must have cost what was planned."""
    from reticent.smallcells.run import answer_cells  # compiles, so loaded only where a plan has cells

    made: dict[str, CellTable] = {}
    for cells, want in zip(asked.tables, cell_wants(asked, plan), strict=True):
        table = answer_cells(cells, tallies.points[want], plan.schema, plan.neighbours, bits=bits)
        if (table.epsilon, table.delta) != (cells.cost, cells.delta):
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="cells")
        made[cells.name] = table
        step(cells.name)
    return made


def cells_tidy(document: Document) -> Tidy:
    """One line for each cell of each table, ready for a regression; the cell's label last, where cells have labels."""
    tables, labels = document.get("cells", []), Labels.of(document)
    lined = [(table, line) for table in tables for line in lines(table, str(document["id"]))]
    if not any(labels.levels(table["cell"]) for table in tables):
        return Tidy(header=LINE, lines=[line for _, line in lined], numbers=NUMBERS)
    place = LINE.index("cell")
    labelled = [[*line, labels.level(table["cell"], line[place])] for table, line in lined]
    return Tidy(header=(*LINE, "cell_label"), lines=labelled, numbers=NUMBERS)


def cells_csv(document: Document) -> bytes:
    """The same as a file."""
    return cells_tidy(document).to_csv()


def _files(document: Document) -> dict[str, Callable[[Document], bytes]]:
    return {CSV: cells_csv}


CELLS = ReleasedSection(rows=rows, files=_files, tidy=cells_tidy)
