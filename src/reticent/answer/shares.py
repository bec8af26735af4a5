"""The privacy budget of one ask shared out among the sums it measures, known before a row is read.

Each sum has its global bound, its moves and its step. One that no donor's answer enters keeps Laplace noise at its global
bound. One that donors' answers enter has moves with rings, and noise scaled by a smooth bound.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.context import (
    count_bound,
    imputed,
    rings_of,
    split,
    times,
    total_bound,
    weight_of,
    with_donees,
)
from reticent.answer.parts import AnyMeasurement, HiddenScale, Measurement, plan_part
from reticent.answer.ratio import SQUARES_SHARE, squares_bound
from reticent.errors import PlanError
from reticent.prepare.repair import Bounding, Repair
from reticent.query.base import CodedMean, CodedSum, ProductsAboutMeans, RowQuery, SquaresAboutMean
from reticent.query.filled import roles
from reticent.refine.pivot import pivot
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Global, Neighbours, bound_sum
from reticent.sensitivity.donors import Moves, Span
from reticent.sensitivity.hubs import LN2, published_beta


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSpec:
    """One sum to be measured, in steps of `grid`."""

    what: str
    bound: Global
    moves: Moves
    grid: Fraction

    @property
    def is_smooth(self) -> bool:
        """Whether donors' answers enter it."""
        return bool(self.moves.c1)


class Tasks:
    """The sums that asks are made of, for one query: how each is bounded.

    Guarantee   each task's bound, or c0 and c1 of its moves, covers what one record can move the sum.
    Adjacency   `neighbours` for the bounds, one record added or removed for the moves.
    Theorem     `bound_sum`; THEORY 3.3, and 11.3 (a) for capped donors.
    Proof       proofs/answer/imputed.md
    Assumes     codes lie in the columns' bounds; centres are public or were released.
    Keeps back  nothing: no row is read.
    """

    __slots__ = ("_among", "_grid", "_imputed", "_neighbours", "_schema", "_top")

    def __init__(self, query: RowQuery, schema: Schema, neighbours: Neighbours, repair: Repair) -> None:
        weight = weight_of(query.among, schema)
        self._top, self._grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
        self._among, self._schema, self._neighbours = query.among, schema, neighbours
        self._imputed = imputed(query, schema, repair)

    def count(self) -> SumSpec:
        """Members, or their weight."""
        bound, grid = count_bound(self._among, self._schema, self._neighbours)
        return self._spec(what="count", bound=bound, moves=self._imputed.count(), grid=grid)

    def total(self, column: Number) -> SumSpec:
        """The sum of a column."""
        bound, grid = total_bound(column, self._among, self._schema, self._neighbours)
        moves = self._imputed.total(_span(column, Fraction(0)), of=column.name)
        return self._spec(what="total", bound=bound, moves=moves, grid=grid)

    def centred(self, mean: CodedMean, *, named: str = "") -> SumSpec:
        """The sum of 2y - 2c, in half steps of the column's grid; without a column, that of a condition."""
        column, twice = mean.number, mean.twice
        if column is None:
            return self.share()
        low, high = 2 * column.low, 2 * column.high
        span = Span(low=Fraction(low), high=Fraction(high), centre=Fraction(twice))
        bound = bound_sum(self._top * (low - twice), self._top * (high - twice), neighbours=self._neighbours)
        moves = self._imputed.total(span, of=column.name, step=2)
        return self._spec(
            what=f"centred sum{named}", bound=bound, moves=moves, grid=self._grid * column.grid / 2
        )

    def share(self) -> SumSpec:
        """The sum of 2 [true] - 1 over those decided, in halves."""
        bound = bound_sum(-self._top, self._top, neighbours=self._neighbours)
        moves = self._imputed.total(Span(low=Fraction(-1), high=Fraction(1)), of=None)
        return self._spec(what="centred sum", bound=bound, moves=moves, grid=self._grid / 2)

    def squares(self, column: Number, about: int, *, what: str = "squares about the mean") -> SumSpec:
        """The sum of (y - about)^2, in squared steps."""
        bound = squares_bound(column, about, self._top, self._neighbours)
        moves = self._imputed.squares(_span(column, Fraction(about)), of=column.name)
        return self._spec(what=what, bound=bound, moves=moves, grid=self._grid * column.grid**2)

    def squares_of(self, column: Number, about: int) -> SumSpec:
        """The same where two columns have squares."""
        return self.squares(column, about, what=f"squares of {column.name} about its mean")

    def products(self, y: Number, z: Number, about: tuple[int, int]) -> SumSpec:
        """The sum of (y - about)(z - about), in steps of one times steps of the other."""
        corners = [(a - about[0]) * (b - about[1]) for a in (y.low, y.high) for b in (z.low, z.high)]
        bound = bound_sum(self._top * min(corners), self._top * max(corners), neighbours=self._neighbours)
        moves = self._imputed.products(
            _span(y, Fraction(about[0])), _span(z, Fraction(about[1])), of=(y.name, z.name)
        )
        return self._spec(
            what="products about the means", bound=bound, moves=moves, grid=self._grid * y.grid * z.grid
        )

    def _spec(self, *, what: str, bound: Global, moves: Moves, grid: Fraction) -> SumSpec:
        """With what capped donees add, for each record between neighbours: a public number (THEORY 11.3 a)."""
        crosses = self._imputed.crosses
        whole = with_donees(bound, moves.donees, self._neighbours, self._imputed.repair, crosses=crosses)
        return SumSpec(what=what, bound=whole, moves=moves, grid=grid)


def _span(column: Number, centre: Fraction) -> Span:
    return Span(low=Fraction(column.low), high=Fraction(column.high), centre=centre)


Shares = tuple[tuple[SumSpec, Fraction], ...]

WHOLE, EIGHTH = Fraction(1), Fraction(1, 8)
SCALE = "noise scale"
PRODUCTS = Fraction(1, 4)
"""Of a correlation's epsilon, to the products; 3/16 to the squares of each column, the rest to their means."""
LEAST_BETA = Fraction(1, 2**16)
"""Below it a ladder has too many rungs to look at."""
PUBLISHED = "generalised Cauchy"


def planned(query: RowQuery, schema: Schema, neighbours: Neighbours, repair: Repair) -> Shares:
    """The tasks of an ask in the order they are measured, each with its share of the ask's epsilon.

    Squares and products are taken about means that are not known yet; here about one end, where they move most.
    """
    tasks = Tasks(query, schema, neighbours, repair)
    match query.shape(schema):
        case CodedSum(number=None):
            return ((tasks.count(), WHOLE),)
        case CodedSum(number=Number() as column):
            return ((tasks.total(column), WHOLE),)
        case CodedMean() as mean:
            return _ratio(tasks, mean)
        case SquaresAboutMean(mean=mean, number=column):
            about = tuple((task, share * (1 - SQUARES_SHARE)) for task, share in _ratio(tasks, mean))
            return (*about, (tasks.squares(column, column.low), SQUARES_SHARE))
        case ProductsAboutMeans() as products:
            return _products(tasks, products)
        case _:
            raise TypeError("only queries that are made of sums are shared out")


def _ratio(tasks: Tasks, mean: CodedMean) -> Shares:
    for_count, for_sum = split(WHOLE, mean.size)
    top = tasks.centred(mean)
    return ((tasks.count(), for_count), (top, for_sum)) if for_count else ((top, for_sum),)


def _products(tasks: Tasks, shape: ProductsAboutMeans) -> Shares:
    y, z = shape.numbers
    count = () if shape.means[0].size is not None else ((tasks.count(), EIGHTH),)
    each = EIGHTH if count else EIGHTH * Fraction(3, 2)
    centred = tuple(
        (tasks.centred(mean, named=f" of {column.name}"), each)
        for mean, column in zip(shape.means, shape.numbers, strict=True)
    )
    squares = tuple((tasks.squares_of(column, column.low), Fraction(3, 16)) for column in (y, z))
    return (*count, *centred, *squares, (tasks.products(y, z, (y.low, z.low)), PRODUCTS))


def planned_parts(
    query: RowQuery,
    epsilon: Fraction,
    bar: Fraction,
    *,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair,
    in_rho: bool = False,
) -> tuple[AnyMeasurement, ...]:
    """The parts an ask will be made of, from public numbers alone; with several rings, in steps as much finer. Smooth ones
    are paid in epsilon."""
    shares = planned(query, schema, neighbours, repair)
    copies = rings_of(query, schema, repair)
    smooth = sum((share for task, share in shares if task.is_smooth), Fraction(0))
    found: list[AnyMeasurement] = []
    for task, share in shares:
        if task.is_smooth:
            mine = bar * share / smooth
            found += smooth_parts(task, epsilon * share, mine, neighbours=neighbours, repair=repair)
        else:
            bound, grid, mine = times(task.bound, copies), task.grid / copies, epsilon * share
            found.append(plan_part(task.what, bound=bound, grid=grid, epsilon=mine, in_rho=in_rho))
    return tuple(found)


def smooth_parts(
    task: SumSpec, epsilon: Fraction, bar: Fraction, *, neighbours: Neighbours, repair: Repair
) -> tuple[AnyMeasurement, ...]:
    """The part of a smooth task and, with a bar, that of its log scale."""
    each = epsilon / neighbours.steps
    if is_published(task, repair):
        return (
            HiddenScale(
                what=task.what,
                epsilon=epsilon,
                unit=task.grid,
                beta=published_beta(each),
                mechanism=PUBLISHED,
                proof="proofs/noise/cauchy.md",
            ),
        )
    beta = each / repair.smoothness
    hidden = HiddenScale(what=task.what, epsilon=epsilon, unit=task.grid, beta=beta)
    if not bar:
        return (hidden,)
    law = pivot(epsilon=each, beta=beta, epsilon_scale=bar, level=Fraction(1, 2), steps=neighbours.steps)
    scale = Measurement(
        what=SCALE,
        epsilon=bar,
        bound=law.sensitivity.bound * law.grid,
        unit=law.grid,
        scale=law.scale,
        theorem="Laplace mechanism on the logarithm of a smooth bound",
        proof="proofs/refine/pivot.md",
    )
    return (hidden, scale)


def is_published(task: SumSpec, repair: Repair) -> bool:
    """Whether the plan asks for the published bound of the task's columns."""
    return any(repair.of(ring.column).bounding is Bounding.PUBLISHED for ring, _ in task.moves.c1)


def check_budget(
    query: RowQuery,
    epsilon: Fraction,
    bar: Fraction,
    *,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair,
    field: str = "epsilon",
) -> None:
    """Refuse, from public numbers, an epsilon with which some part of the ask cannot be carried out."""
    if not roles(query, schema, repair):
        return
    for task, share in planned(query, schema, neighbours, repair):
        each = epsilon * share / neighbours.steps
        if task.is_smooth and is_published(task, repair):
            _check_published(task, each, bar, field)
        elif task.is_smooth and each / repair.smoothness < LEAST_BETA:
            raise PlanError(
                f"leaves {float(each):.2g} to the {task.what}, for one record; answers that donors gave need at "
                f"least {float(LEAST_BETA * repair.smoothness):.2g}.",
                field=field,
            )


def _check_published(task: SumSpec, each: Fraction, bar: Fraction, field: str) -> None:
    if each < 2 * LN2:
        raise PlanError(
            f"leaves {float(each):.4g} to the {task.what}, for one record; the published mechanism is proved for "
            "2 ln 2 = 1.3863 or more, and below 0.87 it loses more than it claims; use the hub ladder.",
            field=field,
        )
    if bar:
        raise PlanError(
            "the published mechanism has no interval here; use the hub ladder, or leave it out.",
            field="interval.epsilon",
        )
