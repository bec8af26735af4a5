"""Private choice of post-strata: the bins and totals that weights are made of, paid for once, before any ask.

Attribute by attribute, each choice has its own price and its own alpha, and sees those made before it. The first attribute
is scored alone, every later one crossed with the bins that were chosen already. So a later choice can make up for bins
that a crossing would leave too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.answer.factors import Factors
from reticent.answer.parts import Measurement, measure_table
from reticent.answer.weighting import (
    COUNTS,
    STEPS,
    Choice,
    RakedTotals,
    Selection,
    Weighting,
    fit_totals,
    moved,
)
from reticent.engine.wants import BinTable
from reticent.noise.source import Noise
from reticent.prepare.strata import BaseWeights, Crossing, Strategy
from reticent.refine.collapse import collapse
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.poststrata import Tally


def choose_each(
    crossing: Crossing, tally: Tally, *, base: BaseWeights, steps: int, noise: Noise
) -> tuple[int, ...]:
    """The way of every attribute, in their order.

    Guarantee   epsilon-DP for one call, epsilon the sum of the attributes' prices.
    Adjacency   `steps` records added or removed one after another.
    Theorem     THEORY 6.4 for each choice, with permute-and-flip; adaptive composition over the attributes.
    Proof       proofs/answer/attributes.md
    Assumes     ways, totals and the heaviest base weight public; `tally` is that of the base cells.
    Keeps back  the scores.
    """
    chosen: list[int] = []
    for attribute in crossing.attributes:
        if len(attribute.ways) == 1:
            chosen.append(0)
            continue
        each = attribute.epsilon / steps
        selection = Selection(candidates=crossing.candidates(chosen), epsilon=each, base=base)
        chosen.append(noise.select(selection.scores(tally), sensitivity=STEPS, epsilon=each, monotone=True))
    return tuple(chosen)


def alphas(crossing: Crossing, chosen: Sequence[int], *, steps: int) -> tuple[Fraction, ...]:
    """What every choice multiplied its scores by, epsilon over Delta for one record; 0 where nothing was chosen.

    Delta is that of the ways crossed with what was chosen before: released, so it can be told.
    """
    return tuple(
        attribute.epsilon / steps / crossing.candidates(chosen[:place]).delta
        for place, attribute in enumerate(crossing.attributes)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The bins that every ask uses. All of it was paid for, or is public."""

    strategy: Strategy
    parts: tuple[Measurement, ...] = ()
    counts: tuple[int, ...] = ()
    ways: tuple[int, ...] = ()
    fitted: RakedTotals | None = None
    factors: Factors | None = None

    @property
    def epsilon(self) -> Fraction:
        return sum((part.epsilon for part in self.parts), Fraction(0))


def tally_of(table: BinTable) -> Tally:
    """An engine's table as the bounds take it."""
    return Tally(count=table.count, total=table.total, matching=table.matching, largest=table.largest)


def weigh(weighting: Weighting, table: BinTable, *, neighbours: Neighbours, noise: Noise) -> Weighed:
    """Fit the totals, where they are not known, and find the bins.

    Guarantee   weighting.price-DP for one call; nothing is spent on known totals and fixed bins.
    Adjacency   neighbours.
    Theorem     THEORY 6.5 for a table that totals are raked from; THEORY 6.4 with permute-and-flip for scores that
                rise together; THEORY 6.5 for noisy counts; adaptive composition of the two; group privacy over
                the records of a respondent.
    Proof       proofs/answer/weighing.md
    Assumes     strategies, order, heaviest base weight and smallest beta public; totals public, or margins to rake
                to; the table is that of the base cells.
    Keeps back  the scores, and the exact counts.
    """
    parts, tally, fitted = weighting.found(neighbours), tally_of(table), None
    if weighting.fitting is not None:
        base = weighting.base
        fitted = fit_totals(weighting.fitting, tally, base=base, neighbours=neighbours, noise=noise)
        weighting = weighting.fitted(fitted.totals)
    found = _find(weighting, tally, neighbours, noise)
    return replace(found, parts=parts, fitted=fitted)


def _find(weighting: Weighting, tally: Tally, neighbours: Neighbours, noise: Noise) -> Weighed:
    """The bins, for totals that are public or released."""
    strategies, each = weighting.candidates.strategies, weighting.epsilon / neighbours.steps
    match weighting.choice:
        case Choice.FIXED:
            return Weighed(strategy=strategies[0])
        case Choice.PRIVATE:
            selection = Selection(candidates=weighting.candidates, epsilon=each, base=weighting.base)
            scores = selection.scores(tally)
            return Weighed(
                strategy=strategies[noise.select(scores, sensitivity=STEPS, epsilon=each, monotone=True)]
            )
        case Choice.EACH:
            return _found_each(weighting, tally, neighbours, noise)
        case Choice.COUNTS:
            return _found_by_counts(weighting, tally, neighbours, noise)


def _found_each(weighting: Weighting, tally: Tally, neighbours: Neighbours, noise: Noise) -> Weighed:
    if weighting.crossing is None:
        raise ValueError("attributes have their ways")
    crossing, base = weighting.crossing, weighting.base
    ways = choose_each(crossing, tally, base=base, steps=neighbours.steps, noise=noise)
    return Weighed(strategy=crossing.strategy(ways), ways=ways)


def _found_by_counts(weighting: Weighting, tally: Tally, neighbours: Neighbours, noise: Noise) -> Weighed:
    noisy = measure_table(
        tally.merged(weighting.candidates.strategies[0]).count.tolist(),
        COUNTS,
        bound=moved(neighbours),
        grid=Fraction(1),
        epsilon=weighting.epsilon,
        noise=noise,
    )
    steps = tuple(cell.steps for cell in noisy)
    each = weighting.epsilon / neighbours.steps
    return Weighed(strategy=_collapsed(weighting, steps, each), counts=steps)


def _collapsed(weighting: Weighting, counts: tuple[int, ...], epsilon: Fraction) -> Strategy:
    """From noisy counts and public numbers alone."""
    if weighting.order is None:
        raise ValueError("noisy counts go with an order")
    start = weighting.candidates.strategies[0]
    return collapse(start, weighting.order, counts, beta=weighting.least_beta, epsilon=epsilon)
