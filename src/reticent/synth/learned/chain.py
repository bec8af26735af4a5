"""A joint autoregressive model, trained on available answers by noisy gradients over all rows: `chain`.

Each column is drawn given all columns before it, by one line of weights for each of their answers. What a respondent left
open is absent from the loss and from the inputs: nothing is filled, and no row is dropped.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from math import sqrt
from typing import ClassVar

import numpy as np

from reticent.engine.protocol import RowFill
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.privacy.claim import Claim
from reticent.synth.base import Counts, Effort, FitTask, Floats, MissingMethod, Spend, Step
from reticent.synth.domain import Domain
from reticent.synth.fills import PAID, SHARE, after_filling, check_spend, filling, prepared
from reticent.synth.learned.descent import (
    SIMULATED,
    Pace,
    calibrated,
    descend,
    levelled,
    logits,
    scales,
    starting,
)
from reticent.synth.learned.gradient import GRID, LENGTH, ChainFill, ChainGradient, ChainLayout, Whole
from reticent.synth.learned.model import LearnedModel, drawn, fill_cells_of, group_sizes
from reticent.synth.learned.training import (
    NoisySteps,
    PoissonSample,
    SampledSteps,
    noise_of,
    sampled_multiplier,
)
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.study import View, plain
from reticent.synth.network import one_scale, simplex, total_of
from reticent.synth.spending import Accountant, NoisyCounts, claim_of
from reticent.synth.spending import total_of as total_amount

CHAIN = "chain"
PAGE = "proofs/synth/learned/chain.md"
RENYI = "proofs/privacy/renyi.md"
MOST_PARAMETERS = 5_000_000
MOST_COLUMNS = 500
PACE = Pace()
LEFT_OUT = "the model learned from the answers that each respondent gave, and missing ones had no part in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainModel(LearnedModel):
    """A fitted chain: biases and weights as `ChainLayout` has them, rows drawn column by column."""

    kind: ClassVar[str] = CHAIN

    @classmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        sizes = group_sizes(domain, holes)
        return sum((before + 1) * size for before, size in zip(accumulate([0, *sizes]), sizes, strict=False))

    def fills(self) -> tuple[RowFill, ...]:
        """How rows with missing answers are completed, column after column, each from itself."""
        view = plain(self.domain, self.holes)
        layout, grid = ChainLayout.of(view), np.rint(self.parameters * GRID).astype(np.int64)
        return tuple(
            ChainFill(layout=layout, weights=grid, column=place, **fill_cells_of(self.domain, view, place))
            for place in range(len(view.sides))
        )

    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        layout = ChainLayout.of(view)
        for place in range(groups.shape[1]):
            block = layout.block(self.parameters, place)
            groups[:, place] = drawn(np.exp(logits(layout, block, groups, place)), bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoregressiveChain:
    """A third of the amount for columns one by one, the rest for gradients, in equal parts.

    Missing values are left out by default. Where they are imputed first by a model, that model is MST.

    Parameters
    ----------
    pace : steps, rate and momentum of the descent
    ones : the share of the amount that columns one by one are measured with
    sample : which records a step looks at, where not at all of them
    share : the share that filling takes, where the strategy pays for it
    name : what a plan calls it
    """

    pace: Pace = PACE
    ones: Fraction = Fraction(1, 3)
    sample: PoissonSample | None = None
    share: Fraction = SHARE
    name: str = CHAIN

    def check(self, domain: Domain, holes: MissingMethod, spend: Spend) -> None:
        check_learned(self.name, domain, spend, ChainModel.size(domain, holes))
        check_spend(holes, spend, self.share)
        if self.sample is not None:
            if holes in PAID:
                raise PlanError(
                    f"does not go with {holes.value}, which is paid for in another way; leave missing answers out, or make them "
                    "a category",
                    field="sampling",
                )
            sampled_multiplier(spend, self.sample, self.ones * total_amount(spend))

    def claim(self, domain: Domain, holes: MissingMethod, spend: Spend) -> Claim:
        sampled = () if self.sample is None else (("noisy sums over Poisson samples", RENYI),)
        return claim_of(
            spend, *filling(holes), *sampled, ("clipped gradients, summed as whole numbers", PAGE)
        )

    def sampling(self, rate: Fraction, steps: int) -> "AutoregressiveChain":
        """The same with steps over Poisson samples."""
        return replace(
            self, sample=PoissonSample(rate=rate, steps=steps), pace=replace(self.pace, steps=steps)
        )

    def brief(self) -> "AutoregressiveChain":
        """The same with one step. Over all rows, its noise is that of each step."""
        pace = replace(self.pace, steps=1)
        if self.sample is not None:
            return replace(self, pace=pace, sample=replace(self.sample, steps=1))
        return replace(self, pace=pace, ones=1 - (1 - self.ones) / self.pace.steps)

    def done(self, missing: MissingMethod) -> str:
        return LEFT_OUT if missing is MissingMethod.AVAILABLE else ""

    def step_noise(self, domain: Domain, missing: MissingMethod, spend: Spend) -> float:
        total = total_amount(after_filling(spend, missing, self.share))
        if self.sample is None:
            return noise_of(self.pace.steps, (1 - self.ones) * total, spend)
        return float(sampled_multiplier(spend, self.sample, self.ones * total) / self.sample.rate)

    def rounds(self, domain: Domain) -> int:
        return self.pace.steps + 1 + MST().rounds(domain)

    def effort(self, domain: Domain, missing: MissingMethod) -> Effort:
        """From what was measured on one processor: 1.6 nanoseconds for every number that a row reads or moves in a step."""
        many, sizes = ChainModel.size(domain, missing), group_sizes(domain, missing)
        touched = sum((place + 1) * size for place, size in enumerate(sizes))
        rate = 1.0 if self.sample is None else float(self.sample.rate)
        return Effort(
            megabytes=1 + 80e-6 * many + SIMULATED * (24e-6 * max(sizes) + 8e-6 * len(sizes)),
            seconds=1 + 0.8e-6 * self.pace.steps * many,
            seconds_each=1e4 * self.pace.steps * rate * touched * 1.6e-9,
        )

    def fit(self, task: FitTask) -> ChainModel:
        """Measure columns one by one, descend by noisy gradients, set biases so that columns keep their shares.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     the Gaussian mechanism on sums of bounded vectors; composition of zCDP; post-processing.
        Proof       proofs/synth/learned/chain.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all sums and tables before the noise, and the number of rows.
        """
        domain, holes, noise, step = task.domain, task.missing, task.noise, task.step
        ready = prepared(task, model=MST(), share=self.share)
        rows, accountant = ready.counts, Accountant(spend=ready.spend, noise=noise)
        view = plain(domain, holes)
        layout = ChainLayout.of(view)
        total, shares = columns(rows, view, holes, accountant, amount=self.ones * accountant.total)
        step("columns")
        paid = self._paid(rows, accountant, step)

        met = total if self.sample is None else total * float(self.sample.rate)

        def noisy(weights: Whole) -> Floats:
            return levelled(layout, paid.noisy(ChainGradient(layout=layout, weights=weights)) / met)

        rate = self.pace.rate_at(paid.deviation / (met * sqrt(self.pace.steps)))
        scale = scales(layout, shares, self.pace.least)
        weights = descend(noisy, scale, starting(layout, shares), rate, self.pace)
        weights = calibrated(layout, weights, shares, noise.bits)
        return ChainModel(
            domain=domain,
            holes=holes,
            parameters=weights,
            total=total,
            claim=self.claim(domain, holes, task.spend),
        )

    def _paid(self, rows: Counts, accountant: Accountant, step: Step) -> NoisySteps | SampledSteps:
        """All rows in every step, paid in rho; or Poisson samples, whose noise is worked out from epsilon and delta."""
        if self.sample is not None:
            return SampledSteps(
                rows=rows, accountant=accountant, sample=self.sample, length=LENGTH, step=step
            )
        return NoisySteps(
            rows=rows,
            accountant=accountant,
            amount=accountant.left,
            steps=self.pace.steps,
            length=LENGTH,
            step=step,
        )


def check_learned(name: str, domain: Domain, spend: Spend, many: int) -> None:
    """Refuse from public numbers what no learned method can do: pure noise, one column, or `many` numbers beyond the limit."""
    if spend.is_pure:
        raise PlanError(
            f'{name} adds Gaussian noise, which needs a delta, such as "0.000001", or rho', field="delta"
        )
    if not 2 <= len(domain.axes) <= MOST_COLUMNS:
        raise PlanError(
            f"{name} learns how columns hang together: give it 2 to {MOST_COLUMNS}; for one, use independent",
            field="columns",
        )
    if many > MOST_PARAMETERS:
        raise PlanError(
            f"{name} would learn {many:,} numbers, above {MOST_PARAMETERS:,}; name fewer columns or bins",
            field="columns",
        )


def columns(
    rows: Counts, view: View, holes: MissingMethod, accountant: Accountant, *, amount: Fraction
) -> tuple[float, list[Floats]]:
    """The noisy number of respondents, and the noisy shares of every column's groups."""
    places = range(len(view.sides))
    counted = rows.count([(place,) for place in places])
    noisy = accountant.measure(
        [view.parted(t, (p,)) for t, p in zip(counted, places, strict=True)], amount=amount
    )
    total = total_of(noisy)
    ones = [_scaled(each, view, place, holes, total) for place, each in enumerate(noisy)]
    return total, [_shares(one, total) for one in ones]


def _scaled(noisy: NoisyCounts, view: View, place: int, holes: MissingMethod, total: float) -> Floats:
    if holes is MissingMethod.AVAILABLE:
        return one_scale(noisy, total, view.blocks((place,))).cells
    return noisy.cells[: view.cells((place,))]


def _shares(cells: Floats, total: float) -> Floats:
    made = simplex(cells, total)
    return np.asarray(made / made.sum())
