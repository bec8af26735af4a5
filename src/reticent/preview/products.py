"""What a preview says of each product that has something to say: one line for each kind."""

from collections.abc import Callable, Mapping
from typing import Any

from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan
from reticent.plan.product import Product
from reticent.plan.regression import Regressions
from reticent.plan.statistics import Statistics
from reticent.plan.synth import SyntheticTables
from reticent.plan.tables import AddUpTables
from reticent.preview.foreseen import Foreseen
from reticent.preview.regression import foresee_regressions
from reticent.preview.statistics import foresee_statistics
from reticent.preview.synth import foresee_synth
from reticent.preview.tables import foresee_tables


def foresee_cells(asked: CellTables, plan: Plan, cv: float) -> Foreseen:
    from reticent.preview import cells  # compiles, so loaded only where a plan has cells

    return cells.foresee_cells(asked, plan, cv)


FORESEEN: Mapping[type[Product], Callable[[Any, Plan, float], Foreseen]] = {
    Statistics: foresee_statistics,
    CellTables: foresee_cells,
    AddUpTables: foresee_tables,
    Regressions: foresee_regressions,
    SyntheticTables: foresee_synth,
}


def foresee_plan(plan: Plan, cv: float = 0.0) -> list[Foreseen]:
    """Product by product, in the order of the plan; `cv` is a coefficient of variation that is wanted, if any."""
    known = [(FORESEEN.get(type(product)), product) for product in plan.products]
    return [foresee(product, plan, cv) for foresee, product in known if foresee is not None]
