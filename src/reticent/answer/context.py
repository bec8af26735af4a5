"""What every answer needs: the codebook, the tallies, who is protected, the noise, and the planning values.

What the recipients whom capped donors serve add to a bound is found here, from public numbers alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Protocol

from reticent.answer.choose_bins import Weighed
from reticent.answer.parts import Answer, Estimate, NoisyInteger, measure
from reticent.engine.wants import SufficientStatistics, Sum, Tallies
from reticent.errors import PlanError
from reticent.models.moments import Uncertain
from reticent.noise.source import Noise
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.query.base import Query, RowQuery, Subpopulation
from reticent.query.filled import roles
from reticent.refine.pivot import LogScale, NoisyValue
from reticent.refine.total import DesignFactor, SampleSize
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import FINE, Global, Neighbours, bound_sum
from reticent.sensitivity.donors import Imputed
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


class KnownDesign(Protocol):
    """What is known of the sampling error when a statistic is answered: declared, or bought before."""

    def size(self, name: str) -> SampleSize | None:
        """How large the sample is, for the sampling error of a statistic."""

    def factor(self, name: str) -> DesignFactor | None:
        """The design factor of a statistic, by its name; None where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One evaluation. `book` shares hubs between its asks, `heights` the log scales that were released so far.

    A book that was made for the same tallies and repair may be handed in as `known`. The tallies may be the sums over
    several `copies` of the rows, each completed by itself; answers are then means over copies. `effect` is the design
    effect, and `design` what more is known of the sampling error; where `in_rho`, amounts are of rho and sums have Gaussian
    noise; `weighed` has the bins that were found for weights, `completed` the sums over copies, and `before` the answers
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
    design: KnownDesign | None = field(default=None, repr=False)
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

    def released(self, name: str | None) -> Estimate | None:
        """What a statistic above, named for its variance, says; none of a domain that is left out of what is published."""
        told = self.before[name].estimates if name is not None else ()
        return told[0] if told else None

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
    """The survey weight that a subpopulation is counted with, as the codebook declares it; None without one."""
    return schema.weight(among.weight, field="weight") if among.weight else None


COARSE = 1 << (FINE - 1)
"""Bounds below it are counted in their own steps."""


def imputed(query: RowQuery, schema: Schema, repair: Repair) -> Imputed:
    """The filled columns of an ask, and the largest base weight in steps."""
    weight = weight_of(query.among, schema)
    return Imputed(roles=roles(query, schema, repair), repair=repair, heaviest=weight.high if weight else 1)


def rests_on_caps(query: Query, schema: Schema, repair: Repair) -> bool:
    """Whether capped donors fill a column that the query rests on."""
    return bool(repair.capped and roles(query, schema, repair))


def rings_of(query: Query, schema: Schema, repair: Repair) -> int:
    """In how many rings the columns that an ask rests on are filled; 1 where it rests on none."""
    return repair.rings if rests_on_caps(query, schema, repair) else 1


def completions(query: Query, context: Context) -> Context:
    """The sums that a query is answered from: over the completions of all rings where it rests on them."""
    return context.fractional if rests_on_caps(query, context.schema, context.repair) else context


def with_donees(
    own: Global, donees: Fraction, neighbours: Neighbours, repair: Repair, *, crosses: bool = False
) -> Global:
    """What one respondent moves: their own rows, and the donees of each record between neighbours.

    Over domains every moved record may lie in a domain of its own, or where donees may cross in two, and be rounded to
    coarser steps there: a bound that will be counted in such steps is enlarged by as much.

    Guarantee   no pair of neighbours is farther apart.
    Adjacency   `neighbours`.
    Theorem     THEORY 11.3 (a) to (c); 14.2 and 14.3 over domains.
    Proof       proofs/answer/capped.md
    Assumes     `own` bounds what the respondent's own rows move, `donees` what one record moves through others' rows.
    Keeps back  nothing: every input is public.
    """
    whole = own.bound + neighbours.steps * donees
    if not donees or not neighbours.apart or repair.rings * whole < COARSE:
        return Global(bound=whole)
    served = sum(group.serve for group in repair.capped) * (2 if crosses else 1)
    moved = neighbours.steps * (1 + repair.rings * served)
    if 2 * moved > COARSE:
        raise PlanError(
            "donors serve too many for domains; lower the caps, or ask without by.", field="serve"
        )
    return Global(bound=Fraction(ceil(whole * COARSE / (COARSE - moved))))


def times(bound: Global, copies: int) -> Global:
    """The bound of a sum over so many completions, each of which moves by at most `bound`."""
    return Global(bound=copies * bound.bound)


def count_bound(among: Subpopulation, schema: Schema, neighbours: Neighbours) -> tuple[Global, Fraction]:
    """The bound of a count in steps, and the step: one respondent, or one step of the base weight."""
    weight = weight_of(among, schema)
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    return bound_sum(0, top, neighbours=neighbours), grid


def total_bound(
    column: Number, among: Subpopulation, schema: Schema, neighbours: Neighbours
) -> tuple[Global, Fraction]:
    """The bound of a total in steps of the column's grid (times the weight's)."""
    weight = weight_of(among, schema)
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    low, high = (
        (column.low, column.high) if weight is None else (min(0, top * column.low), max(0, top * column.high))
    )
    return bound_sum(low, high, neighbours=neighbours), grid * column.grid


def noisy(measured: NoisyInteger) -> NoisyValue:
    """A measured whole number with the scale and the law of its noise, for intervals."""
    part = measured.part
    return NoisyValue(
        value=float(measured.estimate),
        scale=float(part.scale * part.unit),
        blur=float(part.reach),
        law="gaussian" if part.is_gaussian else "laplace",
    )


COUNT_SHARE = Fraction(1, 4)
"""Of a mean's epsilon, to its count. Its error enters times |mean - centre|, which is mostly a small part of
the range; a quarter is the best share when that part is a fifth of the half-range."""


def split(epsilon: Fraction, size: int | None) -> tuple[Fraction, Fraction]:
    """Budget for the count and for the sum; a public size needs none."""
    return (
        (Fraction(0), epsilon) if size is not None else (epsilon * COUNT_SHARE, epsilon * (1 - COUNT_SHARE))
    )
