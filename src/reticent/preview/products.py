"""What a preview says of each product that has something to say: one line for each kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reticent.exact import show
from reticent.notebook import html_table, paragraph
from reticent.plan.budgets import Product
from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan
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
    """What tables of small cells will cost and how exact they will be."""
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


@dataclass(frozen=True, slots=True)
class Preview:
    """What can be said of a plan before a row is read, for notebooks: guarantee, price and expected noise.

    **Parameters**

    - `plan`: the plan.
    - `cv`: a coefficient of variation that is wanted, such as 0.05; then it says which epsilon would do.
    """

    plan: Plan
    cv: float = 0.0

    @property
    def text(self) -> str:
        """The guarantee and the price, in words."""
        plan = self.plan
        return f"release {plan.release_id}: {plan.worded(plan.claim)}; costs {show(plan.cost)} of at most {show(plan.cap)}"

    def __repr__(self) -> str:
        return f"<preview of {self.text}>"

    def _repr_html_(self) -> str:
        said = paragraph(f"Preview of {self.text}; no row was read and nothing was charged.")
        for each in foresee_plan(self.plan, self.cv):
            for line in each.lines:
                said += paragraph(line) if isinstance(line, str) else html_table(line.headings, line.rows)
        return said
