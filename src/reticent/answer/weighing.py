"""Find the totals and bins that weights are made of. What looks at the rows is paid for once, before any ask."""

from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.answer.attributes import choose_each
from reticent.answer.parts import Measurement, measure_table
from reticent.answer.raked import RakedTotals, fit_totals
from reticent.answer.strategy import STEPS, Selection
from reticent.answer.weighting import COUNTS, Choice, Weighting, moved
from reticent.engine.results import BinTable
from reticent.noise.source import Noise
from reticent.prepare.strategies import Strategy
from reticent.refine.collapse import collapse
from reticent.sensitivity.neighbours import Neighbours
from reticent.sensitivity.poststrata import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The bins that every ask uses. All of it was paid for, or is public."""

    strategy: Strategy
    parts: tuple[Measurement, ...] = ()
    counts: tuple[int, ...] = ()
    ways: tuple[int, ...] = ()
    fitted: RakedTotals | None = None

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
    parts, tally, fitted = weighting.parts(neighbours), tally_of(table), None
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
