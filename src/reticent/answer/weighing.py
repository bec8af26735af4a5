"""How a survey is weighted to known totals: what is public of it, and the bins that are used in the end.

Bins are fixed in the plan, or chosen privately among strategies, or put together until their noisy counts are
large enough. The last two cost something once, before any ask, and every ask then uses the same bins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from reticent.answer.parts import Part, measure_table, plan_table
from reticent.answer.poststrata import Law
from reticent.answer.strategy import STEPS, Selection
from reticent.engine.results import BinTable
from reticent.engine.wants import Bins, Key, Rows, Sum
from reticent.errors import PlanError
from reticent.noise.source import Noise
from reticent.prepare.bins import EQUAL, BaseWeights
from reticent.prepare.collapsing import Order
from reticent.prepare.strategies import Candidates, Strategy
from reticent.refine.collapse import collapse
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.neighbours import Neighbours
from reticent.sensitivity.poststrata import Tally, rungs_needed

ROWS = 2**20
"""Respondents to plan for where the plan expects no number; with more, rungs are missing and noise grows."""


class Choice(StrEnum):
    """How the bins are found."""

    FIXED = "fixed"
    PRIVATE = "private"
    COUNTS = "noisy counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """All that is public: base cells, base weights, strategies with their totals, and how one of them is found.

    `column` is the base weight, or None where all are equal. With noisy counts, `order` says which bins of the
    first strategy are put together. `smoothness` is epsilon/beta of every ask.
    """

    name: str
    keys: tuple[Key, ...]
    silent: tuple[int, ...]
    candidates: Candidates
    labels: tuple[str, ...]
    column: str | None = None
    base: BaseWeights = EQUAL
    choice: Choice = Choice.FIXED
    order: Order | None = None
    epsilon: Fraction = Fraction(0)
    law: Law = Law.LOMAX
    smoothness: int = 8
    rows: int = ROWS
    least_beta: Fraction = Fraction(1, 8)

    def __post_init__(self) -> None:
        if (self.choice is Choice.FIXED) != (self.epsilon == 0):
            raise PlanError("a choice of bins has its price, and fixed bins have none.", field="epsilon")
        if (self.choice is Choice.COUNTS) != (self.order is not None):
            raise PlanError("noisy counts go with an order in which bins are put together.", field="order")

    def serving(self, betas: Sequence[Fraction]) -> "Weighting":
        """The same, with as many of the largest weights kept as asks with these betas have a use for."""
        least = min(betas, default=self.least_beta)
        kept = rungs_needed(beta=least, rows=self.rows) if self.base.heaviest > 1 else 0
        return replace(self, base=replace(self.base, kept=kept), least_beta=least)

    def want(self, sum_: Sum) -> Bins:
        """What is wanted of every base cell for a plain sum: its rows and value, weighted."""
        return Bins(
            rows=sum_.rows,
            value=sum_.value,
            keys=self.keys,
            silent=self.silent,
            weight=self.column,
            kept=self.base.kept,
        )

    @property
    def wanted(self) -> Bins:
        """What is wanted to find the bins: no ask's rows."""
        return self.want(Sum(rows=Rows()))

    def part(self, neighbours: Neighbours) -> Part | None:
        """What finding the bins costs, from public numbers; None where they are fixed."""
        if self.choice is Choice.FIXED:
            return None
        if self.choice is Choice.COUNTS:
            return plan_table(COUNTS, bound=_moved(neighbours), grid=Fraction(1), epsilon=self.epsilon)
        return Part(
            what=BINS,
            epsilon=self.epsilon,
            bound=self.candidates.delta * neighbours.steps,
            unit=self.candidates.delta / STEPS,
            scale=STEPS * neighbours.steps / self.epsilon,
            mechanism="permute-and-flip",
            theorem="choice among scores that rise together",
            proof="proofs/answer/weighing.md",
        )


BINS, COUNTS = "choice of bins", "counts of bins"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The bins that every ask uses. All of it was paid for, or is public."""

    strategy: Strategy
    part: Part | None = None
    counts: tuple[int, ...] = ()

    @property
    def epsilon(self) -> Fraction:
        return self.part.epsilon if self.part else Fraction(0)


def tally_of(table: BinTable) -> Tally:
    """An engine's table as the bounds take it."""
    return Tally(count=table.count, total=table.total, matching=table.matching, largest=table.largest)


def weigh(weighting: Weighting, table: BinTable, *, neighbours: Neighbours, noise: Noise) -> Weighed:
    """Find the bins.

    Guarantee   weighting.epsilon-DP for one call; nothing is spent on fixed bins.
    Adjacency   neighbours.
    Theorem     THEORY 6.4 with permute-and-flip for scores that rise together; THEORY 6.5 for noisy counts;
                group privacy over the records of a respondent.
    Proof       proofs/answer/weighing.md
    Assumes     strategies, totals, order, heaviest base weight and smallest beta public; the table is that of the
                base cells.
    Keeps back  the scores, and the exact counts.
    """
    part, strategies = weighting.part(neighbours), weighting.candidates.strategies
    if weighting.choice is Choice.FIXED:
        return Weighed(strategy=strategies[0])
    each = weighting.epsilon / neighbours.steps
    tally = tally_of(table)
    if weighting.choice is Choice.PRIVATE:
        selection = Selection(candidates=weighting.candidates, epsilon=each, base=weighting.base)
        chosen = noise.select(selection.scores(tally), sensitivity=STEPS, epsilon=each, monotone=True)
        return Weighed(strategy=strategies[chosen], part=part)
    counts = tally.merged(strategies[0]).count.tolist()
    noisy = measure_table(
        counts,
        COUNTS,
        bound=_moved(neighbours),
        grid=Fraction(1),
        epsilon=weighting.epsilon,
        noise=noise,
    )
    steps = tuple(cell.steps for cell in noisy)
    return Weighed(strategy=_collapsed(weighting, steps, each), part=part, counts=steps)


def _collapsed(weighting: Weighting, counts: tuple[int, ...], epsilon: Fraction) -> Strategy:
    """From noisy counts and public numbers alone."""
    if weighting.order is None:
        raise ValueError("noisy counts go with an order")
    start = weighting.candidates.strategies[0]
    return collapse(start, weighting.order, counts, beta=weighting.least_beta, epsilon=epsilon)


def _moved(neighbours: Neighbours) -> Global:
    """Each record is in one bin, so a table of counts moves by as many as come or go."""
    return Global(bound=Fraction(neighbours.steps))


def check_fine(weighting: Weighting, schema: Schema) -> None:
    """The bins are numbered as the keys say."""
    if any(len(each.bins) != weighting.wanted.size(schema) for each in weighting.candidates.strategies):
        raise ValueError("strategies are over the base cells of the keys")
