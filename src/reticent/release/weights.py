"""Read the `[weight]` section of a plan: base weights, base cells with their known totals, and how bins are found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic import Field

from reticent.answer.poststrata import Law
from reticent.answer.shares import LEAST_BETA
from reticent.answer.sheets import Asked, sheets
from reticent.answer.strategy import tolerating
from reticent.answer.weighing import ROWS, Choice, Weighting
from reticent.decimals import read_decimal
from reticent.engine.bins import check_bins
from reticent.errors import PlanError
from reticent.prepare.bins import EQUAL, BaseCells, BaseWeights, Stratifier
from reticent.prepare.collapsing import Order
from reticent.prepare.strategies import Candidates, Strategy
from reticent.privacy.claim import amount
from reticent.query.kinds import Margin
from reticent.query.read import read_query
from reticent.release.asks import Ask
from reticent.release.totals import Rows, read_totals, totals_of
from reticent.schema import Schema
from reticent.sensitivity.neighbours import Neighbours
from reticent.tomlfile import Section, fill
from reticent.words import nearest

NAME = "poststratified"
MOST_STRATEGIES = 1000


class BySection(Section):
    column: str
    bins: list[Any] | None = None
    missing: str | int


class StrategySection(Section):
    name: str = Field(min_length=1, max_length=100)
    by: list[str] | None = None
    groups: dict[str, list[list[str | int]]] = Field(default={})
    totals: Rows | str | None = None


class CollapseSection(Section):
    along: list[str] = Field(min_length=1)


class TolerateSection(Section):
    chance: str
    gap: str


class WeightSection(Section):
    name: str = Field(default=NAME, min_length=1, max_length=60)
    base: str | None = None
    by: list[BySection] = Field(min_length=1, max_length=20)
    totals: Rows | str | None = None
    strategy: list[StrategySection] = Field(default=[], max_length=MOST_STRATEGIES)
    collapse: CollapseSection | None = None
    choose: str | None = None
    epsilon: str | None = None
    tolerate: TolerateSection | None = None
    noise: str = Law.LOMAX.value
    smoothness: int = Field(default=8, ge=4, le=64)


def read_weight(
    raw: Mapping[str, Any] | None, schema: Schema, *, rows: int | None, neighbours: Neighbours
) -> Weighting | None:
    """The weights of a plan; None where it has no such section."""
    if raw is None:
        return None
    section = fill(WeightSection, raw, error=PlanError, at="weight")
    if section.name in schema.columns:
        raise PlanError("is a column of the codebook too; choose another", field="weight.name")
    margin = _margin(section, schema)
    cells = _cells(section, margin, schema)
    labels = {each.name: margin.labels(schema, each.name)[: each.bins] for each in cells.stratifiers}
    strategies = _strategies(section, cells, labels)
    order = _order(section, cells)
    candidates = _candidates(section, strategies, order)
    choice = _choice(section, candidates, order)
    made = Weighting(
        name=section.name,
        keys=tuple(replace(key, silent=False) for key in margin.table(schema).keys),
        silent=tuple(each.missing for each in cells.stratifiers),
        labels=tuple(labels),
        candidates=candidates,
        column=section.base,
        base=_base(section.base, schema),
        choice=choice,
        order=order if choice is Choice.COUNTS else None,
        epsilon=_epsilon(section, choice, candidates, neighbours),
        law=Law(_one_of(section.noise, list(Law), "weight.noise")),
        smoothness=section.smoothness,
        rows=rows or ROWS,
    )
    check_bins(made.wanted, schema)
    return made


def _margin(section: WeightSection, schema: Schema) -> Margin:
    """The base cells, as the table they would be asked for as."""
    names = [each.column for each in section.by]
    bins = {each.column: each.bins for each in section.by if each.bins is not None}
    for name in names:
        if schema.column(name, field="weight.by").role == "weight":
            raise PlanError(f"{name} is a base weight; write base = {name!r} instead", field="weight.by")
    raw = {"margin": names, "bins": bins}
    query = read_query(raw, schema, missing="available", size=None, field="weight.by")
    if not isinstance(query, Margin):
        raise TypeError("a margin was asked for")
    return query


def _cells(section: WeightSection, margin: Margin, schema: Schema) -> BaseCells:
    found = []
    for place, each in enumerate(section.by):
        labels = margin.labels(schema, each.column)
        answers = margin.table(schema).keys[place].answers(schema)
        at = f"weight.by[{place}].missing"
        found.append(
            Stratifier(
                name=each.column, bins=answers, missing=_label(str(each.missing), labels[:answers], at)
            )
        )
    return BaseCells(stratifiers=tuple(found))


def _label(text: str, labels: Sequence[str], field: str) -> int:
    if text not in labels:
        hint = nearest(text, labels) or f"; the first is {labels[0]!r}"
        raise PlanError(f"there is no bin {text[:80]!r}{hint}", field=field)
    return labels.index(text)


def _strategies(
    section: WeightSection, cells: BaseCells, labels: Mapping[str, Sequence[str]]
) -> tuple[Strategy, ...]:
    """Those that are listed, or every base cell a bin."""
    listed = section.strategy or [StrategySection(name="every base cell")]
    base = None if section.totals is None else read_totals(section.totals, labels, field="weight.totals")
    found = []
    for place, each in enumerate(listed):
        at = f"weight.strategy[{place}]" if section.strategy else "weight"
        by = list(labels) if each.by is None else _known(each.by, labels, f"{at}.by")
        if each.totals is not None:
            fine = read_totals(each.totals, {name: labels[name] for name in by}, field=f"{at}.totals")
        elif base is not None:
            fine = base.onto(by)
        else:
            raise PlanError("needs totals, of its own or of all base cells", field=f"{at}.totals")
        groups = _groups(each.groups, by, labels, at)
        found.append(totals_of(each.name, cells, fine, {name: groups.get(name) for name in by}, field=at))
    return tuple(found)


def _known(names: list[str], labels: Mapping[str, Sequence[str]], field: str) -> list[str]:
    for name in names:
        if name not in labels:
            raise PlanError(f"{name[:60]!r} is no stratifier{nearest(name, labels)}", field=field)
    if len(set(names)) < len(names):
        raise PlanError("names a stratifier twice; keep one", field=field)
    return [name for name in labels if name in names]


def _groups(
    raw: Mapping[str, list[list[str | int]]], by: Sequence[str], labels: Mapping[str, Sequence[str]], at: str
) -> dict[str, list[list[int]]]:
    found = {}
    for name, groups in raw.items():
        field = f"{at}.groups.{name}"
        if name not in by:
            raise PlanError("groups a stratifier that the strategy does not use", field=field)
        found[name] = [[_label(str(text), labels[name], field) for text in group] for group in groups]
    return found


def _order(section: WeightSection, cells: BaseCells) -> Order | None:
    """Along each named stratifier in turn: every bin with the next, whatever the others are."""
    if section.collapse is None:
        return None
    if len(section.strategy) > 1 or any(each.by is not None for each in section.strategy):
        raise PlanError(
            "an order starts from one strategy over all base cells; drop the others", field="weight.collapse"
        )
    names = {each.name: place for place, each in enumerate(cells.stratifiers)}
    along = section.collapse.along
    _known(along, {each.name: () for each in cells.stratifiers}, "weight.collapse.along")
    steps = [1] * len(cells.shape)
    for place in range(len(steps) - 2, -1, -1):
        steps[place] = steps[place + 1] * cells.shape[place + 1]
    merges = []
    for name in along:
        place = names[name]
        for bin_ in range(cells.shape[place] - 1):
            here = [c for c in range(cells.size) if c // steps[place] % cells.shape[place] == bin_]
            merges += [(cell, cell + steps[place]) for cell in here]
    return Order(merges=tuple(merges))


def _candidates(section: WeightSection, strategies: tuple[Strategy, ...], order: Order | None) -> Candidates:
    if order is None or section.choose == Choice.COUNTS.value:
        return Candidates(strategies=strategies)
    if len(order.merges) >= MOST_STRATEGIES:
        raise PlanError(
            f"is a chain of {MOST_STRATEGIES} strategies or more; choose by noisy counts, or use fewer cells",
            field="weight.collapse",
        )
    return Candidates(strategies=order.chain(strategies[0]))


def _choice(section: WeightSection, candidates: Candidates, order: Order | None) -> Choice:
    if section.choose is None:
        choice = Choice.FIXED if len(candidates.strategies) == 1 else Choice.PRIVATE
    else:
        choice = Choice(_one_of(section.choose, list(Choice), "weight.choose"))
    if choice is Choice.COUNTS and order is None:
        raise PlanError(
            "needs [weight.collapse]: in which order bins are put together", field="weight.choose"
        )
    if (choice is Choice.FIXED) != (len(candidates.strategies) == 1) and choice is not Choice.COUNTS:
        several = len(candidates.strategies)
        raise PlanError(f"is {choice.value!r}, but there are {several} strategies", field="weight.choose")
    return choice


def _epsilon(
    section: WeightSection, choice: Choice, candidates: Candidates, neighbours: Neighbours
) -> Fraction:
    """The price of the choice: as written, or from a tolerated chance of a poor one."""
    given = section.epsilon is not None, section.tolerate is not None
    if choice is Choice.FIXED:
        if any(given):
            raise PlanError("the bins are fixed, which costs nothing; remove it", field="weight.epsilon")
        return Fraction(0)
    if sum(given) != 1 or (section.tolerate is not None and choice is Choice.COUNTS):
        raise PlanError("say what the choice of bins may cost", field="weight.epsilon")
    if section.tolerate is None:
        return amount(section.epsilon, field="weight.epsilon")
    chance, gap = (read_decimal(text) for text in (section.tolerate.chance, section.tolerate.gap))
    if chance is None or gap is None:
        raise PlanError("chance and gap are plain decimals", field="weight.tolerate")
    return tolerating(candidates, chance=chance, gap=gap).epsilon * neighbours.steps


def _base(name: str | None, schema: Schema) -> BaseWeights:
    if name is None:
        return EQUAL
    column = schema.weight(name, field="weight.base")
    return BaseWeights(unit=column.grid, heaviest=column.high, kept=min(1, column.high - 1))


def _one_of(word: str, known: Sequence[str], field: str) -> str:
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word, known)}", field=field)
    return word


def serving(weighting: Weighting, asks: Sequence[Ask], schema: Schema, neighbours: Neighbours) -> Weighting:
    """The same, with as many of the largest weights kept as the asks have a use for; refused where none uses it."""
    shares = [
        (place, ask.epsilon * sheet.share / neighbours.steps)
        for place, ask in enumerate(asks)
        if ask.weighted and isinstance(ask.query, Asked)
        for sheet in sheets(ask.query, schema)
    ]
    if not shares:
        raise PlanError(f"no ask says weight = {weighting.name!r}; drop the section", field="weight")
    for place, each in shares:
        if each / weighting.smoothness < LEAST_BETA:
            raise PlanError(
                f"leaves {float(each):.2g} to one of its sums, for one record; weights to known totals need at least "
                f"{float(LEAST_BETA * weighting.smoothness):.2g}",
                field=f"ask[{place}].epsilon",
            )
    return weighting.serving([each / weighting.smoothness for _, each in shares])
