"""From a table with holes to synthetic rows, by the library's own synthesizers and noise that can be replayed.

Rows in memory that a synthesizer may count, as the engine's are. For trials only: the engine's do not show themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import coins
from reticent.engine.protocol import RowFill, RowSum
from reticent.lab.judge.distances import tally
from reticent.lab.noise import NoSynthNoise, QuickSynthNoise
from reticent.lab.trials.masks import Mask
from reticent.lab.trials.tables import Cells, Codes, Trial, cells_of, with_missing
from reticent.noise.bits import Bits, words
from reticent.privacy.claim import Change
from reticent.release.synth import draw_tables
from reticent.synth.base import Conditional, Counted, FitTask, MissingMethod, Places, Spend, SynthesisMethod
from reticent.synth.domain import BINS, HOLE, UNASKED, Domain, uniforms
from reticent.synth.imputed import imputing
from reticent.synth.learned.kamino import KAMINO
from reticent.synth.registry import find
from reticent.synth.residuals import fine_axes, with_fine_axes
from reticent.synth.rules import read_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Cells of a domain. Implements `synth.base.Counts`."""

    domain: Domain
    cells: Cells = field(repr=False)

    def count(self, sets: Sequence[Places]) -> list[Counted]:
        lines = np.ascontiguousarray(self.cells.T, dtype=np.int32)
        return [tally(lines[list(places)], self.domain.sizes(places)) for places in sets]

    def complete(self) -> "Held":
        silent = np.array([axis.silence for axis in self.domain.axes])
        return Held(domain=self.domain, cells=self.cells[(self.cells != silent).all(axis=1)])

    def filled(self, fills: Sequence[Conditional], bits: Bits) -> "Held":
        cells = self.cells.copy()
        for fill in fills:
            silent = cells[:, fill.place] == self.domain.axes[fill.place].silence
            if silent.any():
                rows = cells[silent]
                chances = fill.table[tuple(rows[:, place] for place in fill.given)]
                cells[silent, fill.place] = drawn(
                    np.broadcast_to(chances, (len(rows), chances.shape[-1])), bits
                )
        return Held(domain=self.domain, cells=cells)

    def redrawn(self, fill: RowFill, bits: Bits) -> "Held":
        lines = np.ascontiguousarray(self.cells.T, dtype=np.uint16)
        fill.fill(lines, words(len(self.cells), bits))
        return Held(domain=self.domain, cells=lines.T.astype(np.int32))

    def summed(self, work: RowSum) -> Counted:
        totals = np.zeros(work.length, dtype=np.int64)
        work.add(np.ascontiguousarray(self.cells.T, dtype=np.uint16), totals)
        return totals

    def sampled_sum(self, work: RowSum, rate: Fraction, bits: Bits) -> Counted:
        return Held(domain=self.domain, cells=self.cells[coins(len(self.cells), rate, bits)]).summed(work)

    def batches(self, size: int, bits: Bits) -> Iterator[Cells]:
        order = np.argsort(words(len(self.cells), bits))
        return (self.cells[order[at : at + size]].T for at in range(0, len(order), size))


def held_in_steps(codes: Codes, domain: Domain) -> Held:
    """Rows as cells, and binned numbers once more in fine steps: for methods that measure what bins take from a mean."""
    fine = []
    for each in fine_axes(domain):
        found = codes[:, each.place]
        low = domain.schema.coded[each.axis.column].low
        step = (2 * (found - low) + each.step) // (2 * each.step)
        step = np.where(found == HOLE, each.axis.silence, step)
        fine.append(np.where(found == UNASKED, each.axis.answers + 1, step))
    cells = np.concatenate([cells_of(codes, domain), *(column[:, None] for column in fine)], axis=1)
    return Held(domain=with_fine_axes(domain), cells=cells.astype(np.int32))


def drawn(chances: NDArray[np.float64], bits: Bits) -> NDArray[np.int32]:
    """One cell for every line, with the chances of that line."""
    even = uniforms(len(chances), bits)
    below = np.cumsum(chances, axis=1)
    place = (below <= even[:, None] * below[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(place, chances.shape[1] - 1), dtype=np.int32)


DELTA = Fraction(1, 1_000_000)
NO_MISSING = "no-missing"
WITHOUT = Fraction(100)  # what a method is told it may spend when the noise is switched off


KAMINO_FIRST = "impute-kamino"
"""Rows are completed by Kamino's model, whatever learns from them."""


def missing_of(strategy: str) -> MissingMethod:
    """What a strategy of the document does about missing values; its *holes* are a category of their own."""
    if strategy == NO_MISSING:
        return MissingMethod.COMPLETE
    if strategy == KAMINO_FIRST:
        return MissingMethod.MODEL
    return MissingMethod.VALUES if strategy == "holes" else MissingMethod(strategy)


PUBLIC_N = "privbayes-printed"
"""Proved where one of a public number of rows is replaced, and every row is in every table."""


def synthesize(
    table: Trial,
    lost: Mask,
    *,
    method: str,
    strategy: str,
    epsilon: Fraction | None,
    rng: np.random.Generator,
    share: Fraction | None = None,
    bins: int | None = BINS,
) -> Codes:
    """As many synthetic rows as the table has. Without an epsilon there is no noise, and the draws are still by chance.

    Parameters
    ----------
    table : the trial, nothing missing
    lost : which of its answers are taken away
    method : the synthesizer
    strategy : what is done about missing answers, or that there are none
    epsilon : the budget, with a delta of one in a million
    rng : where noise and draws come from
    share : which share of the budget an imputation takes, where it is not the method's own
    bins : how many a number is put in; none for the table's own
    """
    made = method_for(method, strategy, share)
    domain, spend = domain_and_spend(table, method, epsilon, bins)
    holes = missing_for(method, strategy)
    codes = table.codes if strategy == NO_MISSING else with_missing(table.codes, lost)
    noise = NoSynthNoise(rng) if epsilon is None else QuickSynthNoise(rng)
    is_fine = getattr(made, "residuals", False)
    held = held_in_steps(codes, domain) if is_fine else Held(domain=domain, cells=cells_of(codes, domain))
    made.check(domain, holes, spend)
    model = made.fit(FitTask(held, domain, holes, spend, noise=noise, step=_silently))
    copies = 1 if holes is MissingMethod.VALUES else 0
    rows = draw_tables(model, read_rules(domain), len(table.codes), copies, noise.bits)[0]
    return np.stack([rows[name] for name in table.columns], axis=1)


def method_for(method: str, strategy: str, share: Fraction | None) -> SynthesisMethod:
    """The synthesizer, with the model that imputes for it and the share of the budget that this takes, where they are said."""
    imputer = find(KAMINO) if strategy == KAMINO_FIRST else None
    return imputing(find(method), missing_of(strategy), imputer, share)


def domain_and_spend(
    table: Trial, method: str, epsilon: Fraction | None, bins: int | None
) -> tuple[Domain, Spend]:
    """The domain with its public number of rows where the method needs one, and what may be spent."""
    spend = Spend(epsilon=WITHOUT if epsilon is None else epsilon, delta=DELTA)
    if method != PUBLIC_N:
        return table.domain(bins), spend
    known = replace(table, schema=replace(table.schema, sample_size=len(table.codes)))
    return known.domain(bins), replace(spend, change=Change.REPLACE)


def missing_for(method: str, strategy: str) -> MissingMethod:
    """With nothing to fill, filling leaves every row as it is, and costs nothing where it is random.

    Residuals are not measured of rows that are left out, even if none is.
    """
    if method == PUBLIC_N and strategy == NO_MISSING:
        return MissingMethod.RANDOM
    if strategy == NO_MISSING and getattr(find(method), "residuals", False):
        return MissingMethod.WEIGHTED
    return missing_of(strategy)


def _silently(_: str) -> None:
    """No bar: a run of the lab has its own."""
