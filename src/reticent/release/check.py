"""CONFIDENTIAL: how many gaps each repair meets, for the curator who runs `check`. Nothing here is ever published."""

from dataclasses import dataclass, field

from reticent.engine.protocol import Engine
from reticent.engine.wants import Rows, Sum
from reticent.plan.models import AnyModel, ModelRepair
from reticent.plan.plan import Plan
from reticent.prepare.repair import Repair
from reticent.schema.bind import Is
from reticent.schema.predicate import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """A column that is repaired: missing before and after the edits, and how many could donate to the rest.

    Where a model fills it, `donors` counts the rows it is fitted to: those that have all its columns, before any filling.
    """

    column: str
    has_donors: bool
    is_modelled: bool = False
    before: int = field(repr=False)
    after: int = field(repr=False)
    donors: int = field(repr=False)


def gaps(engine: Engine, plan: Plan) -> list[Gaps]:
    """Every repaired column, in the order of the codebook."""
    edited = [edit.column for edit in plan.repair.edits]
    names = [name for name in plan.schema.coded if name in plan.repair.filled() or name in edited]
    kinds: tuple[Kind, ...] = ("missing", "answered")
    wants = {(name, kind): Sum(rows=Rows(where=Is(name, kind))) for name in names for kind in kinds}
    edits = Repair(edits=plan.repair.edits)
    before = engine.tally(plan.schema, list(wants.values())).statistics
    after = engine.tally(plan.schema, list(wants.values()), edits).statistics
    return [
        Gaps(
            column=name,
            has_donors=name in plan.repair.filled(),
            before=before[wants[name, "missing"]],
            after=after[wants[name, "missing"]],
            donors=after[wants[name, "answered"]],
        )
        for name in names
    ] + _modelled(engine, plan)


def _modelled(engine: Engine, plan: Plan) -> list[Gaps]:
    """Every column that a model fills: its gaps, and the rows the model is fitted to."""
    models = [model for model in plan.models if not model.stands_in]
    if not models:
        return []
    gone = {model.column: Sum(rows=Rows(where=Is(model.column, "missing"))) for model in models}
    whole = {m.column: Sum(rows=Rows(answered=_needed(m))) for m in models}
    edits = Repair(edits=plan.repair.edits)
    before = engine.tally(plan.schema, list(gone.values())).statistics
    after = engine.tally(plan.schema, [*gone.values(), *whole.values()], edits).statistics
    return [
        Gaps(
            column=model.column,
            has_donors=False,
            is_modelled=True,
            before=before[gone[model.column]],
            after=after[gone[model.column]],
            donors=after[whole[model.column]],
        )
        for model in models
    ]


def _needed(model: AnyModel) -> tuple[str, ...]:
    """A line counts rows that have everything, a table those with the answer itself: silence is a cell there."""
    return (*(model.predictors if isinstance(model, ModelRepair) else ()), model.column)
