"""Post-strata in a plan: base cells and binning strategies of `[weight]`, how bins are chosen, and at what price.

Public, all of it: made of the words of the section.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from reticent.answer.weighting import Choice, tolerable
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal
from reticent.plan.sections import MOST_STRATEGIES, StrategySection, TolerateSection, WeightSection
from reticent.plan.statistics import read_query
from reticent.plan.totals import Totals, read_totals, totals_of
from reticent.prepare.strata import BaseCells, Candidates, Order, Strategy, Stratifier
from reticent.privacy.claim import amount
from reticent.query.kinds import CrossTabulation
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours


def margin_of(section: WeightSection, schema: Schema) -> CrossTabulation:
    """The base cells, as the table they would be asked for as."""
    names = [each.column for each in section.by]
    bins = {each.column: each.bins for each in section.by if each.bins is not None}
    for name in names:
        if schema.column(name, field="weight.by").role == "weight":
            raise PlanError(f"{name} is a base weight; write base = {name!r} instead", field="weight.by")
    raw = {"table": names, "bins": bins}
    query = read_query(raw, schema, missing="available", size=None, field="weight.by")
    if not isinstance(query, CrossTabulation):
        raise TypeError("a margin was asked for")
    return query


def cells_of(section: WeightSection, margin: CrossTabulation, schema: Schema) -> BaseCells:
    """The base cells of a weighting: the stratifiers of a section, with their bins and where missing values go."""
    found = []
    for place, each in enumerate(section.by):
        labels = margin.labels(schema, each.column)
        answers = margin.table(schema).keys[place].answers(schema)
        at = f"weight.by[{place}].missing"
        found.append(
            Stratifier(
                name=each.column, bins=answers, missing=label_of(str(each.missing), labels[:answers], at)
            )
        )
    return BaseCells(stratifiers=tuple(found))


def label_of(text: str, labels: Sequence[str], field: str) -> int:
    """The place of a bin by its label; refused with the nearest one."""
    if text not in labels:
        hint = nearest(text, labels) or f"; the first is {labels[0]!r}"
        raise PlanError(f"there is no bin {text[:80]!r}{hint}", field=field)
    return labels.index(text)


def strategies_of(
    section: WeightSection, cells: BaseCells, labels: Mapping[str, Sequence[str]], base: Totals | None
) -> tuple[Strategy, ...]:
    """Those that are listed, or every base cell a bin."""
    listed = section.strategy or [StrategySection(name="every base cell")]
    found = []
    for place, each in enumerate(listed):
        at = f"weight.strategy[{place}]" if section.strategy else "weight"
        by = list(labels) if each.by is None else known_names(each.by, labels, f"{at}.by")
        if each.totals is not None and section.rake is not None:
            raise PlanError("all totals are raked; remove these", field=f"{at}.totals")
        if each.totals is not None:
            fine = read_totals(each.totals, {name: labels[name] for name in by}, field=f"{at}.totals")
        elif base is not None:
            fine = base.onto(by)
        else:
            raise PlanError("needs totals, of its own or of all base cells", field=f"{at}.totals")
        groups = groups_of_labels(each.groups, by, labels, at)
        found.append(totals_of(each.name, cells, fine, {name: groups.get(name) for name in by}, field=at))
    return tuple(found)


def known_names(names: list[str], labels: Mapping[str, Sequence[str]], field: str) -> list[str]:
    """Stratifiers by name, each once, in the order of the plan."""
    for name in names:
        if name not in labels:
            raise PlanError(f"{name[:60]!r} is no stratifier{nearest(name, labels)}", field=field)
    if len(set(names)) < len(names):
        raise PlanError("names a stratifier twice; keep one", field=field)
    return [name for name in labels if name in names]


def groups_of_labels(
    raw: Mapping[str, list[list[str | int]]], by: Sequence[str], labels: Mapping[str, Sequence[str]], at: str
) -> dict[str, list[list[int]]]:
    """Groups of bins by their places, for the stratifiers that a strategy uses."""
    found = {}
    for name, groups in raw.items():
        field = f"{at}.groups.{name}"
        if name not in by:
            raise PlanError("groups a stratifier that the strategy does not use", field=field)
        found[name] = [[label_of(str(text), labels[name], field) for text in group] for group in groups]
    return found


def order_of(section: WeightSection, cells: BaseCells) -> Order | None:
    """Along each named stratifier in turn: every bin with the next, whatever the others are."""
    if section.collapse is None:
        return None
    if len(section.strategy) > 1 or any(each.by is not None for each in section.strategy):
        raise PlanError(
            "an order starts from one strategy over all base cells; drop the others", field="weight.collapse"
        )
    names = {each.name: place for place, each in enumerate(cells.stratifiers)}
    along = section.collapse.along
    known_names(along, {each.name: () for each in cells.stratifiers}, "weight.collapse.along")
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


def candidates_of(
    section: WeightSection, strategies: tuple[Strategy, ...], order: Order | None
) -> Candidates:
    """The strategies to choose from: those written out, or a chain of merges."""
    if order is None or section.choose == Choice.COUNTS.value:
        return Candidates(strategies=strategies)
    if len(order.merges) >= MOST_STRATEGIES:
        raise PlanError(
            f"is a chain of {MOST_STRATEGIES} strategies or more; choose by noisy counts, or use fewer cells",
            field="weight.collapse",
        )
    return Candidates(strategies=order.chain(strategies[0]))


def choice_of(section: WeightSection, candidates: Candidates, order: Order | None) -> Choice:
    """How a strategy is chosen: fixed, privately, or by noisy counts."""
    if section.choose is None:
        choice = Choice.FIXED if len(candidates.strategies) == 1 else Choice.PRIVATE
    else:
        choice = Choice(one_of(section.choose, list(Choice), "weight.choose"))
    if choice is Choice.COUNTS and order is None:
        raise PlanError(
            "needs [weight.collapse]: in which order bins are put together", field="weight.choose"
        )
    if (choice is Choice.FIXED) != (len(candidates.strategies) == 1) and choice is not Choice.COUNTS:
        several = len(candidates.strategies)
        raise PlanError(f"is {choice.value!r}, but there are {several} strategies", field="weight.choose")
    return choice


def price_of(
    section: WeightSection, choice: Choice, candidates: Candidates, neighbours: Neighbours
) -> Fraction:
    """The price of one choice: as written, or from a tolerated chance of a poor one."""
    given = section.epsilon is not None, section.tolerate is not None
    if choice is Choice.FIXED:
        if any(given):
            raise PlanError("the bins are fixed, which costs nothing; remove it", field="weight.epsilon")
        return Fraction(0)
    if sum(given) != 1 or (section.tolerate is not None and choice is Choice.COUNTS):
        raise PlanError("say what the choice of bins may cost", field="weight.epsilon")
    if section.tolerate is None:
        return amount(section.epsilon, field="weight.epsilon")
    several = len(candidates.strategies)
    price = tolerated(
        section.tolerate, several, candidates.delta, raked=section.rake is not None, at="weight"
    )
    return price * neighbours.steps


def tolerated(section: TolerateSection, several: int, delta: Fraction, *, raked: bool, at: str) -> Fraction:
    """What a choice costs, for one record, that takes a poor one of `several` with this chance at most."""
    chance, gap = (read_decimal(text) for text in (section.chance, section.gap))
    if chance is None or gap is None:
        raise PlanError("chance and gap are plain decimals", field=f"{at}.tolerate")
    if raked:
        raise PlanError(
            "how much a score can move is not known before totals are raked; give epsilon", field=at
        )
    return tolerable(several, delta, chance=chance, gap=gap)


def one_of(word: str, known: Sequence[str], field: str) -> str:
    """A word among those that are known; refused with the nearest one."""
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word, known)}", field=field)
    return word
