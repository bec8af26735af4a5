"""Whether a repair fits its codebook, judged before any row is read."""

from reticent.errors import PlanError
from reticent.prepare.chances import Chances
from reticent.prepare.donors import Donors, Repair
from reticent.prepare.edits import Edit
from reticent.prepare.lines import RegressionLine
from reticent.prepare.metric import distances_of
from reticent.schema import Schema


def check_repair(repair: Repair, schema: Schema) -> None:
    """Every code within its column's, every match on a column that no donor fills."""
    for edit in repair.edits:
        _check_edit(edit, schema)
    if len(repair.filled()) < len(repair.donors):
        raise PlanError("two repairs fill the same column; keep one.", field="column")
    for donors in repair.donors:
        _check_donors(donors, repair, schema)
    for line in repair.lines:
        _check_line(line, schema)


def _check_edit(edit: Edit, schema: Schema) -> None:
    column = schema.column(edit.column, field="column")
    if not column.low <= edit.code <= column.high:
        raise PlanError(f"{edit.column} has no such answer; take one of its own.", field="value")


def _check_donors(donors: Donors, repair: Repair, schema: Schema) -> None:
    column = schema.column(donors.column, field="column")
    if column.role == "weight":
        raise PlanError(f"{donors.column} is the base weight; donors do not fill it.", field="column")
    if any(not column.low <= code <= column.high for code in donors.defaults):
        raise PlanError(f"a default of {donors.column} is outside its bounds.", field="default")
    filled = [match.column for match in donors.near if match.column in repair.filled()]
    if filled:
        raise PlanError(f"{filled[0]} is filled by donors itself; match on another column.", field="match")
    distances_of(donors, schema)


def _check_line(line: RegressionLine | Chances, schema: Schema) -> None:
    column = schema.column(line.column, field="column")
    if column.role == "weight":
        raise PlanError(f"{line.column} is the base weight; no line fills it.", field="column")
    if not column.low <= line.low <= line.high <= column.high:
        raise PlanError(f"a line would leave the bounds of {line.column}.", field="column")
    if isinstance(line, Chances):
        for side in line.sides:
            schema.column(side.column, field="from")
        return
    for term in line.terms:
        known = schema.column(term.column, field="from")
        is_whole = term.level is None
        if is_whole and not (term.low == known.low <= term.gap <= known.high == term.high):
            raise PlanError(f"a line takes {term.column} for another column.", field="from")
