"""Post-stratification in a plan: the `[weight]` section with base weights, base cells, known totals and how bins are found.

Bins may be chosen attribute by attribute, each at its own price. Where only margins of the population are known,
`[weight.rake]` says them. Public, all of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np

from reticent.answer.factors import FactorPurchase, check_steps
from reticent.answer.poststrata import Law
from reticent.answer.weighting import ROWS, Choice, Fitting, Weighting
from reticent.engine.sql.tallies import check_bins
from reticent.errors import PlanError
from reticent.exact import read_decimal
from reticent.files import fill
from reticent.plan.sections import (
    AttributeSection,
    MarginSection,
    RakeSection,
    StrategySection,
    WeightSection,
)
from reticent.plan.totals import RAKE, Totals, read_totals
from reticent.plan.weights_cells import (
    candidates_of,
    cells_of,
    choice_of,
    groups_of_labels,
    known_names,
    label_of,
    margin_of,
    one_of,
    order_of,
    price_of,
    strategies_of,
    tolerated,
)
from reticent.prepare.repair import Repair
from reticent.prepare.strata import EQUAL, BaseCells, BaseWeights, Crossing, StratifierGroup, Way
from reticent.privacy.claim import amount, read_epsilon
from reticent.refine.margins import Margin, Mask
from reticent.refine.raking import Coarsening
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours

Labels = Mapping[str, Sequence[str]]


def crossing_of(
    section: WeightSection, cells: BaseCells, labels: Labels, base: Totals | None, neighbours: Neighbours
) -> Crossing | None:
    """The attributes in their order, with the price of each; None where the plan has no such sections."""
    if not section.attribute:
        return None
    others = (section.strategy, section.collapse, section.choose, section.epsilon, section.tolerate)
    if any(others):
        raise PlanError(
            "attributes have strategies and prices of their own; remove those of [weight]",
            field="weight.attribute",
        )
    if base is None:
        raise PlanError("are crossed, so all base cells need totals", field="weight.totals")
    _check_each_once(section.attribute, labels)
    drafts = tuple(
        _draft(each, cells, labels, f"weight.attribute[{place}]")
        for place, each in enumerate(section.attribute)
    )
    draft = Crossing(attributes=drafts, totals=tuple(base.of.values()))
    priced = tuple(
        replace(each, epsilon=_price(place, section, draft, neighbours)) for place, each in enumerate(drafts)
    )
    return replace(draft, attributes=priced)


def _check_each_once(attributes: Sequence[AttributeSection], labels: Labels) -> None:
    named = [name for each in attributes for name in each.by]
    for place, each in enumerate(attributes):
        known_names(each.by, labels, f"weight.attribute[{place}].by")
    if sorted(named) != sorted(labels):
        raise PlanError("every stratifier is in one attribute, and in one only", field="weight.attribute")


def _draft(section: AttributeSection, cells: BaseCells, labels: Labels, at: str) -> StratifierGroup:
    """The ways of an attribute; its price is not known yet."""
    own = {name: labels[name] for name in labels if name in section.by}
    listed = section.strategy or [StrategySection(name=f"all bins of {' and '.join(own)}")]
    ways = []
    for place, each in enumerate(listed):
        here = f"{at}.strategy[{place}]"
        if each.totals is not None:
            raise PlanError("bins are crossed, so totals are those of the base cells", field=f"{here}.totals")
        by = list(own) if each.by is None else known_names(each.by, own, f"{here}.by")
        groups = groups_of_labels(each.groups, by, own, here)
        ways.append(Way(name=each.name, groups=cells.by({name: groups.get(name) for name in by})))
    return StratifierGroup(by=tuple(own), ways=tuple(ways), epsilon=Fraction(len(ways) > 1))


def _price(place: int, section: WeightSection, draft: Crossing, neighbours: Neighbours) -> Fraction:
    """As written, or from a tolerated chance of a poor choice, whatever was chosen before."""
    each, at = section.attribute[place], f"weight.attribute[{place}]"
    several = len(draft.attributes[place].ways)
    given = each.epsilon is not None, each.tolerate is not None
    if several == 1:
        if any(given):
            raise PlanError("there is one way, which costs nothing; remove it", field=f"{at}.epsilon")
        return Fraction(0)
    if sum(given) != 1:
        raise PlanError("say what the choice may cost: epsilon, or tolerate", field=f"{at}.epsilon")
    if each.tolerate is None:
        return amount(each.epsilon, field=f"{at}.epsilon")
    price = tolerated(each.tolerate, several, draft.delta(place), raked=section.rake is not None, at=at)
    return price * neighbours.steps


MOST_CELLS = 100_000


def fitting_of(section: WeightSection, cells: BaseCells, labels: Labels) -> Fitting | None:
    """What totals are raked from; None where they are known."""
    if (section.totals == RAKE) != (section.rake is not None):
        raise PlanError(
            f"totals = {RAKE!r} goes with [weight.rake], and the other way round", field="weight.totals"
        )
    if section.rake is None:
        return None
    if cells.size > MOST_CELLS:
        raise PlanError(f"at most {MOST_CELLS} base cells can be raked; use fewer bins", field="weight.by")
    rake = section.rake
    try:
        return Fitting(
            shape=cells.shape,
            margins=tuple(_margin(each, labels, place) for place, each in enumerate(rake.margin)),
            ladder=_ladder(rake, cells, labels),
            zeroes=_zeroes(rake, cells, labels),
            least=_least(rake),
            epsilon=amount(rake.epsilon, field="weight.rake.epsilon"),
        )
    except PlanError as problem:
        field = problem.field if str(problem.field).startswith("weight.") else "weight.rake"
        raise PlanError(str(problem.args[0]), field=field) from None


def assumed_totals(fitting: Fitting, labels: Labels) -> Totals:
    """What the margins alone say of every base cell."""
    return Totals(by=tuple(labels), of=dict(zip(product(*labels.values()), fitting.assumed, strict=True)))


def _margin(section: MarginSection, labels: Labels, place: int) -> Margin:
    at = f"weight.rake.margin[{place}]"
    by = known_names(section.by, labels, f"{at}.by")
    found = read_totals(section.totals, {name: labels[name] for name in by}, field=f"{at}.totals")
    shape = [len(labels[name]) for name in by]
    axes = [list(labels).index(name) for name in by]
    return Margin(axes, np.array([float(total) for total in found.of.values()]).reshape(shape))


def _zeroes(section: RakeSection, cells: BaseCells, labels: Labels) -> Mask | None:
    """Cells where nobody can be; a line that leaves a stratifier out means all its bins."""
    if not section.zero:
        return None
    mask = np.zeros(cells.shape, dtype=np.bool_)
    for place, line in enumerate(section.zero):
        at = f"weight.rake.zero[{place}]"
        known_names(list(line), labels, at)
        if not line:
            raise PlanError("names no bin", field=at)
        here = [
            label_of(str(line[name]), labels[name], at) if name in line else slice(None) for name in labels
        ]
        mask[tuple(here)] = True
    return mask


def _ladder(section: RakeSection, cells: BaseCells, labels: Labels) -> tuple[Coarsening, ...]:
    """As it is, then as the plan joins bins, and in the end everybody in one cell."""
    steps = [Coarsening(cells.shape, [None] * len(cells.shape))]
    for place, joined in enumerate(section.join):
        at = f"weight.rake.join[{place}]"
        groups = groups_of_labels(joined, list(labels), labels, at)
        levels = [
            each.groups_of(groups[each.name]).tolist() if each.name in groups else None
            for each in cells.stratifiers
        ]
        steps.append(Coarsening(cells.shape, levels))
    if not steps[-1].joined or prod(steps[-1].coarse_shape) > 1:
        steps.append(Coarsening(cells.shape, [[0] * bins for bins in cells.shape]))
    return tuple(steps)


def _least(section: RakeSection) -> float:
    least = read_decimal(section.least)
    if least is None or least < 0 or not isfinite(float(least)):
        raise PlanError("is a plain decimal, 0 or more", field="weight.rake.least")
    return float(least)


def read_weight(
    raw: Mapping[str, Any] | None,
    schema: Schema,
    *,
    rows: int | None,
    neighbours: Neighbours,
    mean: Fraction | None = None,
) -> Weighting | None:
    """The weights of a plan; None where it has no such section. `mean` is the expected mean of base weights."""
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
        mean=mean,
    )
    check_bins(made.wanted, schema)
    return made if section.factors is None else replace(made, factors=_factors(section, made))


def _factors(section: WeightSection, made: Weighting) -> FactorPurchase:
    """The purchase of factors; refused where base weights have too many steps for them."""
    check_steps(made.base.heaviest)
    if "noise" in section.model_fields_set or "smoothness" in section.model_fields_set:
        raise PlanError(
            "goes with confidential weights; released factors have public noise", field="weight.noise"
        )
    return FactorPurchase(
        name=made.name,
        column=made.column,
        keys=made.keys,
        silent=made.silent,
        base=made.base,
        epsilon=read_epsilon(
            section.factors.epsilon if section.factors else None, field="weight.factors.epsilon"
        ),
    )


def over_rings(weighting: Weighting, repair: Repair) -> Weighting:
    """The weights, told in how many completions of capped donors their sums are taken; refused where they have too many steps."""
    if weighting.factors is None or not repair.capped:
        return weighting
    check_steps(weighting.base.heaviest * repair.rings)
    return replace(weighting, factors=replace(weighting.factors, rings=repair.rings))


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
