"""How a plan's `[weight]` has its bins chosen, and at what price. Public, all of it."""

from collections.abc import Sequence
from fractions import Fraction

from reticent.answer.strategy import tolerable
from reticent.answer.weighting import Choice
from reticent.decimals import read_decimal
from reticent.errors import PlanError
from reticent.prepare.bins import BaseCells
from reticent.prepare.collapsing import Order
from reticent.prepare.strategies import Candidates, Strategy
from reticent.privacy.claim import amount
from reticent.release.weights_cells import known_names
from reticent.release.weights_sections import MOST_STRATEGIES, TolerateSection, WeightSection
from reticent.sensitivity.neighbours import Neighbours
from reticent.words import nearest


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
    if order is None or section.choose == Choice.COUNTS.value:
        return Candidates(strategies=strategies)
    if len(order.merges) >= MOST_STRATEGIES:
        raise PlanError(
            f"is a chain of {MOST_STRATEGIES} strategies or more; choose by noisy counts, or use fewer cells",
            field="weight.collapse",
        )
    return Candidates(strategies=order.chain(strategies[0]))


def choice_of(section: WeightSection, candidates: Candidates, order: Order | None) -> Choice:
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
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word, known)}", field=field)
    return word
