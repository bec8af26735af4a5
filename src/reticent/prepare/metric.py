"""The public distance between the cells that a column's donors are matched on."""

from math import prod

from reticent.errors import PlanError
from reticent.prepare.distance import (
    MOST_VALUES,
    Attribute,
    Distances,
    Position,
    distances,
    mismatch,
    one_hot_euclidean,
    scaled,
)
from reticent.prepare.donors import Donors, Match, Metric
from reticent.schema import Levels, Number, Schema

MOST = 2**18
"""The most cells a column's donors may be matched on: rings and bounds go over all of them."""


def distances_of(donors: Donors, schema: Schema) -> Distances:
    """How far apart the cells of the matching attributes are; cells as a table numbers them.

    An attribute's values are its levels, its groups, or the codes of a number; then "missing", and "not
    asked" where it has a universe. Numbers and ordinal levels lie on a scale, silent values beside it.
    """
    for match in donors.near:
        _check(match, schema)
    cells = prod(values(match, schema) for match in donors.near)
    if cells > MOST:
        raise PlanError(
            f"has {cells} cells to match on, but at most {MOST} are compared; name fewer attributes, or group "
            "them.",
            field="match",
        )
    if donors.metric is Metric.ONE_HOT:
        return _one_hot(donors, schema)
    return distances([_declared(match, schema) for match in donors.near])


def values(match: Match, schema: Schema) -> int:
    """How many values the attribute has, silent ones included."""
    return answers(match, schema) + silences(match, schema)


def answers(match: Match, schema: Schema) -> int:
    """How many of its values are answers: groups, levels or codes."""
    column = schema.coded[match.column]
    return len(match.starts) or column.high - column.low + 1


def silences(match: Match, schema: Schema) -> int:
    """Missing and, where the column has a universe, not asked."""
    return 1 if schema.columns[match.column].universe is None else 2


def _check(match: Match, schema: Schema) -> None:
    schema.column(match.column, field="match")
    if answers(match, schema) > MOST_VALUES - 2:
        raise PlanError(
            f"{match.column} has too many values to match on one by one; group it, as in "
            f'{{ column = "{match.column}", starts = [...] }}.',
            field="match",
        )
    if match.weight <= 0:
        # Cells at no distance from each other would be one cell for donors and two for the bound.
        raise PlanError(f"the weight of {match.column} is not above 0; leave the column out.", field="match")


def _declared(match: Match, schema: Schema) -> Attribute:
    column, silent = schema.coded[match.column], silences(match, schema)
    if isinstance(column, Levels) and not column.ordered:
        return mismatch(values(match, schema), weight=match.weight)
    return scaled([*_positions(match, column), *[None] * silent], weight=match.weight)


def _positions(match: Match, column: Levels | Number) -> list[Position]:
    if match.starts:
        return list(range(len(match.starts)))
    if isinstance(column, Levels) and column.positions:
        return list(column.positions)
    return list(range(column.low, column.high + 1))


def _one_hot(donors: Donors, schema: Schema) -> Distances:
    """As published: numbers as they are, everything else coded; a silent value is a value like any other."""
    if any(match.weight != 1 for match in donors.near):
        raise PlanError("the published distance has no weights; leave them out.", field="match")
    return one_hot_euclidean([_coded(match, schema) for match in donors.near])


def _coded(match: Match, schema: Schema) -> int | list[int | None]:
    column = schema.coded[match.column]
    if isinstance(column, Levels) or match.starts:
        return values(match, schema)
    return [*range(column.low, column.high + 1), *[None] * silences(match, schema)]
