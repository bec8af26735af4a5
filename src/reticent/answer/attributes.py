"""Choose bins attribute by attribute: each choice has its own price and its own alpha, and sees those made before it.

The first attribute is scored alone, every later one crossed with the bins that were chosen already. So a later
choice can make up for bins that a crossing would leave too small.
"""

from collections.abc import Sequence
from fractions import Fraction

from reticent.answer.strategy import STEPS, Selection
from reticent.noise.source import Noise
from reticent.prepare.bins import BaseWeights
from reticent.prepare.crossing import Crossing
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
