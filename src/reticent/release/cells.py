"""The tables of small cells of a plan: what they want of the rows, what they would refuse, and what they give."""

from collections.abc import Callable

import numpy as np

from reticent.engine.results import Tallies
from reticent.engine.wants import PointsByCell as Want
from reticent.errors import ResourceError
from reticent.noise.bits import Bits
from reticent.plan.plan import Plan
from reticent.smallcells.points import GridPoints
from reticent.smallcells.table import CellTable


def cell_wants(plan: Plan) -> list[Want]:
    """What the tables need of the rows."""
    return [cells.want(plan.schema) for cells in plan.cells]


def check_cells(plan: Plan) -> None:
    """Refuse what a release could not do, by trying it on one cell that nobody is in."""
    if not plan.cells:
        return
    from reticent.smallcells.run import try_cells  # compiles, so loaded only where a plan has cells

    for cells in plan.cells:
        want = cells.want(plan.schema)
        nobody = GridPoints(
            starts=np.zeros(2, dtype=np.int64),
            x=np.zeros(0, dtype=np.int64),
            y=np.zeros(0, dtype=np.int64),
            x_steps=1 if cells.x is None else want.steps(plan.schema, cells.x),
            y_steps=want.steps(plan.schema, cells.y),
        )
        try_cells(cells, nobody, plan.schema, plan.neighbours)


def run_cells(
    plan: Plan, tallies: Tallies, bits: Bits, *, step: Callable[[str], None] = lambda _: None
) -> dict[str, CellTable]:
    """Every table of the plan, in order; each must have cost what was planned."""
    if not plan.cells:
        return {}
    from reticent.smallcells.run import answer_cells  # compiles, so loaded only where a plan has cells

    made: dict[str, CellTable] = {}
    for cells in plan.cells:
        points = cells.points(tallies.points[cells.want(plan.schema)], plan.schema)
        table = answer_cells(cells, points, plan.schema, plan.neighbours, bits=bits)
        if (table.epsilon, table.delta) != (cells.cost, cells.delta):
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="cells")
        made[cells.name] = table
        step(cells.name)
    return made
