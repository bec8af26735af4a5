"""How a survey is weighted to known totals: all that is public of it.

Bins are fixed in the plan, or chosen privately among strategies, all at once or attribute by attribute, or put
together until their noisy counts are large enough. Totals are known, or raked from a noisy table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from reticent.answer.parts import Measurement, plan_table
from reticent.answer.poststrata import Law
from reticent.answer.raked import Fitting
from reticent.answer.strategy import STEPS
from reticent.engine.wants import Bins, Key, Rows, Sum
from reticent.errors import PlanError
from reticent.prepare.bins import EQUAL, BaseWeights
from reticent.prepare.collapsing import Order
from reticent.prepare.crossing import Crossing
from reticent.prepare.strategies import Candidates, summed
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.neighbours import Neighbours
from reticent.sensitivity.poststrata import rungs_needed

ROWS = 2**20
"""Respondents to plan for where the plan expects no number; with more, rungs are missing and noise grows."""


class Choice(StrEnum):
    """How the bins are found."""

    FIXED = "fixed"
    PRIVATE = "private"
    COUNTS = "noisy counts"
    EACH = "each attribute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """All that is public: base cells, base weights, strategies with their totals, and how one of them is found.

    `column` is the base weight, or None where all are equal. With noisy counts, `order` says which bins of the
    first strategy are put together; attribute by attribute, `crossing` says which ways there are. `epsilon` is the
    price of finding the bins. With a `fitting` the totals here are only assumed: those that are used come of a
    noisy table. `smoothness` is epsilon/beta of every ask.
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
    crossing: Crossing | None = None
    fitting: Fitting | None = None
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
        priced = self.crossing.epsilon if self.crossing else self.epsilon
        if (self.choice is Choice.EACH) != (self.crossing is not None) or priced != self.epsilon:
            raise PlanError("each attribute has its ways, and their prices add up.", field="attribute")

    @property
    def price(self) -> Fraction:
        """What is paid before any ask: for totals, and for bins."""
        return self.epsilon + (self.fitting.epsilon if self.fitting else 0)

    def fitted(self, totals: tuple[Fraction, ...]) -> "Weighting":
        """The same strategies with these totals of base cells."""
        # Attribute by attribute the crossing makes its own candidates, from the same totals.
        kept = self.candidates.strategies[:1] if self.crossing else self.candidates.strategies
        made = tuple(summed(each.name, each.bins, totals) for each in kept)
        crossing = replace(self.crossing, totals=totals) if self.crossing else None
        return replace(self, candidates=Candidates(strategies=made), crossing=crossing, fitting=None)

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

    def parts(self, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """What totals and bins cost, from public numbers; nothing where they are known and fixed."""
        table = (self.fitting.part(self.base, neighbours),) if self.fitting else ()
        if self.choice is Choice.COUNTS:
            bound = moved(neighbours)
            return (*table, plan_table(COUNTS, bound=bound, grid=Fraction(1), epsilon=self.epsilon))
        if self.crossing is not None:
            priced = [each for each in self.crossing.attributes if each.epsilon]
            return (*table, *(_chosen(_by(each.by), each.epsilon, neighbours) for each in priced))
        return (*table, _chosen(BINS, self.epsilon, neighbours)) if self.epsilon else table


BINS, COUNTS = "choice of bins", "counts of bins"


def _by(names: Sequence[str]) -> str:
    return f"{BINS} by {' and '.join(names)}"


def _chosen(what: str, epsilon: Fraction, neighbours: Neighbours) -> Measurement:
    """A choice among scores, which are told in units of Delta: one record moves them by one."""
    return Measurement(
        what=what,
        epsilon=epsilon,
        bound=Fraction(neighbours.steps),
        unit=Fraction(1, STEPS),
        scale=STEPS * neighbours.steps / epsilon,
        mechanism="permute-and-flip",
        theorem="choice among scores that rise together",
        proof="proofs/answer/weighing.md",
    )


def moved(neighbours: Neighbours) -> Global:
    """Each record is in one bin, so a table of counts moves by as many as come or go."""
    return Global(bound=Fraction(neighbours.steps))
