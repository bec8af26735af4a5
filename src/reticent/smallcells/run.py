"""Run one table of small cells: what is read off the points of each cell as they come, and what is made of that."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import log, sinh
from statistics import NormalDist
from typing import Any

from reticent.engine.wants import PointsByCell, PointTable
from reticent.errors import PlanError
from reticent.noise.bits import Bits, SystemBits
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.smallcells import observed
from reticent.smallcells.cells import CHANGES, ENVELOPES, Method, SmallCells
from reticent.smallcells.observed import ObservedCells
from reticent.smallcells.points import GridPoints
from reticent.smallcells.pooled import PooledCells
from reticent.smallcells.readings import CellReadings, joined
from reticent.smallcells.smooth import SmoothCells
from reticent.smallcells.table import CellTable, Estimand, finite, noisy_counts, roots
from reticent.smallcells.theilsen import TheilSenCells

STEPS = 10**6
"""Steps of the published range. Its width over this is the grid of what leaves."""

CANDIDATES = 10**4
"""Steps of the range among which Theil-Sen chooses."""

MATCHINGS = 8
SMOOTH_WORDS = (
    "privacy noise only: the interval covers the cell's own estimate, kept within the range, with at least the stated "
    "chance; the variance of the noise is an unbiased estimate of it; sampling error comes on top"
)
UNBOUGHT_WORDS = (
    "the scale of the noise is confidential; give noise_epsilon for its variance and for intervals"
)
CHOSEN_WORDS = (
    "chosen near the median of lines through random pairs of respondents; a choice has no variance of its own to "
    "publish, and a least-squares line is not what it estimates"
)
POOLED_WORDS = (
    "privacy noise only, Laplace of a public scale: its variance is exact, and the interval covers the cell's own "
    "estimate, kept within the range, with at least the stated chance; cells below the least noisy count are withheld"
)
OBSERVED_WORDS = (
    "approximate: the variance is that of Laplace noise at the noisy count; the standard error adds the noisy sampling "
    "error where it was bought, and the interval is the usual one for it"
)
ONE_RECORD = (
    "is built for one record added or removed, and a respondent here may own several, have answers replaced, or count as "
    "several of the rows that donors filled; use method = 'smooth'"
)
ALL = "all cells"
Spec = SmoothCells | PooledCells | ObservedCells | TheilSenCells


def steps_between(neighbours: Neighbours) -> int:
    """How many single records lie between neighbours: each step is paid for (THEORY 1)."""
    return neighbours.records * (2 if neighbours.replaced else 1)


def spec_of(cells: SmallCells, schema: Schema, neighbours: Neighbours) -> Spec:
    """The method with its public numbers; it refuses what it cannot do."""
    k = steps_between(neighbours) * cells.stability
    if k > 1 and cells.method in (Method.POOLED, Method.OBSERVED):
        raise PlanError(f"{cells.method.value!r} {ONE_RECORD}", field="cells.method")
    low, high = cells.ends(schema)
    aim = Estimand(estimator=cells.estimator(schema), low=low, high=high, steps=STEPS)
    if cells.method is Method.OBSERVED:
        return _observed(cells, aim, schema)
    if cells.method is Method.POOLED:
        return PooledCells(
            aim=aim,
            epsilon=cells.epsilon,
            count_epsilon=cells.count_epsilon,
            noise_epsilon=cells.noise_epsilon,
            delta=cells.delta,
            least=cells.least,
            m=cells.m,
        )
    if cells.method is Method.THEIL_SEN:
        coarse = replace(aim, steps=CANDIDATES)
        return TheilSenCells(aim=coarse, epsilon=cells.epsilon / k, matchings=cells.matchings or MATCHINGS)
    return SmoothCells(
        aim=aim,
        epsilon=cells.epsilon / k,
        m=cells.m,
        noise_epsilon=cells.noise_epsilon / k or None,
        level=cells.level,
    )


def _observed(cells: SmallCells, aim: Estimand, schema: Schema) -> ObservedCells:
    return ObservedCells(
        estimator=aim.estimator,
        epsilon=cells.epsilon,
        count_epsilon=cells.count_epsilon,
        error_epsilon=cells.error_epsilon or None,
        groups=None if cells.groups is None else cells.groups.place,
        least=max(1, cells.least),
        span=aim.high - aim.low if cells.is_bounded else None,
        instead=(aim.low + aim.high) / 2,
        corners_only=cells.changes != CHANGES[0],
        removals=cells.changes != CHANGES[2],
        equal_sizes=cells.envelope == ENVELOPES[1],
        grid=aim.step,
    )


def try_cells(cells: SmallCells, nobody: GridPoints, schema: Schema, neighbours: Neighbours) -> None:
    """Run the section on one cell that nobody is in, so that what it refuses is refused before a row is read."""
    spec = spec_of(cells, schema, neighbours)
    if isinstance(spec, TheilSenCells):
        spec.through(nobody)  # all it can refuse; the choice itself takes ten seconds to compile
    else:
        alone, bits = replace(cells, groups=None), SystemBits()
        answer_cells(alone, read_off(nobody, spec, bits), schema, neighbours, bits=bits)


def read_off(points: GridPoints, spec: Spec, bits: Bits) -> CellReadings:
    """What a method reads off the points of each cell by itself. Theil-Sen draws its pairs and its choice there."""
    if isinstance(spec, TheilSenCells):
        return spec.read(points, bits=bits)
    return observed.read(points, spec) if isinstance(spec, ObservedCells) else spec.read(points)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReader:
    """The fold of a section: the readings of all cells, from points that come some whole cells at a time.

    An entry is made of the points of its own cell, so where a run ends changes none (proofs/smallcells/run.md).
    """

    spec: Spec
    x_steps: int
    y_steps: int
    bits: Bits = field(compare=False, repr=False)

    def of(self, cells: PointTable) -> CellReadings:
        points = GridPoints(
            starts=cells.starts, x=cells.x, y=cells.y, x_steps=self.x_steps, y_steps=self.y_steps
        )
        return read_off(points, self.spec, self.bits)

    def joined(self, parts: Sequence[CellReadings]) -> CellReadings:
        return joined(parts)


def want_of(cells: SmallCells, schema: Schema, neighbours: Neighbours, bits: Bits) -> PointsByCell:
    """What a section needs of the rows: the points of its cells, and what it reads off them. `bits` are no part of it."""
    want = cells.want(schema)
    x_steps = 1 if cells.x is None else want.steps(schema, cells.x)
    reader = CellReader(
        spec=spec_of(cells, schema, neighbours),
        x_steps=x_steps,
        y_steps=want.steps(schema, cells.y),
        bits=bits,
    )
    return replace(want, fold=reader)


def answer_cells(
    cells: SmallCells, read: CellReadings, schema: Schema, neighbours: Neighbours, *, bits: Bits
) -> CellTable:
    """The table of one section.

    Guarantee   `cells.claim`: epsilon-DP or (epsilon, delta)-DP for the whole table; none where it is observed.
    Adjacency   neighbours.
    Theorem     the method's own, and group privacy over the records between neighbours; budgets add.
    Proof       proofs/smallcells/run.md
    Assumes     `read` is what the section's `CellReader` made of the points of the clean rows, one row one point
                (proofs/engine/points.md); `cells` is public.
    Keeps back  the readings, and all that the method keeps back.
    """
    spec, k = spec_of(cells, schema, neighbours), steps_between(neighbours) * cells.stability
    if isinstance(spec, ObservedCells):
        return _observed_table(cells, spec, read, bits)
    if isinstance(spec, PooledCells):
        return _pooled_table(cells, spec, read, bits)
    made = _smooth_table(spec, read, bits) if isinstance(spec, SmoothCells) else _chosen(spec, read)
    counts = (
        noisy_counts(read.sizes, epsilon=cells.count_epsilon / k, bits=bits) if cells.count_epsilon else None
    )
    return _with_counts(cells, made, counts, spent=k * spec.cost + cells.count_epsilon, k=k)


def _chosen(spec: TheilSenCells, read: CellReadings) -> dict[str, Any]:
    nothing = [None] * read.cells
    made = spec.told(read).estimates()
    return {"estimates": made, "variances": nothing, "widths": nothing, "meaning": CHOSEN_WORDS}


def _smooth_table(spec: SmoothCells, read: CellReadings, bits: Bits) -> dict[str, Any]:
    made = spec.noised(read, bits=bits)
    if made.levels is None:
        nothing = [None] * read.cells
        parts: dict[str, Any] = {"variances": nothing, "widths": nothing, "meaning": UNBOUGHT_WORDS}
    else:
        widths = finite([float(width) for width in made.half_widths()])
        variances = finite([float(each) for each in made.noise_variance()])
        parts = {"variances": variances, "widths": widths, "meaning": SMOOTH_WORDS}
    return {"estimates": made.estimates(), **parts}


def _with_counts(
    cells: SmallCells, made: dict[str, Any], counts: list[int] | None, *, spent: Fraction, k: int
) -> CellTable:
    errors, nothing = roots(made["variances"]), [None] * len(made["estimates"])
    if counts is None:
        return CellTable(**made, errors=errors, counts=nothing, epsilon=spent)
    spread = _spread(cells.count_epsilon / k)
    return CellTable(**made, errors=errors, counts=counts, epsilon=spent, count_variance=spread)


def _pooled_table(cells: SmallCells, spec: PooledCells, read: CellReadings, bits: Bits) -> CellTable:
    made = spec.noised(read, bits=bits)
    is_kept = [step is not None for step in made.steps]
    variances = [v if kept else None for v, kept in zip(made.noise_variance(), is_kept, strict=True)]
    widths = [w if kept else None for w, kept in zip(made.half_widths(cells.level), is_kept, strict=True)]
    return CellTable(
        estimates=made.estimates(),
        variances=variances,
        errors=roots(variances),
        widths=widths,
        counts=made.counts,
        epsilon=spec.cost,
        delta=spec.delta,
        meaning=POOLED_WORDS,
        chi={ALL: made.chi * spec.aim.step},
        count_variance=_spread(spec.count_epsilon),
    )


def _observed_table(cells: SmallCells, spec: ObservedCells, read: CellReadings, bits: Bits) -> CellTable:
    made = observed.noised(read, spec, bits=bits)
    alone = roots(made.noise_variance)
    errors = alone if spec.error_epsilon is None else made.standard_errors
    z = NormalDist().inv_cdf((1 + float(cells.level)) / 2)
    tail = -log(1 - float(cells.level)) / 2**0.5  # of Laplace noise, in standard deviations
    reach = tail if spec.error_epsilon is None else z
    names = cells.groups.names if cells.groups is not None else (ALL,)
    return CellTable(
        estimates=made.estimates,
        variances=made.noise_variance,
        errors=errors,
        widths=[None if error is None else reach * error for error in errors],
        counts=made.counts,
        epsilon=spec.cost,
        meaning=OBSERVED_WORDS,
        chi=dict(zip(names, made.chi, strict=True)),
        count_variance=_spread(spec.count_epsilon),
        unprotected=made.unprotected,
    )


def _spread(epsilon: Fraction) -> float:
    """The variance of discrete Laplace noise of scale 1 / epsilon."""
    return float(f"{1 / (2 * sinh(float(epsilon) / 2) ** 2):.9g}") if epsilon < 1000 else 0.0
