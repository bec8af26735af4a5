"""Choose a binning strategy: many bins, unless they make somebody's weight too large.

A strategy of |S| bins scores |S|/W_0, with W_0 the largest weight anybody has or would have. The score never
falls when a respondent is added, so no factor of two is lost, whatever the base weights are.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from flint import arb, ctx

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.noise.selection import exponential
from reticent.prepare.bins import EQUAL, BaseWeights
from reticent.prepare.strategies import Candidates, Strategy
from reticent.sensitivity.poststrata import Tally, weight_ladder

STEPS = 2**20
"""Scores are counted in steps of Delta/STEPS, so that one respondent moves them by exactly STEPS at most."""

_DECIMALS = 10**12


def score(strategy: Strategy, tally: Tally, *, base: BaseWeights) -> Fraction:
    """|S|/W_0, from the tally of the base cells. Private."""
    return strategy.size / weight_ladder(strategy, tally.merged(strategy), base=base).rung(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice among strategies at a price: with probability in proportion to e^(alpha score)."""

    candidates: Candidates
    epsilon: Fraction
    base: BaseWeights = EQUAL

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise PlanError(f"it is {self.epsilon}, but must be positive.", field="epsilon")

    @property
    def alpha(self) -> Fraction:
        """epsilon/Delta."""
        return self.epsilon / self.candidates.delta

    def scores(self, tally: Tally) -> list[int]:
        """Every strategy's score in steps of Delta/STEPS, rounded down. Private."""
        step = self.candidates.delta / STEPS
        return [floor(score(each, tally, base=self.base) / step) for each in self.candidates.strategies]

    def choose(self, tally: Tally, *, bits: Bits) -> Strategy:
        """The strategy to use.

        Guarantee   epsilon-DP for one call, epsilon = alpha Delta.
        Adjacency   one respondent added or removed.
        Theorem     THEORY 6.4; McSherry and Talwar 2007 for monotone scores.
        Proof       proofs/answer/strategy.md
        Assumes     strategies, totals and the heaviest base weight public; `tally` is that of the base cells.
        Keeps back  the scores.
        """
        chosen = exponential(
            self.scores(tally), sensitivity=STEPS, epsilon=self.epsilon, monotone=True, bits=bits
        )
        return self.candidates.strategies[chosen]

    def chances(self, tally: Tally) -> list[arb]:
        """How likely each strategy is, as balls. Private: for rehearsals and tests."""
        with ctx.workprec(128):
            scores = self.scores(tally)
            rate = self.epsilon / STEPS
            weights = [ball(rate * (each - max(scores))).exp() for each in scores]
            whole = sum(weights, arb(0))
            return [each / whole for each in weights]


def tolerating(
    candidates: Candidates, *, chance: Fraction, gap: Fraction, base: BaseWeights = EQUAL
) -> Selection:
    """The cheapest choice that takes a strategy scoring `gap` or more below the best at most with this chance.

    At worst all m - 1 others lie just so far below, each e^(-alpha gap) as likely as the best; so
    alpha gap >= ln((m - 1)(1 - chance)/chance). Epsilon is rounded up to twelve decimals.
    """
    epsilon = tolerable(len(candidates.strategies), candidates.delta, chance=chance, gap=gap)
    return Selection(candidates=candidates, epsilon=epsilon, base=base)


def tolerable(several: int, delta: Fraction, *, chance: Fraction, gap: Fraction) -> Fraction:
    """The epsilon that `tolerating` needs for so many strategies; it never falls when `delta` grows."""
    odds = (several - 1) * (1 - chance) / chance if 0 < chance < 1 else 0
    steps = floor(gap * STEPS / delta)  # what the rounding of scores leaves of the gap
    if not odds > 1 or steps < 1:
        raise PlanError(
            "a poor choice needs a chance below that of drawing lots, and a gap that can be told.",
            field="chance",
        )
    with ctx.workprec(128):
        least = ball(odds).log() * STEPS / steps * _DECIMALS
        return Fraction(ceil(_above(least)), _DECIMALS)


def _above(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    return mantissa * Fraction(2) ** exponent
