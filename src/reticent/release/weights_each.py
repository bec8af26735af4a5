"""Attributes of a plan's `[weight]` whose bins are chosen one after another, each at its own price. Public, all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from reticent.errors import PlanError
from reticent.prepare.bins import BaseCells
from reticent.prepare.crossing import Crossing, StratifierGroup, Way
from reticent.privacy.claim import amount
from reticent.release.totals import Totals
from reticent.release.weights_cells import groups_of_labels, known_names
from reticent.release.weights_choice import tolerated
from reticent.release.weights_sections import AttributeSection, StrategySection, WeightSection
from reticent.sensitivity.neighbours import Neighbours

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
