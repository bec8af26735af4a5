"""Shares, ratios and differences of cells of a table that is already released: post-processing (THEORY 14.6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import inf, sqrt

from reticent.answer.context import Context
from reticent.answer.expect import DERIVED, Expected
from reticent.answer.parts import (
    UNBOUNDED,
    Answer,
    AnyMeasurement,
    CellBasis,
    Estimate,
    Interval,
    Measurement,
)
from reticent.answer.statistic import BaseRoute, Ground
from reticent.errors import PlanError
from reticent.query.cells import DIFFERENCE, SHARE, FromCells
from reticent.query.sides import MISSING
from reticent.refine.cell_ratio import CellSum, difference_width, ratio_interval, share_interval
from reticent.refine.combination import NoiseLaw
from reticent.refine.total import SampleSize, share_variance

CELLS_WORDS = (
    "covers the value that the same respondents would give without privacy noise, with at least the stated probability; the "
    "noise of every cell is in it; for each by itself"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSums:
    """Sums of disjoint cells of one table, in its steps, and the noise that every cell holds."""

    top: CellSum
    bottom: CellSum
    scale: float
    step: Fraction
    counted: CellBasis
    law: NoiseLaw = NoiseLaw.LAPLACE

    def of_share(self, known: SampleSize | None) -> float | None:
        """The variance of `share` in a simple random sample, of as many respondents as these cells stand for."""
        among, wider = max(1.0, self.top.value + self.bottom.value) * float(self.step), self.counted.wider
        size = self.counted.size(known)
        if self.counted.weight is not None:
            heads = None if size is None else size.heads(among, self.counted.weight)
        else:
            heads = among
        return None if heads is None or wider is None else share_variance(self.share, heads) * wider

    def of_difference(self, known: SampleSize | None) -> float | None:
        """That of the difference of the two sums among n respondents of W in all: W^2/n (p + q - (p - q)^2)."""
        size, wider = self.counted.size(known), self.counted.wider
        whole = size.whole(self.counted.weight) if size is not None else None
        if size is None or not whole or wider is None:
            return None
        p, q = (max(0.0, each.value) * float(self.step) / whole for each in (self.top, self.bottom))
        n = max(1.0, size.effective(self.counted.weight))
        held = (min(1.0, p + q) * n + 2) / (n + 4)  # as `share_variance`, above 0 where nobody was counted
        return whole**2 / n * max(0.0, held - (p - q) ** 2) * wider

    @property
    def share(self) -> float:
        """top / (top + bottom), neither below 0; 0 where nobody is left."""
        top, bottom = max(self.top.value, 0.0), max(self.bottom.value, 0.0)
        return top / (top + bottom) if top + bottom else 0.0

    @property
    def ratio(self) -> float:
        return max(self.top.value, 0.0) / self.bottom.value if self.bottom.value > 0 else 0.0


def _exact(interval: tuple[float, float]) -> Interval:
    low, high = (UNBOUNDED if end == inf else Fraction(end) for end in interval)
    return low, high


def _share(sums: TwoSums, sd: float) -> Estimate:
    """With the sampling error of as many respondents as its cells hold."""
    k, size = sums.share, max(1.0, sums.top.value + sums.bottom.value)

    def interval(level: Fraction) -> Interval:
        return _exact(
            share_interval(sums.top, sums.bottom, scale=sums.scale, level=float(level), law=sums.law)
        )

    return Estimate(
        value=Fraction(k),
        interval=cache(interval),
        noise_sd=sd * sqrt((1 - k) ** 2 * sums.top.cells + k**2 * sums.bottom.cells) / size,
        sampling=sums.of_share,
        limits=(Fraction(0), Fraction(1)),
    )


def _ratio(sums: TwoSums, sd: float) -> Estimate:
    """Its total is that of the share of the first among both, carried over by the rising k / (1 - k)."""
    r = sums.ratio

    def interval(level: Fraction) -> Interval:
        return _exact(
            ratio_interval(sums.top, sums.bottom, scale=sums.scale, level=float(level), law=sums.law)
        )

    size = max(1.0, sums.bottom.value)
    return Estimate(
        value=Fraction(r),
        interval=cache(interval),
        noise_sd=sd * sqrt(sums.top.cells + r * r * sums.bottom.cells) / size,
        carried=(_share(sums, sd), lambda k: k / (1 - k) if k < 1 else inf),
    )


def _difference(sums: TwoSums, sd: float) -> Estimate:
    cells = sums.top.cells + sums.bottom.cells
    value = Fraction(sums.top.value - sums.bottom.value) * sums.step

    def interval(level: Fraction) -> Interval:
        width = (
            Fraction(difference_width(cells, scale=sums.scale, level=float(level), law=sums.law)) * sums.step
        )
        return value - width, value + width

    return Estimate(
        value=value,
        interval=cache(interval),
        noise_sd=sd * sqrt(cells) * float(sums.step),
        sampling=sums.of_difference,
    )


def answer_from_cells(query: FromCells, table: Answer, share: Fraction) -> Answer:
    """The share, ratio or difference for each cell of the table's other columns.

    Guarantee   no cost of its own: it is a function of released numbers.
    Adjacency   that of the table.
    Theorem     post-processing; THEORY 14.6 for the interval.
    Proof       proofs/refine/cell_ratio.md
    Assumes     the table's cells have independent noise of the one public scale in its measurement.
    Keeps back  nothing.
    """
    (part,) = table.parts
    if not isinstance(part, Measurement):
        raise TypeError("a table has noise of public scale")
    step = part.unit / share
    law = NoiseLaw.GAUSSIAN if part.is_gaussian else NoiseLaw.LAPLACE
    steps = [float(estimate.value / step) for estimate in table.estimates]
    make: Callable[[TwoSums, float], Estimate]
    make = _share if query.kind == SHARE else _difference if query.kind == DIFFERENCE else _ratio
    counted = table.counted or CellBasis(wider=None)
    estimates = []
    for cell, (top, bottom) in query.groups([each.cell for each in table.estimates]).items():
        sums = TwoSums(
            top=_sum(steps, top),
            bottom=_sum(steps, bottom),
            scale=float(part.scale),
            step=step,
            counted=counted,
            law=law,
        )
        estimates.append(replace(make(sums, part.sd / float(part.unit)), cell=cell))
    return Answer(estimates=tuple(estimates), parts=(), meaning=CELLS_WORDS)


def _sum(steps: Sequence[float], places: Sequence[int]) -> CellSum:
    return CellSum(value=sum(steps[place] for place in places), cells=len(places))


class FromCellsRoute(BaseRoute[FromCells]):
    """Shares, ratios or differences of cells of a table above: nothing is measured, and nothing paid."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        return ()

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return ()

    @property
    def no_bar(self) -> str:
        return (
            "is not needed: this estimate follows from the table it uses, so its interval is free; remove it"
        )

    def check_query(self, field: str) -> None:
        """Cells that the table does not have are not counted: those of missing answers in a column that donors fill."""
        for name, cells in (*self.query.of, *self.query.to):
            if name in self.setting.repair.filled() and MISSING in cells:
                raise PlanError(
                    f"counts cells of {name} {MISSING}, but donors fill {name}, so nobody is there; leave them out",
                    field=field,
                )

    def expect(self) -> Expected:
        return Expected(margin=None, how=DERIVED)

    def measured(self, context: Context) -> Answer:
        return answer_from_cells(self.query, context.before[self.query.table], self.setting.share)
