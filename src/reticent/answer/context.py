"""What every answer needs: the codebook, the tallies, who is protected, the noise, and the planning values."""

from dataclasses import dataclass, field
from fractions import Fraction

from reticent.answer.parts import NoisyInteger, measure
from reticent.engine.results import Tallies
from reticent.noise.source import Noise
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.query.kinds import Subpopulation
from reticent.refine.pivot import LogScale
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Global, Neighbours
from reticent.sensitivity.hubs import HubCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One evaluation. `book` shares hubs between its asks, `heights` the log scales that were released so far.

    A book that was made for the same tallies and repair may be handed in as `known`. The tallies may be the sums over
    several `copies` of the rows, each completed by itself; answers are then means over copies.
    """

    schema: Schema
    neighbours: Neighbours
    tallies: Tallies = field(repr=False)
    noise: Noise = field(repr=False)
    rows: int | None = None
    repair: Repair = NO_REPAIR
    known: HubCache | None = field(default=None, repr=False)
    copies: int = 1
    book: HubCache = field(init=False, repr=False)
    heights: list[LogScale] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "book", self.known or HubCache(self.tallies, self.schema, self.repair))

    def measure(
        self, exact: int, what: str, *, bound: Global, grid: Fraction, epsilon: Fraction
    ) -> NoisyInteger:
        """A sum that moves by at most `bound` in each copy, as a mean over copies.

        Guarantee   epsilon-DP for one call.
        Adjacency   the one `bound` was proved for.
        Theorem     copies x bound for the sum over copies; then `measure`, in steps `copies` times as fine.
        Proof       proofs/answer/parts.md
        Assumes     in each copy the sum moves by at most bound.bound between neighbours; exact arithmetic.
        Keeps back  the exact integer.
        """
        return measure(
            exact,
            what,
            bound=Global(bound=self.copies * bound.bound),
            grid=grid / self.copies,
            epsilon=epsilon,
            noise=self.noise,
        )


def weight_of(among: Subpopulation, schema: Schema) -> Number | None:
    return schema.weight(among.weight, field="weight") if among.weight else None
