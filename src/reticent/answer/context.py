"""What every answer needs: the codebook, the tallies, who is protected, the noise, and the planning values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from reticent.answer.choose_bins import Weighed
from reticent.answer.parts import Answer, NoisyInteger, measure
from reticent.engine.results import SufficientStatistics, Tallies
from reticent.engine.wants import Sum
from reticent.models.moments import Uncertain
from reticent.noise.source import Noise
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.query.base import Subpopulation
from reticent.refine.pivot import LogScale
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Global, Neighbours
from reticent.sensitivity.hubs import HubCache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompletedSums:
    """Sums over all `copies` of the rows, over the rows unfilled, and how sums differ a step up and down each line.

    `apart` has an entry for each direction in which some line is uncertain, line by line: the sums with the line `width`
    standard deviations up, less those with it as far down. `straight` has the same without draws, and `reaches` how far a row's codes
    can then be apart. `drawn` is the variance of a draw about its line, by column. Confidential but for `copies`, `lines`,
    `widths`, `reaches`, `filled` and `drawn`.
    """

    copies: int
    lines: tuple[Uncertain, ...]
    widths: tuple[float, ...]
    total: SufficientStatistics = field(repr=False)
    unfilled: SufficientStatistics = field(repr=False)
    apart: tuple[Mapping[Sum, int], ...] = field(repr=False)
    straight: tuple[Mapping[Sum, int], ...] = field(default=(), repr=False)
    reaches: tuple[Mapping[str, int], ...] = ()
    filled: tuple[str, ...] = ()
    drawn: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One evaluation. `book` shares hubs between its asks, `heights` the log scales that were released so far.

    A book that was made for the same tallies and repair may be handed in as `known`. The tallies may be the sums over
    several `copies` of the rows, each completed by itself; answers are then means over copies. `effect` is the design
    effect; where `in_rho`, amounts are of rho and sums have Gaussian noise; `weighed` has the bins that were found for weights, `completed` the sums over copies, and `before` the answers
    to the statistics above.
    """

    schema: Schema
    neighbours: Neighbours
    tallies: Tallies = field(repr=False)
    noise: Noise = field(repr=False)
    rows: int | None = None
    repair: Repair = NO_REPAIR
    known: HubCache | None = field(default=None, repr=False)
    copies: int = 1
    effect: float = 1.0
    in_rho: bool = False
    weighed: Weighed | None = field(default=None, repr=False)
    completed: CompletedSums | None = field(default=None, repr=False)
    before: Mapping[str, Answer] = field(default_factory=dict, repr=False)
    book: HubCache = field(init=False, repr=False)
    heights: list[LogScale] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "book", self.known or HubCache(self.tallies, self.schema, self.repair))

    @property
    def fractional(self) -> "Context":
        """The same with the completions of all rings that capped donors fill, each recipient as so many fractions."""
        found = self.tallies.fractions
        return self if found is None else replace(self, tallies=found, copies=self.repair.rings)

    def measure(
        self, exact: int, what: str, *, bound: Global, grid: Fraction, epsilon: Fraction
    ) -> NoisyInteger:
        """A sum that moves by at most `bound` in each copy, as a mean over copies.

        Guarantee   epsilon-DP for one call; `epsilon`-zCDP where `in_rho`.
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
            in_rho=self.in_rho,
        )


def weight_of(among: Subpopulation, schema: Schema) -> Number | None:
    return schema.weight(among.weight, field="weight") if among.weight else None
