"""Read the `[weight]` section of a plan: base weights, base cells with their known totals, and how bins are found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reticent.answer.poststrata import Law
from reticent.answer.shares import LEAST_BETA
from reticent.answer.sheets import Asked, sheets
from reticent.answer.weighting import ROWS, Choice, Weighting
from reticent.engine.bins import check_bins
from reticent.errors import PlanError
from reticent.prepare.bins import EQUAL, BaseCells, BaseWeights
from reticent.release.asks import Statistic
from reticent.release.totals import Totals, read_totals
from reticent.release.weights_cells import cells_of, margin_of, strategies_of
from reticent.release.weights_choice import candidates_of, choice_of, one_of, order_of, price_of
from reticent.release.weights_each import crossing_of
from reticent.release.weights_raked import assumed_totals, fitting_of
from reticent.release.weights_sections import WeightSection
from reticent.schema import Schema
from reticent.sensitivity.neighbours import Neighbours
from reticent.tomlfile import fill

Labels = Mapping[str, Sequence[str]]


def read_weight(
    raw: Mapping[str, Any] | None, schema: Schema, *, rows: int | None, neighbours: Neighbours
) -> Weighting | None:
    """The weights of a plan; None where it has no such section."""
    if raw is None:
        return None
    section = fill(WeightSection, raw, error=PlanError, at="weight")
    if section.name in schema.columns:
        raise PlanError("is a column of the codebook too; choose another", field="weight.name")
    margin = margin_of(section, schema)
    cells = cells_of(section, margin, schema)
    labels = {each.name: margin.labels(schema, each.name)[: each.bins] for each in cells.stratifiers}
    found = _found(section, cells, labels, neighbours)
    made = replace(
        found,
        keys=tuple(replace(key, silent=False) for key in margin.table(schema).keys),
        silent=tuple(each.missing for each in cells.stratifiers),
        column=section.base,
        base=_base(section.base, schema),
        rows=rows or ROWS,
    )
    check_bins(made.wanted, schema)
    return made


def _found(section: WeightSection, cells: BaseCells, labels: Labels, neighbours: Neighbours) -> Weighting:
    """Totals, bins, how they are found and at what price; nothing yet of the schema."""
    fitting = fitting_of(section, cells, labels)
    base = assumed_totals(fitting, labels) if fitting else _totals(section, labels)
    crossing = crossing_of(section, cells, labels, base, neighbours)
    order = order_of(section, cells)
    if crossing is not None:
        candidates = crossing.everything()
        choice, price = (Choice.EACH if crossing.epsilon else Choice.FIXED), crossing.epsilon
    else:
        candidates = candidates_of(section, strategies_of(section, cells, labels, base), order)
        choice = choice_of(section, candidates, order)
        price = price_of(section, choice, candidates, neighbours)
    return Weighting(
        name=section.name,
        keys=(),
        silent=(),
        labels=tuple(labels),
        candidates=candidates,
        choice=choice,
        order=order if choice is Choice.COUNTS else None,
        crossing=crossing if choice is Choice.EACH else None,
        fitting=fitting,
        epsilon=price,
        law=Law(one_of(section.noise, list(Law), "weight.noise")),
        smoothness=section.smoothness,
    )


def _totals(section: WeightSection, labels: Labels) -> Totals | None:
    return None if section.totals is None else read_totals(section.totals, labels, field="weight.totals")


def _base(name: str | None, schema: Schema) -> BaseWeights:
    if name is None:
        return EQUAL
    column = schema.weight(name, field="weight.base")
    return BaseWeights(unit=column.grid, heaviest=column.high, kept=min(1, column.high - 1))


def serving(
    weighting: Weighting, asks: Sequence[Statistic], schema: Schema, neighbours: Neighbours
) -> Weighting:
    """The same, with as many of the largest weights kept as the asks have a use for; refused where none uses it."""
    shares = [
        (place, ask.epsilon * sheet.share / neighbours.steps)
        for place, ask in enumerate(asks)
        if ask.weighted and isinstance(ask.query, Asked)
        for sheet in sheets(ask.query, schema)
    ]
    if not shares:
        raise PlanError(f"no statistic says weight = {weighting.name!r}; drop the section", field="weight")
    for place, each in shares:
        if each / weighting.smoothness < LEAST_BETA:
            raise PlanError(
                f"leaves {float(each):.2g} to one of its sums, for one record; weights to known totals need at least "
                f"{float(LEAST_BETA * weighting.smoothness):.2g}",
                field=f"statistic[{place}].epsilon",
            )
    return weighting.serving([each / weighting.smoothness for _, each in shares])
